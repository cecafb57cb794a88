"""Recover a partition for a new owner: read everything, cut off a nonsense tail, prepare for appends.

Safe to interrupt and repeat: the cut bytes are saved durably next to the file before the file is changed, and the next
owner can repeat every step. Damage before the end raises CorruptLog before anything is written.

Used by `FileLog` when it is opened; `check_partition` and `stores.opener` use parts of it.
"""

import itertools
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from everlog.events import CorruptLog, Fenced, StoreError, UsageError
from everlog.store.base.arrow_schema import records_of
from everlog.store.base.disk import publish, remove_if_there, storage
from everlog.store.log.partition_reader import TornTail
from everlog.store.partition.append_rules import StreamHeads
from everlog.store.partition.closed_mark import MarkCheck, set_aside
from everlog.store.partition.epoch import Ownership, has_live_owner
from everlog.store.partition.frame_index import FrameIndex
from everlog.store.partition.manifest import OPEN, SEALED, FileEntry, Manifest, load, succeed
from everlog.store.partition.open_segment import OpenSegment
from everlog.store.partition.partition import EPOCH, MANIFEST, Partition, RecordFileName, parse_file_name, token
from everlog.store.partition.segment import FrameScan, closed_frames, corrupt_error, heads_before, missing_file_error
from everlog.store.sealed.sealed_reader import ids_of

ATTEMPTS_MAX = 1000
TRUNCATED_SUFFIX = ".cut"
OPEN_SUFFIX = ".open"
RESTORING = "restoring"
"""File that exists in a partition until all records of an export are restored; its content names the export's agent."""


class RecoveredPartition(NamedTuple):
    """A recovered partition, ready for its owner."""

    manifest: Manifest
    file: OpenSegment
    ledger: StreamHeads
    indexes: list[FrameIndex]
    """Indexes of the closed files whose ids are remembered."""
    cut: TornTail | None
    """Nonsense tail that was cut off and saved in `<name>.<offset>.cut`; or the end that the open file has lost."""


def recover(partition: Partition, ownership: Ownership, now: int, *, restoring: bool = False) -> RecoveredPartition:
    """Read the partition that `ownership` holds. Raises CorruptLog, NewerFormat, Fenced, StoreError.

    With `restoring` the caller continues a restore. Any other caller is refused with UsageError if a restore was
    interrupted.
    """
    with storage("recover", partition.path):
        for _ in range(ATTEMPTS_MAX):
            manifest = load(partition)
            if manifest.epoch > ownership.epoch:
                raise Fenced(f"{partition.path}: a newer owner took over while epoch {ownership.epoch} was opened.")
            try:
                recovered = _recover(partition, ownership, manifest, now, restoring)
            except CorruptLog:
                if partition.numbers(MANIFEST)[-1:] == [manifest.number]:
                    raise
                continue  # the owner that is being fenced was still at work: read again
            if recovered is not None:
                if recovered.cut is not None and recovered.cut.lost is not None:
                    set_aside(partition, recovered.cut.lost, ownership.epoch)
                _sweep(partition, ownership, recovered.manifest)
                return recovered
            if not ownership.is_latest():
                raise Fenced(f"{partition.path}: a newer owner took over while epoch {ownership.epoch} was opened.")
    raise StoreError(f"{partition.path}: the manifest changed {ATTEMPTS_MAX} times while it was opened. Try again.")


def _recover(partition: Partition, ownership: Ownership, manifest: Manifest, now: int, restoring: bool
             ) -> RecoveredPartition | None:  # fmt: skip
    """Make one attempt; return None if another process published a manifest meanwhile."""
    _check_none_missing(partition, manifest, restoring)
    ledger = StreamHeads(manifest.closed_heads())
    indexes = []
    files = list(manifest.files)
    cut = None
    for entry in files:
        if entry.kind != OPEN:
            indexes += _remember(partition, manifest, entry, ledger, now)
            ledger.commits = entry.last_commit
    growing = manifest.open_file()
    if growing is not None:
        file, cut = _take_in(partition, manifest, growing, ledger, ownership)
        if ownership.continues and not file.is_ended:
            return RecoveredPartition(manifest, file, ledger, indexes, cut)
        # The earlier owner may still be writing into its file (stopped, or on another machine): the manifest fixes how
        # many of its bytes count, and this owner begins a file of its own.
        files.pop()
        if file.length:
            files.append(file.closed(ledger))
            indexes.append(file.index)
            ledger.ids.begin_generation(ledger.commits, now)
        file.close()
    file = OpenSegment.begin(partition, ledger.commits + 1, ownership.epoch)
    published = succeed(partition, manifest, ownership.epoch, [*files, file.entry])
    if published is None:
        file.close()
        return None
    return RecoveredPartition(published, file, ledger, indexes, cut)


