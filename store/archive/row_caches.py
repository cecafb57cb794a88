"""Keep the row caches of recently searched agents, as many as fit in memory, and the table from which they are read.

Used by `archive`, and by `message_vectors` for memories that its caller has. Not thread-safe: `Archive` holds its
reading lock during each call.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa

from everlog.events import ArchiveError, Record
from everlog.store.archive.archive_constants import LARGE_ROWS, ROW_CACHE_BYTES_MAX
from everlog.store.archive.archive_lineage import AncestorRows, Lineage, RowSelection, parts_of
from everlog.store.archive.archive_metadata import NOTES, ArchiveMetadata, ServingTable
from everlog.store.archive.archive_results import Matches
from everlog.store.archive.archive_table import Table, Tables, equal, table_of
from everlog.store.archive.archive_writer import foreign
from everlog.store.archive.embedding_cache import EmbeddingCache
from everlog.store.archive.hybrid_search import CandidatePool, find, newest
from everlog.store.archive.large_owner import Asked, OwnerSize, candidates, conditions_of, size_of
from everlog.store.archive.row_cache import COLUMNS, RowCache
from everlog.store.archive.row_fold import ENDED, RowFold
from everlog.store.archive.write_batch import WriteBatch
from everlog.store.base.archive_query import ArchiveQuery
from everlog.store.base.lazy_pyarrow import pc

T = TypeVar("T")
LOOKS_MAX = 5
"""Number of attempts to find the table at its recorded version while another process writes."""
KEPT = "kept"
RowCacheKey = tuple[str, str]
"""Owner of the rows, and their kind: ENDED, or KEPT for all others."""


class RowCaches:
    """Rows of the serving table, in memory. For one thread at a time."""

    def __init__(self, folder: Path, lineage: Lineage) -> None:
        self._lineage = lineage
        self._notes = ArchiveMetadata(folder / NOTES)
        self._tables = Tables(folder)
        self._table: Table | None = None
        self._found: OrderedDict[RowCacheKey, RowCache] = OrderedDict()
        self._sizes: dict[str, OwnerSize] = {}
        """Sizes of the owners that were counted."""
        self.serving = ServingTable(0, "", 0, 0, 0)
        """Serving table as of the last `renewed`."""

    def renewed(self) -> bool:
        """Drop row caches that another process has made outdated. Return False if there is no serving table yet."""
        serving = self._notes.serving()
        if serving is None:
            return False
        if (serving.generation, serving.version) != (self.serving.generation, self.serving.version):
            self._found.clear()
            self._sizes.clear()
            if serving.generation != self.serving.generation:
                self._table = None
        self.serving = serving
        return True

    def wrote(self, before: ServingTable, after: ServingTable, batch: WriteBatch | None) -> None:
        """Apply a batch that this process wrote to the row caches, if they were up to date before it."""
        mine = (self.serving.generation, self.serving.version)
        if mine != (before.generation, before.version) or after.generation != before.generation:
            return
        if batch is not None and batch.rows is not None:
            self._put(batch.rows, batch)
            self._evict()
        self.serving = after

    def _put(self, rows: pa.Table, batch: WriteBatch) -> None:
        names = set(pc.unique(rows.column("agent_id")).to_pylist())
        for name in {*names, *batch.whole}:
            self._sizes.pop(name, None)
        for agent_id in batch.whole:
            for which in (KEPT, ENDED):
                self._found.pop((agent_id, which), None)
        for (agent_id, which), row_cache in list(self._found.items()):
            if agent_id in names:
                mine = pc.equal(rows.column("agent_id"), agent_id)
                ended = pc.equal(rows.column("kind"), ENDED)
                row_cache.put(rows.filter(pc.and_(mine, ended if which == ENDED else pc.invert(ended))))
                if which == KEPT and len(row_cache) > LARGE_ROWS:
                    del self._found[agent_id, which]

    def documents(self, source: str, asked: Asked) -> RowSelection:
        """Return the rows of a source at the time of a search; of a large one, those that can come first. Raises
        ForeignRows, ArchiveError.
        """
        time = asked.wanted.as_of_time
        row_cache = self._kept_rows(source, asked, f"from_at <= {time} AND (to_at IS NULL OR to_at > {time})")
        return RowSelection(row_cache, row_cache.held(time, by_time=True))

    def kept(self, asked: Asked) -> list[RowSelection]:
        """Return the memories of the agent of a search as of its seq: those of its ancestors first; of a large one,
        those that can come first. Raises ForeignRows, ArchiveError.
        """
        found = []
        moment = asked.wanted.as_of
        for name, cut in self._lineage.of(asked.wanted.agent_id):
            held = f"seq_from <= {moment} AND (seq_to IS NULL OR seq_to > {moment})"
            found.append(AncestorRows(self._kept_rows(name, asked, held), self._ended(name) if cut else [], cut))
            moment = min(moment, cut)
        return parts_of(found, asked.wanted.as_of)

    def _kept_rows(self, owner: str, asked: Asked, held: str) -> RowCache:
        """Return all rows of an owner but those of kind ENDED; of a large owner, candidates among those that match
        `held`.
        """
        key = (owner, KEPT)
        if key in self._found:
            return self._row_cache(key)
        size = self._sizes.get(owner)
        if size is None:
            size = self._sizes[owner] = self._reading(lambda table: size_of(table, _condition(*key), LARGE_ROWS))
        if size.rows <= LARGE_ROWS:
            return self._row_cache(key)
        condition = " AND ".join([_condition(*key), held, *conditions_of(asked.wanted)])
        return self._reading(lambda table: candidates(table, condition, asked, size))

    def _ended(self, agent_id: str) -> list[tuple[int, str]]:
        row_cache = self._row_cache((agent_id, ENDED))
        return sorted(zip(row_cache.numbers["seq"].tolist(), row_cache.fields["memory"], strict=True))

    def _row_cache(self, key: RowCacheKey) -> RowCache:
        row_cache = self._found.get(key)
        if row_cache is None:
            row_cache = self._read(*key)  # may clear `_found`
            self._found[key] = row_cache
            self._evict()
        self._found.move_to_end(key)
        return row_cache

    def _evict(self) -> None:
        """Drop the caches that were searched longest ago, but not the last one, until the others fit in memory."""
        used = self.used_bytes
        while len(self._found) > 1 and used > ROW_CACHE_BYTES_MAX:
            used -= self._found.popitem(last=False)[1].size

    @property
    def used_bytes(self) -> int:
        """Approximate size of all row caches, in bytes."""
        return sum(row_cache.size for row_cache in self._found.values())

    @property
    def table_cache_bytes(self) -> int:
        """Bytes of LanceDB's caches for reading."""
        return self._tables.cache_bytes

    def __len__(self) -> int:
        return len(self._found)

    def _read(self, agent_id: str, which: str) -> RowCache:
        return self._reading(lambda table: RowCache(table.read(_condition(agent_id, which), COLUMNS)))

    def _reading(self, read: Callable[[Table], T]) -> T:
        """Return the result of `read`, repeated if the table was replaced meanwhile."""
        while True:
            table, seen = self._checked(), self.serving
            try:
                return read(table)
            except ArchiveError:
                self.renewed()
                if self.serving.generation == seen.generation:  # else the table was replaced during the read
                    raise

    def _checked(self) -> Table:
        """Return the table after checking that its version is the recorded one. Raises ForeignRows."""
        for _ in range(LOOKS_MAX):
            if self._table is None:
                self._table = self._tables.open(self.serving.generation)
                self._notes.check_files(self._table.path)
            version, seen = self._table.version, self.serving
            if version == seen.version or seen.writing:
                break
            self.renewed()
            if self.serving == seen:
                raise foreign(self._table, seen, version)
        return self._table or self._tables.open(self.serving.generation)

    def close(self) -> None:
        """Close files and free memory. Idempotent."""
        self._notes.close()
        self._found.clear()
        self._table = None


