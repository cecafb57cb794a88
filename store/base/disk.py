"""Access the disk: a small Protocol, and the real disk that implements it.

Every file operation of the store goes through `Disk`, so that a test can substitute a disk that fails, fills up or
forgets unsynced writes. Errors are OSError here; `storage_error` turns them into StoreError for callers.

Used by every file of `store` that reads or writes the log. `MemoryDisk`, `ObjectDisk` and tests implement `Disk`, too.
"""

import errno
import fcntl
import itertools
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from everlog.events import CorruptLog, StoreError
from everlog.store.base.permissions import create_file, make_folder

Bytes = bytes | memoryview
T = TypeVar("T")


class DiskFile(Protocol):
    """An open file."""

    @property
    def is_ended(self) -> bool:
        """True if nothing can be appended any more, see `Disk.end`."""
        ...

    def write(self, parts: Sequence[Bytes], offset: int) -> None:
        """Write all `parts`, one after the other, from byte `offset` on; not durable before `sync`."""
        ...

    def sync(self) -> None:
        """Make the file's content and length durable (fdatasync). After an error the content on disk is unknown."""
        ...

    def truncate(self, length: int) -> None:
        """Truncate the file to `length` bytes; not durable before `sync`."""
        ...

    def lock(self) -> bool:
        """Take the file's exclusive lock until `close`. Return False if it is held or the file system has none."""
        ...

    def unlock(self) -> None:
        """Say before `close` that this process is done. Not after a failed write: it may still take effect."""
        ...

    def close(self) -> None:
        """Close the file and release its lock."""
        ...


class FileEnded(OSError):
    """A write to a file of frames that another owner has ended, see `Disk.end`: nothing was written."""


class Disk(Protocol):
    """Operations on files and folders. Every method may raise OSError."""

    @property
    def ends_files(self) -> bool:
        """True if `end` takes effect. Then a sync of frames that succeeds proves that its writer was not fenced."""
        ...

    def create(self, path: Path) -> DiskFile:
        """Create an empty file; raise FileExistsError if it exists. `sync_dir` of the folder makes its name durable."""
        ...

    def open(self, path: Path) -> DiskFile:
        """Open an existing file for writing."""
        ...

    def read(self, path: Path, offset: int = 0, length: int | None = None) -> bytes:
        """Return up to `length` bytes (None: all) from `offset` on."""
        ...

    def names(self, path: Path) -> list[str]:
        """Return the names in a folder, in no order."""
        ...

    def exists(self, path: Path) -> bool:
        """Return True if the file or folder exists."""
        ...

    def make_dirs(self, path: Path) -> None:
        """Create a folder and its parents, durably; an existing folder is left as it is."""
        ...

    def link(self, source: Path, target: Path) -> None:
        """Give a file a second name, atomically; raise FileExistsError if the name is taken."""
        ...

    def remove(self, path: Path) -> None:
        """Remove a name from its folder."""
        ...

    def sync_dir(self, path: Path) -> None:
        """Make the names in a folder durable."""
        ...

    def is_locked(self, path: Path) -> bool | None:
        """Return True if a process holds the file's lock; None if this file system cannot say. Blocks no process."""
        ...

    def hold(self, path: Path) -> int:
        """Return a file descriptor that reads the file as long as it is open, even after the file has lost its name.

        For files that are never written again. The caller closes it.
        """
        ...

    def size(self, path: Path) -> int:
        """Return the bytes of a file."""
        ...

    def beside(self, ask: Callable[[], T]) -> Callable[[], T]:
        """Return a function that asks when it is called; if `ends_files`, one that has asked while the caller syncs."""
        ...

    def end(self, path: Path, length: int) -> bool:
        """If `ends_files`, let no other process append to a file of `length` bytes. Return False if it has grown."""
        ...

    def leftovers(self, path: Path) -> list[str]:
        """Return the names of removed files of which content is there, by a late write or an interrupted removal."""
        ...


class RealFile:
    """An open file of the operating system."""

    is_ended = False

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def write(self, parts: Sequence[Bytes], offset: int) -> None:
        left = sum(len(part) for part in parts)
        written = os.pwritev(self._fd, parts, offset)
        # pwritev may write less than all parts: write the rest until everything is in the file.
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

    def unlock(self) -> None:
        """Do nothing: the system releases the lock when the file is closed."""

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class RealDisk:
    """Disk of this machine, or a shared POSIX file system."""

    ends_files = False

    def create(self, path: Path) -> RealFile:
        return RealFile(create_file(path, os.O_RDWR | os.O_EXCL))

    def open(self, path: Path) -> RealFile:
        return RealFile(os.open(path, os.O_RDWR | os.O_CLOEXEC))

    def read(self, path: Path, offset: int = 0, length: int | None = None) -> bytes:
        # Without O_NONBLOCK opening a pipe waits for a writer for ever.
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb", buffering=0) as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):  # a device such as /dev/zero would be read until the memory is full
                kind = "pipe" if stat.S_ISFIFO(mode) else "device or socket"
                raise OSError(
                    errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL, f"It is no file but a {kind}", str(path)
                )
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
            self.sync_dir(path.parent)  # the process that created it may have died before the name was durable
            return
        self.make_dirs(path.parent)
        try:
            make_folder(path)
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

    def hold(self, path: Path) -> int:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def size(self, path: Path) -> int:
        return os.stat(path).st_size

    def beside(self, ask: Callable[[], T]) -> Callable[[], T]:
        return ask

    def end(self, path: Path, length: int) -> bool:
        return True

    def leftovers(self, path: Path) -> list[str]:
        return []


