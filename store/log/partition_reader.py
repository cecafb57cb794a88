"""Reading a partition without owning it: never locks, never writes.

A reader follows the manifest, and looks again when a file is gone. It sees whole frames only: a torn tail is passed
over and noted in `damage`; damage before the end raises CorruptLog after everything before it was given.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from everlog.events import AnyEvent, CorruptLog, Record, RecordsErased
from everlog.store.base.arrow_schema import EVENT_COLUMNS, SCHEMA, events_of, records_of
from everlog.store.base.contract import Head, State, States
from everlog.store.base.disk import read_errors, storage
from everlog.store.base.lazy_pyarrow import pc
from everlog.store.base.names import name_of
from everlog.store.partition.append_rules import follow
from everlog.store.partition.chain_lookup import chain_over, nearest_known, no_record_error
from everlog.store.partition.epoch import has_live_owner
from everlog.store.partition.frame_index import FrameIndex, tables_at
from everlog.store.partition.manifest import OPEN, SEALED, FileEntry, Manifest, head_in, load
from everlog.store.partition.partition import MANIFEST, Partition
from everlog.store.partition.segment import (
    Frame,
    FrameScan,
    closed_frames,
    corrupt_error,
    heads_before,
    missing_file_error,
)
from everlog.store.sealed.parquet_file import FooterCache, where
from everlog.store.sealed.sealed_reader import COMMIT_ORDER, newest_state, newest_states, rows_of, whole

TIME_COLUMNS = ("agent_id", "seq", "recorded_at")
BATCHES_AT_ONCE = 1024
"""Frames that `read` decodes together."""


AGENTS_AT_ONCE = 256
"""Agents whose states are read together."""


class TornTail(NamedTuple):
    """A torn tail that nobody is about to complete: the next owner cuts it."""

    path: Path
    offset: int
    bytes: int

    def __str__(self) -> str:
        return f"{self.path}: {self.bytes} bytes after byte {self.offset} are no whole frame; the next owner cuts them"


class PartitionFiles(NamedTuple):
    """What the owner of a partition knows, and others look for on the disk."""

    manifest: Manifest
    length: int
    """How many bytes of its open file are acknowledged."""
    indexes: Mapping[str, FrameIndex]
    """Of the files of frames, by name; a file that is missing here is read from its start."""


class PartitionReader:
    """A partition, for reading. Reads what was whole when the read began."""

    def __init__(self, partition: Partition, own: Callable[[], PartitionFiles] | None = None) -> None:
        """`own` is for the writer's own reads: what it knows."""
        self._where = partition
        self._own = own
        self._footers = FooterCache() if own is not None else None
        self._kept = 0
        self.damage: TornTail | None = None
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
        for table in self._stream(name_of(agent_id), from_seq, to_seq):
            yield from records_of(table)

    def events(self, agent_id: str, from_seq: int = 1, to_seq: int | None = None) -> Iterator[AnyEvent]:
        """The typed events of one stream in order, without their envelopes, which are not even read."""
        for table in self._stream(name_of(agent_id), from_seq, to_seq, EVENT_COLUMNS):
            yield from events_of(table)

    def table(self, agent_id: str | None = None, from_seq: int = 1, to_seq: int | None = None) -> pa.Table:
        """Records of one stream (or of all) as an Arrow table of `store.SCHEMA`, in commit order."""
        tables = self._since(1) if agent_id is None else self._stream(name_of(agent_id), from_seq, to_seq)
        return pa.concat_tables([*tables] or [SCHEMA.empty_table()]).combine_chunks()

    def chain(self, agent_id: str, seq: int) -> bytes:
        """The chain value of a stream at `seq`; GENESIS at 0. Raises BadInput where it has no record here."""
        name = name_of(agent_id)
        known = nearest_known(self._seen(lost=False)[0], name, seq)
        after = self._stream(name, known.seq + 1, seq) if known.seq < seq else ()
        found = chain_over(known, after, name, str(self._where.path))
        if found.seq != seq:
            raise no_record_error(self, name, seq)
        return found.chain

    def erasing(self, agent_id: str) -> bool:
        """Whether an erasure of the stream is not carried out yet: what is sealed is."""
        name = name_of(agent_id)
        for table in self._since(self._seen(lost=False)[0].sealed_to() + 1):
            asked = pc.and_(
                pc.equal(table.column("type"), RecordsErased.kind), pc.equal(table.column("agent_id"), name)
            )
            if pc.any(asked).as_py():
                return True
        return False

    def seq_at(self, agent_id: str, time: int) -> int:
        """The last seq of a stream that was recorded up to a time, inclusive; 0 for none. Reads no words."""
        last = 0
        for table in self._stream(name_of(agent_id), 1, None, TIME_COLUMNS):
            past = pc.less_equal(table.column("recorded_at").cast(pa.int64()), time)
            last = pc.max(table.filter(past).column("seq")).as_py() or last
        return last

    def state(self, agent_id: str, maker: str, as_of: int | None = None) -> State | None:
        """The newest state of a stream of this `maker`, up to `as_of`; None if there is none."""
        name = name_of(agent_id)
        lost = False
        while True:
            manifest, _ = self._seen(lost)
            with storage("read", self._where.path):
                found = newest_state(self._where, manifest, name, maker, as_of, self._footers)
            if found is not None:
                return State(found[1], found[0])
            if not self._is_old(manifest):
                return None
            lost = True

    def states(self, maker: str, agents: Iterable[str] | None = None) -> Iterator[States]:
        """`state` of many agents, or of all, and the records after it, some hundred agents at a time."""
        names = self.agents() if agents is None else sorted({name_of(agent_id) for agent_id in agents})
        for start in range(0, len(names), AGENTS_AT_ONCE):
            yield self._states(maker, names[start : start + AGENTS_AT_ONCE])

    def _states(self, maker: str, names: Sequence[str]) -> States:
        lost = False
        while True:
            manifest, view = self._seen(lost)
            with storage("read", self._where.path):
                rows, seqs = newest_states(self._where, manifest, names, maker, self._footers)
            parts = [SCHEMA.empty_table()]
            lost = False
            for entry in manifest.files:
                try:
                    parts += self._later_of(entry, manifest, view, names, seqs)
                except FileNotFoundError as error:
                    if not self._is_old(manifest):
                        raise missing_file_error(str(self._where.path / entry.name), entry.first_commit) from error
                    lost = True
                    break
            if not lost:
                return States(names, rows, pa.concat_tables(parts).sort_by(COMMIT_ORDER))

    def _later_of(self, entry: FileEntry, manifest: Manifest, view: PartitionFiles | None, names: Sequence[str],
                  seqs: Mapping[str, int]) -> list[pa.Table]:  # fmt: skip
        """The records of a file that are of `names`, sorted, and after the `seqs`. Raises FileNotFoundError.

        A state is of the end of a file: another file is wholly before it or wholly after it.
        """
        if entry.kind != OPEN:
            names = [name for name in names if entry.chains.get(name, (0, ""))[0] > seqs.get(name, 0)]
        if not names:
            return []
        path = self._where.path / entry.name
        if entry.kind == SEALED:
            with read_errors(path):
                return list(rows_of(self._where, entry, names, footers=self._footers))
        index = view.indexes.get(entry.name) if view is not None else None
        if view is not None and index is not None:
            end = view.length if entry.kind == OPEN else entry.bytes
            runs = sorted(run for name in names for run in index.runs(name, 1, None, end))
            with read_errors(path):
                tables = list(tables_at(self._where, entry.name, runs))
            if None not in tables:
                return [table for table in tables if table is not None]
        among = pa.array(names, pa.string())
        whole_of = _tables(self._frames(entry, manifest, view))
        return [table.filter(pc.is_in(table.column("agent_id"), among)) for table in whole_of]

    def _seen(self, lost: bool) -> tuple[Manifest, PartitionFiles | None]:
        """The manifest that rules, and what the owner knows beside it. `lost`: something that it named is gone."""
        view = self._own() if self._own is not None else None
        if view is not None and not lost:
            if self._footers is not None and view.manifest.number != self._kept:
                self._kept = view.manifest.number
                self._footers.keep(view.manifest.names())
            return view.manifest, view
        manifest = load(self._where)
        if view is not None and view.manifest.number == manifest.number:
            return view.manifest, view
        return manifest, None

    def _stream(self, name: str, from_seq: int, to_seq: int | None, columns: Sequence[str] = SCHEMA.names
                ) -> Iterator[pa.Table]:  # fmt: skip
        """Records of one stream, in order, in tables of any size that have at least these columns."""
        for piece in self._pieces(1, name, from_seq, to_seq, columns):
            seq = piece.column("seq")
            keep = pc.and_(pc.equal(piece.column("agent_id"), name), pc.greater_equal(seq, from_seq))
            table = where(piece, keep if to_seq is None else pc.and_(keep, pc.less_equal(seq, to_seq)))
            if table.num_rows:
                from_seq = table.column("seq")[-1].as_py() + 1
                yield table
            if to_seq is not None and from_seq > to_seq:
                return

    def _since(self, commit: int) -> Iterator[pa.Table]:
        """Records of all streams in commit order, from `commit` on."""
        for piece in self._pieces(commit, None, 1, None):
            table = piece.filter(pc.greater_equal(piece.column("commit"), commit))
            if table.num_rows:
                commit = table.column("commit")[-1].as_py() + 1
                yield table

    def _pieces(self, commit: int, name: str | None, from_seq: int, to_seq: int | None,
                columns: Sequence[str] = SCHEMA.names) -> Iterator[pa.Table]:  # fmt: skip
        """Tables that hold what is asked for, from `commit` on, and perhaps more; some may come again.

        They do when a file went because the owner sealed it: its records are in another by then.
        """
        self.damage = None
        lost, again = False, True
        while again:
            again = False
            manifest, view = self._seen(lost)
            for entry in manifest.files:
                if entry.kind == OPEN or entry.last_commit >= commit:
                    try:
                        if name is None:
                            yield from self._all_of(entry, manifest, view)
                        else:
                            yield from self._some_of(entry, manifest, view, name, from_seq, to_seq, columns)
                    except FileNotFoundError as error:
                        if self._is_old(manifest):
                            lost = again = True
                            break
                        raise missing_file_error(str(self._where.path / entry.name), entry.first_commit) from error

    def _all_of(self, entry: FileEntry, manifest: Manifest, view: PartitionFiles | None) -> Iterator[pa.Table]:
        """The records of a file. Raises FileNotFoundError."""
        if entry.kind != SEALED:
            yield from _tables(self._frames(entry, manifest, view))
            return
        with read_errors(self._where.path / entry.name):
            yield whole(self._where, entry)

    def _some_of(self, entry: FileEntry, manifest: Manifest, view: PartitionFiles | None, name: str, from_seq: int,
                 to_seq: int | None, columns: Sequence[str]) -> Iterator[pa.Table]:  # fmt: skip
        """The records of one stream in a file, and perhaps others. Raises FileNotFoundError."""
        if entry.kind != OPEN and entry.chains.get(name, (0, ""))[0] < from_seq:
            return
        if entry.kind == SEALED:
            with read_errors(self._where.path / entry.name):
                yield from rows_of(self._where, entry, name, from_seq, to_seq, columns, self._footers)
            return
        index = view.indexes.get(entry.name) if view is not None else None
        if view is not None and index is not None:
            runs = index.runs(name, from_seq, to_seq, view.length if entry.kind == OPEN else entry.bytes)
            with read_errors(self._where.path / entry.name):
                for table in tables_at(self._where, entry.name, runs):
                    if table is None:
                        break
                    yield table
                else:
                    return
        yield from _tables(self._frames(entry, manifest, view))  # which also says what is damaged, and where

    def _heads(self) -> dict[str, Head]:
        manifest = load(self._where)
        heads = manifest.closed_heads()
        for table in self._since(manifest.covered_to() + 1):
            follow(heads, list(records_of(table)), str(self._where.path))
        return heads

    def _frames(self, entry: FileEntry, manifest: Manifest, view: PartitionFiles | None) -> Iterator[Frame]:
        """The frames of a file that is not sealed, as far as they count."""
        if entry.kind != OPEN:
            yield from closed_frames(self._where, entry, manifest)
            return
        path = self._where.path / entry.name
        with read_errors(path):
            data = self._where.disk.read(path, 0, None if view is None else view.length)
        if view is None and self._is_old(manifest):
            raise FileNotFoundError(path)  # it may be closed by now, and hold what a fenced writer wrote
        scan = FrameScan(data, self._where.salt(entry.name), entry.first_commit, str(path))
        yield from scan
        if scan.later is not None:
            raise corrupt_error(scan, data, self._where.salt(entry.name), entry.first_commit, str(path),
                          heads_before(manifest, entry))  # fmt: skip
        if scan.tail_bytes and self._own is None and not has_live_owner(self._where):
            self.damage = TornTail(path, scan.end, scan.tail_bytes)

    def _is_old(self, manifest: Manifest) -> bool:
        with storage("list", self._where.path):
            return (self._where.numbers(MANIFEST) or [0])[-1] != manifest.number


def _tables(frames: Iterator[Frame]) -> Iterator[pa.Table]:
    """The records of frames, many frames to a table; what lies before damage is given before the error."""
    batches: list[pa.RecordBatch] = []
    try:
        for frame in frames:
            batches.append(frame.batch)
            if len(batches) == BATCHES_AT_ONCE:
                yield pa.Table.from_batches(batches, SCHEMA).combine_chunks()
                batches = []
    except CorruptLog:
        yield pa.Table.from_batches(batches, SCHEMA).combine_chunks()
        raise
    if batches:
        yield pa.Table.from_batches(batches, SCHEMA).combine_chunks()
