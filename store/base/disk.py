"""The one way to the disk: a small Protocol, and the real disk behind it.

Everything that the store does to files goes through `Disk`, so that a test can put another one in its place that fails,
fills up or forgets what was not synced. Errors are OSError here; `storage_error` makes them StoreError above.
"""

import errno
import fcntl
import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from everlog.events import CorruptLog, StoreError

Bytes = bytes | memoryview
T = TypeVar("T")


class DiskFile(Protocol):
    """An open file."""

    def write(self, parts: Sequence[Bytes], offset: int) -> None:
        """Write all `parts`, one after the other, from byte `offset` on; not durable before `sync`."""
        ...

    def sync(self) -> None:
        """Make the file's content and length durable (fdatasync). After an error the content is unknown for ever."""
        ...

    def truncate(self, length: int) -> None:
        """Cut the file to `length` bytes; not durable before `sync`."""
        ...

    def lock(self) -> bool:
        """Hold the file's exclusive lock until `close`; False where the file system has none, or it is held."""
        ...

    def close(self) -> None:
        """Let go of the file and its lock."""
        ...


class Disk(Protocol):
    """Files and folders. Every method may raise OSError."""

    def create(self, path: Path) -> DiskFile:
        """Make a new empty file; FileExistsError if there is one. Durable after `sync_dir` of its folder."""
        ...

    def open(self, path: Path) -> DiskFile:
        """Open a file that exists, for writing."""
        ...

    def read(self, path: Path, offset: int = 0, length: int | None = None) -> bytes:
        """Up to `length` bytes (None: all) from `offset` on."""
        ...

    def names(self, path: Path) -> list[str]:
        """The names in a folder, in no order."""
        ...

    def exists(self, path: Path) -> bool:
        """Whether there is a file or folder."""
        ...

    def make_dirs(self, path: Path) -> None:
        """Make a folder and those above it, durably; nothing happens if it is there."""
        ...

    def link(self, source: Path, target: Path) -> None:
        """Give a file a second name, atomically; FileExistsError if the name is taken."""
        ...

    def remove(self, path: Path) -> None:
        """Take a name away."""
        ...

    def sync_dir(self, path: Path) -> None:
        """Make the names in a folder durable."""
        ...

    def is_locked(self, path: Path) -> bool | None:
        """Whether somebody holds the file's lock; None if this file system cannot say. Blocks nobody."""
        ...


class RealFile:
    """A file descriptor."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def write(self, parts: Sequence[Bytes], offset: int) -> None:
        left = sum(len(part) for part in parts)
        written = os.pwritev(self._fd, parts, offset)
        if written == left:
            return
        rest = memoryview(b"".join(parts))
        while written < left:
            written += os.pwrite(self._fd, rest[written:], offset + written)

    def sync(self) -> None:
        os.fdatasync(self._fd)

    def truncate(self, length: int) -> None:
        os.ftruncate(self._fd, length)

    def lock(self) -> bool:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class RealDisk:
    """The disk of this machine, or a shared POSIX file system."""

    def create(self, path: Path) -> RealFile:
        return RealFile(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))

    def open(self, path: Path) -> RealFile:
        return RealFile(os.open(path, os.O_RDWR | os.O_CLOEXEC))

    def read(self, path: Path, offset: int = 0, length: int | None = None) -> bytes:
        with open(path, "rb", buffering=0) as file:
            if offset:
                file.seek(offset)
            if length is None:
                return file.readall()
            parts = []
            while length > 0 and (part := file.read(length)):
                parts.append(part)
                length -= len(part)
            return b"".join(parts)

    def names(self, path: Path) -> list[str]:
        return os.listdir(path)

    def exists(self, path: Path) -> bool:
        try:
            os.stat(path)
        except FileNotFoundError:
            return False
        return True

    def make_dirs(self, path: Path) -> None:
        if path.is_dir():
            self.sync_dir(path.parent)  # whoever made it may have died before it was durable
            return
        self.make_dirs(path.parent)
        try:
            os.mkdir(path)
        except FileExistsError:
            if not path.is_dir():
                raise
        self.sync_dir(path.parent)

    def link(self, source: Path, target: Path) -> None:
        os.link(source, target)

    def remove(self, path: Path) -> None:
        os.unlink(path)

    def sync_dir(self, path: Path) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def is_locked(self, path: Path) -> bool | None:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return None
        finally:
            os.close(fd)
        return False


_CURES = {
    errno.ENOSPC: "The disk is full. Make room and open the log again.",
    errno.EDQUOT: "Your share of the disk is used up. Make room and open the log again.",
    errno.EROFS: "The file system is read-only. Mount it for writing, or keep the store elsewhere.",
    errno.EACCES: "You have no right to do that there. Change the permissions, or keep the store elsewhere.",
    errno.EPERM: "You have no right to do that there. Change the permissions, or keep the store elsewhere.",
    errno.EMFILE: "This process has too many open files. Raise the limit (ulimit -n) and open the log again.",
    errno.EIO: "The disk reported an error. Look at the system's log, then open the log again.",
}


def storage_error(error: OSError, doing: str, path: Path | str) -> StoreError:
    """`error` as a StoreError that names the path, what was tried and what to do."""
    cure = _CURES.get(error.errno or 0, "Remove the cause, then open the log again.")
    return StoreError(f"could not {doing} {path}: {error.strerror or error}. {cure}")


@contextmanager
def storage(doing: str, path: Path | str) -> Iterator[None]:
    """Turn any OSError inside into a StoreError about `doing` something to `path`."""
    try:
        yield
    except OSError as error:
        raise storage_error(error, doing, path) from error


@contextmanager
def read_errors(path: Path) -> Iterator[None]:
    """Turn any OSError inside into a StoreError about reading `path`, but for a file that is not there."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise storage_error(error, "read", path) from error


