"""Write and read Parquet files with a checksum for each part: sealed records and derived states.

A row group is the unit of reading: its bytes are checked against the manifest before any of them is parsed. Rows are
sorted by agent and seq, and the manifest knows the first and the last row of each group, so that a reader of one agent
reads only the groups that hold the agent. Any Parquet tool reads the files without this module.

A page of the console asks for one moment of an agent in several ways, and each question reads the records near that
moment: `keeping_decoded_groups` lets a request decode them once.

Used by `seal_pass` for writing, `sealed_reader` for reading, and `backup.export_file` for its settings.
"""

import hashlib
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from contextvars import ContextVar
from mmap import mmap
from pathlib import Path
from typing import Any, NamedTuple

import google_crc32c
import pyarrow as pa

from everlog.events import CorruptLog
from everlog.store.base.arrow_values import TRUE, int_value, text_array, text_value
from everlog.store.base.disk import remove_if_there
from everlog.store.base.lazy_pyarrow import pc, pq
from everlog.store.base.store_constants import (
    FOOTERS_MAX,
    PAGE_BYTES,
    ROW_GROUP_BYTES,
    ROW_GROUP_ROWS,
    STATE_GROUP_BYTES,
    STATE_ZSTD_LEVEL,
    ZSTD_LEVEL,
)
from everlog.store.partition.manifest import ParquetEntry, RowGroupEntry
from everlog.store.partition.partition import Partition
from everlog.store.sealed.derived_columns import add_derived_columns

GROUPS_MAX = 2
"""Row groups that are kept, of records and as many of states: a moment may lie at the border of two."""
ROWS_AT_ONCE = 2048
"""Rows that are decoded together when only the first part of a row group is needed."""
SORTED_BY = [("agent_id", "ascending"), ("seq", "ascending")]
DICTIONARIES = ("agent_id", "type", "f_kind", "f_name")
_DELTA = "DELTA_BINARY_PACKED"
ENCODINGS = {
    "seq": _DELTA, "commit": _DELTA, "recorded_at": _DELTA, "said_at": _DELTA, "turn": _DELTA, "step": _DELTA,
    "version": _DELTA, "event_id": "DELTA_BYTE_ARRAY", "cause": "DELTA_BYTE_ARRAY",
    "text": "DELTA_LENGTH_BYTE_ARRAY", "payload": "DELTA_BYTE_ARRAY",
}  # fmt: skip
"""Column encodings: files are a quarter smaller than with Parquet's defaults, and every tool reads them; see decision
8.
"""
STATISTICS = ("agent_id", "seq", "commit", "recorded_at", "type")
"""Columns whose minimum and maximum are stored for each row group, so that a query can skip row groups."""


class FooterCache:
    """Parsed footers of recently read files, which a writer needs again for each of its agents.

    A file never changes, so its name identifies the footer. Safe for several threads: at worst two parse the same
    footer.
    """

    def __init__(self) -> None:
        self._found: dict[str, Any] = {}

    def find(self, name: str) -> Any:
        """Return the metadata of a file; None if it is not cached."""
        return self._found.get(name)

    def add(self, name: str, metadata: Any) -> None:
        """Cache the metadata of a file; above `FOOTERS_MAX`, drop the oldest."""
        kept = [*self._found.items(), (name, metadata)][-FOOTERS_MAX:]
        self._found = dict(kept)

    def keep(self, names: AbstractSet[str]) -> None:
        """Drop all files except `names`."""
        self._found = {name: metadata for name, metadata in self._found.items() if name in names}


class DecodedGroup(NamedTuple):
    """Rows of a row group, from its first."""

    table: pa.Table
    last: tuple[str, int] | None
    """Last row that was decoded; None: the whole row group was."""

    def reaches(self, last: tuple[str, int] | None) -> bool:
        """Return True if the rows of an agent up to a seq are here; None: all rows."""
        return self.last is None or (last is not None and self.last > last)


