"""Ask a reranker for the order of search results: a model of an endpoint that reads the query with each text.

Off unless `models.toml` describes an endpoint with `reranker`. Used by the archive clients of `archive_service.py`. A
search must get its results without the reranker, too: every failure is an ArchiveDown, and no answer is awaited longer
than RERANK_S. The answer of a server is not trusted: only an order of the texts that were sent comes out of it.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import isfinite
from pathlib import Path
from typing import Protocol

import msgspec

from everlog.actors.memory.archive_questions import RERANK_CHARS_MAX
from everlog.actors.models.model_catalogue import catalogue_of
from everlog.actors.models.model_types import EndpointEntry
from everlog.actors.ports.agent_constants import ARCHIVE_RETRY_S
from everlog.events import ArchiveDown, BadInput, ModelError, StoreError

RERANK_S = 3.0
"""Seconds that a search waits for a reranker. Without an answer the results stay in their order."""
UNUSABLE = "rejected"
"""Class of the failure: asking again would not help."""
THREADS = 4
"""Requests at the same time."""


class RerankClient(Protocol):
    """Client of a rerank endpoint, such as `RerankEndpoint`."""

    def ask(self, request: bytes) -> str: ...

    def close(self) -> None: ...


class _Scored(msgspec.Struct):
    index: int
    relevance_score: float


class _Answer(msgspec.Struct):
    results: list[_Scored]


def client_of(endpoint: EndpointEntry) -> RerankClient:
    """Return a client of an endpoint. Raises ModelError, for example for a missing key."""
    from everlog.actors.models.openai_client import RerankEndpoint

    return RerankEndpoint(endpoint.reranker, endpoint.url, key_name=endpoint.key, timeout_s=RERANK_S)


class Reranker:
    """Reranker of one store, for any number of callers. Its endpoint is looked up at each search."""

    def __init__(
        self, root: Path, *, note: Callable[[str], None], make: Callable[[EndpointEntry], RerankClient] = client_of
    ) -> None:
        """Rerank for the store in `root`. `note` gets messages for people."""
        self._root = root
        self._note = note
        self._make = make
        self._noted = ""
        self._client: tuple[EndpointEntry, RerankClient] | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._retry_at = 0.0
        """Time of the event loop before which nothing is sent, after an answer that did not come or was none."""

    @property
    def is_on(self) -> bool:
        """True if an endpoint is described that reranks, or if the description cannot be read."""
        try:
            return catalogue_of(self._root).reranking is not None
        except (BadInput, StoreError):
            return True  # `order` says why

    async def order(self, query: str, texts: Sequence[str]) -> list[int]:
        """Return the numbers of the texts (from 0), best first: those without a score last, and equal ones in the order
        in which they were given. Raises ArchiveDown.
        """
        loop = asyncio.get_running_loop()
        if loop.time() < self._retry_at:
            raise ArchiveDown("the reranker gave no answer a moment ago")
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS, "reranker")
        try:
            return await asyncio.wait_for(loop.run_in_executor(self._threads, self._order, query, texts), RERANK_S)
        except TimeoutError:
            reason = f"the reranker gave no answer in {RERANK_S} seconds"
        except (ModelError, BadInput, StoreError) as error:
            reason = str(error)
        self._retry_at = loop.time() + ARCHIVE_RETRY_S
        if reason != self._noted:
            self._noted = reason
            self._note(f"search results are not reranked: {reason}")
        raise ArchiveDown(reason)

    def _order(self, query: str, texts: Sequence[str]) -> list[int]:
        endpoint = catalogue_of(self._root).reranking
        if endpoint is None:
            return list(range(len(texts)))
        if self._client is None or self._client[0] != endpoint:
            self._client = (endpoint, self._make(endpoint))
        documents = [text[:RERANK_CHARS_MAX] for text in texts]
        request = {"model": endpoint.reranker, "query": query[:RERANK_CHARS_MAX], "documents": documents,
                   "top_n": len(documents)}  # fmt: skip
        scores = _scores(self._client[1].ask(msgspec.json.encode(request)), len(texts), endpoint)
        return sorted(range(len(texts)), key=lambda number: (-scores.get(number, float("-inf")), number))

    def close(self) -> None:
        """Close the connections, and wait for no answer. Idempotent."""
        threads, self._threads = self._threads, None
        client, self._client = self._client, None
        if threads is not None:
            threads.shutdown(wait=False, cancel_futures=True)
        if client is not None:
            client[1].close()


def _scores(answer: str, count: int, endpoint: EndpointEntry) -> dict[int, float]:
    """Return the scores by the number of the text. Raises ModelError for an answer that has none, or nonsense."""
    place = f"The rerank endpoint {endpoint.url} ({endpoint.reranker!r})"
    try:
        results = msgspec.json.decode(answer, type=_Answer).results
    except msgspec.DecodeError as error:
        raise ModelError(f"{place} answered what is no list of scores ({error}).", kind=UNUSABLE) from error
    scores = {one.index: one.relevance_score for one in results}
    expected = f"{place} was sent {count} texts, and one finite score for each was expected"
    if not scores or len(scores) < len(results):
        raise ModelError(f"{expected}; it gave {len(results)} for {len(scores)} of them.", kind=UNUSABLE)
    if wrong := [f"{score} for text {n}" for n, score in scores.items() if not (0 <= n < count and isfinite(score))]:
        raise ModelError(f"{expected}; it gave {wrong[0]} (counted from 0).", kind=UNUSABLE)
    return scores
