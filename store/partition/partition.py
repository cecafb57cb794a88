"""Where a partition is: its folder, its name, and the disk under it."""

import os
import re
from pathlib import Path
from typing import NamedTuple

from everlog.store.base.disk import Disk
from everlog.store.partition.frame import salt_of

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


def sealed_name(first_commit: int, last_commit: int, epoch: int, number: int, ending: str) -> str:
    """Name of the file of these commits that epoch `epoch` makes for its manifest `number`: never used twice."""
    return f"{first_commit:012d}-{last_commit:012d}-e{epoch:06d}-{number:06d}.{ending}"


class RecordFileName(NamedTuple):
    """What the name of a file of records says."""

    first_commit: int
    epoch: int


_OURS = re.compile(r"(\d{12,})(?:-\d{12,})?-e(\d{6,})(?:-\d{6,})?\.(?:open|parquet|state|checkpoints)").fullmatch


def parse_file_name(name: str) -> RecordFileName | None:
    """What `name` says of the file; None if it is not a file of records or states."""
    match = _OURS(name)
    return RecordFileName(int(match[1]), int(match[2])) if match else None


def token() -> str:
    """What tells this process's temporary files from another's."""
    return f"{os.uname().nodename}-{os.getpid()}"
