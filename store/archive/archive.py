"""Index memories and documents in LanceDB: a projection of the log that can always be built again.

    follow    log -> batch of records -> rows -> table, then the position (archive_writer.py)
    search    row caches: rows of the searched agent in memory (row_cache.py), and ranking (hybrid_search.py)
    rebuild   log -> a second table -> swap (rebuild_table.py)

Several threads may use one Archive; several processes may follow the same store.

Used by `actors/archive/archive_index.py`, the search service of hosts, and by `everlog archive`. A thread that needs
both locks takes `_writing` before `_reading`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from threading import RLock

import numpy as np
import pyarrow as pa

from everlog.events import ArchiveError, StoreError
from everlog.store.archive.archive_constants import (
    BATCH_RECORDS,
    REST_VERSIONS_MAX,
    ROW_CACHE_BYTES_MAX,
    TABLE_CACHE_BYTES_MAX,
    VERSIONS_KEPT,
)
from everlog.store.archive.archive_lineage import Lineage
from everlog.store.archive.archive_lock import locked, try_lock
from everlog.store.archive.archive_metadata import NOTES, ArchiveMetadata, ServingTable
from everlog.store.archive.archive_results import (
    FollowCounts,
    IndexSizes,
    IndexStatus,
    Matches,
    RebuildProgress,
    RebuildReport,
)
from everlog.store.archive.archive_table import equal
from everlog.store.archive.archive_writer import REBUILDING, ArchiveWriter, TableLost, check_embedder
from everlog.store.archive.embedding_cache import EmbeddingCache, SharedEmbedder, embed_checked
from everlog.store.archive.hybrid_search import CandidatePool, find, newest
from everlog.store.archive.large_owner import Asked
from everlog.store.archive.message_vectors import EmbedderLookup, MessageVectors
from everlog.store.archive.rebuild_table import build, differences
from everlog.store.archive.row_caches import RowCaches
from everlog.store.archive.row_fold import ENDED
from everlog.store.archive.table_files import folder_bytes, table_files
from everlog.store.archive.write_batch import WriteBatch
from everlog.store.base.archive_query import ArchiveQuery
from everlog.store.base.permissions import make_folders
from everlog.store.base.source_streams import stream_of
from everlog.store.embedding.embedder import Embedder
from everlog.store.log.log_follower import CommitRewritten, LogFollower
from everlog.store.stores.file_store import FileStore

FOLDER = "archive"
PartitionTables = list[tuple[str, pa.Table]]
"""Records that were read and not written yet, by partition."""


def recorded_embedder(store: FileStore) -> ServingTable | None:
    """Return the embedder whose vectors the table holds; None if there is no table yet. Raises ArchiveError."""
    path = store.root / FOLDER / NOTES
    if not path.exists():
        return None
    notes = ArchiveMetadata(path)
    try:
        return notes.serving()
    finally:
        notes.close()


def message_vectors_of(store: FileStore, embedder_of: EmbedderLookup) -> MessageVectors:
    """Return the vectors of the messages of a store. Raises ArchiveError, OSError."""
    return MessageVectors(store.root / FOLDER, Lineage(store), embedder_of)


def drop_messages(store: FileStore, agents: Iterable[str]) -> None:
    """Delete the vectors of all messages of these agents, because some of their messages were erased. Raises
    ArchiveError.
    """
    path = store.root / FOLDER / NOTES
    if path.exists():
        notes = ArchiveMetadata(path)
        try:
            with notes.change():
                notes.drop_messages(agents)
            notes.flush()
        finally:
            notes.close()


class Archive:
    """Follows the log of a store, and answers searches from the followed records. Thread-safe."""

    def __init__(self, store: FileStore, embedder: Embedder, step: Callable[[str], None] = lambda _: None) -> None:
        """Prepare an archive in `<store>/archive`; files are opened on first use.

        `step` is called with the name of each step of a write: tests simulate crashes there.
        """
        self._store = store
        self._embedder: Embedder = SharedEmbedder(embedder)
        self._step = step
        self._writing = RLock()
        self._reading = RLock()
        self._folder = store.root / FOLDER
        self._lineage = Lineage(store)
        self._writer: ArchiveWriter | None = None
        self._row_caches: RowCaches | None = None
        self._followers: dict[str, LogFollower] = {}
        self._positions: dict[str, int] = {}
        """Last commits that this process knows to be followed; another process may have followed further."""

    # ---- following

    def follow(self, partitions: Iterable[str] | None = None) -> FollowCounts:
        """Follow the new records of these partitions, or of all. Cheap if there are none.

        Raises CorruptLog, StoreError of the log; EmbedderError, ForeignRows, ArchiveError. Records followed before an
        error stay followed; the next call continues with the rest.
        """
        with self._writing:
            names = list(self._store.partitions() if partitions is None else dict.fromkeys(partitions))
            waiting = [name for name in names if self._has_more(name)]
            if not waiting:
                return FollowCounts()
            try:
                return self._follow_with_rebuild(waiting)
            except StoreError:  # perhaps of one log only: follow the others separately
                if len(waiting) == 1:
                    raise
                return self._follow_separately(waiting)

    def _follow_separately(self, partitions: Sequence[str]) -> FollowCounts:
        """Follow each partition separately. Raises the StoreError of the last partition that failed, after all were
        tried.
        """
        failed: StoreError | None = None
        lags = []
        for name in partitions:
            try:
                lags.append(self._follow_with_rebuild([name]))
            except StoreError as error:
                failed = error
        if failed is not None:
            raise failed
        return FollowCounts(*(sum(getattr(lag, field) for lag in lags) for field in FollowCounts.__struct_fields__))

    def _follow_with_rebuild(self, partitions: Sequence[str]) -> FollowCounts:
        """Follow; if the table is lost, rebuild it and follow once more."""
        try:
            return self._follow(partitions)
        except (TableLost, CommitRewritten):
            self._rebuild_table()
        try:
            return self._follow(partitions)
        except (TableLost, CommitRewritten) as error:
            raise ArchiveError(
                f"the archive was rebuilt and is lost again: {error}. No memory is lost: the log has all of them."
            ) from error

    def _has_more(self, partition: str) -> bool:
        return self._follower(partition).has_more(self._positions.get(partition, -1))

    def _is_behind(self, partition: str, commit: int) -> bool:
        """Return True if a partition has commits after `commit`. Before its first read, a follower's `has_more` may say
        True although there is nothing new, so the log is read to make sure. A process that follows does not read it:
        the log of a busy host is long.
        """
        if not self._follower(partition).has_more(commit):
            return False
        if self._positions.get(partition) == commit:
            return True
        return next(LogFollower(self._store.partition(partition)).since(commit), None) is not None

    def _follower(self, partition: str) -> LogFollower:
        if partition not in self._followers:
            self._followers[partition] = LogFollower(self._store.partition(partition))
        return self._followers[partition]

    def _follow(self, partitions: Sequence[str]) -> FollowCounts:
        writer = self._writer_opened()
        vectors = EmbeddingCache(self._embedder, writer.notes)
        commits = rows = 0
        # One process follows at a time: two that read the same position would write the same records at once.
        with locked(writer.lock):
            serving = writer.ready(self._embedder)
            for some in self._batches(writer, partitions):
                serving, batch = writer.take(some, serving, vectors, self._wrote)
                commits += batch.commits
                rows += 0 if batch.rows is None else batch.rows.num_rows
            if writer.is_due(serving):
                self._wrote(serving, writer.compact(serving, VERSIONS_KEPT, self._reading), None)
        return FollowCounts(commits, rows, vectors.embedded)

    def rest(self) -> None:
        """Compact the table, and remove its old versions, if more than REST_VERSIONS_MAX are left. Call this when no
        record has arrived for a while: `follow` compacts only while it writes.

        Raises EmbedderError, ForeignRows, ArchiveError.
        """
        with self._writing:
            if not (self._folder / NOTES).exists():
                return
            writer = self._writer_opened()
            with locked(writer.lock):
                found = writer.notes.serving()
                if found is None or table_files(writer.tables.path(found.generation)).versions <= REST_VERSIONS_MAX:
                    return
                try:
                    serving = writer.ready(self._embedder)
                except TableLost:  # the next `follow` rebuilds it
                    return
                self._wrote(serving, writer.compact(serving, 1, self._reading), None)

    def _batches(self, writer: ArchiveWriter, partitions: Sequence[str]) -> Iterator[PartitionTables]:
        """Yield the new records in batches of about BATCH_RECORDS; each batch is written before the next is read."""
        waiting: PartitionTables = []
        count = 0
        for partition in partitions:
            position = writer.notes.position(partition)
            self._positions[partition] = position.commit
            for table in self._follower(partition).since(position.commit, position.mark):
                waiting.append((partition, table))
                count += table.num_rows
                if count >= BATCH_RECORDS:
                    yield _joined(waiting)
                    waiting, count = [], 0
        if waiting:
            yield _joined(waiting)

    def _wrote(self, before: ServingTable, after: ServingTable, batch: WriteBatch | None) -> None:
        if batch is not None:
            self._positions.update((name, position.commit) for name, position in batch.positions.items())
        with self._reading:
            if self._row_caches is not None:
                self._row_caches.wrote(before, after, batch)

    def _writer_opened(self) -> ArchiveWriter:
        if self._writer is None:
            make_folders(self._folder)
            self._writer = ArchiveWriter(self._folder, self._store, self._step)
        return self._writer

    # ---- search

    def search(self, wanted: ArchiveQuery) -> Matches:
        """Return memories of an agent and documents of its sources, best match first; equal searches give equal
        orders.
        """
        asked = bool(wanted.query.strip())
        vector = self._vector_of(wanted.query) if asked else None
        with self._reading:
            serving_caches = self._current_caches()
            if serving_caches is None:
                return Matches(total=0)
            names = sorted({stream_of(name) for name in wanted.sources})
            if not names and not wanted.own:
                return Matches(total=0)
            search = Asked(wanted, vector)
            pool = CandidatePool(
                serving_caches.kept(search) if wanted.own else [],
                [serving_caches.documents(name, search) for name in names],
                wanted,
            )
            return find(pool, wanted, vector) if asked else newest(pool, wanted)

    def _vector_of(self, query: str) -> np.ndarray | None:
        """Return the vector of a query; None if it has no words. Embeds without holding the lock, so other searches do
        not wait.
        """
        with self._reading:
            serving_caches, embedder = self._current_caches(), self._embedder
            if serving_caches is None:
                return None
            check_embedder(serving_caches.serving, embedder)
        vector = embed_checked(embedder, [query])[0]
        return vector.astype("f4") if vector.any() else None

    def _current_caches(self) -> RowCaches | None:
        """Return the row caches after checking them against the serving table; None if no process has followed yet."""
        if self._row_caches is None and (self._folder / NOTES).exists():
            self._row_caches = RowCaches(self._folder, self._lineage)
        return self._row_caches if self._row_caches is not None and self._row_caches.renewed() else None

    # ---- rebuild, check, status

    def rebuild(self, embedder: Embedder | None = None, progress: RebuildProgress | None = None) -> RebuildReport:
        """Build the index again from the log alone, as a second table; the old one answers until it is replaced.

        With another `embedder` the vectors are those of that embedder, and this archive uses it from then on. Raises
        ArchiveError while another process rebuilds, and the errors of `follow`.
        """
        built = self._rebuild_table(embedder, progress)
        self.follow()  # records erased while the table was built must be gone before the rebuild is reported as done
        return built

    def _rebuild_table(
        self, embedder: Embedder | None = None, progress: RebuildProgress | None = None
    ) -> RebuildReport:
        embedder = self._embedder if embedder is None else SharedEmbedder(embedder)
        with self._writing:
            folder = self._writer_opened().folder
        with try_lock(folder / REBUILDING) as free:
            if not free:
                raise ArchiveError("another process is rebuilding the archive. Wait until the rebuild is done.")
            writer = ArchiveWriter(folder, self._store, self._step)
            try:
                embed_checked(embedder, ["ready"])  # one that is missing must not serve an empty table
                vectors = EmbeddingCache(embedder, writer.notes)
                built = build(self._store, writer.tables, vectors, self._step, progress)
                with self._writing, self._reading:
                    writer.swap(built.serving, built.positions, built.ahead)
                    self._embedder = embedder
                    self._forget()
            finally:
                writer.close()
        return RebuildReport(built.rows, vectors.embedded, embedder.name, embedder.dimension)

    def wait_for_rebuild(self) -> None:
        """Wait until no process is rebuilding: such a process may hold records that have been erased since."""
        with self._writing:
            folder = self._writer_opened().folder
        with locked(folder / REBUILDING):
            pass

    def check(self) -> list[str]:
        """Return the differences between the index and the log, row for row; empty if there are none.

        Only records followed so far are compared. Rows written by another program show as differences. Raises
        ArchiveError for a table that cannot be read.
        """
        with self._writing:
            writer = self._writer_opened()
            with locked(writer.lock):
                serving = writer.notes.serving()
                if serving is None:
                    return []
                return differences(self._store, writer.tables.open(serving.generation), writer.notes, serving.embedder)

    def status(self) -> IndexStatus:
        """Return the status of the archive. Raises ArchiveError."""
        with self._writing:
            writer = self._writer_opened()
            serving, positions = writer.notes.serving(), writer.notes.positions()
            names = self._store.partitions()
            done = {name: positions[name].commit if name in positions else -1 for name in names}
            behind = sum(self._is_behind(name, done[name]) for name in names)
            sizes = self.sizes()
            if serving is None:
                return IndexStatus("", 0, 0, 0, writer.notes.message_count(), 0, behind, 0, sizes.bytes, sizes)
            table = writer.tables.open(serving.generation)
            memories = table.count() - table.count(equal("kind", ENDED))
            return IndexStatus(
                serving.embedder, serving.dimension, serving.generation, memories, writer.notes.message_count(),
                len(positions), behind, writer.notes.vector_count(), sizes.bytes, sizes,
            )  # fmt: skip

    def sizes(self) -> IndexSizes:
        """Return the sizes that could grow. Reads no table. Raises ArchiveError."""
        with self._writing, self._reading:
            writer, caches = self._writer, self._row_caches
            serving = None if writer is None else writer.notes.serving()
            files = table_files(Path() if writer is None or serving is None else writer.tables.path(serving.generation))
            connections = [writer.tables.cache_bytes] if writer is not None else []
            connections += [caches.table_cache_bytes] if caches is not None else []
            return IndexSizes(
                files.versions, files.files, folder_bytes(self._folder), len(caches or ()),
                0 if caches is None else caches.used_bytes, ROW_CACHE_BYTES_MAX,
                sum(connections), 4 * TABLE_CACHE_BYTES_MAX,
            )  # fmt: skip

    def _forget(self) -> None:
        """Close everything that is open."""
        for held in (self._writer, self._row_caches):
            if held is not None:
                held.close()
        self._writer = self._row_caches = None
        self._positions.clear()

    def close(self) -> None:
        """Close files. Idempotent; later calls open them again."""
        with self._writing, self._reading:
            self._forget()


def _joined(parts: PartitionTables) -> PartitionTables:
    """Return one table for each partition, with its tables in the order in which they were read."""
    found: dict[str, list[pa.Table]] = {}
    for partition, table in parts:
        found.setdefault(partition, []).append(table)
    return [(partition, pa.concat_tables(tables)) for partition, tables in found.items()]