_CURES = {
    errno.ENOSPC: "The disk is full. Make room and open the log again.",
    errno.EDQUOT: "Your disk quota is used up. Make room and open the log again.",
    errno.EROFS: "The file system is read-only. Mount it for writing, or keep the store elsewhere.",
    errno.EACCES: "You do not have permission for this. Change the permissions, or keep the store elsewhere.",
    errno.EPERM: "You do not have permission for this. Change the permissions, or keep the store elsewhere.",
    errno.EMFILE: "This process has too many open files. Raise the limit (ulimit -n) and open the log again.",
    errno.EIO: "The disk reported an error. Check the system's log, then open the log again.",
}


def storage_error(error: OSError, doing: str, path: Path | str) -> StoreError:
    """Return `error` as a StoreError that names the path, the attempted operation and the remedy."""
    cure: str = getattr(error, "cure", "") or _CURES.get(error.errno or 0, "Remove the cause, then open the log again.")
    return StoreError(f"could not {doing} {path}: {error.strerror or error}. {cure}")


@contextmanager
def storage(doing: str, path: Path | str) -> Iterator[None]:
    """Turn any OSError inside into a StoreError that names `path` and the operation `doing`."""
    try:
        yield
    except OSError as error:
        raise storage_error(error, doing, path) from error


@contextmanager
def read_errors(path: Path) -> Iterator[None]:
    """Turn any OSError inside into a StoreError about reading `path`; FileNotFoundError passes unchanged."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise storage_error(error, "read", path) from error


def parse_json(content: bytes, shape: type[T], path: Path | str) -> T:
    """Decode a JSON file of the store. Raises CorruptLog if `content` is not JSON of the given `shape`."""
    try:
        return msgspec.json.decode(content, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorruptLog(f"{path} is damaged: {error}. Nothing was changed; restore it from a backup.") from error


def publish(disk: Disk, path: Path, content: bytes, token: str) -> bool:
    """Publish `content` under the name `path`: whole, durably and exclusively. Return False if the name is taken.

    `token` keeps this attempt's temporary file apart from those of other processes.
    """
    file = publish_open(disk, path, content, token)
    if file is not None:
        file.close()
    return file is not None


def publish_open(disk: Disk, path: Path, content: bytes, token: str, *, lock: bool = False) -> DiskFile | None:
    """Publish a file as `publish` does, and leave it open for the caller to close. Return None if the name is taken.

    With `lock` the file holds its lock from the moment it has its name until it is closed.
    """
    temporary, file = _temporary(disk, path, token)
    published = False
    try:
        # The content is durable before the file has its name: no process can find a torn file under that name, also
        # after a power loss.
        file.write([content], 0)
        file.sync()
        # Locked before the link: a process that finds the name never sees a live owner without its lock.
        if lock:
            file.lock()
        # link, not rename: it fails if the name exists, so only one process can publish it. The name counts once the
        # folder is synced.
        disk.link(temporary, path)
        disk.sync_dir(path.parent)
        published = True
    except FileExistsError:
        disk.sync_dir(path.parent)  # the process that published it may have died before the name was durable
        return None
    except FileNotFoundError:  # a newer owner has swept the temporary file
        return None
    finally:
        if not published:
            file.close()
        with suppress(OSError):  # the next owner sweeps it
            disk.remove(temporary)
    return file


def publish_all(disk: Disk, paths: Sequence[Path], content: bytes, token: str) -> list[Path]:
    """Publish `content` under each of the names `paths` of one folder, whole and exclusively. Return the names that
    were free.

    The content is durable before it has a name; the names are durable only after `sync_dir` of the folder, which the
    caller does once for all. `token` is as in `publish`.
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
    """Create a temporary file next to `path`. A dead process with the same id may have left one, so names are tried
    until one is free.
    """
    for number in itertools.count():
        temporary = path.with_name(f"{path.name}.{token}-{number}.tmp")
        try:
            return temporary, disk.create(temporary)
        except FileExistsError:
            continue
    raise AssertionError("unreachable")


def remove_if_there(disk: Disk, path: Path) -> None:
    """Remove a name; do nothing if it is already gone."""
    with suppress(FileNotFoundError):
        disk.remove(path)
