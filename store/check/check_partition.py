"""Check a partition: every byte of every live file. Reads only, and continues after a finding where possible.

Used by `everlog log check`.
"""

import hashlib
from collections.abc import Sequence

import msgspec
import pyarrow as pa

from everlog.events import EverlogError, Record, RecordsErased
from everlog.store.base.arrow_schema import SCHEMA, records_of
from everlog.store.base.arrow_values import empty_table, int_value, text_value
from everlog.store.base.contract import Head, Progress, StateDeriver
from everlog.store.base.lazy_pyarrow import pc
from everlog.store.log.partition_reader import PartitionReader
from everlog.store.log.partition_recovery import RESTORING, leftovers
from everlog.store.partition.append_rules import follow
from everlog.store.partition.closed_mark import MarkCheck, notes_of_marks
from everlog.store.partition.manifest import OPEN, SEALED, FileEntry, Manifest, head_in, load
from everlog.store.partition.partition import EPOCH, Partition
from everlog.store.partition.segment import Frame, FrameScan, corrupt_error, heads_before
from everlog.store.sealed.parquet_file import SORTED_BY, is_whole
from everlog.store.sealed.sealed_reader import COMMIT_ORDER, checkpoint, whole


class CheckReport(msgspec.Struct):
    """Findings of `check`."""

    partition: str
    files: int = 0
    frames: int = 0
    commits: int = 0
    records: int = 0
    agents: int = 0
    bytes: int = 0
    errors: list[str] = []
    """Faults, such as bytes of a live file outside a whole frame."""
    notes: list[str] = []
    """Harmless leftovers: files that no manifest names, saved tails (`.cut`), derived files that are damaged."""

    @property
    def ok(self) -> bool:
        """True if there are no errors."""
        return not self.errors


def check(partition: Partition, *, deep: bool = False, derive: StateDeriver | None = None,
          progress: Progress | None = None) -> CheckReport:  # fmt: skip
    """Check a partition that no process writes to meanwhile. Findings are in the report and are never raised.

    Every byte is verified against its checksum, and every record of the frames against the rules of a log. `deep`
    applies these rules to sealed records too, and with `derive` derives the states again and compares them.
    """
    report = CheckReport(partition.name)
    try:
        manifest = load(partition)
    except EverlogError as error:
        report.errors.append(str(error))
        return report
    state = _State(deep)
    for number, entry in enumerate(manifest.files, 1):
        try:
            _check_file(partition, manifest, entry, state, report)
        except EverlogError as error:
            report.errors.append(str(error))
        except OSError as error:
            report.errors.append(f"{partition.path / entry.name} cannot be read: {error.strerror}")
        if progress is not None:
            progress(number, len(manifest.files))
    report.agents = len(state.heads)
    _check_epochs(partition, max(manifest.epoch, state.epoch), report)
    for entry in manifest.files:
        if entry.state is not None and not is_whole(partition, entry.state):
            path = partition.path / entry.state.name
            report.notes.append(f"{path} is damaged or missing; it is derived, and `everlog log seal` derives it again")
        if entry.checkpoints is not None and not is_whole(partition, entry.checkpoints):
            path = partition.path / entry.checkpoints.name
            report.notes.append(f"{path} is damaged or missing; it is derived again when its records are sealed again")
    if deep and derive is not None and report.ok:
        _check_states(partition, manifest, derive, report)
        _check_checkpoints(partition, manifest, derive, report)
    _note_strays(partition, manifest, report)
    return report


class _State:
    """Position of the streams and the partition between two files."""

    def __init__(self, deep: bool) -> None:
        self.deep = deep
        self.heads: dict[str, Head] = {}
        self.next_commit = 1
        self.epoch = 0
        """Newest epoch that wrote a frame."""
        self.ids: set[str] = set()


def _check_file(partition: Partition, manifest: Manifest, entry: FileEntry, state: _State, report: CheckReport) -> None:
    path = str(partition.path / entry.name)
    report.files += 1
    if entry.first_commit != state.next_commit:
        report.errors.append(f"{path} begins with commit {entry.first_commit}, not {state.next_commit}")
        state.heads = dict(_heads_at(manifest, entry).items())
    state.next_commit = entry.last_commit + 1
    marks = MarkCheck(partition, entry.name)
    data = partition.disk.read(partition.path / entry.name)
    if entry.kind != OPEN:
        _check_closed(data, entry, path, report)
        data = data[: entry.bytes]
    report.bytes += len(data)
    if entry.kind == SEALED:
        _check_sealed(partition, entry, state, path, report)
    else:
        _check_frames(partition, manifest, entry, data, marks, state, report)


