"""Own a partition: its epoch files, of which the highest is in force.

The order of steps protects every acknowledged record: a new owner publishes its epoch, then reads the tail, then
appends; a writer writes, syncs, checks for a higher epoch, and only then acknowledges. The epoch file alone is the
fence. The lock only helps other processes: an owner holds the lock of its epoch file from the moment that file has its
name, so that processes on the same machine can tell a live owner from a dead one. The highest epoch file is never
removed.

Used by `FileLog`, `partition_reader` and `partition_recovery`.
"""

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from everlog.events import PartitionBusy, StoreError
from everlog.store.base.disk import DiskFile, publish_open, remove_if_there, storage
from everlog.store.base.store_constants import FORMAT_VERSION
from everlog.store.partition.partition import EPOCH, Partition, numbers_in, token

TAKE_ATTEMPTS_MAX = 1000
"""Number of attempts to publish an epoch before `take` fails."""
STAT_START = 19
"""Position of a process's start time among the fields after its name in /proc/<pid>/stat."""


class HostMark(msgspec.Struct, frozen=True, omit_defaults=True):
    """Mark of a host of a cluster in the logs that it owns: tells it from hosts that were started earlier or later."""

    cluster: str = ""
    """Id of the cluster; empty for a process that is no host of a cluster."""
    start: int = 0
    """Number of the host's start: in one cluster, a later start has a higher number."""


NO_MARK = HostMark()


class Owner(msgspec.Struct, frozen=True):
    """Owner of an epoch: enough to find the process, and to tell it apart from a later process with the same number."""

    host: str
    pid: int
    start: int
    """Start time of the process in clock ticks since boot; 0 if the system does not report it."""
    command: str
    taken_at: int
    """Microseconds UTC."""
    format: int = FORMAT_VERSION
    mark: HostMark = NO_MARK


def this_process(command: str, taken_at: int, mark: HostMark = NO_MARK) -> Owner:
    """Return the owner record of the current process."""
    return Owner(os.uname().nodename, os.getpid(), start_of(os.getpid()), command, taken_at, mark=mark)


