"""Keep files in memory behind the protocol `Disk`: nothing reaches a real disk, and nothing is synced.

Used by `everlog.testing`, whose stores are ordinary stores on this disk; the disk that fails on command in
`tests/support/store` is made of it. Paths are compared as text and are never looked up on the machine.
"""

import errno
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from everlog.store.base.disk import Bytes

T = TypeVar("T")


class MemoryInode:
    """Content of one file, and the open file that holds its lock."""

    def __init__(self) -> None:
        self.content = bytearray()
        self.locked_by: MemoryFile | None = None


class MemoryDisk:
    """Disk in memory. It lives as long as this object: a second store on it finds what the first one wrote."""

    ends_files = False

    def __init__(self) -> None:
        self.files: dict[Path, MemoryInode] = {}
        self.folders: set[Path] = set()

    def create(self, path: Path) -> "MemoryFile":
        if path in self.files:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        if path.parent not in self.folders:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        self.files[path] = MemoryInode()
        return MemoryFile(self.files[path])

    def open(self, path: Path) -> "MemoryFile":
        return MemoryFile(self.inode(path))

    def read(self, path: Path, offset: int = 0, length: int | None = None) -> bytes:
        end = None if length is None else offset + length
        return bytes(self.inode(path).content[offset:end])

    def names(self, path: Path) -> list[str]:
        if path not in self.folders:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return [other.name for other in (*inside(self.files, path), *inside(self.folders, path))]

    def exists(self, path: Path) -> bool:
        return path in self.files or path in self.folders

    def make_dirs(self, path: Path) -> None:
        self.folders.update([path, *path.parents])

    def link(self, source: Path, target: Path) -> None:
        inode = self.inode(source)
        if target in self.files:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
        self.files[target] = inode

    def remove(self, path: Path) -> None:
        self.inode(path)
        del self.files[path]

    def sync_dir(self, path: Path) -> None:
        """Do nothing: memory is never synced."""

    def is_locked(self, path: Path) -> bool | None:
        return self.inode(path).locked_by is not None

    def hold(self, path: Path) -> int:
        return memory_fd(bytes(self.inode(path).content))

    def size(self, path: Path) -> int:
        return len(self.inode(path).content)

    def beside(self, ask: Callable[[], T]) -> Callable[[], T]:
        return ask

    def end(self, path: Path, length: int) -> bool:
        return True

    def leftovers(self, path: Path) -> list[str]:
        return []

    def inode(self, path: Path) -> MemoryInode:
        """Return the content of a file. Raises FileNotFoundError."""
        if path not in self.files:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return self.files[path]


class MemoryFile:
    """An open file of a MemoryDisk."""

    is_ended = False

    def __init__(self, inode: MemoryInode) -> None:
        self._inode = inode

    def write(self, parts: Sequence[Bytes], offset: int) -> None:
        content, held = b"".join(parts), self._inode.content
        held.extend(bytes(max(0, offset - len(held))))
        held[offset : offset + len(content)] = content

    def sync(self) -> None:
        """Do nothing: memory is never synced."""

    def truncate(self, length: int) -> None:
        del self._inode.content[length:]

    def lock(self) -> bool:
        if self._inode.locked_by is not None:
            return False
        self._inode.locked_by = self
        return True

    def unlock(self) -> None:
        """Do nothing: `close` releases the lock."""

    def close(self) -> None:
        if self._inode.locked_by is self:
            self._inode.locked_by = None


def memory_fd(content: bytes) -> int:
    """Return the file descriptor of an anonymous file with this content; the caller closes it."""
    fd = os.memfd_create("everlog")
    with open(fd, "wb", closefd=False) as file:
        file.write(content)
    return fd


def inside(paths: Iterable[Path], folder: Path) -> list[Path]:
    """Return the paths that are in `folder` itself. Text is compared: comparing parents takes most of a test's time."""
    start = f"{folder}/"
    return [path for path in paths if (text := str(path)).startswith(start) and text.find("/", len(start)) < 0]
