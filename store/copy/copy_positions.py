"""Take the positions of all logs of a store that is copied: which files, and how many bytes of the open ones.

A store can be written to meanwhile. If an agent moved between two logs while the positions were taken, they are taken
again: otherwise a copy could have its arrival without its departure.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from everlog.events import StoreError, UsageError
from everlog.store.base.disk import Disk, storage
from everlog.store.log.partition_recovery import RESTORING
from everlog.store.partition.manifest import OPEN, READ_ATTEMPTS_MAX, Manifest, load
from everlog.store.partition.partition import EPOCH, MANIFEST, Partition
from everlog.store.partition.segment import FrameScan, corrupt_error, heads_before, missing_file_error
from everlog.store.stores.file_store import FileStore
from everlog.store.streams.register import MARK
from everlog.store.streams.shard_numbers import SHARDS

POSITIONS_MAX = 20
"""Number of attempts to take all positions, because agents may move meanwhile."""
TEMPORARY = ".tmp"


class CopyPosition(NamedTuple):
    """Part of one partition that is copied."""

    partition: Partition
    manifest: Manifest
    """Number 0 if the partition has no file yet."""
    epoch: int
    """Newest epoch."""
    open_bytes: int
    """Bytes of the whole frames of the open file."""
    streams: frozenset[str]
    """Streams that have records."""


def take_positions(store: FileStore) -> list[CopyPosition]:
    """Return the positions of all partitions at one time, as far as moves tell. Raises CorruptLog, StoreError,
    UsageError.
    """
    for _ in range(POSITIONS_MAX):
        before = _moves(store)
        taken = [_position(store.partition(name)) for name in store.partitions()]
        if _moves(store) == before:
            return taken
    raise StoreError(f"agents of {store.root} moved {POSITIONS_MAX} times while it was read. Try again.")


def small_files(disk: Disk, root: Path) -> dict[Path, bytes]:
    """Return the files of the register, the other names and the numbers of shards, by their paths in the store."""
    found: dict[Path, bytes] = {}
    for path in _register_files(disk, root):
        try:
            found[path.relative_to(root)] = disk.read(path)
        except FileNotFoundError:  # a mark that its agent has just lost, or a name that was given back
            continue
    return found


def _register_files(disk: Disk, root: Path) -> Iterator[Path]:
    folders = [root / "names", root / SHARDS]
    if disk.exists(root / "agents"):
        folders += [root / "agents" / name for name in sorted(disk.names(root / "agents"))]
    for folder in folders:
        if disk.exists(folder):
            yield from (folder / name for name in sorted(disk.names(folder)) if not name.endswith(TEMPORARY))


def _moves(store: FileStore) -> set[str]:
    """Return the names of the files of the register that agents which moved have."""
    with storage("list the agents of", store.root):
        names = {path.name for path in _register_files(store.disk, store.root)}
    return {name for name in names if "." in name and not name.endswith(MARK)}


def _position(partition: Partition) -> CopyPosition:
    """Return the position of one partition. If a file disappears meanwhile, the next manifest names its successor."""
    for _ in range(READ_ATTEMPTS_MAX):
        manifest = load(partition)
        with storage("list", partition.path):
            there = partition.disk.names(partition.path) if partition.disk.exists(partition.path) else []
        if RESTORING in there:
            raise UsageError(
                f"A restore into {partition.path} was interrupted, or is running. Finish it with the same "
                "`everlog restore`, then copy the store."
            )
        epoch = max([manifest.epoch, *partition.numbers(EPOCH)])
        streams = set(manifest.closed_heads())
        growing = manifest.open_file()
        if growing is None:
            return CopyPosition(partition, manifest, epoch, 0, frozenset(streams))
        path = partition.path / growing.name
        try:
            with storage("read", path):
                data = partition.disk.read(path)
        except StoreError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            if is_newest(partition, manifest):
                raise missing_file_error(str(path), growing.first_commit) from error
            continue
        scan = FrameScan(data, partition.salt(growing.name), growing.first_commit, str(path))
        for frame in scan:
            streams.update(frame.batch.column("agent_id").to_pylist())
        if scan.later is None:
            return CopyPosition(partition, manifest, epoch, scan.end, frozenset(streams))
        if is_newest(partition, manifest):
            salt = partition.salt(growing.name)
            raise corrupt_error(scan, data, salt, growing.first_commit, str(path), heads_before(manifest, growing))
    raise StoreError(f"{partition.path}: the manifest changed {READ_ATTEMPTS_MAX} times while it was read. Try again.")


def is_newest(partition: Partition, manifest: Manifest) -> bool:
    """Return True if no newer manifest is there."""
    return partition.numbers(MANIFEST)[-1:] == [manifest.number]


def bytes_of(position: CopyPosition, kind: str, closed: int) -> int:
    """Return how many bytes of a file of the manifest are copied: those of a closed file, or whole frames."""
    return position.open_bytes if kind == OPEN else closed