def start_of(pid: int) -> int:
    """Return the start time of a process in clock ticks since boot; 0 if there is no such process or the system has no
    /proc.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return 0
    return int(stat.rsplit(b")", 1)[1].split()[STAT_START])


class Ownership:
    """An epoch of a partition, held by this process."""

    def __init__(self, partition: Partition, epoch: int, file: DiskFile, content: bytes, continues: bool) -> None:
        """Hold the epoch whose file is `file`, with this content."""
        self.epoch = epoch
        self.continues = continues
        """True if the owner before is certainly dead: its open file may be repaired and continued. Otherwise the file
        is closed as it is.
        """
        self._partition = partition
        self._path = partition.numbered(EPOCH, epoch)
        self._next = partition.numbered(EPOCH, epoch + 1)
        self._file = file
        self._content = content

    def is_latest(self) -> bool:
        """Return True if no higher epoch was published before this call. May raise OSError."""
        # Both checks are needed. Epochs are consecutive and removed in ascending order: if the next epoch existed and
        # was removed again, this one was removed before it. Then a file of that name is another's: of a process that
        # looked for the highest epoch long ago, and has not noticed yet that the one it published is in the past.
        disk = self._partition.disk
        try:
            return not disk.exists(self._next) and disk.read(self._path) == self._content
        except FileNotFoundError:
            return False

    def seems_latest(self) -> bool:
        """Return `is_latest` of now for a writer that syncs meanwhile; one look suffices if `disk.ends_files`: a newer
        owner ended the file of frames before it removed its own epoch, so a sync fails by itself. May raise OSError.
        """
        return not self._partition.disk.exists(self._next) if self._partition.disk.ends_files else self.is_latest()

    def sweep(self) -> None:
        """Remove lower epochs and the temporary files of earlier owners; files of a newer owner are left alone."""
        partition = self._partition
        for number in partition.numbers(EPOCH):
            if number < self.epoch:
                remove_if_there(partition.disk, partition.numbered(EPOCH, number))
        for name in partition.disk.names(partition.path):
            stem, dot, rest = name.partition(".")
            if not (dot and rest.endswith(".tmp")):
                continue
            epochs = numbers_in([stem], EPOCH) or numbers_in([rest.partition("-")[0].rpartition(".")[2]], "e")
            if any(number <= self.epoch for number in epochs):
                remove_if_there(partition.disk, partition.path / name)

    def release(self, *, done: bool = True) -> None:
        """Release the lock. The epoch file stays and remains in force until the next epoch is taken.

        `done` is False if an earlier write of this owner failed: a bucket may still carry it out.
        """
        if done:
            with suppress(OSError):  # the next owner then treats this one as it treats one that was killed
                self._file.unlock()
        self._file.close()


def take(partition: Partition, owner: Owner, label: str, *, take_over: bool) -> Ownership:
    """Publish the next epoch. `label` names the partition in errors. Raises PartitionBusy, StoreError."""
    with storage("take", partition.path):
        partition.disk.make_dirs(partition.path)
        for _ in range(TAKE_ATTEMPTS_MAX):
            numbers = partition.numbers(EPOCH)
            latest = numbers[-1] if numbers else 0
            try:
                if latest:
                    _raise_if_busy(partition, latest, owner, label, take_over=take_over)
                # Decided before the new epoch is published: afterwards the old owners' files may be swept.
                continues = all(_is_gone(partition, number, owner) for number in numbers)
            except FileNotFoundError:  # an epoch file was swept meanwhile: look again
                continue
            path = partition.numbered(EPOCH, latest + 1)
            content = msgspec.json.encode(owner)
            file = publish_open(partition.disk, path, content, token(), lock=True)
            if file is None:
                continue
            taken = False
            try:
                # The number may have been free only because it is in the past: later owners took epochs and swept this
                # one. Only the highest epoch owns the partition.
                taken = partition.numbers(EPOCH)[-1:] == [latest + 1]
            finally:
                if not taken:
                    file.close()
            if taken:
                return Ownership(partition, latest + 1, file, content, continues)
    raise StoreError(
        f"{label}: other processes took {partition.path} {TAKE_ATTEMPTS_MAX} times at the same moment. Try again."
    )


def _raise_if_busy(partition: Partition, epoch: int, owner: Owner, label: str, *, take_over: bool) -> None:
    """Raise PartitionBusy if the owner of the highest `epoch` is live and is not to be fenced; FileNotFoundError."""
    if take_over or not is_live(partition, epoch):
        return
    before = read_owner(partition, epoch)
    if before != owner:  # equal: our own epoch, published although the file system reported an error
        where = "" if before.host == owner.host else f" on {before.host}"
        raise PartitionBusy(
            f"{label} is open in process {before.pid}{where} ({before.command}); close it there, or use --take-over to "
            "fence it.",
            pid=before.pid if before.host == owner.host else 0,
            owner=f"{before.host}/{before.pid}",
            cluster=before.mark.cluster,
            start=before.mark.start,
        )


def _is_gone(partition: Partition, epoch: int, owner: Owner) -> bool:
    """Return True if the owner of `epoch` ran on this machine and is dead: no process writes for it again. A request
    of a dead process may still be on its way to a bucket, so there the owner must have said that it is done.
    FileNotFoundError.
    """
    if partition.disk.ends_files:
        return partition.disk.is_locked(partition.numbered(EPOCH, epoch)) is False
    return is_live(partition, epoch) is False and read_owner(partition, epoch).host == owner.host


def read_owner(partition: Partition, epoch: int) -> Owner:
    """Return the owner of `epoch`; a placeholder if its file is damaged. May raise OSError."""
    path = partition.numbered(EPOCH, epoch)
    try:
        return msgspec.json.decode(partition.disk.read(path), type=Owner)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Owner("an unknown host", 0, 0, f"unknown: {path} is damaged", 0)


def is_live(partition: Partition, epoch: int) -> bool | None:
    """Return True if the owner of `epoch` is live; None if that cannot be determined from this machine. May raise
    OSError.
    """
    locked = partition.disk.is_locked(partition.numbered(EPOCH, epoch))
    if locked is not None:
        return locked
    owner = read_owner(partition, epoch)
    if owner.host == os.uname().nodename and owner.start:
        return start_of(owner.pid) == owner.start
    # An owner of a log in a bucket says when it is done: one of another machine that has not counts as live.
    return True if partition.disk.ends_files else None


def has_live_owner(partition: Partition) -> bool:
    """Return True if a process on this machine has the partition open."""
    try:
        numbers = partition.numbers(EPOCH)
        return bool(numbers) and bool(is_live(partition, numbers[-1]))
    except OSError:
        return False
