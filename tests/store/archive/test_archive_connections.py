"""The metadata of the archive stays whole, whatever connections and processes come and go."""

import subprocess
import sys
from pathlib import Path

import msgspec

from everlog.store.archive.archive_metadata import NOTES, ArchiveMetadata, ServingTable


def read_elsewhere(path: Path) -> int:
    """Open the file in another process, close it again, and return the version of the serving table."""
    code = (
        "import sqlite3, sys\n"
        "db = sqlite3.connect(sys.argv[1])\n"
        "print(db.execute('SELECT version FROM serving').fetchone()[0])\n"
        "db.close()\n"
    )
    run = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    return int(run.stdout)


def test_a_second_connection_leaves_the_first_its_locks(tmp_path: Path) -> None:
    """Another connection of the same process comes and ends. A process that then closes the file as if it were the last
    one must not take the journal of the first connection away: what is committed after that would be lost.
    """
    path = tmp_path / NOTES
    first = ArchiveMetadata(path)
    serving = ServingTable(generation=1, embedder="hashed", dimension=16, chunker=1, version=1)
    with first.change():
        first.serve(serving)
    ArchiveMetadata(path).close()
    assert read_elsewhere(path) == 1
    with first.change():
        first.serve(msgspec.structs.replace(serving, version=2))
    assert read_elsewhere(path) == 2
    first.close()
    assert read_elsewhere(path) == 2
