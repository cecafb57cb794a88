"""Read a partition without owning it: never locks, never writes.

A reader follows the manifest, and loads it again when a file is gone. It sees whole frames only: a torn tail is skipped
and noted in `damage`; damage before the end raises CorruptLog after everything before it was yielded.

Used by `stores.opener` to open a log for reading, by `FileLog` for its own reads, and by the archive and the checks.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from everlog.events import AnyEvent, CorruptLog, Record, RecordsErased
from everlog.store.base.arrow_schema import EVENT_COLUMNS, SCHEMA, events_of, records_of
from everlog.store.base.arrow_values import empty_table, int_value, text_array, text_value
from everlog.store.base.contract import Head, State, States
from everlog.store.base.disk import read_errors, storage
from everlog.store.base.lazy_pyarrow import pc
from everlog.store.base.names import name_of
from everlog.store.partition.append_rules import follow
from everlog.store.partition.chain_lookup import chain_over, nearest_known, no_record_error
from everlog.store.partition.closed_mark import LostCommits, MarkCheck, NamedMark, read_marks
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
"""Number of frames that `read` decodes together."""


AGENTS_AT_ONCE = 256
"""Number of agents whose states are read together."""


class TornTail(NamedTuple):
    """Torn tail of a file without a live writer: the next owner cuts it off. Or the end that the file has lost."""

    path: Path
    offset: int
    bytes: int
    """Bytes after the last whole frame; 0 if the file ends with a whole frame."""
    lost: LostCommits | None = None
    """Commits that the file held when it was closed; None if nothing shows that any is missing."""

    def __str__(self) -> str:
        if self.lost is not None:
            return str(self.lost)
        return f"{self.path}: {self.bytes} bytes after byte {self.offset} are no whole frame; the next owner cuts them"


class PartitionFiles(NamedTuple):
    """Knowledge of a partition's owner, which other readers must look up on disk."""

    manifest: Manifest
    length: int
    """Number of acknowledged bytes in the open file."""
    indexes: Mapping[str, FrameIndex]
    """Indexes of the files of frames, by name; a file without an index is read from its start."""