class DecodedGroups:
    """Row groups that one thread decoded last, by path, number and columns."""

    def __init__(self) -> None:
        self._kept: OrderedDict[object, DecodedGroup] = OrderedDict()

    def find(
        self, path: Path, number: int, columns: Sequence[str] | None, last: tuple[str, int] | None
    ) -> pa.Table | None:
        """Return the rows of a group up to `last`, and perhaps more; None if they are not kept."""
        found = self._kept.get(_name(path, number, columns))
        return found.table if found is not None and found.reaches(last) else None

    def add(self, path: Path, number: int, columns: Sequence[str] | None, group: DecodedGroup) -> None:
        """Keep a group in place of the same with fewer rows; above `GROUPS_MAX`, drop the one that was added first."""
        name = _name(path, number, columns)
        self._kept.pop(name, None)
        self._kept[name] = group
        if len(self._kept) > GROUPS_MAX:
            self._kept.popitem(last=False)


def _name(path: Path, number: int, columns: Sequence[str] | None) -> object:
    return path, number, None if columns is None else tuple(columns)


class _Kept(NamedTuple):
    records: DecodedGroups
    states: DecodedGroups


_kept: ContextVar[_Kept | None] = ContextVar("decoded row groups", default=None)


def decoded_groups(*, states: bool) -> DecodedGroups | None:
    """Return the row groups of records, or of states, that this thread keeps; None if it keeps none."""
    kept = _kept.get()
    if kept is None:
        return None
    return kept.states if states else kept.records


@contextmanager
def keeping_decoded_groups() -> Iterator[None]:
    """Let this thread keep the row groups that it decodes while the block runs: at most some 32 MB of records."""
    token = _kept.set(_Kept(DecodedGroups(), DecodedGroups()))
    try:
        yield
    finally:
        _kept.reset(token)


def save(partition: Partition, name: str, table: pa.Table, maker: str = "") -> tuple[ParquetEntry, str]:
    """Write `table`, which has `agent_id` and `seq`, as the file `name`. May raise OSError.

    Return the file's entry in the manifest, and its SHA-256. The content is durable; the name is durable only after the
    folder is synced. An existing file of that name was begun and not finished by this same owner: it is removed first.
    """
    content, entry = encode(name, table, maker)
    path = partition.path / name
    remove_if_there(partition.disk, path)
    file = partition.disk.create(path)
    try:
        file.write([content], 0)
        file.sync()
    finally:
        file.close()
    return entry, hashlib.sha256(content).hexdigest()


def encode(name: str, table: pa.Table, maker: str = "") -> tuple[bytes, ParquetEntry]:
    """Return `table`, sorted, as the bytes of a Parquet file, and its entry in the manifest."""
    table = table.sort_by(SORTED_BY)
    if not maker:
        table = add_derived_columns(table)
    sink = pa.BufferOutputStream()
    level, group_bytes = (STATE_ZSTD_LEVEL, STATE_GROUP_BYTES) if maker else (ZSTD_LEVEL, ROW_GROUP_BYTES)
    with pq.ParquetWriter(sink, table.schema, **_options(table.schema, level)) as writer:
        writer.write_table(table, row_group_size=_rows_together(table, group_bytes))
    content = sink.getvalue().to_pybytes()
    metadata = pq.read_metadata(pa.BufferReader(content))
    starts = [_start(metadata.row_group(number)) for number in range(metadata.num_row_groups)]
    ends = [*starts[1:], _end(metadata)] if starts else []
    groups = []
    row = 0
    for number, end in enumerate(ends):
        start = starts[number] if number else 0
        rows = metadata.row_group(number).num_rows
        crc = google_crc32c.value(content[start:end])
        groups.append(RowGroupEntry(start, end - start, crc, rows, _key(table, row), _key(table, row + rows - 1)))
        row += rows
    footer = ends[-1] if ends else 0
    crc = google_crc32c.value(content[footer:])
    return content, ParquetEntry(name, len(content), groups, crc, maker)


def _rows_together(table: pa.Table, bytes_max: int) -> int:
    """Return the number of rows in a row group: fewer than ROW_GROUP_ROWS if rows are large, because a group is read
    whole.
    """
    rows = bytes_max * table.num_rows // max(table.nbytes, 1)
    return max(1, min(ROW_GROUP_ROWS, rows))


