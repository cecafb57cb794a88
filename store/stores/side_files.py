"""Read and write small files beside the logs, each as a whole, in a folder or in a bucket: descriptions of models,
results of probes, files of servers, and what a server keeps of keys, webhooks and jobs.

A file is named by its path in the folder of the store. If that folder stands for a bucket, the file is an object of the
same name there, so that every machine finds it. `store_constants` names all of them (`SIDE_FILES`, `SIDE_FOLDERS`);
whatever else is in the folder belongs to one machine, or can be derived again.

Used by `actors/models`, for the catalogue of models and the headers of model files, by the files of an operator and by
`interfaces/http`.
"""

import fcntl
import mmap
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident
from typing import Protocol

from everlog.events import BadInput, StoreError
from everlog.store.base.disk import storage
from everlog.store.base.names import url_of
from everlog.store.base.permissions import make_folders, open_private

WHOLE_BYTES_MAX = 16 << 20
"""Limit for reading a side file, in bytes; larger than any of them."""
CHANGES_MAX = 100
"""Number of attempts to change a file that others change, too."""

FileStamp = tuple[int | str, ...]
"""Version of a file: inode, size and time of its last change. Of an object: its tag."""
StampedContent = tuple[bytes, FileStamp]


class SideFiles(Protocol):
    """Small files of a store. Methods raise StoreError."""

    def stamp(self, path: Path) -> FileStamp | None:
        """Return the stamp of a file; None if it does not exist."""
        ...

    def read(self, path: Path) -> StampedContent | None:
        """Return the content of a file, up to WHOLE_BYTES_MAX, and its stamp; None if it does not exist. Raises
        BadInput for what is no file.
        """
        ...

    def write(self, path: Path, content: bytes) -> None:
        """Create or replace a file, atomically and durably: a reader finds the old or the new content, whole."""
        ...

    def replace(self, path: Path, content: bytes, before: StampedContent | None) -> bool:
        """Do as `write` does if the file still is what `read` returned; else return False, and change nothing."""
        ...

    def remove(self, path: Path) -> None:
        """Remove a file; a missing one is no error."""
        ...

    def names(self, folder: Path) -> list[str]:
        """Return the names in a folder, sorted; none if it does not exist."""
        ...


class FolderSideFiles:
    """Side files in folders of this machine, or of a shared POSIX file system."""

    def stamp(self, path: Path) -> FileStamp | None:
        with storage("look at", path):
            try:
                return _stamp(os.stat(path))
            except (FileNotFoundError, NotADirectoryError):
                return None

    def read(self, path: Path) -> StampedContent | None:
        with storage("read", path):
            try:
                # O_NONBLOCK: opening a named pipe waits for its writer otherwise, without end. It changes nothing for a
                # file.
                fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
            except (FileNotFoundError, NotADirectoryError):
                return None
            try:
                found = os.fstat(fd)
                _check_is_file(path, found.st_mode)
                with open(fd, "rb", closefd=False) as file:
                    return file.read(WHOLE_BYTES_MAX), _stamp(found)
            finally:
                os.close(fd)

    def write(self, path: Path, content: bytes) -> None:
        with storage("write", path), _durable(path, content) as temporary:
            os.replace(temporary, path)

    def replace(self, path: Path, content: bytes, before: StampedContent | None) -> bool:
        with storage("write", path), _durable(path, content) as temporary:
            if before is None:
                try:
                    os.link(temporary, path)
                except FileExistsError:
                    return False
                return True
            with _locked(path) as is_current:
                # The content is compared, too: a file that was replaced twice can have the inode and time of the first.
                if not is_current or self.read(path) != before:
                    return False
                os.replace(temporary, path)
            return True

    def remove(self, path: Path) -> None:
        with storage("remove", path):
            path.unlink(missing_ok=True)

    def names(self, folder: Path) -> list[str]:
        with storage("list", folder):
            try:
                return sorted(name for name in os.listdir(folder) if not name.startswith("."))
            except FileNotFoundError:
                return []


