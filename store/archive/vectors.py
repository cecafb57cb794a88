"""Vectors of texts: from the cache where they were embedded before, else from the embedder, which is held to its word.

They are kept as float16: half the room, and a rebuild has bit for bit what following had.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from events import EmbedderError

from .constants import EMBED_TEXTS
from .embedding import Embedder
from .notes import Notes

if TYPE_CHECKING:
    import numpy as np


def key_of(text: str) -> bytes:
    """What a text is cached by."""
    return hashlib.sha256(text.encode()).digest()


class Vectors:
    """Embeds with one model, and remembers."""

    def __init__(self, embedder: Embedder, notes: Notes) -> None:
        self.embedder = embedder
        self._notes = notes
        self.embedded = 0
        """Texts for which the embedder was asked."""

    def of(self, texts: Sequence[str]) -> "np.ndarray":
        """One row of float16 for each text. What was embedded before an error stays in the cache."""
        import numpy as np

        keys = [key_of(text) for text in texts]
        size = 2 * self.embedder.dimension
        found = self._notes.vectors(self.embedder.name, list(dict.fromkeys(keys)))
        known = {key: numbers for key, numbers in found.items() if len(numbers) == size}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        for new in self._embedded(list(missing.items())):
            known.update(new)
        data = b"".join(known[key] for key in keys)
        return np.frombuffer(data, dtype="<f2").reshape(len(keys), self.embedder.dimension)

    def _embedded(self, missing: Sequence[tuple[bytes, str]]) -> Iterator[dict[bytes, bytes]]:
        for start in range(0, len(missing), EMBED_TEXTS):
            some = missing[start : start + EMBED_TEXTS]
            rows = self.fresh([text for _, text in some]).astype("<f2")
            self.embedded += len(some)
            new = {key: row.tobytes() for (key, _), row in zip(some, rows, strict=True)}
            with self._notes.change():
                self._notes.keep_vectors(self.embedder.name, new)
            yield new

    def fresh(self, texts: Sequence[str]) -> "np.ndarray":
        """What the embedder gives, once it is known to be of the shape that was promised. Raises EmbedderError."""
        return embedded_by(self.embedder, texts)


def embedded_by(embedder: Embedder, texts: Sequence[str]) -> "np.ndarray":
    """What the embedder gives, checked. Raises EmbedderError."""
    import numpy as np

    rows = np.asarray(embedder.embed(texts))
    expected = (len(texts), embedder.dimension)
    if rows.shape != expected:
        raise wrong(embedder, f"an array of shape {expected}", f"one of shape {rows.shape}")
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(bad):
        raise wrong(embedder, "finite numbers", f"others for the text {texts[int(bad[0])][:80]!r}")
    return rows


def wrong(embedder: Embedder, expected: str, found: str) -> EmbedderError:
    """The error for an embedder that does not keep its word."""
    return EmbedderError(
        f"the embedder {embedder.name} promised vectors of {embedder.dimension} numbers: expected {expected}, found "
        f"{found}. Nothing was written. Mend it, or choose another: `everlog archive rebuild --embedder NAME`."
    )