def _options(schema: pa.Schema, level: int) -> dict[str, object]:
    return {
        "compression": "zstd",
        "compression_level": level,
        "data_page_size": PAGE_BYTES,
        "use_dictionary": [name for name in DICTIONARIES if name in schema.names],
        "column_encoding": {name: encoding for name, encoding in ENCODINGS.items() if name in schema.names},
        "write_statistics": [name for name in STATISTICS if name in schema.names],
        "sorting_columns": pq.SortingColumn.from_ordering(schema, SORTED_BY),
        "write_page_index": True,
    }


def _start(group: Any) -> int:
    """Return the offset of the first byte of a row group."""
    columns = (group.column(number) for number in range(group.num_columns))
    return min(c.dictionary_page_offset if c.has_dictionary_page else c.data_page_offset for c in columns)


def _end(metadata: Any) -> int:
    """Return the offset of the byte after the last row group: page indexes and the footer follow."""
    group = metadata.row_group(metadata.num_row_groups - 1)
    columns = [group.column(number) for number in range(group.num_columns)]
    return max(
        (c.dictionary_page_offset if c.has_dictionary_page else c.data_page_offset) + c.total_compressed_size
        for c in columns
    )


def _key(table: pa.Table, row: int) -> tuple[str, int]:
    return table.column("agent_id")[row].as_py(), table.column("seq")[row].as_py()


def tables(partition: Partition, entry: ParquetEntry, agent_id: str | Sequence[str] | None = None, from_seq: int = 1,
           to_seq: int | None = None, columns: Sequence[str] | None = None, footers: FooterCache | None = None
           ) -> Iterator[pa.Table]:  # fmt: skip
    """Yield the rows of a file, one table for each row group that holds wanted rows.

    `agent_id` is one agent, several (sorted), or None for all; `from_seq` and `to_seq`, inclusive, apply to one agent.
    With `footers` a footer is read and checked only once. Raises CorruptLog at the first part whose checksum is wrong,
    after everything before that part was yielded; FileNotFoundError and other OSErrors.
    """
    wanted = [number for number, group in enumerate(entry.groups) if _holds(group, agent_id, from_seq, to_seq)]
    last = (agent_id, to_seq) if isinstance(agent_id, str) and to_seq is not None else None
    source = _Source(partition, entry, footers)
    for number in wanted:
        table = source.rows(number, columns, last)
        if agent_id is None:
            yield table
        elif isinstance(agent_id, str):
            yield _only(table, agent_id, from_seq, to_seq)
        else:
            yield table.filter(pc.is_in(table.column("agent_id"), text_array(agent_id)))


class _Source:
    """A file that is being read. It is opened when the first row group is decoded."""

    def __init__(self, partition: Partition, entry: ParquetEntry, footers: FooterCache | None) -> None:
        self._partition, self._entry, self._footers = partition, entry, footers
        self._path = partition.path / entry.name
        self._kept = decoded_groups(states=bool(entry.maker))
        self._open: tuple[Any, mmap] | None = None

    def _opened(self) -> tuple[Any, mmap]:
        """Return the file and the memory that it reads. Not a cached property, which Python 3.11 computes with a lock
        for all threads.
        """
        if self._open is None:
            content = mmap(-1, self._entry.bytes)  # anonymous memory: only pages that are filled take space
            known = self._footers.find(self._entry.name) if self._footers is not None else None
            if known is None:
                _fetch_footer(self._partition, self._entry, content)
            # Shares the bytes: row groups fetched later are visible.
            file = pq.ParquetFile(pa.BufferReader(pa.py_buffer(content)), metadata=known)
            if self._footers is not None and known is None:
                self._footers.add(self._entry.name, file.metadata)
            self._open = file, content
        return self._open

    def rows(self, number: int, columns: Sequence[str] | None, last: tuple[str, int] | None) -> pa.Table:
        """Return the rows of a row group, up to the agent and seq `last` (None: all), and perhaps more."""
        kept = self._kept.find(self._path, number, columns, last) if self._kept is not None else None
        return self._decoded(number, columns, last) if kept is None else kept

    def _decoded(self, number: int, columns: Sequence[str] | None, last: tuple[str, int] | None) -> pa.Table:
        file, content = self._opened()
        # The checksum is verified before pyarrow parses any byte of the row group.
        _fetch(self._partition, self._entry, number, content)
        if last is not None:
            table = _read_to(file, number, columns, last)
        else:
            table = file.read_row_group(number, columns=None if columns is None else list(columns), use_threads=False)
        if self._kept is not None:
            is_all = table.num_rows == self._entry.groups[number].rows
            end = None if is_all else (table.column("agent_id")[-1].as_py(), table.column("seq")[-1].as_py())
            self._kept.add(self._path, number, columns, DecodedGroup(table, end))
        return table


