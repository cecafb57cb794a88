"""Write the table: one process at a time, rows first and the position after.

    writing = 1  ->  rows, as one version of the table  ->  position, version, writing = 0

If a writer is killed anywhere in between, the next one finds `writing` set and follows the same records again. If the
table's version differs from the recorded one while `writing` is not set, another program wrote into the table.

Used by `archive`, which holds the lock file `lock` during `ready`, `take` and `compact`.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec
import pyarrow as pa

from everlog.events import ArchiveError, EmbedderError, ForeignRows
from everlog.store.archive.archive_constants import (
    CHUNKER,
    COMPACT_ROWS,
    COMPACT_ROWS_A_WRITE,
    COMPACT_WRITES,
    COMPACT_WRITES_MAX,
)
from everlog.store.archive.archive_lock import locked, try_lock
from everlog.store.archive.archive_metadata import NOTES, ArchiveMetadata, FollowPosition, ServingTable
from everlog.store.archive.archive_table import Table, Tables, rows_in, schema_of
from everlog.store.archive.embedding_cache import EmbeddingCache, content_of
from everlog.store.archive.write_batch import WriteBatch, batch_of
from everlog.store.embedding.embedder import Embedder
from everlog.store.stores.file_store import FileStore

COPIED_ROWS = 50_000
"""Number of rows that are copied at once when the table is written again."""

REBUILDING = "rebuilding"

WriteCallback = Callable[[ServingTable, ServingTable, WriteBatch], None]
"""Callback after a batch was written, with the serving table before and after."""


class TableLost(Exception):
    """Raised if the table must be rebuilt: it is missing, older than recorded, or made by an older everlog. Never
    leaves the archive.
    """


class ArchiveWriter:
    """Writer of the table. Hold `lock` while calling its methods, except where their docstrings say otherwise."""

    def __init__(self, folder: Path, store: FileStore, step: Callable[[str], None] = lambda _: None) -> None:
        """Open the metadata. `step` is called with the name of each step of a write: tests kill the process there."""
        self.folder = folder
        self.notes = ArchiveMetadata(folder / NOTES)
        self.tables = Tables(folder)
        self._store = store
        self._step = step
        self._table: Table | None = None
        self._generation = 0
        self._ahead: dict[str, int] = {}
        self._swept = False

    @property
    def lock(self) -> Path:
        """Lock that is held while rows are written."""
        return self.folder / "lock"

    @property
    def rebuilding(self) -> Path:
        """Lock that is held while a second table is built."""
        return self.folder / REBUILDING

    def ready(self, embedder: Embedder) -> ServingTable:
        """Return the serving table after checking its version and its embedder; create it if there is none yet.

        Raises EmbedderError, ForeignRows, ArchiveError; TableLost if it must be rebuilt.
        """
        serving = self.notes.serving()
        if serving is None:
            serving = self._first(embedder)
        if serving.chunker < CHUNKER:
            raise TableLost(f"{self.folder} has a table of version {serving.chunker}, but {CHUNKER} is current")
        check_embedder(serving, embedder)
        if self._table is None or self._generation != serving.generation:
            self._table = self._opened(serving)
            self._generation = serving.generation
        self._check_no_foreign_rows(self._table, serving)
        self._ahead = self.notes.ahead()
        if not self._swept:
            self._swept = self.sweep(serving)
        return serving

    def _first(self, embedder: Embedder) -> ServingTable:
        if self.tables.generations():
            raise TableLost(f"{self.folder} has a table, but {NOTES} does not say how far it came")
        generation = 1
        table = self.tables.create(generation, embedder.dimension)
        serving = ServingTable(generation, embedder.name, embedder.dimension, CHUNKER, table.version)
        with self.notes.change():
            self.notes.clear_positions()
            self.notes.serve(serving)
        return serving

    def _opened(self, serving: ServingTable) -> Table:
        try:
            table = self.tables.open(serving.generation)
            version = table.version
        except ArchiveError as error:
            raise TableLost(str(error)) from error
        if version < serving.version:
            raise TableLost(f"{table.path} has version {version}, but {serving.version} was written")
        return table

    @staticmethod
    def _check_no_foreign_rows(table: Table, serving: ServingTable) -> None:
        try:
            version = table.version
        except ArchiveError as error:
            raise TableLost(str(error)) from error
        if version != serving.version and not serving.writing:
            raise foreign(table, serving, version)

    def sweep(self, serving: ServingTable) -> bool:
        """Remove tables that do not serve, left by dead processes. Return False, and do nothing, while a table is being
        built.
        """
        with try_lock(self.rebuilding) as free:
            if free:
                self._remove_others(serving)
        return free

    def _remove_others(self, serving: ServingTable) -> None:
        for generation in self.tables.generations():
            if generation != serving.generation:
                self.tables.drop(generation)

    def take(
        self,
        tables: Sequence[tuple[str, pa.Table]],
        serving: ServingTable,
        vectors: EmbeddingCache,
        wrote: WriteCallback,
    ) -> tuple[ServingTable, WriteBatch]:
        """Write the rows of new records, given by partition. Return the serving table and the batch after that."""
        assert self._table is not None
        positions = {name: self.notes.position(name) for name, _ in tables}
        self._step("embed")
        before = serving
        batch = batch_of(tables, self._store, self._table, vectors, self._ahead, positions)
        self._step("embedded")
        if batch.rows is not None or batch.whole:
            serving = self._write(batch, serving)
        # After the rows, in one transaction with the end of `writing`: a crash before it repeats the same records,
        # which is harmless, but a position before its rows would skip records.
        with self.notes.change():
            self.notes.reach(batch.positions)
            self.notes.set_ahead(batch.ahead)
            self.notes.serve(serving)
        self._ahead.update(batch.ahead)
        self._step("position")
        wrote(before, serving, batch)
        if batch.erased:
            self.notes.flush()
            self._swept = self.sweep(serving)
        return serving, batch

    def _write(self, batch: WriteBatch, serving: ServingTable) -> ServingTable:
        """Write the rows of a batch. Return the serving table to record with the position."""
        assert self._table is not None
        self.mark_writing(serving)
        self._step("writing")
        if batch.erased:
            with self.notes.change():
                self.notes.drop_vectors(batch.forget)
                self.notes.drop_messages(batch.erased)
        # The marker above is durable before the first row: it tells the next writer that a newer version is our own.
        rows = schema_of(serving.dimension).empty_table() if batch.rows is None else batch.rows
        self._table.put(rows, batch.whole)
        self._step("rows")
        if batch.erased:
            serving = self._copy_current_rows(serving)
        return msgspec.structs.replace(
            serving, version=self._table.version, writing=0, written=serving.written + rows.num_rows,
            writes=serving.writes + 1,
        )  # fmt: skip

    def mark_writing(self, serving: ServingTable) -> None:
        """Record durably that rows are about to be written."""
        with self.notes.change():
            self.notes.serve(msgspec.structs.replace(serving, writing=1))

    def _copy_current_rows(self, serving: ServingTable) -> ServingTable:
        """Copy the current rows into a new table: old files, indices and versions, which hold erased text, go with the
        old one.
        """
        assert self._table is not None
        generation = max(self.tables.generations()) + 1
        table = self.tables.create(generation, serving.dimension)
        schema = schema_of(serving.dimension)
        kept: set[bytes] = set()
        for some in self._table.pieces(schema.names, COPIED_ROWS):
            table.add(some.cast(schema))
            kept.update(content_of(row) for row in rows_in(some))
        table.index()
        with self.notes.change():  # also drops vectors that were embedded for a write that never happened
            self.notes.keep_only(kept)
        self._step("copied")
        self._table, self._generation = table, generation
        return msgspec.structs.replace(serving, generation=generation, written=0, writes=0)

    def is_due(self, serving: ServingTable) -> bool:
        """Return True if enough was written since the last compaction to make another worthwhile."""
        if serving.written >= COMPACT_ROWS or serving.writes < COMPACT_WRITES:
            return serving.written >= COMPACT_ROWS
        assert self._table is not None
        return serving.writes >= min(COMPACT_WRITES + self._table.count() // COMPACT_ROWS_A_WRITE, COMPACT_WRITES_MAX)

    def compact(self, serving: ServingTable, keep: int, no_reader: AbstractContextManager[object]) -> ServingTable:
        """Merge files, index new rows, and remove all versions of the table except about `keep` newest.

        `no_reader` is entered while versions are removed: no thread of this process may read the table then.
        """
        assert self._table is not None
        self.mark_writing(serving)
        self._step("compact")
        self._table.index()
        self._table.compact()
        with no_reader:
            self._table.remove_versions(keep)
        # Arrow's pool keeps what LanceDB's threads have freed: without this, each compaction of a table adds to it.
        pa.default_memory_pool().release_unused()
        self._step("compacted")
        serving = msgspec.structs.replace(serving, version=self._table.version, writing=0, written=0, writes=0)
        with self.notes.change():
            self.notes.serve(serving)
        return serving

    def close(self) -> None:
        """Close files. Idempotent."""
        self.notes.close()
        self._table = None

    def swap(self, serving: ServingTable, positions: Mapping[str, FollowPosition], ahead: Mapping[str, int]) -> None:
        """Replace the serving table by one that was built, and remove all others. The caller holds `rebuilding`."""
        with locked(self.lock):
            with self.notes.change():
                self.notes.clear_positions()
                self.notes.reach(positions)
                self.notes.set_ahead(ahead)
                self.notes.serve(serving)
            # Removed only after the new table serves durably: a crash before that leaves the old table in service.
            self._step("swapped")
            self._remove_others(serving)
        self._table = None


def check_embedder(serving: ServingTable, embedder: Embedder) -> None:
    """Raise EmbedderError unless the table holds vectors of this embedder; ArchiveError if texts were split by another
    version.
    """
    if (serving.embedder, serving.dimension) != (embedder.name, embedder.dimension):
        raise EmbedderError(
            f"the archive holds vectors of {serving.embedder} ({serving.dimension} numbers), not of {embedder.name} "
            f"({embedder.dimension}). Nothing was written. Open it with {serving.embedder}, or rebuild it: "
            f"`everlog archive rebuild --embedder {embedder.name}`."
        )
    if serving.chunker != CHUNKER:
        raise ArchiveError(
            f"the archive was made by another version of everlog: texts were split by version {serving.chunker}, but "
            f"this everlog has version {CHUNKER}. Nothing was changed. Run `everlog archive rebuild`."
        )


def foreign(table: Table, serving: ServingTable, version: int) -> ForeignRows:
    """Return the error for a table into which another program wrote."""
    return ForeignRows(
        f"another program wrote into {table.path}: expected version {serving.version}, found {version}. Nothing was "
        "changed, and no memory is lost: the table is made from the log. Run `everlog archive rebuild`."
    )
