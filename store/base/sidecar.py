"""Small files beside the logs, which are read and written whole: what users wrote about models, what probes found.

None of them is the truth of anything: one that is lost is made anew, or its answers are asked for again.
"""

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from everlog.store.base.disk import storage

WHOLE_BYTES_MAX = 16 << 20
"""More than any of them has."""

FileStamp = tuple[int, int, int]
"""Tells one state of a file from another: inode, size and time of its last change."""


def stamp_of(path: Path) -> FileStamp | None:
    """The stamp of a file; None where there is none. Raises StoreError."""
    with storage("look at", path):
        try:
            found = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns


def read_whole(path: Path) -> bytes | None:
    """What is in a file, up to WHOLE_BYTES_MAX; None where there is none. Raises StoreError."""
    with storage("read", path):
        try:
            with open(path, "rb") as file:
                return file.read(WHOLE_BYTES_MAX)
        except (FileNotFoundError, NotADirectoryError):
            return None


def write_whole(path: Path, content: bytes) -> None:
    """Put `content` in the place of a file: whoever reads finds the old or the new, whole. Raises StoreError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with storage("write", path):
        os.makedirs(path.parent, exist_ok=True)
        try:
            with open(temporary, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def mapped(path: Path) -> Iterator["mmap.mmap | bytes"]:
    """The bytes of a large file, read as they are looked at. Raises StoreError, FileNotFoundError."""
    if not os.path.isfile(path):
        raise FileNotFoundError(path)
    with storage("read", path), open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            yield b""
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            yield content