def _check_none_missing(partition: Partition, manifest: Manifest, restoring: bool) -> None:
    """Check that all files of the manifest exist, and that no other file holds later records: then a manifest was
    removed.
    """
    there = partition.disk.names(partition.path)
    if RESTORING in there and not restoring:
        raise UsageError(
            f"A restore into {partition.path} was interrupted, and not all records are there. Finish it with the same "
            "`everlog restore`."
        )
    for entry in manifest.files:
        if entry.name not in there:
            raise missing_file_error(str(partition.path / entry.name), entry.first_commit)
    for name in sorted(set(there) - manifest.names()):
        begun = parse_file_name(name)
        if begun and begun.epoch >= manifest.epoch and _is_beyond(partition, manifest, name, begun):
            raise CorruptLog(
                f"{partition.path / name} holds records from commit {begun.first_commit} on, but the newest manifest, "
                f"{manifest.number}, does not name it: a newer manifest was removed. Nothing was changed; put it back "
                "from a backup."
            )


def _remember(
    partition: Partition, manifest: Manifest, entry: FileEntry, ledger: StreamHeads, now: int
) -> list[FrameIndex]:
    """Add the ids of a closed file to `ledger`, unless the file is so old that they may be forgotten; index its
    frames.
    """
    if entry.kind == SEALED:
        ledger.ids.seal(entry.first_commit, entry.last_commit, entry.ids_to, partial(ids_of, partition, entry), now)
        return []
    if ledger.ids.forget(entry.ids_to, now):
        return []
    index = FrameIndex(entry.name)
    try:
        for frame in closed_frames(partition, entry, manifest):
            records = list(records_of(frame.batch))
            ledger.ids.add(records)
            index.add(records, frame.offset, frame.end)
    except FileNotFoundError as error:
        raise missing_file_error(str(partition.path / entry.name), entry.first_commit) from error
    ledger.ids.begin_generation(entry.last_commit, now)
    return [index]


def _take_in(partition: Partition, manifest: Manifest, entry: FileEntry, ledger: StreamHeads, ownership: Ownership
             ) -> tuple[OpenSegment, TornTail | None]:  # fmt: skip
    """Read the open file into `ledger`, make whole frames durable, save the rest; truncate the file if it will be
    continued.
    """
    path = partition.path / entry.name
    ledger.commits = entry.first_commit - 1
    marks = MarkCheck(partition, entry.name)
    try:
        data = partition.disk.read(path)
        # Where it can be done, the file is ended for an earlier owner that may live, at the bytes that were read.
        while not ownership.continues and not partition.disk.end(path, len(data)):
            data = partition.disk.read(path)
        file = OpenSegment(partition, entry, partition.disk.open(path))
    except FileNotFoundError as error:
        raise missing_file_error(str(path), entry.first_commit) from error
    done = False
    try:
        salt = partition.salt(entry.name)
        scan = FrameScan(data, salt, entry.first_commit, str(path))
        for frame in scan:
            marks.see(frame)
            records = list(records_of(frame.batch))
            ledger.replay(records, f"{path} at byte {frame.offset}")
            ledger.commits = frame.last_commit
            file.import_messages(frame, data, records)
        if scan.later is not None:
            raise corrupt_error(scan, data, salt, entry.first_commit, str(path), heads_before(manifest, entry))
        if scan.epoch >= ownership.epoch:
            raise CorruptLog(
                f"{path} was written by epoch {scan.epoch}, but the newest epoch file before this command was that of "
                f"{ownership.epoch - 1}: files named epoch-* were removed. No record was changed; put them back from a "
                f"backup, the newest of them {partition.numbered(EPOCH, scan.epoch).name}."
            )
        lost = marks.lost(scan)
        cut = None if lost is None else TornTail(file.path, scan.end, scan.tail_bytes, lost)
        if scan.tail_bytes:
            # Saved durably before the truncation: a crash in between leaves the tail in both places, never in neither.
            _save_tail(partition, ownership, file, scan, data)
            if ownership.continues and not file.is_ended:
                file.cut()
                cut = TornTail(file.path, scan.end, scan.tail_bytes, lost)
        # The earlier owner may have died between write and sync. What this owner builds on must be durable first.
        file.settle(data)
        done = True
    finally:
        if not done:
            file.close()
    return file, cut