def parse_json(content: bytes, shape: type[T], path: Path | str) -> T:
    """A JSON text of ours. Raises CorruptLog if it is none, or of another shape."""
    try:
        return msgspec.json.decode(content, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorruptLog(f"{path} is damaged: {error}. Nothing was changed; restore it from a backup.") from error


def publish(disk: Disk, path: Path, content: bytes, token: str, *, lock: bool = False) -> DiskFile | None:
    """Give `content` the name `path`, whole, durably and exclusively; None if the name is taken: somebody was first.

    With `lock` the file holds its lock from the moment at which it has its name until the caller closes it. `token`
    tells this attempt's temporary file from those of other processes.
    """
    temporary, file = _temporary(disk, path, token)
    published = False
    try:
        file.write([content], 0)
        file.sync()
        if lock:
            file.lock()
        disk.link(temporary, path)
        disk.sync_dir(path.parent)
        published = True
    except FileExistsError:
        disk.sync_dir(path.parent)  # whoever was first may have died before it was durable
        return None
    except FileNotFoundError:  # a newer owner swept our temporary file away
        return None
    finally:
        if not published:
            file.close()
        with suppress(OSError):  # the next owner sweeps it
            disk.remove(temporary)
    return file


def publish_all(disk: Disk, paths: Sequence[Path], content: bytes, token: str) -> list[Path]:
    """Give `content` each of the names `paths`, of one folder, whole and exclusively; gives those that were free.

    The content is durable before it has a name; the names are after `sync_dir` of the folder. `token` is as above.
    """
    temporary, file = _temporary(disk, paths[0], token)
    free = []
    try:
        file.write([content], 0)
        file.sync()
        for path in paths:
            with suppress(FileExistsError):
                disk.link(temporary, path)
                free.append(path)
    finally:
        file.close()
        with suppress(OSError):
            disk.remove(temporary)
    return free


def _temporary(disk: Disk, path: Path, token: str) -> tuple[Path, DiskFile]:
    """A new file beside `path`. A process with our number may have left one, so the name is tried until it is free."""
    for number in itertools.count():
        temporary = path.with_name(f"{path.name}.{token}-{number}.tmp")
        try:
            return temporary, disk.create(temporary)
        except FileExistsError:
            continue
    raise AssertionError("unreachable")


def remove_if_there(disk: Disk, path: Path) -> None:
    """Take a name away, if somebody has not done so before."""
    try:
        disk.remove(path)
    except FileNotFoundError:
        return
