"""Lock files between processes: one for following, one for rebuilding.

Used by `archive` and `archive_writer`. Never delete a lock file: a process that waits for the deleted file and one that
opens a new file of that name would both get the lock.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from everlog.store.base.permissions import create_file


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file; wait while another process holds it. The system releases the lock of a process that
    dies.
    """
    fd = create_file(path, os.O_RDWR)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


@contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """Hold the lock of a file if it is free. Yield True if it is held."""
    fd = create_file(path, os.O_RDWR)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = True
        except BlockingIOError:
            held = False
        yield held
    finally:
        os.close(fd)
