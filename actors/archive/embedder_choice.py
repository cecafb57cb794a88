"""Embedders by name: those that ship with everlog, and any model of an OpenAI-compatible embeddings endpoint."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

import msgspec

from everlog.actors.models.failure_classes import RETRIED
from everlog.actors.models.model_types import OPENAI_URL
from everlog.actors.ports.agent_constants import BACKOFF_S, BACKOFF_S_MAX, GATEWAY_ATTEMPTS_MAX
from everlog.actors.ports.real_clock import pause
from everlog.events import EmbedderError, ModelError
from everlog.store.archive.embedder import DEFAULT_EMBEDDER, EMBEDDERS, Embedder, embedder_of, has_words, unit

if TYPE_CHECKING:
    import numpy as np

LOOPBACK = ("127.0.0.1", "::1", "localhost")
AT = " at "
"""Between the model and its place in the name of an embedder: the same model at another place is another one."""
REQUEST_TEXTS = 128
"""Texts in one request."""
TEXT_CHARS_MAX = 8_000
"""Characters of a text that are sent: within the 8,192 tokens that models of this kind take."""


class EmbeddingsClient(Protocol):
    """Who sends requests: `endpoint.Embeddings`."""

    name: str
    url: str

    def ask(self, request: bytes) -> str:
        """The body of the answer. Raises ModelError."""
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...


class _Vector(msgspec.Struct):
    index: int
    embedding: list[float]


class _Answer(msgspec.Struct):
    data: list[_Vector]


class EndpointEmbedder:
    """A model of an embeddings endpoint. Blocks while it waits, so it is used from a thread that may."""

    def __init__(
        self, asked: EmbeddingsClient, dimension: int | None = None, *, wait: Callable[[float], None] = pause
    ) -> None:
        """`dimension`: what the vectors must have; None: what the first one has. `wait` takes seconds."""
        self.name = f"{asked.name}{AT}{asked.url}"
        self._asked = asked
        self._dimension = dimension
        self._wait = wait

    @property
    def dimension(self) -> int:
        """Numbers in a vector. Asks for one, where nobody has said. Raises EmbedderError."""
        if self._dimension is None:
            self._dimension = len(self._vectors(["dimension"])[0])
        return self._dimension

    def embed(self, texts: Sequence[str]) -> "np.ndarray":
        """See `Embedder.embed`. Give it some texts at a time, and keep what came: a failure takes all of a call."""
        import numpy as np

        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for places in _requests(texts):
            vectors = self._vectors([texts[place][:TEXT_CHARS_MAX] for place in places])
            if wrong := next((len(one) for one in vectors if len(one) != self.dimension), None):
                raise EmbedderError(
                    f"{self._place()} gave vectors of {wrong} numbers, where {self.dimension} were expected. Is it the "
                    "model that the table was made with? Another one needs a table of its own."
                )
            rows[places] = vectors
        if not np.isfinite(rows).all():
            raise EmbedderError(f"{self._place()} gave numbers that are none (NaN or infinity).")
        return unit(rows)

    def close(self) -> None:
        """Let go of connections. Idempotent."""
        self._asked.close()

    def _vectors(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector for each text, in their order."""
        request = msgspec.json.encode({"model": self._asked.name, "input": texts, "encoding_format": "float"})
        raw = self._answer(request)
        try:
            found = {one.index: one.embedding for one in msgspec.json.decode(raw, type=_Answer).data}
        except msgspec.DecodeError as error:
            raise EmbedderError(f"{self._place()} answered what is no list of embeddings ({error}).") from error
        if sorted(found) != list(range(len(texts))):
            raise EmbedderError(f"{self._place()} gave {len(found)} vectors for {len(texts)} texts.")
        return [found[index] for index in range(len(texts))]

    def _answer(self, request: bytes) -> str:
        attempts = 0
        while True:
            attempts += 1
            try:
                return self._asked.ask(request)
            except ModelError as error:
                if error.kind not in RETRIED or attempts >= GATEWAY_ATTEMPTS_MAX:
                    tries = f" after {attempts} attempts" if attempts > 1 else ""
                    raise EmbedderError(f"No vectors from {self._asked.name!r}{tries}. {error}") from error
                self._wait(min(max(error.retry_after_s, BACKOFF_S * 2 ** (attempts - 1)), BACKOFF_S_MAX))

    def _place(self) -> str:
        return f"The embeddings endpoint {self._asked.url} ({self._asked.name!r})"


def embedder_for(name: str = DEFAULT_EMBEDDER, base_url: str | None = None, dimension: int | None = None) -> Embedder:
    """The embedder of that name: one that ships with everlog, else that model of the endpoint at `base_url`.

    `base_url` None: OPENAI_BASE_URL, else OpenAI's own. Raises EmbedderError, as for a key that is missing.
    """
    if name in EMBEDDERS:
        return embedder_of(name)
    from everlog.actors.models.openai_client import EmbeddingsEndpoint

    try:
        return EndpointEmbedder(EmbeddingsEndpoint(name, base_url), dimension)
    except ModelError as error:
        raise EmbedderError(f"{error} Embedders that need no server: {', '.join(sorted(EMBEDDERS))}.") from error


def embedder_again(name: str, dimension: int) -> Embedder:
    """The embedder that a table was made with, by the name that is recorded with it.

    A file grants nothing: texts and key go to the place that the environment names, or OpenAI's own. To another place
    only texts go, without the key, and only on this machine. Raises EmbedderError.
    """
    model, _, place = name.rpartition(AT)
    if not model:
        return embedder_for(name, dimension=dimension)
    here = embedder_for(model, os.environ.get("OPENAI_BASE_URL") or OPENAI_URL, dimension)
    if here.name == name:
        return here
    if urlsplit(place).hostname not in LOOPBACK:
        raise EmbedderError(
            f"the vectors of the archive are of {model!r} at {place}, and OPENAI_BASE_URL does not name that place: no "
            "text is sent there. Set it to that address, or take other vectors: `everlog archive rebuild --embedder`."
        )
    from everlog.actors.models.openai_client import EmbeddingsEndpoint

    return EndpointEmbedder(EmbeddingsEndpoint(model, place, keyless=True), dimension)


def _requests(texts: Sequence[str]) -> Iterator[list[int]]:
    """Places of the texts that have words, as many at a time as go into a request."""
    places = [place for place, text in enumerate(texts) if has_words(text[:TEXT_CHARS_MAX])]
    for start in range(0, len(places), REQUEST_TEXTS):
        yield places[start : start + REQUEST_TEXTS]
