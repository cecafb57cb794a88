"""Choose an embedder by name: one that everlog ships, or a model of an OpenAI-compatible embeddings endpoint.

Used by `archive_index` and by the commands that maintain the index. The name of an embedder is recorded with its table:
`embedder_by_recorded_name` must understand every name that was ever recorded, and must send no text to an address that
only a file names, unless that address is on this machine.
"""

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
from everlog.store.embedding.embedder import DEFAULT_EMBEDDER, EMBEDDERS, Embedder, embedder_of, has_words, unit

if TYPE_CHECKING:
    import numpy as np

LOOPBACK = ("127.0.0.1", "::1", "localhost")
AT = " at "
"""Separator of model and address in the name of an embedder: the same model at another address is another embedder."""
REQUEST_TEXTS = 128
"""Texts in one request."""
TEXT_CHARS_MAX = 8_000
"""Characters of a text that are sent: within the 8,192 tokens that such models accept."""


class EmbeddingsClient(Protocol):
    """Client of an embeddings endpoint, such as `EmbeddingsEndpoint`."""

    name: str
    url: str

    def ask(self, request: bytes) -> str:
        """Return the body of the answer. Raises ModelError."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


class _Vector(msgspec.Struct):
    index: int
    embedding: list[float]


class _Answer(msgspec.Struct):
    data: list[_Vector]


class EndpointEmbedder:
    """Model of an embeddings endpoint. Its methods block, so they are called in a thread."""

    def __init__(
        self, asked: EmbeddingsClient, dimension: int | None = None, *, wait: Callable[[float], None] = pause
    ) -> None:
        """Create the embedder. `dimension`: expected length of the vectors; None: that of the first one. `wait` takes
        seconds.
        """
        self.name = f"{asked.name}{AT}{asked.url}"
        self._asked = asked
        self._dimension = dimension
        self._wait = wait

    @property
    def dimension(self) -> int:
        """Length of a vector. Requests a vector if the length is unknown. Raises EmbedderError."""
        if self._dimension is None:
            self._dimension = len(self._vectors(["dimension"])[0])
        return self._dimension

    def embed(self, texts: Sequence[str]) -> "np.ndarray":
        """Return the vectors of texts; see `Embedder.embed`. A failure loses all results of the call, so give it few
        texts.
        """
        import numpy as np

        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for places in _requests(texts):
            vectors = self._vectors([texts[place][:TEXT_CHARS_MAX] for place in places])
            if wrong := next((len(one) for one in vectors if len(one) != self.dimension), None):
                raise EmbedderError(
                    f"{self._place()} gave vectors of {wrong} numbers, where {self.dimension} were expected. Is it the "
                    "model that the table was made with? Another model needs a table of its own."
                )
            rows[places] = vectors
        if not np.isfinite(rows).all():
            raise EmbedderError(f"{self._place()} gave vectors with NaN or infinity.")
        return unit(rows)

    def close(self) -> None:
        """Close the connections. Idempotent."""
        self._asked.close()

    def _vectors(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector for each text, in their order."""
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
    """Return the embedder of that name: one that everlog ships, else that model of the endpoint at `base_url`.

    `base_url` None: OPENAI_BASE_URL, else OpenAI's own. Raises EmbedderError, for example for a missing key.
    """
    if name in EMBEDDERS:
        return embedder_of(name)
    from everlog.actors.models.openai_client import EmbeddingsEndpoint

    try:
        return EndpointEmbedder(EmbeddingsEndpoint(name, base_url), dimension)
    except ModelError as error:
        raise EmbedderError(f"{error} Embedders that need no server: {', '.join(sorted(EMBEDDERS))}.") from error


def embedder_by_recorded_name(name: str, dimension: int) -> Embedder:
    """Return the embedder that a table was made with, by its recorded name.

    A file grants nothing: texts and the key are sent only to the address in the environment, or to OpenAI. Another
    recorded address gets texts without the key, and only if it is on this machine. Raises EmbedderError.
    """
    model, _, place = name.rpartition(AT)
    if not model:
        return embedder_for(name, dimension=dimension)
    here = embedder_for(model, os.environ.get("OPENAI_BASE_URL") or OPENAI_URL, dimension)
    if here.name == name:
        return here
    if urlsplit(place).hostname not in LOOPBACK:
        raise EmbedderError(
            f"The vectors of the archive are of {model!r} at {place}, but OPENAI_BASE_URL is another address: no text "
            "is sent there. Set OPENAI_BASE_URL to it, or change vectors: `everlog archive rebuild --embedder`."
        )
    from everlog.actors.models.openai_client import EmbeddingsEndpoint

    return EndpointEmbedder(EmbeddingsEndpoint(model, place, key_name=""), dimension)


def _requests(texts: Sequence[str]) -> Iterator[list[int]]:
    """Yield the indices of the texts that have words, at most REQUEST_TEXTS at a time."""
    places = [place for place, text in enumerate(texts) if has_words(text[:TEXT_CHARS_MAX])]
    for start in range(0, len(places), REQUEST_TEXTS):
        yield places[start : start + REQUEST_TEXTS]
