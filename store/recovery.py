"""What a new owner does before it appends: read everything that is there, cut a nonsense tail, be ready to go on.

Crash-safe and repeatable: the cut bytes are kept durably beside the file before the file is touched, and every step
may be done again by the next owner. Damage before the end raises CorruptLog before anything is written.
"""

from collections.abc import Iterator
from typing import NamedTuple

from events import CorruptLog, Fenced, StoreError

from .admission import Ledger
from .arrow import batch_in, records_of
from .disk import remove_if_there, storage
from .epoch import Ownership
from .manifest import OPEN, FileEntry, Manifest, load, succeed
from .openfile import FrameIndex, OpenFile
from .partition import EPOCH, Partition
from .reader import Damage, heads_before
from .segment import Scan, corrupt, gone

ATTEMPTS_MAX = 1000


class Recovered(NamedTuple):
    """A partition, ready for its owner."""

    manifest: Manifest
    file: OpenFile
    ledger: Ledger
    indexes: list[FrameIndex]
    """Of the closed files whose ids are remembered."""
    cut: Damage | None
    """The nonsense tail that was cut, kept in `<name>.<offset>.cut`."""


def recover(partition: Partition, ownership: Ownership, now: int) -> Recovered:
    """Read the partition that `ownership` holds. Raises CorruptLog, NewerFormat, Fenced, StoreError."""
    with storage("recover", partition.path):
        for _ in range(ATTEMPTS_MAX):
            manifest = load(partition)
            recovered = _recover(partition, ownership, manifest, now)
            if recovered is not None:
                _sweep(partition, ownership, recovered.manifest)
                return recovered
            if not ownership.is_latest():
                raise Fenced(f"{partition.path}: a newer owner came while epoch {ownership.epoch} was being opened.")
    raise StoreError(f"{partition.path}: the manifest changed {ATTEMPTS_MAX} times while it was opened. Try again.")


def _recover(partition: Partition, ownership: Ownership, manifest: Manifest, now: int) -> Recovered | None:
    """One attempt; None if somebody published a manifest in between."""
    ledger = Ledger(manifest.closed_heads())
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
        if ownership.goes_on:
            return Recovered(manifest, file, ledger, indexes, cut)
        files.pop()
        if file.length:
            files.append(file.closed(ledger))
            indexes.append(file.index)
            ledger.ids.begin_generation(now)
        file.close()
    file = OpenFile.begin(partition, ledger.commits + 1, ownership.epoch)
    published = succeed(partition, manifest, ownership.epoch, [*files, file.entry])
    if published is None:
        file.close()
        return None
    return Recovered(published, file, ledger, indexes, cut)


def _remember(partition: Partition, manifest: Manifest, entry: FileEntry, ledger: Ledger, now: int) -> list[FrameIndex]:
    """Take in the ids of a closed file, unless it is so old that they may be forgotten."""
    if ledger.ids.forget(entry.ids_to, now):
        return []
    path = partition.path / entry.name
    try:
        data = partition.disk.read(path, 0, entry.bytes)
    except FileNotFoundError as error:
        raise gone(str(path), entry.first_commit) from error
    index = FrameIndex(entry.name)
    index.ids_to = entry.ids_to
    salt = partition.salt(entry.name)
    scan = Scan(data, salt, entry.first_commit, str(path))
    for frame in scan:
        ledger.ids.add(records_of(batch_in(frame.body)))
        index.add(frame.header.first_commit, frame.offset)
    if scan.end != entry.bytes or scan.next_commit != entry.last_commit + 1:
        raise corrupt(scan, data, salt, entry.first_commit, str(path), heads_before(manifest, entry))
    ledger.ids.begin_generation(now)
    return [index]


def _take_in(partition: Partition, manifest: Manifest, entry: FileEntry, ledger: Ledger, ownership: Ownership
             ) -> tuple[OpenFile, Damage | None]:  # fmt: skip
    """Read the open file into `ledger`, make what is whole durable, and cut what is not if the file goes on."""
    path = partition.path / entry.name
    ledger.commits = entry.first_commit - 1
    try:
        data = partition.disk.read(path)
        file = OpenFile(partition, entry, partition.disk.open(path))
    except FileNotFoundError as error:
        raise gone(str(path), entry.first_commit) from error
    done = False
    try:
        salt = partition.salt(entry.name)
        scan = Scan(data, salt, entry.first_commit, str(path))
        for frame in scan:
            records = list(records_of(batch_in(frame.body)))
            ledger.replay(records, f"{path} at byte {frame.offset}")
            ledger.commits = frame.last_commit
            file.take_in(frame, data, records)
        if scan.later is not None:
            raise corrupt(scan, data, salt, entry.first_commit, str(path), heads_before(manifest, entry))
        if scan.epoch >= ownership.epoch:
            raise CorruptLog(
                f"{path} was written by epoch {scan.epoch}, but the newest epoch file before this command was that of "
                f"{ownership.epoch - 1}: files named epoch-* were removed. No record was changed; put them back from a "
                f"backup, the newest of them {partition.numbered(EPOCH, scan.epoch).name}."
            )
        cut = _cut(partition, file, scan, data) if ownership.goes_on and scan.tail_bytes else None
        file.settle(data)
        done = True
    finally:
        if not done:
            file.close()
    return file, cut


def _cut(partition: Partition, file: OpenFile, scan: Scan, data: bytes) -> Damage:
    """Keep the bytes after the last whole frame beside the file, durably; then cut them off."""
    kept = file.path.with_name(f"{file.path.name}.{scan.end}.cut")
    number = 1
    while partition.disk.exists(kept) and partition.disk.read(kept) != data[scan.end :]:
        number += 1
        kept = file.path.with_name(f"{file.path.name}.{scan.end}.{number}.cut")
    remove_if_there(partition.disk, kept)
    copy = partition.disk.create(kept)
    try:
        copy.write([memoryview(data)[scan.end :]], 0)
        copy.sync()
    finally:
        copy.close()
    partition.disk.sync_dir(partition.path)
    file.cut()
    return Damage(file.path, scan.end, scan.tail_bytes)


def _sweep(partition: Partition, ownership: Ownership, manifest: Manifest) -> None:
    """Remove what owners before left that no manifest names, as far as it is empty, and their epochs."""
    ownership.sweep()
    live = {entry.name for entry in manifest.files}
    for name in _strays(partition, live):
        if not partition.disk.read(partition.path / name, 0, 1):
            remove_if_there(partition.disk, partition.path / name)


def _strays(partition: Partition, live: set[str]) -> Iterator[str]:
    return (name for name in partition.disk.names(partition.path) if name.endswith(".open") and name not in live)
