"""A disk in memory that fails on command, and loses unsynced data when the power fails.

Durable are a file's content as of its last `sync`, and a folder's names as of its last `sync_dir`. `killed` returns the
disk as the next process finds it. `power_loss` returns the disk as the next boot finds it: unsynced data is lost, or
partly kept, sector by sector, by chance.
"""

import errno
import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from everlog.store.base.memory_disk import MemoryDisk, MemoryFile, MemoryInode, inside

SECTOR_BYTES = 512
"""Bytes that a real disk writes completely or not at all."""


class Crash(BaseException):
    """The death of the process at this point."""


class Broken(NamedTuple):
    """The failure of a disk from its `breaks_at`-th operation on, until the disk is repaired."""

    code: int
    operations: frozenset[str]

    def refuse(self, operation: str, path: Path) -> None:
        if operation in self.operations:
            raise OSError(self.code, os.strerror(self.code), str(path))


class Inode(MemoryInode):
    """A file's content, in the cache and on the platter."""

    def __init__(self) -> None:
        super().__init__()
        self.durable = b""

    def copied(self) -> "Inode":
        copy = Inode()
        copy.content, copy.durable = bytearray(self.content), self.durable
        return copy

    def torn(self, chance: random.Random) -> bytes:
        """Return a file after a power loss: with a length between the old and the new one, each new sector written or
        not.
        """
        old, new = self.durable, bytes(self.content)
        end = chance.randint(min(len(old), len(new)), max(len(old), len(new)))
        if len(new) < len(old):
            new += old[len(new) :]  # bytes are cut off with the length, or stay as they were
        old, new = old.ljust(end, b"\0"), new[:end]
        sectors = range(0, end, SECTOR_BYTES)
        return b"".join((new if chance.random() < 0.75 else old)[at : at + SECTOR_BYTES] for at in sectors)[:end]


class FaultyDisk(MemoryDisk):
    """A `store.Disk`. `log` lists every operation; `fail` and `crash_at` make one of them go wrong."""

    files: dict[Path, Inode]

    def __init__(self) -> None:
        super().__init__()
        self.durable_names: dict[Path, Inode] = {}
        self.log: list[tuple[str, str]] = []
        self.faults: list[tuple[str, str, int, int]] = []
        self.crash_at: int | None = None
        self.breaks_at: int | None = None
        self.broken: Broken | None = None

    def fail(self, operation: str, code: int, *, name: str = "", partial: int = 0) -> None:
        """Make the next `operation` on a file whose name contains `name` fail with errno `code`.

        A write leaves its first `partial` bytes.
        """
        self.faults.append((operation, name, code, partial))

    def step(self, operation: str, path: Path) -> int | None:
        """Record an operation, and raise the failure that was ordered for it.

        Return the number of bytes that a failing write leaves, or None.
        """
        if self.crash_at is not None and len(self.log) >= self.crash_at:
            raise Crash
        self.log.append((operation, path.name))
        if self.broken and self.breaks_at is not None and len(self.log) > self.breaks_at:
            self.broken.refuse(operation, path)
        for fault in self.faults:
            wanted, name, code, partial = fault
            if wanted == operation and name in path.name:
                self.faults.remove(fault)
                if partial:
                    return partial
                raise OSError(code, os.strerror(code), str(path))
        return None

    def killed(self) -> "FaultyDisk":
        """Return the disk after a kill of the process: all written data is there, synced or not, and no lock is
        held.
        """
        after = FaultyDisk()
        after.folders = set(self.folders)
        copies = {id(inode): inode.copied() for inode in (*self.files.values(), *self.durable_names.values())}
        after.files = {path: copies[id(inode)] for path, inode in self.files.items()}
        after.durable_names = {path: copies[id(inode)] for path, inode in self.durable_names.items()}
        return after

    def power_loss(self, chance: random.Random | None = None) -> "FaultyDisk":
        """Return the disk after a power loss. With `chance`, some unsynced names and sectors survive."""
        after = FaultyDisk()
        after.folders = set(self.folders)
        names = dict(self.durable_names)
        if chance is not None:
            names = {path: inode for path, inode in names.items() if path in self.files or chance.random() < 0.5}
            names.update((path, inode) for path, inode in self.files.items() if chance.random() < 0.5)
        for path, inode in names.items():
            content = inode.durable if chance is None else inode.torn(chance)
            copy = Inode()
            copy.content, copy.durable = bytearray(content), content
            after.files[path] = after.durable_names[path] = copy
        return after

    def state(self) -> frozenset[tuple[Path, bytes]]:
        """Return all that a process can see of the disk; two disks with the same state are equal to a process."""
        return frozenset((path, bytes(inode.content)) for path, inode in self.files.items())

    def create(self, path: Path) -> "FaultyFile":
        self.step("create", path)
        super().create(path)
        self.files[path] = Inode()
        return FaultyFile(self, path)

    def open(self, path: Path) -> "FaultyFile":
        self.step("open", path)
        self.inode(path)
        return FaultyFile(self, path)

    def read(self, path: Path, offset: int = 0, length: int | None = None) -> bytes:
        self.step("read", path)
        return super().read(path, offset, length)

    def names(self, path: Path) -> list[str]:
        self.step("names", path)
        return super().names(path)

    def exists(self, path: Path) -> bool:
        self.step("exists", path)
        return super().exists(path)

    def make_dirs(self, path: Path) -> None:
        self.step("make_dirs", path)
        super().make_dirs(path)

    def link(self, source: Path, target: Path) -> None:
        self.step("link", target)
        super().link(source, target)

    def remove(self, path: Path) -> None:
        self.step("remove", path)
        super().remove(path)

    def sync_dir(self, path: Path) -> None:
        self.step("sync_dir", path)
        for other in inside(self.durable_names, path):
            del self.durable_names[other]
        self.durable_names.update((other, self.files[other]) for other in inside(self.files, path))

    def is_locked(self, path: Path) -> bool | None:
        self.step("is_locked", path)
        return super().is_locked(path)


class FaultyFile(MemoryFile):
    """A `store.DiskFile`."""

    def __init__(self, disk: FaultyDisk, path: Path) -> None:
        super().__init__(disk.files[path])
        self._disk = disk
        self._path = path

    def write(self, parts: Sequence[bytes | memoryview], offset: int) -> None:
        content = b"".join(parts)
        left = self._disk.step("write", self._path)
        super().write([content if left is None else content[:left]], offset)
        if left is not None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))

    def sync(self) -> None:
        self._disk.step("sync", self._path)
        self._inode.durable = bytes(self._inode.content)

    def truncate(self, length: int) -> None:
        self._disk.step("truncate", self._path)
        super().truncate(length)
