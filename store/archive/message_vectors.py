"""Compare a query with what was said in meaning: embed each message once, and keep its vector.

Vectors are in the archive's SQLite file, by the stream and the seq of their message, and in memory for the streams that
were searched last. LanceDB takes no part: importing it takes longer than embedding thousands of messages, and the first
question of an agent must not wait for it. The caller gives the messages, so an answer covers exactly those.

Used by `actors/archive/message_meanings.py`. A vector is kept under the stream that wrote the message, which may be an
ancestor of the agent that searches. A process may hold a message that another process erases: only a process that owns
a log, or reads it for one command, keeps vectors, and an erasure drops those of its streams.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from everlog.store.archive.archive_constants import (
    EMBED_TEXTS,
    MEANING_DIGITS,
    MESSAGE_CACHE_BYTES_MAX,
    RECALL_MAX,
)
from everlog.store.archive.archive_lineage import Lineage
from everlog.store.archive.archive_metadata import NOTES, ArchiveMetadata, ServingTable
from everlog.store.archive.embedding_cache import embed_checked
from everlog.store.archive.row_cache import near_rows
from everlog.store.base.archive_query import SaidMessages
from everlog.store.base.permissions import make_folders
from everlog.store.embedding.embedder import Embedder, message_text

EmbedderLookup = Callable[[ServingTable | None], Embedder]
"""Returns the embedder that the archive's table was made with; that of a new archive if there is no table."""


