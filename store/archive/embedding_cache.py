"""Cache the vectors of texts, and check what the embedder returns.

Vectors are stored as float16: half the size, and a rebuild gets the same bits as following did.

Used by `archive_writer`, `rebuild_table` and `write_batch`. An entry on disk is the vector, one byte `CHUNKER`, and the
packed words, in that order.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from everlog.events import EmbedderError
from everlog.store.archive.archive_constants import CHUNKER, EMBED_TEXTS
from everlog.store.archive.archive_metadata import ArchiveMetadata
from everlog.store.archive.row_fold import NOTHING, ArchiveRow
from everlog.store.embedding.embedder import Embedder
from everlog.store.embedding.tokenizer import pack_numbers

if TYPE_CHECKING:
    import numpy as np


def key_of(text: str) -> bytes:
    """Return the cache key of a text."""
    return hashlib.sha256(text.encode()).digest()


def content_of(row: ArchiveRow) -> bytes:
    """Return the cache key of a row's text."""
    return row.digest if row.parts == 1 else key_of(row.text)


class TextFeatures(NamedTuple):
    """Vectors and words of several texts. Entry n of both belongs to text n."""

    vectors: "np.ndarray"
    """Vectors, float16."""
    words: Sequence[bytes]
    """Words of each text, as `tokenizer.pack_numbers` encodes them."""


class EmbeddingCache:
    """Embeds with one model, and caches the vector and the words of each text; tokenizing costs as much as a light
    model.
    """

    def __init__(self, embedder: Embedder, notes: ArchiveMetadata) -> None:
        self.embedder = embedder
        self._notes = notes
        self.embedded = 0
        """Number of texts that were sent to the embedder."""

    def of(self, rows: Sequence[ArchiveRow]) -> TextFeatures:
        """Return the features of each row's text. Texts embedded before an error stay in the cache."""
        import numpy as np

        keys = [content_of(row) for row in rows]
        size = 2 * self.embedder.dimension
        found = self._notes.vectors(self.embedder.name, list(dict.fromkeys(keys)))
        known = {key: blob for key, blob in found.items() if len(blob) > size and blob[size] == CHUNKER}
        known[NOTHING] = bytes(size) + bytes([CHUNKER])
        missing = {key: row.text for key, row in zip(keys, rows, strict=True) if key not in known}
        for new in self._embedded(list(missing.items()), found):
            known.update(new)
        blobs = [known[key] for key in keys]
        vectors = np.frombuffer(b"".join([blob[:size] for blob in blobs]), dtype="<f2")
        return TextFeatures(vectors.reshape(len(rows), self.embedder.dimension), [blob[size + 1 :] for blob in blobs])

    def _embedded(self, missing: Sequence[tuple[bytes, str]], found: Mapping[bytes, bytes]
                  ) -> Iterator[dict[bytes, bytes]]:  # fmt: skip
        size = 2 * self.embedder.dimension
        for start in range(0, len(missing), EMBED_TEXTS):
            some = missing[start : start + EMBED_TEXTS]
            vectors = {key: found[key][:size] for key, _ in some if len(found.get(key, b"")) > size}
            asked = [(key, text) for key, text in some if key not in vectors]
            if asked:
                rows = embed_checked(self.embedder, [text for _, text in asked]).astype("<f2")
                vectors.update((key, row.tobytes()) for (key, _), row in zip(asked, rows, strict=True))
            self.embedded += len(asked)
            new = {key: vectors[key] + bytes([CHUNKER]) + pack_numbers(text) for key, text in some}
            with self._notes.change():
                self._notes.keep_vectors(self.embedder.name, new)
            yield new


class SharedEmbedder:
    """An embedder for several threads: one of them loads the model while the others wait."""

    def __init__(self, embedder: Embedder) -> None:
        self.name, self.dimension = embedder.name, embedder.dimension
        self._embedder = embedder
        self._loading = Lock()
        self._loaded = False

    def embed(self, texts: Sequence[str]) -> "np.ndarray":
        """Return the result of the embedder."""
        if self._loaded:
            return self._embedder.embed(texts)
        with self._loading:
            rows = self._embedder.embed(texts)
            self._loaded = True
        return rows


def embed_checked(embedder: Embedder, texts: Sequence[str]) -> "np.ndarray":
    """Return the result of the embedder after checking its shape and values. Raises EmbedderError.

    Half a character (a lone surrogate), which tokenizers and endpoints refuse, becomes "?": a query may have one.
    """
    import numpy as np

    whole = [text if text.isascii() else text.encode("utf-8", "replace").decode() for text in texts]
    rows = np.asarray(embedder.embed(whole))
    expected = (len(texts), embedder.dimension)
    if rows.shape != expected:
        raise embedder_error(embedder, f"an array of shape {expected}", f"one of shape {rows.shape}")
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(bad):
        raise embedder_error(embedder, "finite numbers", f"others for the text {texts[int(bad[0])][:80]!r}")
    return rows


def embedder_error(embedder: Embedder, expected: str, found: str) -> EmbedderError:
    """Return the error for an embedder whose result is not as declared."""
    return EmbedderError(
        f"the embedder {embedder.name} declares vectors of {embedder.dimension} numbers: expected {expected}, found "
        f"{found}. Nothing was written. Fix the embedder, or choose another: `everlog archive rebuild --embedder NAME`."
    )
