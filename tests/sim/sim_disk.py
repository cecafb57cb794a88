"""A simulated disk with every failure that a real disk may have: `Platter` is the hardware, `SimDisk` one process's
access.

A write changes the page cache, which every process sees; only `sync` changes the platter, and a name is durable only
after `sync_dir`. When the power fails, each sector and each name that was not synced is kept or lost by chance. After a
failed sync the system takes the pages for clean: they may read back as they were before, and no later sync writes them.
One `random.Random` decides all chance.
"""

import errno
import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, TypeVar

from everlog.store.base.memory_disk import memory_fd

SECTOR_BYTES = 512

T = TypeVar("T")


class Gate(Protocol):
    """Hook of every call of a process: at this point other processes may run, the process may die, or the call may
    fail.
    """

    def __call__(self, operation: str, path: Path) -> AbstractContextManager[None]:
        """Enclose the effect of a call: OSError is raised before the effect or after it."""
        ...

    def torn(self, operation: str) -> bool:
        """True if other processes may run between two halves of this call."""
        ...


class Inode:
    """A file: its content in the page cache, and on the platter."""

    def __init__(self) -> None:
        self.cache = bytearray()
        self.platter = bytearray()
        self.dirty: set[int] = set()
        """Sectors that are newer in the cache than on the platter, as the system knows."""
        self.lost: set[int] = set()
        """Sectors that are newer in the cache, although the system takes them for clean since a failed sync."""
        self.lock: SimFile | None = None

    def write(self, content: bytes, offset: int) -> None:
        """Change the page cache."""
        self.cache.extend(bytes(max(0, offset - len(self.cache))))
        self.cache[offset : offset + len(content)] = content
        touched = range(offset // SECTOR_BYTES, -(-(offset + len(content)) // SECTOR_BYTES))
        self.dirty.update(touched)
        self.lost.difference_update(touched)

    def truncate(self, length: int) -> None:
        """Cut the page cache."""
        del self.cache[length:]
        end = -(-length // SECTOR_BYTES)
        self.dirty = {sector for sector in self.dirty if sector < end}
        self.lost = {sector for sector in self.lost if sector < end}

    def sync(self) -> None:
        """Write the dirty sectors and the length to the platter."""
        self._put(sorted(self.dirty))
        self.dirty.clear()
        del self.platter[len(self.cache) :]
        self.platter.extend(bytes(len(self.cache) - len(self.platter)))

    def fail_sync(self) -> None:
        """Fail a sync: nothing is written to the platter, and no later sync retries."""
        self.lost |= self.dirty
        self.dirty.clear()

    def write_back(self, chance: random.Random) -> None:
        """Write some dirty sectors, as the system does at any time."""
        some = [sector for sector in sorted(self.dirty) if chance.random() < 0.5]
        self._put(some)
        self.dirty.difference_update(some)

    def evict(self) -> None:
        """Drop the pages that the system takes for clean, so that they read back from the platter."""
        for sector in sorted(self.lost):
            start, end = sector * SECTOR_BYTES, min((sector + 1) * SECTOR_BYTES, len(self.cache))
            self.cache[start:end] = self.platter[start:end].ljust(end - start, b"\0")
        self.lost.clear()

    def power_loss(self, chance: random.Random, survive: float, stale: bytes) -> None:
        """Keep what survives on the platter: each dirty sector with chance `survive`, and the old or the new length."""
        old, new = sorted((len(self.platter), len(self.cache)))
        before = len(self.platter)
        self._put([sector for sector in sorted(self.dirty) if chance.random() < survive], stale)
        if old != new or len(self.platter) != before:
            length = chance.choice([before, len(self.cache), chance.randint(old, new)])
            self.platter.extend(_filling(stale, max(0, length - len(self.platter))))
            del self.platter[length:]
        self.cache = bytearray(self.platter)
        self.dirty.clear()
        self.lost.clear()
        self.lock = None

    def _put(self, sectors: list[int], stale: bytes = b"") -> None:
        for sector in sectors:
            start = sector * SECTOR_BYTES
            self.platter.extend(_filling(stale, start - len(self.platter)))
            content = self.cache[start : start + SECTOR_BYTES]
            self.platter[start : start + len(content)] = content


def _filling(stale: bytes, length: int) -> bytes:
    """Return the content of blocks that were never written: zeros, or a former file's bytes."""
    return stale[:length].ljust(length, b"\0") if length > 0 else b""


class Folder:
    """The names in a folder: as processes see them, and as they are on the platter."""

    def __init__(self) -> None:
        self.names: dict[str, Inode] = {}
        self.durable: dict[str, Inode] = {}

    def power_loss(self, chance: random.Random, survive: float) -> None:
        """Keep each unsynced creation or removal of a name with chance `survive`."""
        after: dict[str, Inode] = {}
        for name in sorted({*self.names, *self.durable}):
            now, before = self.names.get(name), self.durable.get(name)
            inode = now if now is before or chance.random() < survive else before
            if inode is not None:
                after[name] = inode
        self.names, self.durable = after, dict(after)


class Platter:
    """The hardware and the system's page cache, shared by all processes."""

    def __init__(self, chance: random.Random, *, locks: bool = True) -> None:
        """Make a disk; without `locks` its file system can neither lock nor name the holder of a lock."""
        self.chance = chance
        self.locks = locks
        self.folders: dict[Path, Folder] = {Path("/"): Folder()}

    def inodes(self) -> Iterator[Inode]:
        """Yield all files that have a name, in the order of their paths."""
        for path in sorted(self.folders):
            folder = self.folders[path]
            yield from (folder.names[name] for name in sorted(folder.names))

    def paths(self, folder: Path) -> list[Path]:
        """Return the files in a folder, sorted."""
        return [folder / name for name in sorted(self.folders[folder].names)] if folder in self.folders else []

    def power_loss(self) -> None:
        """Drop the cache. The share of unsynced data that survives differs from one loss to the next."""
        survive = self.chance.choice([0.0, 0.2, 0.5, 0.8, 1.0])
        written = [inode for inode in self.inodes() if inode.platter]
        stale = bytes(self.chance.choice(written).platter) if written and self.chance.random() < 0.3 else b""
        for path in sorted(self.folders):
            self.folders[path].power_loss(self.chance, survive)
        seen: set[int] = set()
        for inode in self.inodes():
            if id(inode) not in seen:
                seen.add(id(inode))
                inode.power_loss(self.chance, survive, stale)

    def write_back(self) -> None:
        """Write some of the dirty sectors."""
        for inode in self.inodes():
            if inode.dirty:
                inode.write_back(self.chance)

    def evict(self) -> None:
        """Drop clean pages from the cache."""
        for inode in self.inodes():
            inode.evict()

    def folder(self, path: Path) -> Folder:
        """Return an existing folder."""
        if path not in self.folders:
            raise _error(errno.ENOENT, path)
        return self.folders[path]

    def inode(self, path: Path) -> Inode:
        """Return an existing file."""
        names = self.folder(path.parent).names
        if path.name not in names:
            raise _error(errno.ENOENT, path)
        return names[path.name]

    def add(self, path: Path, inode: Inode) -> None:
        """Give a file an unused name."""
        names = self.folder(path.parent).names
        if path.name in names or path in self.folders:
            raise _error(errno.EEXIST, path)
        names[path.name] = inode


class SimDisk:
    """A `store.Disk`: the calls of one process, each through its `gate`."""

    ends_files = False

    def __init__(self, platter: Platter, gate: Gate) -> None:
        self.platter = platter
        self.gate = gate
        self.files: list[SimFile] = []

    def create(self, path: Path) -> "SimFile":
        with self.gate("create", path):
            inode = Inode()
            self.platter.add(path, inode)
            return self._opened(path, inode)

    def open(self, path: Path) -> "SimFile":
        with self.gate("open", path):
            return self._opened(path, self.platter.inode(path))

    def _opened(self, path: Path, inode: Inode) -> "SimFile":
        file = SimFile(self, path, inode)
        self.files.append(file)
        return file

    def read(self, path: Path, offset: int = 0, length: int | None = None) -> bytes:
        with self.gate("read", path):
            inode = self.platter.inode(path)
            end = None if length is None else offset + length
            content = bytes(inode.cache[offset:end])
        if len(content) > 1 and self.gate.torn("read"):
            half = self.platter.chance.randrange(1, len(content))
            with self.gate("read on", path):
                content = content[:half] + bytes(inode.cache[offset + half : end])
        return content

    def names(self, path: Path) -> list[str]:
        with self.gate("names", path):
            names = self._names(path)
        if self.gate.torn("names"):  # a name that is added or removed meanwhile may be missing or present
            with self.gate("names on", path):
                later = self._names(path)
            changing = sorted(set(names) ^ set(later))
            names = sorted(set(names) & set(later))
            names += [name for name in changing if self.platter.chance.random() < 0.5]
        return names

    def _names(self, path: Path) -> list[str]:
        names = list(self.platter.folder(path).names)
        return names + [other.name for other in self.platter.folders if other.parent == path and other != path]

    def exists(self, path: Path) -> bool:
        with self.gate("exists", path):
            folder = self.platter.folders.get(path.parent)
            return path in self.platter.folders or (folder is not None and path.name in folder.names)

    def make_dirs(self, path: Path) -> None:
        with self.gate("make_dirs", path):
            for folder in (path, *path.parents):
                self.platter.folders.setdefault(folder, Folder())

    def link(self, source: Path, target: Path) -> None:
        with self.gate("link", target):
            self.platter.add(target, self.platter.inode(source))

    def remove(self, path: Path) -> None:
        with self.gate("remove", path):
            self.platter.inode(path)
            del self.platter.folder(path.parent).names[path.name]

    def sync_dir(self, path: Path) -> None:
        with self.gate("sync_dir", path):
            folder = self.platter.folder(path)
            folder.durable = dict(folder.names)

    def is_locked(self, path: Path) -> bool | None:
        with self.gate("is_locked", path):
            locked = self.platter.inode(path).lock is not None
        return locked if self.platter.locks else None

    def hold(self, path: Path) -> int:
        with self.gate("hold", path):
            return memory_fd(bytes(self.platter.inode(path).cache))

    def size(self, path: Path) -> int:
        return len(self.platter.inode(path).cache)

    def beside(self, ask: Callable[[], T]) -> Callable[[], T]:
        return ask

    def end(self, path: Path, length: int) -> bool:
        return True

    def leftovers(self, path: Path) -> list[str]:
        return []

    def die(self) -> None:
        """Close the process's files and free its locks."""
        for file in self.files:
            file.close()


class SimFile:
    """A `store.DiskFile`."""

    is_ended = False

    def __init__(self, disk: SimDisk, path: Path, inode: Inode) -> None:
        self._disk = disk
        self._path = path
        self._inode = inode

    def write(self, parts: Sequence[bytes | memoryview], offset: int) -> None:
        content = b"".join(parts)
        start = 0
        if len(content) > 1 and self._disk.gate.torn("write"):
            start = self._disk.platter.chance.randrange(1, len(content))
            with self._disk.gate("write", self._path):
                self._inode.write(content[:start], offset)
        with self._disk.gate("write", self._path):
            self._inode.write(content[start:], offset + start)

    def sync(self) -> None:
        done = False
        try:
            with self._disk.gate("sync", self._path):
                self._inode.sync()
                done = True
        except OSError:
            if not done:
                self._inode.fail_sync()
            raise

    def truncate(self, length: int) -> None:
        with self._disk.gate("truncate", self._path):
            self._inode.truncate(length)

    def lock(self) -> bool:
        if not self._disk.platter.locks or self._inode.lock is not None:
            return False
        self._inode.lock = self
        return True

    def unlock(self) -> None:
        """Do nothing: `close` releases the lock."""

    def close(self) -> None:
        if self._inode.lock is self:
            self._inode.lock = None


def _error(code: int, path: Path) -> OSError:
    return OSError(code, os.strerror(code), str(path))