class MemoryRows:
    """Rows of a few memories of an agent that is not a fork, made without the table. Answers are the same to the digit.

    Vectors and words are cached with those of the table, so following the log does not embed a memory again.
    """

    def __init__(self, records: Sequence[Record], vectors: EmbeddingCache) -> None:
        """Make the rows of `records`: all that stored, changed or deleted a memory of the agent's life. Raises
        EmbedderError, ArchiveError.
        """
        fold = RowFold()
        for record in records:
            fold.apply(record)
        rows = list(fold.rows.values())
        self.embedder = vectors.embedder
        """Embedder of the vectors."""
        self.records = len(records)
        """Number of records of which the rows were made."""
        self._rows = RowCache(table_of(rows, *vectors.of(rows))) if rows else None

    def search(self, wanted: ArchiveQuery, vector: np.ndarray | None) -> Matches:
        """Return the memories that match, best first, as of the seq of `wanted`. `vector`: that of the query; None if
        it has no words.
        """
        is_search = bool(wanted.query.strip())
        if self._rows is None:
            return Matches(total=0, by_meaning=is_search and vector is not None)
        pool = CandidatePool([RowSelection(self._rows, self._rows.held(wanted.as_of), wanted.as_of)], [], wanted)
        return find(pool, wanted, vector) if is_search else newest(pool, wanted)


def _condition(agent_id: str, which: str) -> str:
    """Return the condition for the rows of an owner: those of kind ENDED, or all others."""
    return f"{equal('agent_id', agent_id)} AND {'' if which == ENDED else 'NOT '}{equal('kind', ENDED)}"