class PartitionReader:
    """Reader of a partition. Sees the frames that were whole when the read began."""

    def __init__(self, partition: Partition, own: Callable[[], PartitionFiles] | None = None,
                 check_there: Callable[[], None] = lambda: None) -> None:  # fmt: skip
        """Read `partition`. The writer passes `own` for its own reads: it returns the writer's current knowledge.

        `check_there` is called for a partition without a manifest, and raises an error if its folder is missing.
        """
        self._where = partition
        self._own = own
        self._check_there = check_there
        self._marks: tuple[Manifest, Callable[[], list[NamedMark]]] | None = None
        """The manifest that was loaded last, and the marks that lay beside it."""
        self._footers = FooterCache() if own is not None else None
        self._kept = 0
        self.damage: TornTail | None = None
        """Torn tail that the last complete read found; None while a live owner may still be writing there."""

    @property
    def partition(self) -> str:
        """Name of the partition."""
        return self._where.name

    def agents(self) -> list[str]:
        """Return the ids of all agents with records in the partition, sorted."""
        return sorted(self._heads())

    def head(self, agent_id: str) -> Head:
        """Return the end of the stream; Head(0, GENESIS) for an agent without records."""
        return head_in(self._heads(), name_of(agent_id))

    def heads(self, agents: Iterable[str]) -> dict[str, Head]:
        """Return `head` of many agents, by the names given."""
        heads = self._heads()
        return {agent_id: head_in(heads, name_of(agent_id)) for agent_id in agents}

    def read(self, agent_id: str, from_seq: int = 1, to_seq: int | None = None) -> Iterator[Record]:
        """Yield the records of one stream in order, `from_seq` to `to_seq` (both inclusive; None: to the head)."""
        for table in self._stream(name_of(agent_id), from_seq, to_seq):
            yield from records_of(table)

    def events(self, agent_id: str, from_seq: int = 1, to_seq: int | None = None) -> Iterator[AnyEvent]:
        """Yield the typed events of one stream in order, without their envelopes, which are not read."""
        for table in self._stream(name_of(agent_id), from_seq, to_seq, EVENT_COLUMNS):
            yield from events_of(table)

    def table(self, agent_id: str | None = None, from_seq: int = 1, to_seq: int | None = None) -> pa.Table:
        """Return the records of one stream (or of all) as an Arrow table of `store.SCHEMA`, in commit order."""
        tables = self._since(1) if agent_id is None else self._stream(name_of(agent_id), from_seq, to_seq)
        return pa.concat_tables([*tables] or [empty_table(SCHEMA)]).combine_chunks()

    def chain(self, agent_id: str, seq: int) -> bytes:
        """Return the chain value of a stream at `seq`; GENESIS at 0. Raises BadInput if the partition has no record
        there.
        """
        name = name_of(agent_id)
        known = nearest_known(self._seen(lost=False)[0], name, seq)
        after = self._stream(name, known.seq + 1, seq) if known.seq < seq else ()
        found = chain_over(known, after, name, str(self._where.path))
        if found.seq != seq:
            raise no_record_error(self, name, seq)
        return found.chain

    def erasing(self, agent_id: str) -> bool:
        """Return True if an erasure of the stream is still pending. Sealing carries erasures out, so only frames are
        searched.
        """
        name = name_of(agent_id)
        for table in self._since(self._seen(lost=False)[0].sealed_to() + 1):
            asked = pc.and_(
                pc.equal(table.column("type"), text_value(RecordsErased.kind)),
                pc.equal(table.column("agent_id"), text_value(name)),
            )
            if pc.any(asked).as_py():
                return True
        return False

    def seq_at(self, agent_id: str, time: int) -> int:
        """Return the last seq of a stream recorded at or before `time`, inclusive; 0 for none. Does not read text or
        payload.
        """
        last = 0
        for table in self._stream(name_of(agent_id), 1, None, TIME_COLUMNS):
            past = pc.less_equal(table.column("recorded_at").cast(pa.int64()), int_value(time))
            last = pc.max(table.filter(past).column("seq")).as_py() or last
        return last

    def state(self, agent_id: str, maker: str, as_of: int | None = None) -> State | None:
        """Return the newest state of a stream by this `maker`, at or before `as_of`; None if there is none."""
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

    def states(self, maker: str | None, agents: Iterable[str] | None = None) -> Iterator[States]:
        """Yield `state` of many agents, or of all, with the records after it, some hundred agents at a time. `maker`
        None: no states, so all records.
        """
        names = self.agents() if agents is None else sorted({name_of(agent_id) for agent_id in agents})
        for start in range(0, len(names), AGENTS_AT_ONCE):
            yield self._states(maker, names[start : start + AGENTS_AT_ONCE])

    def _states(self, maker: str | None, names: Sequence[str]) -> States:
        lost = False
        while True:
            manifest, view = self._seen(lost)
            with storage("read", self._where.path):
                rows, seqs = newest_states(self._where, manifest, names, maker, self._footers)
            parts = [empty_table(SCHEMA)]
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
        """Return the records of a file that belong to `names` (sorted) and come after `seqs`. Raises FileNotFoundError.

        A state belongs to the end of a file, so any other file is wholly before the state or wholly after it.
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
        among = text_array(names)
        whole_of = _tables(self._frames(entry, manifest, view))
        return [table.filter(pc.is_in(table.column("agent_id"), among)) for table in whole_of]

    def _seen(self, lost: bool) -> tuple[Manifest, PartitionFiles | None]:
        """Return the manifest in force and the owner's knowledge. `lost`: a file that the last manifest named is
        gone.
        """
        view = self._own() if self._own is not None else None
        if view is not None and not lost:
            if self._footers is not None and view.manifest.number != self._kept:
                self._kept = view.manifest.number
                self._footers.keep(view.manifest.names())
            return view.manifest, view
        manifest = self._loaded()
        if view is not None and view.manifest.number == manifest.number:
            return view.manifest, view
        return manifest, None

    def _loaded(self) -> Manifest:
        """Return the manifest in force. Marks in its folder are read meanwhile, if requests take long there."""
        marks: Callable[[], list[NamedMark]] = list

        def listed(names: list[str]) -> None:
            nonlocal marks
            marks = self._where.disk.beside(lambda: list(read_marks(self._where, names)))

        manifest = load(self._where, listed if self._own is None else lambda _: None)
        if not manifest.number:
            self._check_there()
        self._marks = manifest, marks
        return manifest

    def _stream(self, name: str, from_seq: int, to_seq: int | None, columns: Sequence[str] = SCHEMA.names
                ) -> Iterator[pa.Table]:  # fmt: skip
        """Yield the records of one stream, in order, in tables of any size that have at least these columns."""
        for piece in self._pieces(1, name, from_seq, to_seq, columns):
            seq = piece.column("seq")
            own = pc.equal(piece.column("agent_id"), text_value(name))
            keep = pc.and_(own, pc.greater_equal(seq, int_value(from_seq)))
            table = where(piece, keep if to_seq is None else pc.and_(keep, pc.less_equal(seq, int_value(to_seq))))
            if table.num_rows:
                from_seq = table.column("seq")[-1].as_py() + 1
                yield table
            if to_seq is not None and from_seq > to_seq:
                return

    def _since(self, commit: int, manifest: Manifest | None = None) -> Iterator[pa.Table]:
        """Yield the records of all streams in commit order, from `commit` on. `manifest`: the one in force."""
        for piece in self._pieces(commit, None, 1, None, manifest=manifest):
            table = piece.filter(pc.greater_equal(piece.column("commit"), int_value(commit)))
            if table.num_rows:
                commit = table.column("commit")[-1].as_py() + 1
                yield table

    def _pieces(self, commit: int, name: str | None, from_seq: int, to_seq: int | None,
                columns: Sequence[str] = SCHEMA.names, manifest: Manifest | None = None,
                ) -> Iterator[pa.Table]:  # fmt: skip
        """Yield tables that hold the wanted records, from `commit` on, and perhaps more; records may be yielded twice.

        That happens when a file disappears because the owner sealed it: its records are in another file then. `_stream`
        and `_since` drop the repeated records.
        """
        self.damage = None
        lost, again = False, True
        while again:
            again = False
            manifest, view = self._seen(lost) if manifest is None or lost else (manifest, None)
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
        """Yield the records of a file. Raises FileNotFoundError."""
        if entry.kind != SEALED:
            yield from _tables(self._frames(entry, manifest, view))
            return
        with read_errors(self._where.path / entry.name):
            yield whole(self._where, entry)

    def _some_of(self, entry: FileEntry, manifest: Manifest, view: PartitionFiles | None, name: str, from_seq: int,
                 to_seq: int | None, columns: Sequence[str]) -> Iterator[pa.Table]:  # fmt: skip
        """Yield the records of one stream in a file, and perhaps others. Raises FileNotFoundError."""
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
        yield from _tables(self._frames(entry, manifest, view))  # a full scan, which also reports damage

    def _heads(self) -> dict[str, Head]:
        manifest = self._loaded()
        heads = manifest.closed_heads()
        for table in self._since(manifest.covered_to() + 1, manifest if self._own is None else None):
            follow(heads, list(records_of(table)), str(self._where.path))
        return heads

    def _frames(self, entry: FileEntry, manifest: Manifest, view: PartitionFiles | None) -> Iterator[Frame]:
        """Yield the frames of a file that is not sealed, up to the end that counts."""
        if entry.kind != OPEN:
            yield from closed_frames(self._where, entry, manifest)
            return
        path = self._where.path / entry.name
        marks = None
        if self._own is None:
            with storage("list", self._where.path):
                beside = self._marks[1]() if self._marks is not None and self._marks[0] is manifest else None
                marks = MarkCheck(self._where, entry.name, beside)
        with read_errors(path):
            data = self._where.disk.read(path, 0, None if view is None else view.length)
        # The file may be closed by now and hold bytes of a fenced writer, unless a file that was ended cannot grow.
        if view is None and not self._where.disk.ends_files and self._is_old(manifest):
            raise FileNotFoundError(path)
        scan = FrameScan(data, self._where.salt(entry.name), entry.first_commit, str(path))
        for frame in scan:
            if marks is not None:
                marks.see(frame)
            yield frame
        if scan.later is not None:
            raise corrupt_error(scan, data, self._where.salt(entry.name), entry.first_commit, str(path),
                          heads_before(manifest, entry))  # fmt: skip
        lost = None if marks is None else marks.lost(scan)
        if lost is not None or (scan.tail_bytes and self._own is None and not has_live_owner(self._where)):
            self.damage = TornTail(path, scan.end, scan.tail_bytes, lost)

    def _is_old(self, manifest: Manifest) -> bool:
        with storage("list", self._where.path):
            return (self._where.numbers(MANIFEST) or [0])[-1] != manifest.number


def _tables(frames: Iterator[Frame]) -> Iterator[pa.Table]:
    """Yield the records of frames, many frames in a table; records before damage are yielded before the error is
    raised.
    """
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
