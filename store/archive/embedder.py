"""From texts to vectors. An embedder is named, and so is each table of its vectors: those of two never meet.

This module imports no numpy and no model: both come when something is embedded.
"""

import importlib.util
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from everlog.events import EmbedderError

if TYPE_CHECKING:
    import numpy as np

WORDLLAMA = "wordllama-256"
DEFAULT_EMBEDDER = WORDLLAMA

BATCH_TEXTS = 256
"""Texts that are cut into tokens at once."""
TEXT_CHARS_MAX = 100_000
"""What a text says after this does not change its vector: an average over more says nothing of its own."""
PIECE_CHARS = 10_000
"""A longer text is cut into tokens in pieces of this: what is in memory at once does not grow with it."""
GATHER_TOKENS = 8_192
"""Vectors of tokens that are in memory at once: 8 MB."""

_WORD = re.compile(r"[^\W_]")


class Embedder(Protocol):
    """One model of meaning. The same text gives the same vector, whatever it is embedded together with."""

    name: str
    """What its tables are called by; another name for anything that gives other vectors."""

    @property
    def dimension(self) -> int:
        """Numbers in a vector. Raises EmbedderError, where it has to be asked for."""
        ...

    def embed(self, texts: Sequence[str]) -> "np.ndarray":
        """A row for each text: float32, (len(texts), dimension), of length 1; zeros for a text without words.

        Never NaN. Raises EmbedderError.
        """
        ...


class WordLlama:
    """Vectors of words, averaged: 256 numbers, 6,000 short texts a second, offline. See decision 14."""

    name = WORDLLAMA
    dimension = 256

    def __init__(self) -> None:
        """Loads nothing yet: the first texts do, in about a second. Not thread-safe until then."""
        self._loaded: tuple[Any, np.ndarray] | None = None

    def embed(self, texts: Sequence[str]) -> "np.ndarray":
        """See `Embedder.embed`."""
        import numpy as np

        tokenizer, vectors = self._model()
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        waiting = _pieces(texts)
        while pieces := list(islice(waiting, BATCH_TEXTS)):
            encoded = tokenizer.encode_batch([piece for _, piece in pieces], add_special_tokens=False)
            for (row, _), tokens in zip(pieces, encoded, strict=True):
                rows[row] += _sum(vectors, tokens.ids)
        return unit(rows)

    def _model(self) -> "tuple[Any, np.ndarray]":
        if self._loaded is None:
            self._loaded = _load(self.dimension)
        return self._loaded


EMBEDDERS: dict[str, Callable[[], Embedder]] = {WORDLLAMA: WordLlama}
"""The embedders that need no server, by name."""


def embedder_of(name: str = DEFAULT_EMBEDDER) -> Embedder:
    """The embedder of that name, nothing of it loaded yet. Raises EmbedderError naming those that there are."""
    if name not in EMBEDDERS:
        raise EmbedderError(f"There is no embedder {name!r} here. There are: {', '.join(sorted(EMBEDDERS))}.")
    return EMBEDDERS[name]()


def message_text(role: str, name: str, text: str) -> str:
    """What of a message is embedded: who said it, and the words. Empty if it has none."""
    return f"{name or role}: {text}" if has_words(text) else ""


def has_words(text: str) -> bool:
    """Whether there is a letter or a digit in it: without any there is nothing to embed."""
    return _WORD.search(text) is not None


def unit(rows: "np.ndarray") -> "np.ndarray":
    """The rows with length 1, in place; zeros stay zeros, and so becomes what is no number."""
    import numpy as np

    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    usable = np.isfinite(lengths) & (lengths > 0)
    np.divide(rows, lengths, out=rows, where=usable)
    rows[~usable[:, 0]] = 0
    return rows


def _pieces(texts: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The texts that have words, in pieces of at most PIECE_CHARS, each with the number of its text."""
    for row, text in enumerate(texts):
        if has_words(text[:TEXT_CHARS_MAX]):
            chars = min(len(text), TEXT_CHARS_MAX)
            yield from ((row, text[start : min(start + PIECE_CHARS, chars)]) for start in range(0, chars, PIECE_CHARS))


def _sum(vectors: "np.ndarray", ids: Sequence[int]) -> "np.ndarray":
    """The vectors of these tokens, added up in the order of the text, so that company changes no bit."""
    total = vectors[ids[:GATHER_TOKENS]].sum(axis=0)
    for start in range(GATHER_TOKENS, len(ids), GATHER_TOKENS):
        total += vectors[ids[start : start + GATHER_TOKENS]].sum(axis=0)
    return total


def _load(dimension: int) -> "tuple[Any, np.ndarray]":
    """The tokenizer and the vectors, from the files inside the package: nothing is looked up in a network."""
    package = importlib.util.find_spec("wordllama")
    if package is None or package.origin is None:
        raise EmbedderError("The package wordllama is not installed; everlog depends on it: pip install wordllama.")
    from wordllama import WordLlama as Package

    folder = Path(package.origin).parent
    try:
        model = Package.load(cache_dir=folder, dim=dimension, disable_download=True)
    except (FileNotFoundError, ValueError) as error:
        raise EmbedderError(f"wordllama in {folder} lacks its model ({error}). Install it anew.") from error
    model.tokenizer.no_padding()
    model.tokenizer.no_truncation()
    return model.tokenizer, model.embedding
