"""Reading a partition without owning it: never locks, never writes.

A reader follows the manifest, and looks again when a file is gone. It sees whole frames only: a torn tail is passed
over and noted in `damage`; damage before the end raises CorruptLog after everything before it was given.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from events import CorruptLog, Record

from .admission import follow
from .arrow import SCHEMA, batch_in, records_of
from .contract import Head
from .disk import storage
from .epoch import has_live_owner
from .manifest import OPEN, FileEntry, Manifest, head_in, load
from .names import name_of
from .partition import MANIFEST, Partition
from .segment import Frame, Scan, corrupt, gone

BATCHES_AT_ONCE = 1024
"""Frames that `read` decodes together."""


class Damage(NamedTuple):
    """A torn tail that nobody is about to complete: the next owner cuts it."""

    path: Path
    offset: int
    bytes: int

    def __str__(self) -> str:
        return f"{self.path}: {self.bytes} bytes after byte {self.offset} are no whole frame; the next owner cuts them"


class Reader:
    """A partition, for reading. Reads what was whole when the read began."""

    def __init__(self, partition: Partition, durable: Callable[[], tuple[str, int]] | None = None) -> None:
        """`durable` is for the writer's own reads: its open file, and how many bytes of it are acknowledged."""
        self._where = partition
        self._durable = durable
        self.damage: Damage | None = None
        """What the last complete read found after the last whole frame; None while a live owner may be writing it."""

    @property
    def partition(self) -> str:
        """Name of the partition."""
        return self._where.name

    def agents(self) -> list[str]:
        """Ids of all agents with records here, sorted."""
        return sorted(self._heads())

    def head(self, agent_id: str) -> Head:
        """The end of the stream; Head(0, GENESIS) for an agent without records."""
        return head_in(self._heads(), name_of(agent_id))

    def read(self, agent_id: str, from_seq: int = 1, to_seq: int | None = None) -> Iterator[Record]:
        """Records of one stream in order, `from_seq` to `to_seq` (both inclusive; None: to the head)."""
        for table in self._tables(name_of(agent_id)):
            for record in records_of(table):
                if to_seq is not None and record.seq > to_seq:
                    return
                if record.seq >= from_seq:
                    yield record

    def table(self, agent_id: str | None = None) -> pa.Table:
        """Records of one stream (or of all) as an Arrow table of `store.SCHEMA`, in commit order."""
        tables = list(self._tables(None if agent_id is None else name_of(agent_id)))
        return pa.concat_tables(tables) if tables else SCHEMA.empty_table()

    def frames(self, from_commit: int = 1) -> Iterator[Frame]:
        """The whole frames that hold `from_commit` and later commits, in order."""
        self.damage = None
        next_commit = from_commit
        again = True
        while again:
            again = False
            manifest = load(self._where)
            for entry in manifest.files:
                if entry.kind != OPEN and entry.last_commit < next_commit:
                    continue
                data = self._read_file(entry, manifest)
                if data is None:
                    again = True
                    break
                for frame in self._scan(entry, data, manifest):
                    if frame.last_commit >= next_commit:
                        next_commit = frame.last_commit + 1
                        yield frame

    def _tables(self, name: str | None) -> Iterator[pa.Table]:
        batches: list[pa.RecordBatch] = []
        try:
            for frame in self.frames():
                batches.append(batch_in(frame.body))
                if len(batches) == BATCHES_AT_ONCE:
                    yield _table_of(batches, name)
                    batches = []
        except CorruptLog:
            yield _table_of(batches, name)
            raise
        if batches:
            yield _table_of(batches, name)

    def _heads(self) -> dict[str, Head]:
        manifest = load(self._where)
        heads = manifest.closed_heads()
        entry = manifest.open_file()
        first = entry.first_commit if entry else (manifest.files[-1].last_commit + 1 if manifest.files else 1)
        for frame in self.frames(first):
            follow(heads, list(records_of(batch_in(frame.body))), str(self._where.path))
        return heads

    def _read_file(self, entry: FileEntry, manifest: Manifest) -> bytes | None:
        """The bytes of a file that count; None if a newer manifest rules by now and must be read first."""
        path = self._where.path / entry.name
        limit = None if entry.kind == OPEN else entry.bytes
        if entry.kind == OPEN and self._durable is not None:
            name, length = self._durable()
            limit = length if name == entry.name else None
        try:
            data = self._where.disk.read(path, 0, limit)
        except FileNotFoundError as error:
            if self._is_old(manifest):
                return None
            raise gone(str(path), entry.first_commit) from error
        except OSError:
            with storage("read", path):
                raise
        return None if entry.kind == OPEN and self._is_old(manifest) else data

    def _is_old(self, manifest: Manifest) -> bool:
        with storage("list", self._where.path):
            return self._where.numbers(MANIFEST)[-1] != manifest.number

    def _scan(self, entry: FileEntry, data: bytes, manifest: Manifest) -> Iterator[Frame]:
        path = self._where.path / entry.name
        salt = self._where.salt(entry.name)
        scan = Scan(data, salt, entry.first_commit, str(path))
        yield from scan
        broken = scan.later is not None
        if entry.kind != OPEN:
            broken = scan.end != entry.bytes or scan.next_commit != entry.last_commit + 1
        if broken:
            heads = heads_before(manifest, entry)
            raise corrupt(scan, data, salt, entry.first_commit, str(path), heads)
        if scan.tail_bytes and self._durable is None and not has_live_owner(self._where):
            self.damage = Damage(path, scan.end, scan.tail_bytes)


def heads_before(manifest: Manifest, entry: FileEntry) -> dict[str, int]:
    """Last seq of each stream before a file."""
    earlier = [other for other in manifest.files if other.first_commit < entry.first_commit]
    return {agent_id: seq for other in earlier for agent_id, (seq, _) in other.chains.items()}


def _table_of(batches: list[pa.RecordBatch], name: str | None) -> pa.Table:
    table = pa.Table.from_batches(batches, SCHEMA).combine_chunks()
    return table if name is None else table.filter(pc.equal(table.column(0), name))