class _Stream:
    """Vectors of one stream, in the order in which they were added. Capacity grows by half."""

    def __init__(self, seqs: np.ndarray, rows: np.ndarray) -> None:
        self._rows = rows
        self.count = len(seqs)
        self.places = {seq: place for place, seq in enumerate(seqs.tolist())}
        """Row of each seq."""

    @property
    def rows(self) -> np.ndarray:
        """Vectors, one row for each seq in `places`."""
        return self._rows[: self.count]

    @property
    def size(self) -> int:
        """Bytes of the vectors."""
        return self._rows.nbytes

    def add(self, seqs: Sequence[int], rows: np.ndarray) -> None:
        """Append the vectors of these seqs."""
        end = self.count + len(seqs)
        if end > len(self._rows):
            room = np.zeros((end + end // 2, rows.shape[1]), np.float32)
            room[: self.count] = self.rows
            self._rows = room
        self._rows[self.count : end] = rows
        self.places.update(zip(seqs, range(self.count, end), strict=True))
        self.count = end


class MessageVectors:
    """Vectors of the messages of a store. For one thread at a time."""

    def __init__(self, folder: Path, lineage: Lineage, embedder_of: EmbedderLookup) -> None:
        """Use the file in the archive's `folder`. It is opened, or created, when a vector is looked up or kept."""
        self._folder = folder
        self._notes: ArchiveMetadata | None = None
        self._lineage = lineage
        self._embedder_of = embedder_of
        self._embedder: Embedder | None = None
        self._made_for: tuple[str, int] | None = None
        self._streams: OrderedDict[str, _Stream] = OrderedDict()

    def near(self, agent_id: str, query: str, said: SaidMessages) -> dict[int, float]:
        """Return the similarity in meaning of messages of an agent to the query: cosine by seq, at most the RECALL_MAX
        nearest; empty for a query without words. Raises EmbedderError, ArchiveError.
        """
        if not said.seqs:
            return {}
        embedder = self._current()
        vector = embed_checked(embedder, [query])[0].astype("f4")
        if not vector.any():
            return {}
        cosine = np.empty(len(said.seqs), np.float32)
        for owner, places in self._owners(agent_id, said.seqs):
            stream = self._filled(embedder, owner, said, places)
            rows = [stream.places[said.seqs[place]] for place in places]
            cosine[places] = near_rows(stream.rows, vector)[rows]
        return _nearest(np.asarray(said.seqs), np.round(cosine.astype(np.float64), MEANING_DIGITS))

    def prepare(self, agent_id: str, said: SaidMessages, is_closing: Callable[[], bool]) -> None:
        """Embed the messages that have no vector yet, so that the next search need not; stop early if `is_closing`
        returns True. Raises EmbedderError, ArchiveError.
        """
        embedder = self._current()
        embed_checked(embedder, ["ready"])
        for owner, places in self._owners(agent_id, said.seqs):
            for start in range(0, len(places), EMBED_TEXTS):
                if is_closing():
                    return
                self._filled(embedder, owner, said, places[start : start + EMBED_TEXTS])

    def _current(self) -> Embedder:
        """Return the embedder whose vectors the archive's table has. After a rebuild with another one, nothing of the
        old one is used.
        """
        serving = self._opened().serving() if (self._folder / NOTES).exists() else None
        wanted = None if serving is None else (serving.embedder, serving.dimension)
        if self._embedder is None or (wanted is not None and wanted != self._made_for):
            self._embedder = self._embedder_of(serving)
            self._made_for = (self._embedder.name, self._embedder.dimension)
            self._streams.clear()
        return self._embedder

    def _opened(self) -> ArchiveMetadata:
        """Return the file, opened. Raises ArchiveError, OSError."""
        if self._notes is None:
            make_folders(self._folder)
            self._notes = ArchiveMetadata(self._folder / NOTES, durable=False)
        return self._notes

    def _owners(self, agent_id: str, seqs: Sequence[int]) -> list[tuple[str, list[int]]]:
        """Return the streams that wrote these seqs, each with the places of its seqs."""
        left = list(range(len(seqs)))
        found = []
        for name, cut in self._lineage.of(agent_id):
            if mine := [place for place in left if seqs[place] > cut]:
                found.append((name, mine))
                left = [place for place in left if seqs[place] <= cut]
        return found

    def _filled(self, embedder: Embedder, owner: str, said: SaidMessages, places: Sequence[int]) -> _Stream:
        """Return the vectors of a stream, with those at `places` of the messages. Missing ones are made and kept."""
        notes = self._opened()
        stream = self._streams.get(owner)
        if stream is None:
            kept = notes.message_vectors(embedder.name, owner)
            rows = np.frombuffer(b"".join(kept.values()), "<f2").reshape(len(kept), embedder.dimension)
            stream = self._streams[owner] = _Stream(np.array(list(kept), np.int64), rows.astype("f4"))
        missing = [place for place in places if said.seqs[place] not in stream.places]
        for start in range(0, len(missing), EMBED_TEXTS):
            some = missing[start : start + EMBED_TEXTS]
            texts = [message_text(said.roles[place], said.names[place], said.texts[place]) for place in some]
            seqs = [said.seqs[place] for place in some]
            new = embed_checked(embedder, texts).astype("<f2")
            with notes.change():
                notes.keep_messages(embedder.name, owner, zip(seqs, map(bytes, new), strict=True))
            stream.add(seqs, new.astype("f4"))
        self._streams.move_to_end(owner)
        self._evict()
        return stream

    def _evict(self) -> None:
        """Drop the streams that were searched longest ago, but not the last one, until the others fit in memory."""
        used = sum(stream.size for stream in self._streams.values())
        while len(self._streams) > 1 and used > MESSAGE_CACHE_BYTES_MAX:
            used -= self._streams.popitem(last=False)[1].size

    def close(self) -> None:
        """Close the file and free memory. Idempotent."""
        notes, self._notes = self._notes, None
        if notes is not None:
            notes.close()
        self._streams.clear()


def _nearest(seqs: np.ndarray, cosine: np.ndarray) -> dict[int, float]:
    """Return the cosines by seq; of the nearest RECALL_MAX at most, among equal ones the earlier seqs."""
    if len(seqs) > RECALL_MAX:
        best = np.lexsort([seqs, -cosine])[:RECALL_MAX]
        seqs, cosine = seqs[best], cosine[best]
    return dict(zip(seqs.tolist(), cosine.tolist(), strict=True))
