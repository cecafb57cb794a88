"""Compare a query with what was said in meaning: embed each passage of each message once, and keep its vector.

A message is as near to a query as its nearest passage. Vectors are in the archive's SQLite file, by the stream and the
seq of their message, and in memory for the streams that were searched last. LanceDB takes no part: importing it takes
longer than embedding thousands of messages, and the first question of an agent must not wait for it. The caller gives
the messages, so an answer covers exactly those.

Used by `actors/archive/message_meanings.py`. A vector is kept under the stream that wrote the message, which may be an
ancestor of the agent that searches. A change of the texts that are embedded needs a new `PASSAGE_RULES`. A process may
hold a message that another process erases: only a process that owns a log, or reads it for one command, keeps vectors,
and an erasure drops those of its streams.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from everlog.events import ArchiveError, Record
from everlog.store.archive.archive_constants import (
    EMBED_PASSAGES,
    MEANING_DIGITS,
    MESSAGE_CACHE_BYTES_MAX,
)
from everlog.store.archive.archive_lineage import Lineage
from everlog.store.archive.archive_metadata import NOTES, ArchiveMetadata, ServingTable
from everlog.store.archive.archive_results import Matches
from everlog.store.archive.embedding_cache import EmbeddingCache, embed_checked
from everlog.store.archive.row_cache import near_rows
from everlog.store.archive.row_caches import MemoryRows
from everlog.store.base.archive_query import ArchiveQuery, MeaningQuery, SaidMessages
from everlog.store.base.permissions import make_folders
from everlog.store.embedding.chunks import passages
from everlog.store.embedding.embedder import Embedder, has_words, message_text

EmbedderLookup = Callable[[ServingTable | None], Embedder]
"""Returns the embedder that the archive's table was made with; that of a new archive if there is no table."""


def embedded_texts(role: str, name: str, text: str) -> list[str]:
    """Return the texts of a message that are embedded: its passages, each with its sender; one empty text if it has no
    words.
    """
    return [message_text(role, name, part) for part in passages(text) if has_words(part)] or [""]


class _ClosingError(ArchiveError):
    """Signal that embedding stopped because the process closes."""


