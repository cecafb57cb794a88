"""Read and write small files next to the logs: what users wrote about models, results of probes.

No sidecar is a source of truth: one that is lost is created again, or its answers are requested again.

Used by `actors/models`, for the catalogue of models and the headers of model files.
"""

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from everlog.store.base.disk import storage

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
    """Return the content of a file, up to WHOLE_BYTES_MAX; None if it does not exist. Raises StoreError."""
    with storage("read", path):
        try:
            with open(path, "rb") as file:
                return file.read(WHOLE_BYTES_MAX)
        except (FileNotFoundError, NotADirectoryError):
            return None


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file by `content` atomically: a reader finds the old or the new content, whole. Raises StoreError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with storage("write", path):
        os.makedirs(path.parent, exist_ok=True)
        try:
            with open(temporary, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        # Synced before the rename: after a power loss the name must not refer to an empty or partial file.
        finally:
            temporary.unlink(missing_ok=True)


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