def _check_frames(partition: Partition, manifest: Manifest, entry: FileEntry, data: bytes, marks: MarkCheck,
                  state: _State, report: CheckReport) -> None:  # fmt: skip
    path = str(partition.path / entry.name)
    salt = partition.salt(entry.name)
    scan = FrameScan(data, salt, entry.first_commit, path)
    touched: set[str] = set()
    erasures = 0
    for frame in scan:
        marks.see(frame)
        records = _check_frame(frame, state, path, report)
        touched |= {record.agent_id for record in records}
        erasures += sum(record.type == RecordsErased.kind for record in records)
    if erasures:
        report.notes.append(f"{path} holds erasures that were not carried out: `everlog log seal` carries them out")
    if scan.later is not None or (entry.kind != OPEN and scan.tail_bytes):
        seqs = dict(heads_before(manifest, entry).items())
        report.errors.append(str(corrupt_error(scan, data, salt, entry.first_commit, path, seqs)))
    elif entry.kind == OPEN and (lost := marks.lost(scan)) is not None:
        report.errors.append(str(lost))
    elif scan.tail_bytes:
        report.errors.append(
            f"{path}: {scan.tail_bytes} bytes after byte {scan.end} are not a whole frame (a torn tail)"
        )
    state.epoch = max(state.epoch, scan.epoch)
    if entry.kind == OPEN:
        state.next_commit = scan.next_commit
    elif not scan.tail_bytes:
        _check_chains(entry, state, touched, path, report)


def _check_sealed(partition: Partition, entry: FileEntry, state: _State, path: str, report: CheckReport) -> None:
    """Check the checksums of a sealed file; if `deep`, also that its records continue the streams."""
    table = whole(partition, entry)
    commits = table.column("commit").unique().to_pylist()
    if commits != list(range(entry.first_commit, entry.last_commit + 1)) or table.num_rows != entry.records:
        report.errors.append(f"{path} does not hold the commits that the manifest names")
    report.commits += len(commits)
    report.records += table.num_rows
    if not state.deep:
        state.heads.update({name: Head(seq, bytes.fromhex(chain)) for name, (seq, chain) in entry.chains.items()})
        return
    records = list(records_of(table))
    _check_ids(records, state, path, report)
    follow(state.heads, records, path)
    _check_chains(entry, state, {record.agent_id for record in records}, path, report)


def _check_states(partition: Partition, manifest: Manifest, derive: StateDeriver, report: CheckReport) -> None:
    """Check that the newest state of each agent is what its records derive."""
    reader = PartitionReader(partition)
    moved_agents = {agent_id for entry in manifest.files for agent_id in entry.arrivals}  # states of all partitions
    here = sorted(manifest.closed_heads().keys() - moved_agents)
    states = {agent_id: reader.state(agent_id, derive.maker) for agent_id in here}
    found = {agent_id: state for agent_id, state in states.items() if state is not None}
    parts = [empty_table(SCHEMA)]
    for agent_id, state in found.items():
        records = reader.table(agent_id)
        parts.append(records.filter(pc.less_equal(records.column("seq"), int_value(state.seq))))
    again = derive(None, pa.concat_tables(parts).sort_by(COMMIT_ORDER)).sort_by(SORTED_BY)
    for agent_id, state in found.items():
        if not again.filter(pc.equal(again.column("agent_id"), text_value(agent_id))).equals(state.rows):
            report.errors.append(
                f"{partition.path}: the state of {agent_id!r} at seq {state.seq} is not what its records say"
            )


