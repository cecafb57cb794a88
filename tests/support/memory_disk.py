"""The disk in memory on which the ordinary suite has its folders, where a sync costs nothing."""

import os
from pathlib import Path

FOLDER = Path("/dev/shm")
"""Folder that Linux keeps in memory."""
BYTES_MIN = 4 * 1024**3
"""Free bytes that it must have: a container may have 64 MB of it."""


def has_room(folder: Path = FOLDER) -> bool:
    """Return True if the folder is in memory, can be written, may hold programs, and has enough free bytes."""
    if not folder.is_dir() or not os.access(folder, os.W_OK) or not _is_tmpfs(folder):
        return False
    found = os.statvfs(folder)
    return not found.f_flag & os.ST_NOEXEC and found.f_bavail * found.f_frsize >= BYTES_MIN


def _is_tmpfs(folder: Path) -> bool:
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return False
    return any(line.split()[1:3] == [str(folder), "tmpfs"] for line in mounts.read_text().splitlines())