def _stamp(found: os.stat_result) -> FileStamp:
    return found.st_ino, found.st_size, found.st_mtime_ns


@contextmanager
def _durable(path: Path, content: bytes) -> Iterator[Path]:
    """Write a temporary file beside `path`, and make what the block does with its name durable."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{get_ident()}.tmp")
    make_folders(path.parent)
    try:
        with open_private(temporary, "wb") as file:
            file.write(content)
            file.flush()
            # Synced before it has the name: after a power loss that must not refer to an empty or partial file.
            os.fsync(file.fileno())
        yield temporary
        _sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Keep other processes from replacing a file while the block runs. Yield False if another has just done so."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        yield False
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        # The file of the descriptor may have lost its name while this process waited.
        try:
            is_current = os.stat(path).st_ino == os.fstat(fd).st_ino
        except FileNotFoundError:
            is_current = False
        yield is_current
    finally:
        os.close(fd)


FOLDER_FILES: SideFiles = FolderSideFiles()
"""Files of this machine."""


def side_files_of(path: Path) -> SideFiles:
    """Return the side files of the store that `path` is in, which may be a bucket. Raises UsageError, StoreError."""
    if not url_of(path):
        return FOLDER_FILES
    from everlog.store.object.bucket_side_files import files_below  # its modules cost every start of a command

    return files_below(path)


def stamp_of(path: Path) -> FileStamp | None:
    """Return the stamp of a file; None if it does not exist. Raises StoreError."""
    return side_files_of(path).stamp(path)


def read_whole(path: Path) -> bytes | None:
    """Return the content of a file, up to WHOLE_BYTES_MAX; None if it does not exist. Raises StoreError, BadInput.

    A pipe, a device and a folder are refused at once.
    """
    found = side_files_of(path).read(path)
    return None if found is None else found[0]


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file by `content`, atomically and durably: a reader finds the old or the new content, whole, also after
    a power loss. Raises StoreError.
    """
    side_files_of(path).write(path, content)


def create_whole(path: Path, content: bytes) -> bool:
    """Write a new file as `write_whole` does; return False if there is one. Raises StoreError."""
    return side_files_of(path).replace(path, content, None)


def change_whole(path: Path, change: Callable[[bytes | None], bytes]) -> None:
    """Replace a file by what `change` makes of its content, so that no other process's change is lost. Raises
    StoreError, and what `change` raises.

    `change` gets None for a missing file. It is called again with the newest content if another process was faster, and
    must not add twice what is there already: a request to a bucket may fail after it took effect.
    """
    files = side_files_of(path)
    for _ in range(CHANGES_MAX):
        before = files.read(path)
        if files.replace(path, change(None if before is None else before[0]), before):
            return
    raise StoreError(f"other processes changed {path} {CHANGES_MAX} times meanwhile. Try again.")


def remove_whole(path: Path) -> None:
    """Remove a side file; a missing one is no error. Raises StoreError."""
    side_files_of(path).remove(path)


def names_beside(folder: Path) -> list[str]:
    """Return the names in a folder of side files, sorted; none if it does not exist. Raises StoreError."""
    return side_files_of(folder).names(folder)


def _check_is_file(path: Path, mode: int) -> None:
    """Raise BadInput for a folder, a pipe, a socket or a device."""
    if not stat.S_ISREG(mode):
        kinds = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))
        found = next((word for is_kind, word in kinds if is_kind(mode)), "a device")
        raise BadInput(f"{path} is {found}, and a file is expected there. Nothing was read. Put a file in its place.")


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextmanager
def mapped(path: Path) -> Iterator["mmap.mmap | bytes"]:
    """Map a large file into memory: its bytes are read when they are accessed. Raises StoreError, FileNotFoundError."""
    if not os.path.isfile(path):
        raise FileNotFoundError(path)
    with storage("read", path), open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            yield b""
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            yield content
