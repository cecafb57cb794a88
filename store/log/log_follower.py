"""Following a partition: what was appended since a commit, without reading again what was read before.

A follower remembers how far it came in the open file, and reads on from there. When the owner has published a new
manifest (it sealed, or a new owner began a file) the follower looks its commit up in the new files. It sees whole
frames only, and never locks or writes.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from everlog.store.base.arrow_schema import SCHEMA, batch_in, records_of
from everlog.store.base.disk import storage
from everlog.store.base.lazy_pyarrow import pc
from everlog.store.log.partition_reader import PartitionReader
from everlog.store.partition.frame import HEADER_BYTES, MAGIC, body_is_right, unpack
from everlog.store.partition.manifest import OPEN, SEALED, FileEntry, Manifest, load
from everlog.store.partition.partition import MANIFEST, Partition
from everlog.store.partition.segment import closed_frames, missing_file_error
from everlog.store.sealed.sealed_reader import whole

READ_BYTES = 16 * 1024 * 1024
"""Bytes of an open file that are read at once, if a frame is no longer."""


class CommitRewritten(Exception):
    """A commit that was read before is another now, or gone: it was never acknowledged, and a crash took it."""


class LogFollower:
    """How far one partition was read. One thread at a time."""

    def __init__(self, partition: Partition) -> None:
        self._where = partition
        self._manifest: Manifest | None = None
        self._open: FileEntry | None = None
        self._offset = 0
        self._commit = 0
        """The last commit that was read in the open file, or lies before it."""
        self._epoch = 0
        self._previous = 0

    def has_more(self, commit: int) -> bool:
        """Whether something may come after `commit`: costs a look at the folder, and at one file."""
        with storage("list", self._where.path):
            if self._manifest is None or self._commit != commit or self._number() != self._manifest.number:
                return True
            return self._open is not None and self._length(self._open) > self._offset

    def since(self, commit: int, mark: str = "") -> Iterator[pa.Table]:
        """Records of all commits after `commit`, in order, in tables of `store.SCHEMA` that hold whole commits.

        `mark`: the event id of the last record of `commit`, as it was read; where the open file is looked through from
        its start, it is compared. Raises Rewritten if the log has something else there, or ends before it; CorruptLog
        where bytes inside are damaged, after everything before them was given.
        """
        while True:
            number = self._number()
            if self._manifest is None or number != self._manifest.number or commit < self._commit:
                manifest = load(self._where)
                try:
                    for table in self._closed(manifest, commit, mark):
                        commit, mark = table.column("commit")[-1].as_py(), ""
                        yield table
                except FileNotFoundError as error:
                    if self._number() == manifest.number:
                        raise missing_file_error(str(error.filename), commit + 1) from error
                    continue
                self._begin(manifest)
            for table in self._appended():
                first, last = (table.column("commit")[row].as_py() for row in (0, -1))
                if mark and first <= commit <= last and event_id_of(table, commit) != mark:
                    raise self._rewritten(commit)
                if last > commit:
                    yield table if first > commit else _after(table, commit)
                    commit, mark = last, ""
            if self._rules():
                if self._commit < commit:
                    raise self._rewritten(commit)
                return

    def _rewritten(self, commit: int) -> "CommitRewritten":
        return CommitRewritten(f"{self._where.path}: commit {commit} is not the one that was read")

    def _number(self) -> int:
        with storage("list", self._where.path):
            return (self._where.numbers(MANIFEST) or [0])[-1]

    def _length(self, entry: FileEntry) -> int:
        try:
            return (self._where.path / entry.name).stat().st_size
        except FileNotFoundError:  # the owner sealed it
            return 2**63

    def _closed(self, manifest: Manifest, commit: int, mark: str) -> Iterator[pa.Table]:
        """The records after `commit` in files that grow no longer. Raises Rewritten if `commit` is another there."""
        for entry in manifest.files:
            holds = bool(mark) and entry.kind != OPEN and entry.first_commit <= commit <= entry.last_commit
            if entry.kind == OPEN or (entry.last_commit <= commit and not holds):
                continue
            if entry.kind == SEALED:
                tables: Iterator[pa.Table] = iter([whole(self._where, entry)])
            else:
                tables = (pa.Table.from_batches([f.batch], SCHEMA) for f in closed_frames(self._where, entry, manifest))
            for table in tables:
                if holds and pc.any(pc.equal(table.column("commit"), commit)).as_py():
                    holds = False
                    if event_id_of(table, commit) != mark:
                        raise self._rewritten(commit)
                later = _after(table, commit)
                if later.num_rows:
                    yield later

    def _begin(self, manifest: Manifest) -> None:
        self._manifest, self._open = manifest, manifest.open_file()
        self._offset = self._epoch = self._previous = 0
        self._commit = self._open.first_commit - 1 if self._open is not None else manifest.covered_to()

    def _appended(self) -> Iterator[pa.Table]:
        """What was appended to the open file since, in tables of about READ_BYTES; nothing, once it was replaced."""
        entry = self._open
        if entry is None:
            return
        size = READ_BYTES
        while True:
            with storage("read", self._where.path / entry.name):
                try:
                    data = self._where.disk.read(self._where.path / entry.name, self._offset, size)
                except FileNotFoundError:
                    return
            if not self._rules():
                return
            batches, read = self._frames(entry, data)
            if batches:
                table = pa.Table.from_batches(batches, SCHEMA).combine_chunks()
                yield table
            if len(data) < size:
                if data.find(MAGIC, read + 1) >= 0:
                    self._check_tail_damage()
                return
            if not read:
                size *= 2

    def _rules(self) -> bool:
        """Whether the manifest is still that of the open file: else this may hold what a fenced writer wrote."""
        return self._manifest is not None and self._number() == self._manifest.number

    def _frames(self, entry: FileEntry, data: bytes) -> tuple[Sequence[pa.RecordBatch], int]:
        """The whole frames at the beginning of `data`, which the file has at the offset; and how many bytes they are.

        Moves on behind them.
        """
        salt = self._where.salt(entry.name)
        buffer = pa.py_buffer(data)
        batches = []
        at = 0
        while at < len(data):
            header = unpack(salt, self._offset, data, at=at)
            if header is None or (header.previous, header.first_commit) != (self._previous, self._commit + 1):
                break
            start = at + HEADER_BYTES
            body = buffer.slice(start, min(header.body_bytes, len(data) - start))
            if header.epoch < self._epoch or not body_is_right(header, body):
                break
            batches.append(batch_in(body))
            self._offset += start + header.body_bytes - at
            at = start + header.body_bytes
            self._commit += header.commits
            self._epoch, self._previous = header.epoch, header.crc
        return batches, at

    def _check_tail_damage(self) -> None:
        """There is something like a frame beyond bytes that are none: a reader tells damage from a torn tail."""
        PartitionReader(self._where).table()


def event_id_of(table: pa.Table, commit: int) -> str:
    """The event id of the last record of a commit, of which `table` has at least one."""
    found = table.filter(pc.equal(table.column("commit"), commit))
    return next(records_of(found.slice(found.num_rows - 1))).event_id


def _after(table: pa.Table, commit: int) -> pa.Table:
    return table.filter(pc.greater(table.column("commit"), commit))