def _read_to(file: Any, number: int, columns: Sequence[str] | None, last: tuple[str, int]) -> pa.Table:
    """Return the rows of a row group up to the agent and seq `last`, and some more; rows far beyond are not decoded."""
    batches = []
    wanted = None if columns is None else list(columns)
    for batch in file.iter_batches(ROWS_AT_ONCE, row_groups=[number], columns=wanted, use_threads=False):
        batches.append(batch)
        if (batch.column("agent_id")[-1].as_py(), batch.column("seq")[-1].as_py()) > last:
            break
    return pa.Table.from_batches(batches)


def is_whole(partition: Partition, entry: ParquetEntry) -> bool:
    """Return True if every part of a file matches its checksum."""
    try:
        if entry.groups:
            content = mmap(-1, entry.bytes)
            _fetch_footer(partition, entry, content)
            for number in range(len(entry.groups)):
                _fetch(partition, entry, number, content)
    except (CorruptLog, OSError):
        return False
    return True


def _holds(group: RowGroupEntry, agent_id: str | Sequence[str] | None, from_seq: int, to_seq: int | None) -> bool:
    if agent_id is None:
        return True
    if not isinstance(agent_id, str):
        first = bisect_left(agent_id, group.first[0])
        return first < len(agent_id) and agent_id[first] <= group.last[0]
    return group.last >= (agent_id, from_seq) and group.first <= (agent_id, 2**63 if to_seq is None else to_seq)


def _only(table: pa.Table, agent_id: str, from_seq: int, to_seq: int | None) -> pa.Table:
    """Return the rows of one agent out of sorted rows, where they are adjacent: without a copy."""
    seq = table.column("seq")
    keep = pc.and_(pc.equal(table.column("agent_id"), text_value(agent_id)), pc.greater_equal(seq, int_value(from_seq)))
    if to_seq is not None:
        keep = pc.and_(keep, pc.less_equal(seq, int_value(to_seq)))
    start = pc.index(keep, TRUE).as_py()
    return table.slice(max(start, 0), pc.sum(keep).as_py() or 0)


def where(table: pa.Table, keep: pa.ChunkedArray) -> pa.Table:
    """Return the rows of `table` for which `keep` is true; without a copy if all are."""
    return table if pc.all(keep).as_py() else table.filter(keep)


def _fetch(partition: Partition, entry: ParquetEntry, number: int, content: mmap) -> None:
    """Copy the bytes of a row group into `content` after their checksum was verified."""
    group = entry.groups[number]
    data = partition.disk.read(partition.path / entry.name, group.offset, group.bytes)
    if len(data) != group.bytes or google_crc32c.value(data) != group.crc32c:
        (agent_id, seq), (last_agent, last_seq) = group.first, group.last
        raise CorruptLog(
            f"{partition.path / entry.name} is damaged between byte {group.offset} and {group.offset + group.bytes}, "
            f"in the records from {agent_id!r} seq {seq} to {last_agent!r} seq {last_seq}. Nothing was changed, and "
            "the records before them can still be read. Restore the file from a backup."
        )
    content[group.offset : group.offset + group.bytes] = data


def _fetch_footer(partition: Partition, entry: ParquetEntry, content: mmap) -> None:
    start = entry.groups[-1].offset + entry.groups[-1].bytes
    data = partition.disk.read(partition.path / entry.name, start, entry.bytes - start)
    if len(data) != entry.bytes - start or google_crc32c.value(data) != entry.footer_crc32c:
        agent_id, seq = entry.groups[0].first
        raise CorruptLog(
            f"{partition.path / entry.name} is damaged after byte {start}, in the footer: its records, from "
            f"{agent_id!r} seq {seq} on, cannot be found. Nothing was changed. Restore the file from a backup."
        )
    content[start:] = data
