"""Locate a partition: its folder, its name, and its disk.

Used by all of `store` that reads or writes files of a partition. Names of files are on disk, and are part of the salt
of frames: their form never changes.
"""

import os
import re
from pathlib import Path
from typing import NamedTuple

from everlog.store.base.disk import Disk
from everlog.store.partition.frame import salt_of

MANIFEST = "manifest-"
EPOCH = "epoch-"


class Partition(NamedTuple):
    """Folder of one partition. Knows the names of files, not their contents."""

    disk: Disk
    path: Path
    name: str
    store_id: str

    def salt(self, file_name: str) -> int:
        """Return the salt of the frames in the file `file_name` of this partition."""
        return salt_of(self.store_id, self.name, file_name)

    def numbers(self, prefix: str) -> list[int]:
        """Return the numbers of the files `<prefix><number>`, ascending; empty if the folder does not exist yet."""
        return numbers_in(self.names(), prefix)

    def names(self) -> list[str]:
        """Return the names in the folder; none if it does not exist yet."""
        try:
            return self.disk.names(self.path)
        except FileNotFoundError:
            return []

    def numbered(self, prefix: str, number: int) -> Path:
        """Return the path of the file `<prefix><number>`."""
        return self.path / f"{prefix}{number:06d}"


def numbers_in(names: list[str], prefix: str) -> list[int]:
    """Return the numbers of those `names` that are `<prefix><number>`, ascending."""
    start = len(prefix)
    return sorted(int(name[start:]) for name in names if name.startswith(prefix) and name[start:].isdecimal())


def open_name(first_commit: int, epoch: int) -> str:
    """Return the name of the file of frames that `epoch` begins with `first_commit`: never used twice in a
    partition.
    """
    return f"{first_commit:012d}-e{epoch:06d}.open"


def sealed_name(first_commit: int, last_commit: int, epoch: int, number: int, ending: str) -> str:
    """Return the name of the file of these commits that `epoch` makes for its manifest `number`: never used twice."""
    return f"{first_commit:012d}-{last_commit:012d}-e{epoch:06d}-{number:06d}.{ending}"


class RecordFileName(NamedTuple):
    """Facts encoded in the name of a file of records."""

    first_commit: int
    epoch: int


_OURS = re.compile(r"(\d{12,})(?:-\d{12,})?-e(\d{6,})(?:-\d{6,})?\.(?:open|parquet|state|checkpoints)").fullmatch


def parse_file_name(name: str) -> RecordFileName | None:
    """Parse the name of a file of records or states; None if `name` is not such a file."""
    match = _OURS(name)
    return RecordFileName(int(match[1]), int(match[2])) if match else None


def token() -> str:
    """Return a text that keeps this process's temporary files apart from those of other processes."""
    return f"{os.uname().nodename}-{os.getpid()}"
