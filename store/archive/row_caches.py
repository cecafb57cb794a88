"""Keep the row caches of recently searched agents, as many as fit in memory, and the table from which they are read.

Used by `archive`. Not thread-safe: `Archive` holds its reading lock during each call.
"""

from collections import OrderedDict
from pathlib import Path

import pyarrow as pa

from everlog.events import ArchiveError
from everlog.store.archive.archive_constants import ROW_CACHE_BYTES_MAX
from everlog.store.archive.archive_lineage import AncestorRows, Lineage, RowSelection, parts_of
from everlog.store.archive.archive_metadata import NOTES, ArchiveMetadata, ServingTable
from everlog.store.archive.archive_table import Table, Tables, equal
from everlog.store.archive.archive_writer import foreign
from everlog.store.archive.row_cache import COLUMNS, RowCache
from everlog.store.archive.row_fold import ENDED, MESSAGE
from everlog.store.archive.write_batch import WriteBatch
from everlog.store.base.lazy_pyarrow import pc

LOOKS_MAX = 5
"""Number of attempts to find the table at its recorded version while another process writes."""
KEPT = "kept"
APART = (MESSAGE, ENDED)
"""Kinds of rows with row caches of their own; all other kinds are in the cache KEPT."""
RowCacheKey = tuple[str, str]
"""Owner of the rows, and their kind: KEPT, or one of APART."""


class RowCaches:
    """Rows of the serving table, in memory. For one thread at a time."""

    def __init__(self, folder: Path, lineage: Lineage) -> None:
        self._lineage = lineage
        self._notes = ArchiveMetadata(folder / NOTES)
        self._tables = Tables(folder)
        self._table: Table | None = None
        self._found: OrderedDict[RowCacheKey, RowCache] = OrderedDict()
        self.serving = ServingTable(0, "", 0, 0, 0)
        """Serving table as of the last `renewed`."""

    def renewed(self) -> bool:
        """Drop row caches that another process has made outdated. Return False if there is no serving table yet."""
        serving = self._notes.serving()
        if serving is None:
            return False
        if (serving.generation, serving.version) != (self.serving.generation, self.serving.version):
            self._found.clear()
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
        self.serving = after

    def _put(self, rows: pa.Table, batch: WriteBatch) -> None:
        for agent_id in batch.whole:
            for which in (KEPT, *APART):
                self._found.pop((agent_id, which), None)
        names = set(pc.unique(rows.column("agent_id")).to_pylist())
        for (agent_id, which), row_cache in self._found.items():
            if agent_id in names:
                mine = pc.equal(rows.column("agent_id"), agent_id)
                apart = pc.is_in(rows.column("kind"), pa.array(APART if which == KEPT else [which]))
                row_cache.put(rows.filter(pc.and_(mine, pc.invert(apart) if which == KEPT else apart)))

    def documents(self, source: str, time: int) -> RowSelection:
        """Return the rows of a source at a time. Raises ForeignRows, ArchiveError."""
        row_cache = self._row_cache((source, KEPT))
        return RowSelection(row_cache, row_cache.held(time, by_time=True))

    def kept(self, agent_id: str, seq: int) -> list[RowSelection]:
        """Return the memories of an agent as of a seq: those of its ancestors first. Raises ForeignRows,
        ArchiveError.
        """
        found = []
        for name, cut in self._lineage.of(agent_id):
            found.append(AncestorRows(self._row_cache((name, KEPT)), self._ended(name) if cut else [], cut))
        return parts_of(found, seq)

    def said(self, agent_id: str, seq: int) -> list[RowSelection]:
        """Return the messages up to a seq, which have vectors but no text. Raises ForeignRows, ArchiveError."""
        found = []
        for name, cut in self._lineage.of(agent_id):
            ended = [(seq, memory) for seq, memory in (self._ended(name) if cut else []) if not memory]
            found.append(AncestorRows(self._row_cache((name, MESSAGE)), ended, cut))
        return parts_of(found, seq)

    def _ended(self, agent_id: str) -> list[tuple[int, str]]:
        row_cache = self._row_cache((agent_id, ENDED))
        return sorted(zip(row_cache.numbers["seq"].tolist(), row_cache.fields["memory"], strict=True))

    def _row_cache(self, key: RowCacheKey) -> RowCache:
        row_cache = self._found.get(key)
        if row_cache is None:
            row_cache = self._read(*key)  # may clear `_found`
            self._found[key] = row_cache
            while len(self._found) > 1 and sum(other.size for other in self._found.values()) > ROW_CACHE_BYTES_MAX:
                self._found.popitem(last=False)
        self._found.move_to_end(key)
        return row_cache

    def _read(self, agent_id: str, which: str) -> RowCache:
        kinds = [equal("kind", kind) for kind in (APART if which == KEPT else [which])]
        condition = f"{equal('agent_id', agent_id)} AND {'NOT ' if which == KEPT else ''}({' OR '.join(kinds)})"
        while True:
            table, seen = self._checked(), self.serving
            try:
                return RowCache(table.read(condition, COLUMNS))
            except ArchiveError:
                self.renewed()
                if self.serving.generation == seen.generation:  # else the table was replaced during the read
                    raise

    def _checked(self) -> Table:
        """Return the table after checking that its version is the recorded one. Raises ForeignRows."""
        for _ in range(LOOKS_MAX):
            if self._table is None:
                self._table = self._tables.open(self.serving.generation)
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
