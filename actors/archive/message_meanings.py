"""Answer how near each message of an agent comes to a query, and search few memories, in a thread of this process.

Used by the archive clients of `archive_service.py`, so by hosts, programs and commands alike. The index is no part of
it: an answer needs no LanceDB and no other process, so the first search of a process gets one. Embedding begins when an
agent is loaded in a process that stays; elsewhere it begins with the first search.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from everlog.actors.ports.agent_constants import ARCHIVE_RETRY_S, EMBED_AHEAD_RECORDS, SEARCH_S
from everlog.events import ArchiveDown, ArchiveError, StoreError
from everlog.store import ArchiveQuery, MeaningQuery, SaidMessages

if TYPE_CHECKING:
    import numpy as np

    from everlog.events import Record
    from everlog.projections.search.memory_cache import KnownMemories
    from everlog.store.archive import Matches, MemoryRows


def _no_message(place: int) -> tuple[str, str, str]:
    raise IndexError(place)


NOTHING_SAID = SaidMessages((), _no_message)


class VectorIndex(Protocol):
    """Vectors of messages, such as `everlog.store.archive.MessageVectors`."""

    def near_many(self, asked: Sequence[MeaningQuery], is_closing: Callable[[], bool]) -> "list[np.ndarray]": ...

    def prepare(self, agent_id: str, said: SaidMessages, is_closing: Callable[[], bool]) -> None: ...

    def memory_rows(self, records: "Sequence[Record]", made: "MemoryRows | None") -> "MemoryRows": ...

    def search_memories(self, rows: "MemoryRows", wanted: ArchiveQuery) -> "Matches": ...

    def rest(self) -> None: ...

    def close(self) -> None: ...


class MessageMeanings:
    """Meanings of messages for any number of callers of one event loop."""

    def __init__(
        self,
        open_vectors: Callable[[], VectorIndex],
        said_by: Callable[[str], SaidMessages],
        *,
        note: Callable[[str], None],
        ahead_from: int | None = None,
    ) -> None:
        """Create the service. `open_vectors` is called in the thread at the first use. `said_by` returns what an agent
        has said and heard, for `begin`. `note` gets messages for people. `ahead_from`: number of records of an agent
        from which `begin` works; None: it never does, which suits a process that ends soon.
        """
        self._open_vectors = open_vectors
        self._said_by = said_by
        self._note = note
        self._ahead_from = ahead_from
        self._vectors: VectorIndex | None = None
        self._thread = ThreadPoolExecutor(1, "meanings")
        self._begun = self._closed = False
        self._noted = ""
        self._retry_at = 0.0
        """Time of the event loop before which no answer is awaited, after one that did not arrive."""

    async def near(self, agent_id: str, query: str, said: SaidMessages) -> "np.ndarray":
        """Return the similarity of each message to the query, as `MessageVectors.near` does. Raises ArchiveDown after
        SEARCH_S seconds, and while what is broken stays broken.
        """
        return (await self.near_many([MeaningQuery(agent_id, query, said)]))[0]

    async def near_many(self, asked: Sequence[MeaningQuery]) -> "list[np.ndarray]":
        """Return what `near` returns, for each of many agents. Raises ArchiveDown like `near`."""
        near: list[np.ndarray] = await self._answer(lambda vectors: vectors.near_many(asked, lambda: self._closed))
        return near

    async def search_memories(self, known: "KnownMemories", wanted: ArchiveQuery) -> "Matches":
        """Return the memories that match, best first, as the index would. Raises ArchiveDown like `near`."""
        records = tuple(known.records)

        def search(vectors: VectorIndex) -> "Matches":
            known.prepared = vectors.memory_rows(records, known.prepared)
            return vectors.search_memories(known.prepared, wanted)

        found: Matches = await self._answer(search)
        return found

    async def _answer(self, work: "Callable[[VectorIndex], Any]") -> Any:
        """Return the result of work with the vectors, which is done in the thread."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._retry_at:  # another wait of SEARCH_S would hold up each search of a host
            raise ArchiveDown("the embedder gave no answer a moment ago")
        try:
            return await asyncio.wait_for(loop.run_in_executor(self._thread, self._run, work), SEARCH_S)
        except TimeoutError:
            self._retry_at = loop.time() + ARCHIVE_RETRY_S
            raise ArchiveDown(f"the embedder gave no answer in {SEARCH_S} seconds") from None

    def begin(self, agent_id: str, records: int) -> None:
        """Load the embedder in the background, and embed what the agent has said and heard if it has so many records
        that its first search would have to wait.
        """
        is_large = records >= EMBED_AHEAD_RECORDS
        if self._ahead_from is None or records < self._ahead_from or self._closed:
            return
        if is_large or not self._begun:
            self._begun = True
            self._thread.submit(self._prepare, agent_id, is_large).add_done_callback(self._report)

    def rest(self) -> None:
        """Give back the memory of vectors in the background, after the searches that wait."""
        if self._vectors is not None and not self._closed:
            self._thread.submit(self._rest_vectors)

    def _rest_vectors(self) -> None:
        if self._vectors is not None:
            self._vectors.rest()

    def _report(self, done: "Future[None]") -> None:
        """Note an unexpected error of the background, a bug: no caller awaits it."""
        if not done.cancelled() and (error := done.exception()) is not None:
            self._note(f"messages are not embedded ahead of searches, which is a bug: {error!r}")

    def _prepare(self, agent_id: str, is_large: bool) -> None:
        def embed(vectors: VectorIndex) -> None:
            said = self._said_by(agent_id) if is_large else NOTHING_SAID
            vectors.prepare(agent_id, said, lambda: self._closed)

        with suppress(ArchiveDown):  # noted; a search tries again
            self._run(embed)

    def _run(self, work: Callable[[VectorIndex], Any]) -> Any:
        """Return the result of work with the vectors. An error that makes them unusable is noted once, and raised as
        ArchiveDown.
        """
        try:
            if self._vectors is None:
                self._vectors = self._open_vectors()
            return work(self._vectors)
        except (ArchiveError, StoreError, OSError, MemoryError) as error:
            if str(error) != self._noted:
                self._noted = str(error)
                self._note(f"messages cannot be compared by meaning, and searches go by words alone: {error}")
            self._close_vectors()  # a new one may find what is broken mended
            raise ArchiveDown(str(error)) from error

    def _close_vectors(self) -> None:
        vectors, self._vectors = self._vectors, None
        if vectors is not None:
            vectors.close()

    async def close(self) -> None:
        """Close the vectors. Idempotent."""
        if self._closed:
            return
        self._closed = True
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close_vectors)
        self._thread.shutdown(wait=False, cancel_futures=True)
