"""Build the table from the log alone, and compare a table with the log, row for row.

Used by `archive` for `everlog archive rebuild` and `everlog archive check`. The new table does not serve until
`ArchiveWriter.swap`.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice

import msgspec
import numpy as np
import pyarrow as pa

from everlog.events import Record
from everlog.store.archive.archive_constants import CHUNKER, REBUILD_ROWS
from everlog.store.archive.archive_lineage import Lineage
from everlog.store.archive.archive_metadata import ArchiveMetadata, FollowPosition, ServingTable
from everlog.store.archive.archive_results import RebuildProgress
from everlog.store.archive.archive_table import ROW_FIELDS, Table, Tables, rows_in, table_of, vectors_in
from everlog.store.archive.embedding_cache import EmbeddingCache, content_of
from everlog.store.archive.log_source import by_agent, end_position, histories, relevant
from everlog.store.archive.row_fold import MOVED, ArchiveRow, fold_stream
from everlog.store.embedding.tokenizer import pack_numbers, written_words
from everlog.store.log.log_follower import LogFollower
from everlog.store.stores.file_store import FileStore

DIFFERENCES_MAX = 100
"""Number of differences that a check reports, at most."""


class RebuiltTable(msgspec.Struct, frozen=True):
    """A table that was built and does not serve yet."""

    serving: ServingTable
    positions: Mapping[str, FollowPosition]
    ahead: Mapping[str, int]
    rows: int


class RebuildInput(msgspec.Struct, frozen=True):
    """Relevant records of all partitions."""

    tables: list[pa.Table]
    positions: dict[str, FollowPosition]


def read_log(store: FileStore) -> RebuildInput:
    """Read the whole log."""
    tables = []
    positions = {}
    for partition in store.partitions():
        for table in LogFollower(store.partition(partition)).since(0):
            positions[partition] = end_position(table)
            tables.append(relevant(table))
    return RebuildInput(tables, positions)


def followed_records(store: FileStore, notes: ArchiveMetadata) -> Iterator[tuple[str, list[Record]]]:
    """Yield the records of each agent that the table includes."""
    positions, ahead = notes.positions(), notes.ahead()
    tables = []
    for partition in store.partitions():
        end = positions[partition].commit if partition in positions else 0
        for table in map(relevant, LogFollower(store.partition(partition)).since(0)):
            places = zip(*(table.column(name).to_pylist() for name in ("agent_id", "seq", "commit")), strict=True)
            keep = [commit <= end or seq <= ahead.get(agent_id, 0) for agent_id, seq, commit in places]
            tables.append(table.filter(pa.array(keep, pa.bool_())))
    yield from by_agent(tables)


def build(store: FileStore, tables: Tables, vectors: EmbeddingCache, step: Callable[[str], None],
          progress: RebuildProgress | None) -> RebuiltTable:  # fmt: skip
    """Build a table of the next generation from the log."""
    found = read_log(store)
    generation = max(tables.generations(), default=0) + 1
    table = tables.create(generation, vectors.embedder.dimension)
    lineage = Lineage(store)
    ahead: dict[str, int] = {}
    done, total = 0, sum(some.num_rows for some in found.tables)
    rows: list[ArchiveRow] = []
    written = 0
    for agent_id, records in by_agent(found.tables):
        done += len(records)
        rows += _rows_of(store, lineage, agent_id, records, ahead)
        if len(rows) >= REBUILD_ROWS:
            written += _write(table, rows, vectors)
            rows = []
            step("rebuild")
            if progress is not None:
                progress(done, total)
    written += _write(table, rows, vectors)
    table.index()
    step("built")
    if progress is not None:
        progress(total, total)
    embedder = vectors.embedder
    serving = ServingTable(generation, embedder.name, embedder.dimension, CHUNKER, table.version)
    return RebuiltTable(serving, found.positions, ahead, written)


def _rows_of(
    store: FileStore, lineage: Lineage, agent_id: str, records: list[Record], ahead: dict[str, int]
) -> Iterator[ArchiveRow]:
    """Yield the rows of an agent. One that moved is read again, from all of its partitions at once."""
    if any(record.type == MOVED for record in records):
        records = histories(store, [agent_id], lambda _: "")[agent_id] or records
        ahead[agent_id] = records[-1].seq
    yield from fold_stream(records, lineage.is_fork).values()


def _write(table: Table, rows: list[ArchiveRow], vectors: EmbeddingCache) -> int:
    if rows:
        table.add(table_of(rows, *vectors.of(rows)))
    return len(rows)


def differences(store: FileStore, table: Table, notes: ArchiveMetadata, model: str) -> list[str]:
    """Return the differences between a table and the followed log: rows that are missing, surplus or not the same."""
    wanted: dict[str, ArchiveRow] = {}
    lineage = Lineage(store)
    for _, records in followed_records(store, notes):
        wanted.update(fold_stream(records, lineage.is_fork))
    return list(islice(_differences(wanted, table, notes, model), DIFFERENCES_MAX))


def _differences(wanted: dict[str, ArchiveRow], table: Table, notes: ArchiveMetadata, model: str) -> Iterator[str]:
    if damaged := notes.damaged_files(table.path):  # LanceDB may panic over a damaged file, so it is not read
        yield from (f"{path} is damaged: wrong checksum" for path in damaged)
        return
    rows = table.read()
    vectors = vectors_in(rows) if rows.num_rows else np.empty((0, 0))
    seen: set[str] = set()
    keys = {row_id: content_of(row) for row_id, row in wanted.items()}
    known = notes.vectors(model, list(set(keys.values())))
    packed = rows.column("words").to_pylist()
    for row, vector, words in zip(rows_in(rows), vectors, packed, strict=True):
        expected = wanted.get(row.memory_id)
        if row.memory_id in seen:
            yield f"row {row.memory_id} of {row.agent_id!r} exists twice"
        elif expected is None:
            yield f"row {row.memory_id} of {row.agent_id!r} is not in the log"
        else:
            yield from _different(row, expected)
            cached = known.get(keys[row.memory_id])
            if cached is not None and not cached.startswith(vector.tobytes()):
                yield f"the vector of row {row.memory_id} of {row.agent_id!r} is not that of its text"
            if words != written_words(pack_numbers(expected.text)):
                yield f"the words of row {row.memory_id} of {row.agent_id!r} are not those of its text"
        seen.add(row.memory_id)
    for row_id in sorted(wanted.keys() - seen):
        yield f"row {row_id} of {wanted[row_id].agent_id!r} is missing: seq {wanted[row_id].seq_from} of the log"


def _different(row: ArchiveRow, expected: ArchiveRow) -> Iterator[str]:
    for name in ROW_FIELDS:
        want = getattr(expected, name)
        if getattr(row, name) != want:
            yield f"row {row.memory_id} of {row.agent_id!r}: {name} is {getattr(row, name)!r}, not {want!r}"
