"""Read sealed files: records, their commits and ids, and the derived states.

Used by `partition_reader`, `partition_recovery` and `seal_pass`.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from everlog.events import CorruptLog, Record
from everlog.store.base.arrow_schema import SCHEMA, records_of
from everlog.store.base.arrow_values import empty_table, int_value
from everlog.store.base.disk import read_errors
from everlog.store.base.lazy_pyarrow import pc
from everlog.store.partition.dedup_index import CommitsById
from everlog.store.partition.manifest import SEALED, FileEntry, Manifest, ParquetEntry
from everlog.store.partition.partition import Partition
from everlog.store.partition.segment import missing_file_error
from everlog.store.sealed.checkpoints import state_of
from everlog.store.sealed.parquet_file import FooterCache, tables

COMMIT_ORDER = [("commit", "ascending"), ("seq", "ascending")]


def rows_of(partition: Partition, entry: FileEntry, agent_id: str | Sequence[str] | None = None, from_seq: int = 1,
            to_seq: int | None = None, columns: Sequence[str] = SCHEMA.names, footers: FooterCache | None = None
            ) -> Iterator[pa.Table]:  # fmt: skip
    """Yield records of a sealed file as tables of `SCHEMA`, sorted by agent and seq. Raises what `parquet_file.tables`
    raises.

    With `columns` the tables have only these; for one agent, `agent_id` and `seq` must be among them.
    """
    assert entry.parquet is not None
    for table in tables(partition, entry.parquet, agent_id, from_seq, to_seq, columns, footers):
        yield table.cast(pa.schema([SCHEMA.field(name) for name in table.column_names]))


def whole(partition: Partition, entry: FileEntry) -> pa.Table:
    """Return all records of a sealed file, in commit order. Raises CorruptLog, FileNotFoundError."""
    return pa.concat_tables([empty_table(SCHEMA), *rows_of(partition, entry)]).sort_by(COMMIT_ORDER)


def ids_of(partition: Partition, entry: FileEntry) -> CommitsById:
    """Return the commit number of each event id in a sealed file. Raises CorruptLog, StoreError."""
    assert entry.parquet is not None
    ids: CommitsById = {}
    with _of(partition, entry):
        for table in tables(partition, entry.parquet, columns=["event_id", "commit"]):
            keys = table.column("event_id").cast(pa.binary(16)).to_pylist()
            ids.update(zip(keys, table.column("commit").to_pylist(), strict=True))
    return ids


def commit_of(partition: Partition, entry: FileEntry, number: int) -> list[Record]:
    """Return the records of one commit of a sealed file, in order. Raises CorruptLog, StoreError."""
    found: list[Record] = []
    with _of(partition, entry):
        for table in rows_of(partition, entry):
            found += records_of(table.filter(pc.equal(table.column("commit"), int_value(number))))
    return found


@contextmanager
def _of(partition: Partition, entry: FileEntry) -> Iterator[None]:
    """Turn errors of reading a file that must exist into StoreError and CorruptLog, for the owner."""
    path = partition.path / entry.name
    try:
        with read_errors(path):
            yield
    except FileNotFoundError as error:
        raise missing_file_error(str(path), entry.first_commit) from error


def newest_state(partition: Partition, manifest: Manifest, agent_id: str, maker: str, as_of: int | None = None,
                 footers: FooterCache | None = None) -> tuple[pa.Table, int] | None:  # fmt: skip
    """Return the newest state of an agent that `maker` derived, at or before `as_of` (None: any), and its seq; None if
    there is none.

    A state is derived: one that is missing, damaged or of another maker is skipped in favour of an older one.
    """
    for seq, entry, is_end in _places(manifest, agent_id):
        if as_of is not None and seq > as_of:
            continue
        if is_end:
            rows = state_rows(partition, entry, maker, agent_id, footers)
        else:
            rows = checkpoint(partition, entry, maker, agent_id, seq, footers)
        if rows is not None and rows.num_rows:
            return rows, seq
    return None


def _places(manifest: Manifest, agent_id: str) -> list[tuple[int, FileEntry, bool]]:
    """Return where states of an agent may be, newest first: the seq, the file, and True if that is the end of the
    file.
    """
    sealed = [entry for entry in manifest.files if entry.kind == SEALED and agent_id in entry.chains]
    ends = [(entry.chains[agent_id][0], entry, True) for entry in sealed]
    between = [(seq, entry, False) for entry in sealed for seq in entry.held.get(agent_id, ())]
    return sorted([*ends, *between], key=lambda place: -place[0])


def checkpoint(partition: Partition, entry: FileEntry, maker: str, agent_id: str, seq: int,
               footers: FooterCache | None = None) -> pa.Table | None:  # fmt: skip
    """Return the state of an agent at one of its checkpoints in a sealed file; None if it cannot be used."""
    rows = _derived(partition, entry.checkpoints, maker, agent_id, seq, footers)
    return None if rows is None else state_of(rows)


def checkpoints_in(partition: Partition, entry: FileEntry, maker: str) -> pa.Table | None:
    """Return all checkpoints in a sealed file, in their stored form; None if there are none that can be used."""
    return _derived(partition, entry.checkpoints, maker, None, None, None)


def state_rows(partition: Partition, entry: FileEntry, maker: str | None, agent_id: str | Sequence[str] | None = None,
               footers: FooterCache | None = None) -> pa.Table | None:  # fmt: skip
    """Return the state rows at the end of a sealed file, of one agent, several, or all; None if they cannot be used."""
    return _derived(partition, entry.state, maker, agent_id, None, footers)


def _derived(partition: Partition, part: ParquetEntry | None, maker: str | None, agent_id: str | Sequence[str] | None,
             seq: int | None, footers: FooterCache | None) -> pa.Table | None:  # fmt: skip
    """Return the rows of a derived file, of one seq or all; None if the file is missing, damaged or of another
    maker.
    """
    if part is None or part.maker != maker:
        return None
    try:
        found = list(tables(partition, part, agent_id, seq or 1, seq, footers=footers))
    except (CorruptLog, OSError):
        return None
    return pa.concat_tables(found) if found else None


def newest_states(
    partition: Partition, manifest: Manifest, agents: Sequence[str], maker: str | None, footers: FooterCache | None
) -> tuple[pa.Table | None, dict[str, int]]:
    """Return the newest states of `agents` (sorted) in one table, as `newest_state` does for one; and their seqs by
    agent. `maker` None: no state has such a maker, so none is read.
    """
    found: dict[str, int] = {}
    parts = []
    for entry in reversed(manifest.files):
        here = [name for name in agents if name not in found and name in entry.chains]
        rows = state_rows(partition, entry, maker, here, footers) if here and entry.kind == SEALED else None
        if rows is not None:
            parts.append(rows)
            found.update((name, entry.chains[name][0]) for name in pc.unique(rows.column("agent_id")).to_pylist())
    return (pa.concat_tables(parts) if found else None), found