def _save_tail(partition: Partition, ownership: Ownership, file: OpenSegment, scan: FrameScan, data: bytes) -> None:
    """Save the bytes after the last whole frame next to the file, durably."""
    tail = data[scan.end :]
    for number in itertools.count(1):
        again = "" if number == 1 else f".{number}"
        kept = file.path.with_name(f"{file.path.name}.{scan.end}{again}{TRUNCATED_SUFFIX}")
        if publish(partition.disk, kept, tail, f"e{ownership.epoch:06d}-{token()}"):
            return
        if partition.disk.exists(kept) and partition.disk.read(kept) == tail:
            return


def remove_cut(partition: Partition) -> None:
    """Remove the saved tails (`.cut`): they may hold erased content."""
    for name in partition.disk.names(partition.path):
        if TRUNCATED_SUFFIX in name:
            remove_if_there(partition.disk, partition.path / name)


def _sweep(partition: Partition, ownership: Ownership, manifest: Manifest) -> None:
    """Remove the leftovers of earlier owners: their epochs, and files that no manifest names, whose records are in
    others.
    """
    ownership.sweep()
    if not ownership.continues:  # an earlier owner may have died while a write of its was on its way
        sweep_leftovers(partition, manifest)
    for name in strays(partition, manifest, ownership.epoch):
        remove_if_there(partition.disk, partition.path / name)


def sweep_leftovers(partition: Partition, manifest: Manifest) -> None:
    """Remove what came back of files of frames that were removed: it may hold erased content."""
    for name in leftovers(partition, manifest):
        partition.disk.remove(partition.path / name)


def sweep_late(partition: Partition, manifest: Manifest, epoch: int) -> None:
    """Remove all that came back of removed files. Only for the owner `epoch` of `manifest`, while it seals nothing.
    Raises StoreError.
    """
    with storage("sweep", partition.path):
        sweep_leftovers(partition, manifest)
        for name in strays(partition, manifest, epoch):
            if not name.endswith(OPEN_SUFFIX):  # the owner may be about to name a file of frames that it has begun
                remove_if_there(partition.disk, partition.path / name)


def leftovers(partition: Partition, manifest: Manifest) -> list[str]:
    """Return the names of removed files of which content has come back, see `Disk.leftovers`."""
    live = manifest.names()
    return [name for name in partition.disk.leftovers(partition.path) if name not in live]


def _is_beyond(partition: Partition, manifest: Manifest, name: str, begun: RecordFileName) -> bool:
    """Return True if a file that the manifest does not name holds records that no named file holds."""
    if begun.first_commit <= manifest.covered_to():
        return False
    try:
        return bool(partition.disk.read(partition.path / name, 0, 1))
    except FileNotFoundError:  # another owner that was stopped for long has swept the file
        return False


def has_strays(partition: Partition) -> bool:
    """Return True if an owner that is gone has left files that the next owner removes. Raises CorruptLog, NewerFormat
    and StoreError.
    """
    epochs = partition.numbers(EPOCH)
    if not epochs or has_live_owner(partition):
        return False
    return any(True for _ in strays(partition, load(partition), epochs[-1]))


def strays(partition: Partition, manifest: Manifest, epoch: int) -> Iterator[str]:
    """Yield files of records that `manifest` does not name and that no owner up to `epoch` can name any more.

    Their records are in files that the manifest names, or were never acknowledged, because their writer was fenced.
    """
    live = manifest.names()
    for name in partition.disk.names(partition.path):
        begun = parse_file_name(name)
        if begun is None or name in live or begun.epoch > epoch:
            continue
        if begun.epoch < manifest.epoch or not _is_beyond(partition, manifest, name, begun):
            yield name
