"""Read and write small files next to the logs, each as a whole: descriptions of models, results of probes, and what a
server keeps of keys, webhooks and jobs.

Used by `actors/models`, for the catalogue of models and the headers of model files, and by `interfaces/http`.
"""

import mmap
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from everlog.events import BadInput
from everlog.store.base.disk import storage
from everlog.store.base.permissions import make_folders, open_private

WHOLE_BYTES_MAX = 16 << 20
"""Limit for reading a sidecar file, in bytes; larger than any of them."""

FileStamp = tuple[int, int, int]
"""Version of a file: inode, size and time of its last change."""


def stamp_of(path: Path) -> FileStamp | None:
    """Return the stamp of a file; None if it does not exist. Raises StoreError."""
    with storage("look at", path):
        try:
            found = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns


def read_whole(path: Path) -> bytes | None:
    """Return the content of a file, up to WHOLE_BYTES_MAX; None if it does not exist. Raises StoreError, BadInput.

    A pipe, a device and a folder are refused at once: a named pipe without a writer would be waited for without end.
    """
    with storage("read", path):
        try:
            # O_NONBLOCK: opening a named pipe waits for its writer otherwise. It changes nothing for a file.
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            _check_is_file(path, os.fstat(fd).st_mode)
            with open(fd, "rb", closefd=False) as file:
                return file.read(WHOLE_BYTES_MAX)
        finally:
            os.close(fd)


def _check_is_file(path: Path, mode: int) -> None:
    """Raise BadInput for a folder, a pipe, a socket or a device."""
    if not stat.S_ISREG(mode):
        kinds = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))
        found = next((word for is_kind, word in kinds if is_kind(mode)), "a device")
        raise BadInput(f"{path} is {found}, and a file is expected there. Nothing was read. Put a file in its place.")


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file by `content`, atomically and durably: a reader finds the old or the new content, whole, also after
    a power loss. Raises StoreError.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with storage("write", path):
        make_folders(path.parent)
        try:
            with open_private(temporary, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
            _sync_folder(path.parent)
        # Synced before the rename: after a power loss the name must not refer to an empty or partial file.
        finally:
            temporary.unlink(missing_ok=True)


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