def _check_checkpoints(partition: Partition, manifest: Manifest, derive: StateDeriver, report: CheckReport) -> None:
    """Check that each checkpoint is what the one before and the records after that derive, or what all records
    derive.
    """
    reader = PartitionReader(partition)
    moved_agents = {agent_id for entry in manifest.files for agent_id in entry.arrivals}
    for entry in manifest.files:
        for agent_id in sorted(entry.held.keys() - moved_agents):
            before: pa.Table | None = None
            last = 0
            for seq in entry.held[agent_id]:
                rows = checkpoint(partition, entry, derive.maker, agent_id, seq)
                again = derive(before, reader.table(agent_id, last + 1, seq))
                if not again.num_rows:  # no state: a summary reaches further back than the one before holds
                    again = derive(None, reader.table(agent_id, 1, seq))
                if rows is not None and not again.sort_by(SORTED_BY).equals(rows):
                    report.errors.append(
                        f"{partition.path}: the checkpoint of {agent_id!r} at seq {seq} is not what its records say"
                    )
                before, last = again, seq


def _check_epochs(partition: Partition, newest: int, report: CheckReport) -> None:
    """Check that no epoch file was removed after its owner wrote: the next owner would be refused."""
    there = partition.numbers(EPOCH)
    if newest > max(there, default=0):
        path = partition.numbered(EPOCH, newest)
        report.errors.append(
            f"{path} is gone, but epoch {newest} has written here: the next owner is refused. Nothing was changed. "
            "Restore the file from a backup; if there is none, an empty file of that name does"
        )


def _heads_at(manifest: Manifest, entry: FileEntry) -> dict[str, Head]:
    earlier = [other for other in manifest.files if other.first_commit < entry.first_commit]
    return Manifest(0, 0, earlier).closed_heads()


def _check_closed(data: bytes, entry: FileEntry, path: str, report: CheckReport) -> None:
    if len(data) < entry.bytes:
        report.errors.append(f"{path} has {len(data)} bytes, the manifest says {entry.bytes}")
    elif hashlib.sha256(data[: entry.bytes]).hexdigest() != entry.sha256:
        report.errors.append(f"{path} does not have the SHA-256 of the manifest")
    if len(data) > entry.bytes:
        report.notes.append(f"{path} has {len(data) - entry.bytes} bytes beyond its end, written by a fenced writer")


def _check_frame(frame: Frame, state: _State, path: str, report: CheckReport) -> list[Record]:
    where = f"{path} at byte {frame.offset}"
    records = list(records_of(frame.batch))
    commits = [record.commit for record in records]
    expected = set(range(frame.header.first_commit, frame.last_commit + 1))
    if len(records) != frame.header.records or commits != sorted(commits) or set(commits) != expected:
        report.errors.append(f"{where}: the frame's records are not those that its header counts")
    _check_ids(records, state, where, report)
    follow(state.heads, records, where)
    report.frames += 1
    report.commits += frame.header.commits
    report.records += len(records)
    return records


def _check_ids(records: Sequence[Record], state: _State, where: str, report: CheckReport) -> None:
    repeated = [record.event_id for record in records if record.event_id in state.ids]
    if repeated:
        report.errors.append(f"{where}: event {repeated[0]} is in the log twice")
    state.ids.update(record.event_id for record in records)


def _check_chains(entry: FileEntry, state: _State, touched: set[str], path: str, report: CheckReport) -> None:
    if set(entry.chains) != touched:
        report.errors.append(f"{path} holds other agents than the manifest names")
    for agent_id, (seq, chain) in entry.chains.items():
        head = head_in(state.heads, agent_id)
        if (head.seq, head.chain.hex()) != (seq, chain):
            report.errors.append(f"{path}: the chain of {agent_id!r} at seq {seq} differs from the manifest")


def _note_strays(partition: Partition, manifest: Manifest, report: CheckReport) -> None:
    live = manifest.names()
    try:
        names = sorted(partition.disk.names(partition.path))
    except FileNotFoundError:
        return
    for name in names:
        if name not in live and name.endswith((".open", ".parquet", ".state", ".checkpoints", ".cut", ".tmp")):
            report.notes.append(f"{partition.path / name} is left over; no manifest names it")
        elif name == RESTORING:
            report.notes.append(f"{partition.path}: a restore was interrupted; the same `everlog restore` finishes it")
    for name in leftovers(partition, manifest):
        report.notes.append(
            f"{partition.path / name} was removed, but a part of it is there: a write arrived late, or the removal was "
            "interrupted. It may hold erased content; `everlog log seal` removes it"
        )
    report.notes.extend(notes_of_marks(partition, names))
