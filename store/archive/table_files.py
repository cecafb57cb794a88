"""Count the versions and files of a table, and the bytes of the archive, without LanceDB.

Used by `archive` for its status, and to see whether a table at rest is worth a compaction. The names of the folders are
those of LanceDB: a count that is 0 for a table with rows means that they have changed.
"""

import os
from pathlib import Path
from typing import NamedTuple

VERSIONS = "_versions"
"""Folder of a table with one file for each version."""
SUFFIX = ".manifest"


class TableFiles(NamedTuple):
    """Number of versions of a table, and of all of its files."""

    versions: int
    files: int


def table_files(path: Path) -> TableFiles:
    """Count the versions and files of the table in a folder; none if there is no folder."""
    if not path.name or not path.is_dir():
        return TableFiles(0, 0)
    found = list(os.walk(path))
    versions = [name for folder, _, names in found if folder.endswith(VERSIONS) for name in names]
    return TableFiles(sum(name.endswith(SUFFIX) for name in versions), sum(len(names) for _, _, names in found))


def folder_bytes(path: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(_size(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names)


def _size(path: str) -> int:
    """Return the bytes of a file; 0 for a file that another process has removed."""
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
