"""Keep checksums of the files of the index, which LanceDB itself does not have.

Every file of a LanceDB table is written once, except the hint at its newest version. So after each write the new files
are listed in `archive.sqlite`, in the transaction that makes the write count, and a file that differs later is damaged.

Used by `archive_metadata` when a write counts, by `row_caches` when a process opens the table for searches, and by
`rebuild_table` for `archive check`. A file is listed only after our own write: a table that another program wrote into
is refused before.
"""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import google_crc32c

from everlog.events import ArchiveError

TABLE = 'CREATE TABLE IF NOT EXISTS "file" (name TEXT PRIMARY KEY, crc32c INTEGER NOT NULL) WITHOUT ROWID;'
"""Table of the checksums: path of the file relative to the archive's folder."""
REWRITTEN = "latest_version_hint.json"
"""Name of the one file that LanceDB writes again; a version is found without it."""


def list_files(db: sqlite3.Connection, table: Path) -> None:
    """List the files of a LanceDB table that are not listed yet, and drop those that are gone, of other tables too."""
    there = {str(path.relative_to(table.parent)): path for path in _files(table)}
    known = {name for (name,) in db.execute('SELECT name FROM "file"')}
    db.executemany('DELETE FROM "file" WHERE name = ?', [(name,) for name in known - there.keys()])
    new = []
    for name in there.keys() - known:
        try:
            new.append((name, google_crc32c.value(there[name].read_bytes())))
        except FileNotFoundError:  # another process has compacted meanwhile
            continue
    db.executemany('INSERT INTO "file" VALUES (?, ?)', new)


def damaged_files(db: sqlite3.Connection, table: Path) -> Iterator[str]:
    """Yield the paths of listed files of a LanceDB table that differ from their checksum. Files that are gone are
    LanceDB's to miss: it removes those of old versions. May raise OSError.
    """
    prefix = f"{table.name}/"
    for name, crc in db.execute('SELECT name, crc32c FROM "file" ORDER BY name').fetchall():
        if name.startswith(prefix):
            path = table.parent / name
            try:
                content = path.read_bytes()
            except FileNotFoundError:
                continue
            if google_crc32c.value(content) != crc:
                yield str(path)


def damage_error(path: str) -> ArchiveError:
    """Return the error for a damaged file of the index."""
    return ArchiveError(
        f"{path}, a file of the archive, is damaged: wrong checksum. No memory is lost: the archive is made from the "
        "log. Run `everlog archive rebuild`."
    )


def _files(table: Path) -> Iterator[Path]:
    return (path for path in table.rglob("*") if path.is_file() and path.name != REWRITTEN)
