"""Where a partition is: its folder, its name, and the disk under it."""

import os
from pathlib import Path
from typing import NamedTuple

from .disk import Disk
from .frame import salt_of

MANIFEST = "manifest-"
EPOCH = "epoch-"


class Partition(NamedTuple):
    """One partition's folder. Knows names, not contents."""

    disk: Disk
    path: Path
    name: str
    store_id: str

    def salt(self, file_name: str) -> int:
        """The salt of the frames in one of its files."""
        return salt_of(self.store_id, self.name, file_name)

    def numbers(self, prefix: str) -> list[int]:
        """Numbers of the files `<prefix><number>`, ascending; empty if there is no folder yet."""
        try:
            names = self.disk.names(self.path)
        except FileNotFoundError:
            return []
        return numbers_in(names, prefix)

    def numbered(self, prefix: str, number: int) -> Path:
        """Path of the file `<prefix><number>`."""
        return self.path / f"{prefix}{number:06d}"


def numbers_in(names: list[str], prefix: str) -> list[int]:
    """Numbers of those `names` that are `<prefix><number>`, ascending."""
    start = len(prefix)
    return sorted(int(name[start:]) for name in names if name.startswith(prefix) and name[start:].isdecimal())


def open_name(first_commit: int, epoch: int) -> str:
    """Name of the file of frames that epoch `epoch` begins with `first_commit`: never used twice in a partition."""
    return f"{first_commit:012d}-e{epoch:06d}.open"


def token() -> str:
    """What tells this process's temporary files from another's."""
    return f"{os.uname().nodename}-{os.getpid()}"
