"""Follow a partition: read the records appended since a commit, without reading earlier ones again.

A follower remembers its position in the open file and reads on from there. When the owner has published a new manifest
(after sealing, or when a new owner began a file) the follower looks its commit up in the new files. It sees whole
frames only, and never locks or writes.

Used by the archive (`archive`, `log_source`, `rebuild_table`), and by what follows logs for readers (`actors/feed`).
"""

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from everlog.store.base.arrow_schema import SCHEMA, batch_in, records_of
from everlog.store.base.arrow_values import int_value
from everlog.store.base.contract import Head
from everlog.store.base.disk import storage
from everlog.store.base.lazy_pyarrow import pc
from everlog.store.log.partition_reader import PartitionReader
from everlog.store.partition.frame import HEADER_BYTES, MAGIC, body_is_right, unpack
from everlog.store.partition.manifest import OPEN, SEALED, FileEntry, Manifest, load
from everlog.store.partition.partition import MANIFEST, Partition
from everlog.store.partition.segment import closed_frames, missing_file_error
from everlog.store.sealed.sealed_reader import whole

_UNKNOWN_BYTES = 2**63
"""Number of bytes that stands for whole files, which are not measured."""
READ_BYTES = 16 * 1024 * 1024
"""Bytes of an open file that are read at once; more if a frame is longer."""


class CommitRewritten(Exception):
    """Raised if a commit that was read has changed or is gone: it was never acknowledged and was lost in a crash."""


class LogFollower:
    """Read position in one partition. For one thread at a time."""

    def __init__(self, partition: Partition) -> None:
        self._where = partition
        self._manifest: Manifest | None = None
        self._open: FileEntry | None = None
        self._offset = 0
        self._commit = 0
        """Last commit that was read in the open file, or the last before that file."""
        self._epoch = 0
        self._previous = 0

    def has_more(self, commit: int) -> bool:
        """Return True if there may be records after `commit`. Costs a listing of the folder, and the size of one
        file.
        """
        return self.bytes_behind(commit) > 0

    def bytes_behind(self, commit: int) -> int:
        """Return the number of bytes that were appended after `commit`; a very large one if whole files were. Costs as
        much as `has_more`.
        """
        with storage("list", self._where.path):
            if self._manifest is None or self._commit != commit or self._number() != self._manifest.number:
                return _UNKNOWN_BYTES
            return 0 if self._open is None else self._length(self._open) - self._offset

    def skip_to_end(self, passed: Callable[[pa.Table], None] = lambda _: None) -> int:
        """Move to the end of the log without reading closed files, and return the number of its last commit.

        `passed` gets the records that are passed over, those of the open file; some of them perhaps twice.
        """
        while True:
            self._begin(load(self._where))
            for table in self._appended():
                passed(table)
            if self._manifest_in_force():
                return self._commit

    def closed_heads(self) -> dict[str, Head]:
        """Return the end of every stream in the closed files, as of the last move of this position."""
        return {} if self._manifest is None else self._manifest.closed_heads()

    def since(self, commit: int, mark: str = "") -> Iterator[pa.Table]:
        """Yield the records of all commits after `commit`, in order, in tables of `store.SCHEMA` that hold whole
        commits.

        `mark` is the event id of the last record of `commit` as it was read before; it is compared wherever that commit
        is read again. Raises CommitRewritten if the log has another record there, or ends before it; CorruptLog for
        damaged bytes, after everything before them was yielded.
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
            # A new manifest may have closed or replaced the open file during the read: then start again from the new
            # files.
            if self._manifest_in_force():
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
            return self._where.disk.size(self._where.path / entry.name)
        except FileNotFoundError:  # the owner has sealed the file
            return _UNKNOWN_BYTES

    def _closed(self, manifest: Manifest, commit: int, mark: str) -> Iterator[pa.Table]:
        """Yield the records after `commit` in closed files. Raises CommitRewritten if `commit` is another record
        there.
        """
        for entry in manifest.files:
            holds = bool(mark) and entry.kind != OPEN and entry.first_commit <= commit <= entry.last_commit
            if entry.kind == OPEN or (entry.last_commit <= commit and not holds):
                continue
            if entry.kind == SEALED:
                tables: Iterator[pa.Table] = iter([whole(self._where, entry)])
            else:
                tables = (pa.Table.from_batches([f.batch], SCHEMA) for f in closed_frames(self._where, entry, manifest))
            for table in tables:
                if holds and pc.any(pc.equal(table.column("commit"), int_value(commit))).as_py():
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
        """Yield the records appended to the open file since the last read, in tables of about READ_BYTES; stop if it
        was replaced.
        """
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
            # Checked after the read: bytes beyond the end that the next manifest gives the file belong to a fenced
            # writer.
            if not self._manifest_in_force():
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

    def _manifest_in_force(self) -> bool:
        """Return True if the manifest is still in force; otherwise the open file may hold bytes of a fenced writer."""
        return self._manifest is not None and self._number() == self._manifest.number

    def _frames(self, entry: FileEntry, data: bytes) -> tuple[Sequence[pa.RecordBatch], int]:
        """Return the whole frames at the start of `data`, which begins at the current offset of the file, and their
        bytes.

        Moves the position behind these frames.
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
        """Raise CorruptLog if the file is damaged: a frame seems to follow bytes that are not one. A full read
        decides.
        """
        PartitionReader(self._where).table()


def event_id_of(table: pa.Table, commit: int) -> str:
    """Return the event id of the last record of a commit, of which `table` has at least one."""
    found = table.filter(pc.equal(table.column("commit"), int_value(commit)))
    return next(records_of(found.slice(found.num_rows - 1))).event_id


def _after(table: pa.Table, commit: int) -> pa.Table:
    return table.filter(pc.greater(table.column("commit"), int_value(commit)))