class _Stream:
    """Vectors of the messages of one stream, in the order in which they were added. Capacity grows by half."""

    def __init__(self, dimension: int) -> None:
        self._rows = np.empty((0, dimension), np.float32)
        self._seqs = np.empty(0, np.int64)
        self._first = np.zeros(1, np.int64)
        """First row of each message in `_seqs`, and the number of all rows."""
        self._order = np.empty(0, np.int64)
        """Places in `_seqs`, by seq."""

    @property
    def size(self) -> int:
        """Bytes of the vectors."""
        return self._rows.nbytes

    def absent(self, seqs: np.ndarray) -> np.ndarray:
        """Return a mask of the seqs that have no vectors here."""
        return ~np.isin(seqs, self._seqs)

    def add(self, seqs: Sequence[int], counts: Sequence[int], rows: np.ndarray) -> None:
        """Append the vectors of messages: `counts` is how many of the rows each of them has, at least 1."""
        start = int(self._first[-1])
        end = start + len(rows)
        if end > len(self._rows):
            room = np.zeros((end + end // 2 if start else end, self._rows.shape[1]), np.float32)
            room[:start] = self._rows[:start]
            self._rows = room
        self._rows[start:end] = rows
        known, last = len(self._seqs), self._seqs[self._order[-1]] if len(self._order) else 0
        self._seqs = np.concatenate([self._seqs, np.asarray(seqs, np.int64)])
        self._first = np.concatenate([self._first, start + np.cumsum(counts, dtype=np.int64)])
        if np.all(np.diff(self._seqs[known:], prepend=last) > 0):  # talk is mostly appended in order
            self._order = np.concatenate([self._order, np.arange(known, len(self._seqs))])
        else:
            self._order = np.argsort(self._seqs)

    def near(self, vector: np.ndarray, seqs: np.ndarray) -> np.ndarray:
        """Return the cosine of the nearest passage of each of these messages, all of which are here."""
        cosine = near_rows(self._rows[: self._first[-1]], vector)
        best = np.maximum.reduceat(cosine, self._first[:-1])
        found: np.ndarray = best[self._order[np.searchsorted(self._seqs, seqs, sorter=self._order)]]
        return found


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
        self._used = 0
        """Bytes of all streams."""

    def near(
        self, agent_id: str, query: str, said: SaidMessages, is_closing: Callable[[], bool] = lambda: False
    ) -> np.ndarray:
        """Return the similarity in meaning of each message to the query: cosines of the nearest passages, float32, in
        the order of `said.seqs`, rounded; an empty array for a query without words. Raises EmbedderError, and
        ArchiveError, also if `is_closing` returns True before all messages have vectors.
        """
        return self.near_many([MeaningQuery(agent_id, query, said)], is_closing)[0]

    def near_many(
        self, asked: Sequence[MeaningQuery], is_closing: Callable[[], bool] = lambda: False
    ) -> list[np.ndarray]:
        """Return what `near` returns, for each of many agents. A query that several have is embedded once."""
        vectors: dict[str, np.ndarray] = {}
        found = []
        embedder = self._current() if any(len(one.said.seqs) for one in asked) else None
        for agent_id, query, said in asked:
            if embedder is None or not len(said.seqs):
                found.append(np.zeros(0, np.float32))
                continue
            if query not in vectors:
                vectors[query] = embed_checked(embedder, [query])[0].astype("f4")
            vector = vectors[query]
            found.append(self._near(embedder, vector, agent_id, said, is_closing) if vector.any() else vector[:0])
        return found

    def _near(
        self, embedder: Embedder, vector: np.ndarray, agent_id: str, said: SaidMessages, is_closing: Callable[[], bool]
    ) -> np.ndarray:
        seqs = np.asarray(said.seqs, np.int64)
        cosine = np.zeros(len(seqs), np.float32)
        for owner, places in self._owners(agent_id, seqs):
            stream = self._filled(embedder, owner, said, seqs, places, is_closing)
            cosine[places] = stream.near(vector, seqs[places])
        return np.round(cosine, MEANING_DIGITS)

    def memory_rows(self, records: Sequence[Record], made: MemoryRows | None) -> MemoryRows:
        """Return the rows of an agent's memories: those that were `made` before, if nothing has changed since. See
        `MemoryRows`. Raises EmbedderError, ArchiveError.
        """
        embedder = self._current()
        if made is not None and made.embedder is embedder and made.records == len(records):
            return made
        return MemoryRows(records, EmbeddingCache(embedder, self._opened()))

    def search_memories(self, rows: MemoryRows, wanted: ArchiveQuery) -> Matches:
        """Return the memories that match, best first, as `Archive.search` does. Raises EmbedderError."""
        if not wanted.query.strip():
            return rows.search(wanted, None)
        vector = embed_checked(rows.embedder, [wanted.query])[0].astype("f4")
        return rows.search(wanted, vector if vector.any() else None)

    def prepare(self, agent_id: str, said: SaidMessages, is_closing: Callable[[], bool]) -> None:
        """Embed the messages that have no vector yet, so that the next search need not; stop early if `is_closing`
        returns True. Raises EmbedderError, ArchiveError.
        """
        embedder = self._current()
        embed_checked(embedder, ["ready"])
        seqs = np.asarray(said.seqs, np.int64)
        with suppress(_ClosingError):
            for owner, places in self._owners(agent_id, seqs):
                self._filled(embedder, owner, said, seqs, places, is_closing)

    def _current(self) -> Embedder:
        """Return the embedder whose vectors the archive's table has. After a rebuild with another one, nothing of the
        old one is used.
        """
        serving = self._opened().serving() if (self._folder / NOTES).exists() else None
        wanted = None if serving is None else (serving.embedder, serving.dimension)
        if self._embedder is None or (wanted is not None and wanted != self._made_for):
            self._embedder = self._embedder_of(serving)
            self._made_for = (self._embedder.name, self._embedder.dimension)
            self._forget_streams()
        return self._embedder

    def _opened(self) -> ArchiveMetadata:
        """Return the file, opened. Raises ArchiveError, OSError."""
        if self._notes is None:
            make_folders(self._folder)
            self._notes = ArchiveMetadata(self._folder / NOTES, durable=False)
        return self._notes

    def _owners(self, agent_id: str, seqs: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
        """Yield the streams that wrote these seqs, each with the places of its seqs."""
        left = np.arange(len(seqs))
        for name, cut in self._lineage.of(agent_id):
            own = seqs[left] > cut
            if own.any():
                yield name, left[own]
            left = left[~own]

    def _filled(
        self,
        embedder: Embedder,
        owner: str,
        said: SaidMessages,
        seqs: np.ndarray,
        places: np.ndarray,
        is_closing: Callable[[], bool],
    ) -> _Stream:
        """Return the vectors of a stream, with those at `places` of the messages. Missing ones are made and kept."""
        stream = self._stream(embedder, owner)
        before = stream.size
        try:
            self._embed(embedder, owner, stream, said, seqs, places[stream.absent(seqs[places])], is_closing)
        finally:
            self._used += stream.size - before
        self._streams.move_to_end(owner)
        self._evict()
        return stream

    def _stream(self, embedder: Embedder, owner: str) -> _Stream:
        """Return the vectors of a stream that were kept."""
        stream = self._streams.get(owner)
        if stream is None:
            stream = self._streams[owner] = _Stream(embedder.dimension)
            stream.add(*_unpacked(self._opened().message_vectors(embedder.name, owner), embedder.dimension))
            self._used += stream.size
        return stream

    def _embed(
        self,
        embedder: Embedder,
        owner: str,
        stream: _Stream,
        said: SaidMessages,
        seqs: np.ndarray,
        missing: np.ndarray,
        is_closing: Callable[[], bool],
    ) -> None:
        """Make and keep the vectors of the messages at the places `missing`."""
        notes = self._opened()
        for some in _batches(missing.tolist(), said):
            if is_closing():
                raise _ClosingError("messages are no longer embedded: the process closes")
            new = embed_checked(embedder, [text for texts in some.values() for text in texts]).astype("<f2")
            mine, counts = seqs[list(some)].tolist(), [len(texts) for texts in some.values()]
            packed = (rows.tobytes() for rows in np.split(new, np.cumsum(counts)[:-1]))
            with notes.change():
                notes.keep_messages(embedder.name, owner, zip(mine, packed, strict=True))
            stream.add(mine, counts, new)

    def _evict(self) -> None:
        """Drop the streams that were searched longest ago, but not the last one, until the others fit in memory."""
        while len(self._streams) > 1 and self._used > MESSAGE_CACHE_BYTES_MAX:
            self._used -= self._streams.popitem(last=False)[1].size

    def _forget_streams(self) -> None:
        self._streams.clear()
        self._used = 0

    def rest(self) -> None:
        """Give back the memory of vectors. They are in the file, and the next search of an agent reads its own."""
        self._forget_streams()

    def close(self) -> None:
        """Close the file and free memory. Idempotent."""
        notes, self._notes = self._notes, None
        if notes is not None:
            notes.close()
        self._forget_streams()


def _unpacked(kept: Mapping[int, bytes], dimension: int) -> tuple[list[int], list[int], np.ndarray]:
    """Return seqs, numbers of rows, and rows of kept vectors. Those of another dimension are left out."""
    size = 2 * dimension
    usable = {seq: numbers for seq, numbers in kept.items() if numbers and len(numbers) % size == 0}
    rows = np.frombuffer(b"".join(usable.values()), "<f2").reshape(-1, dimension)
    return list(usable), [len(numbers) // size for numbers in usable.values()], rows


def _batches(places: Sequence[int], said: SaidMessages) -> Iterator[dict[int, list[str]]]:
    """Yield the texts of the messages at these places, by place: of each batch about EMBED_PASSAGES texts, and whole
    messages.
    """
    some: dict[int, list[str]] = {}
    count = 0
    for place in places:
        some[place] = embedded_texts(*said.message(place))
        count += len(some[place])
        if count >= EMBED_PASSAGES:
            yield some
            some, count = {}, 0
    if some:
        yield some
