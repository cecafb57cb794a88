"""Checking a partition: every byte of every live file. Reads only, and goes on after a finding where it can."""

import hashlib

import msgspec

from events import EverlogError

from .admission import follow
from .arrow import batch_in, records_of
from .contract import Head
from .manifest import OPEN, FileEntry, Manifest, head_in, load
from .partition import Partition
from .reader import heads_before
from .segment import Frame, Scan, corrupt


class Report(msgspec.Struct):
    """What `check` found."""

    partition: str
    files: int = 0
    frames: int = 0
    commits: int = 0
    records: int = 0
    agents: int = 0
    bytes: int = 0
    errors: list[str] = []
    """What is wrong. Any byte of a live file outside a whole frame is."""
    notes: list[str] = []
    """What is left over, and does no harm: files that no manifest names, bytes that were cut and kept."""

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.errors


def check(partition: Partition) -> Report:
    """Check a partition that nobody writes to meanwhile. Findings are in the report; raises nothing for them."""
    report = Report(partition.name)
    try:
        manifest = load(partition)
    except EverlogError as error:
        report.errors.append(str(error))
        return report
    state = _State()
    for entry in manifest.files:
        try:
            _check_file(partition, manifest, entry, state, report)
        except EverlogError as error:
            report.errors.append(str(error))
        except OSError as error:
            report.errors.append(f"{partition.path / entry.name} cannot be read: {error.strerror}")
    report.agents = len(state.heads)
    _note_strays(partition, manifest, report)
    return report


class _State:
    """Where the streams and the partition are between two files."""

    def __init__(self) -> None:
        self.heads: dict[str, Head] = {}
        self.next_commit = 1
        self.ids: set[str] = set()


def _check_file(partition: Partition, manifest: Manifest, entry: FileEntry, state: _State, report: Report) -> None:
    path = str(partition.path / entry.name)
    report.files += 1
    if entry.first_commit != state.next_commit:
        report.errors.append(f"{path} begins with commit {entry.first_commit}, not {state.next_commit}")
        state.heads = dict(_heads_at(manifest, entry).items())
    state.next_commit = entry.last_commit + 1
    data = partition.disk.read(partition.path / entry.name)
    if entry.kind != OPEN:
        _check_closed(data, entry, path, report)
        data = data[: entry.bytes]
    report.bytes += len(data)
    salt = partition.salt(entry.name)
    scan = Scan(data, salt, entry.first_commit, path)
    touched: set[str] = set()
    for frame in scan:
        touched |= _check_frame(frame, state, path, report)
    if scan.later is not None or (entry.kind != OPEN and scan.tail_bytes):
        seqs = dict(heads_before(manifest, entry).items())
        report.errors.append(str(corrupt(scan, data, salt, entry.first_commit, path, seqs)))
    elif scan.tail_bytes:
        report.errors.append(f"{path}: {scan.tail_bytes} bytes after byte {scan.end} are no whole frame (a torn tail)")
    if entry.kind == OPEN:
        state.next_commit = scan.next_commit
    elif not scan.tail_bytes:
        _check_chains(entry, state, touched, path, report)


def _heads_at(manifest: Manifest, entry: FileEntry) -> dict[str, Head]:
    earlier = [other for other in manifest.files if other.first_commit < entry.first_commit]
    return Manifest(0, 0, earlier).closed_heads()


def _check_closed(data: bytes, entry: FileEntry, path: str, report: Report) -> None:
    if len(data) < entry.bytes:
        report.errors.append(f"{path} has {len(data)} bytes, the manifest says {entry.bytes}")
    elif hashlib.sha256(data[: entry.bytes]).hexdigest() != entry.sha256:
        report.errors.append(f"{path} does not have the SHA-256 of the manifest")
    if len(data) > entry.bytes:
        report.notes.append(f"{path} has {len(data) - entry.bytes} bytes beyond its end, by a writer that was fenced")


def _check_frame(frame: Frame, state: _State, path: str, report: Report) -> set[str]:
    where = f"{path} at byte {frame.offset}"
    records = list(records_of(batch_in(frame.body)))
    commits = [record.commit for record in records]
    expected = set(range(frame.header.first_commit, frame.last_commit + 1))
    if len(records) != frame.header.records or commits != sorted(commits) or set(commits) != expected:
        report.errors.append(f"{where}: the frame's records are not those that its header counts")
    repeated = [record.event_id for record in records if record.event_id in state.ids]
    if repeated:
        report.errors.append(f"{where}: event {repeated[0]} is in the log twice")
    state.ids.update(record.event_id for record in records)
    follow(state.heads, records, where)
    report.frames += 1
    report.commits += frame.header.commits
    report.records += len(records)
    return {record.agent_id for record in records}


def _check_chains(entry: FileEntry, state: _State, touched: set[str], path: str, report: Report) -> None:
    if set(entry.chains) != touched:
        report.errors.append(f"{path} holds other agents than the manifest says")
    for agent_id, (seq, chain) in entry.chains.items():
        head = head_in(state.heads, agent_id)
        if (head.seq, head.chain.hex()) != (seq, chain):
            report.errors.append(f"{path}: the chain of {agent_id!r} is another than the manifest says, at seq {seq}")


def _note_strays(partition: Partition, manifest: Manifest, report: Report) -> None:
    live = {entry.name for entry in manifest.files}
    try:
        names = sorted(partition.disk.names(partition.path))
    except FileNotFoundError:
        return
    for name in names:
        if name not in live and name.endswith((".open", ".cut", ".tmp")):
            report.notes.append(f"{partition.path / name} is left over; no manifest names it")
