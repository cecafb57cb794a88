"""What the archive keeps beside its table, in one SQLite file: which table serves, how far it came, and vectors.

    table       the one that serves: its generation, whose vectors it holds, and its version after our last write
    position    of each partition, the last commit whose rows are in the table
    ahead       of agents that were taken in from all their partitions at once: up to which seq
    vector      by model and content: what was embedded once

Rows come first and the position after. `writing` stands while rows are written: if the writer died, the table may be
one version further than is written here, and the same records come again.
"""

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from everlog.events import ArchiveError

NOTES = "archive.sqlite"
"""Its name."""
SCHEMA_VERSION = 1
"""Of this file."""
VECTORS_AT_ONCE = 500
"""Keys that are looked up together."""

_TABLES = """
CREATE TABLE IF NOT EXISTS serving (
    one INTEGER PRIMARY KEY CHECK (one = 1), generation INTEGER NOT NULL, embedder TEXT NOT NULL,
    dimension INTEGER NOT NULL, chunker INTEGER NOT NULL, version INTEGER NOT NULL, writing INTEGER NOT NULL,
    written INTEGER NOT NULL, writes INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS position (
    partition TEXT PRIMARY KEY, "commit" INTEGER NOT NULL, mark TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ahead (agent_id TEXT PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS vector (
    model TEXT NOT NULL, content BLOB NOT NULL, numbers BLOB NOT NULL, PRIMARY KEY (model, content)) WITHOUT ROWID;
"""


class ServingTable(msgspec.Struct, frozen=True):
    """The table that answers."""

    generation: int
    embedder: str
    dimension: int
    chunker: int
    version: int
    """The table's own version after our last write."""
    writing: int = 0
    """1 while rows are written; 2 while they are and what was erased has to go from old versions too."""
    written: int = 0
    """Rows written since the table was last compacted."""
    writes: int = 0
    """Writes since then."""


class FollowPosition(msgspec.Struct, frozen=True):
    """How far a partition was taken in."""

    commit: int
    mark: str
    """Event id of the last record of that commit: what tells it from another commit of that number."""


class ArchiveMetadata:
    """The SQLite file. The caller sees to it that one thread at a time is inside."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=60)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.execute("PRAGMA secure_delete=ON")
            self._db.executescript(_TABLES)
            found = self._db.execute("PRAGMA user_version").fetchone()[0]
            if not found:
                self._db.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        except sqlite3.DatabaseError as error:
            raise self._unusable(error) from error
        if found not in {0, SCHEMA_VERSION}:
            raise ArchiveError(f"{path} has format {found}, but this everlog knows {SCHEMA_VERSION}. Use a newer one.")

    def _unusable(self, error: sqlite3.Error) -> ArchiveError:
        return ArchiveError(
            f"{self._path} cannot be used: {error}. Nothing is lost: it is made from the log. Make room if the disk is "
            f"full; else remove the folder {self._path.parent}, and it is made anew."
        )

    @contextmanager
    def change(self) -> Iterator[None]:
        """What is changed inside is changed together, durably, or not at all."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            done = False
            try:
                yield
                self._db.execute("COMMIT")
                done = True
            finally:
                if not done:
                    self._db.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def serving(self) -> ServingTable | None:
        """The table that answers; None before there is one."""
        rows = self._read(
            "SELECT generation, embedder, dimension, chunker, version, writing, written, writes FROM serving"
        )
        return ServingTable(*rows[0]) if rows else None

    def _read(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        try:
            return self._db.execute(sql, parameters).fetchall()
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def serve(self, serving: ServingTable) -> None:
        """Replace what `serving` gives."""
        self._db.execute(
            "INSERT OR REPLACE INTO serving VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)", msgspec.structs.astuple(serving)
        )

    def positions(self) -> dict[str, FollowPosition]:
        """How far each partition was taken in."""
        rows = self._read('SELECT partition, "commit", mark FROM position')
        return {partition: FollowPosition(commit, mark) for partition, commit, mark in rows}

    def position(self, partition: str) -> FollowPosition:
        """How far one partition was taken in."""
        rows = self._read('SELECT "commit", mark FROM position WHERE partition = ?', [partition])
        return FollowPosition(*rows[0]) if rows else FollowPosition(0, "")

    def reach(self, positions: Mapping[str, FollowPosition]) -> None:
        """Partitions were taken in up to there."""
        rows = [(name, position.commit, position.mark) for name, position in positions.items()]
        self._db.executemany("INSERT OR REPLACE INTO position VALUES (?, ?, ?)", rows)

    def ahead(self) -> dict[str, int]:
        """Up to which seq agents were taken in from all partitions at once."""
        return dict(self._read("SELECT agent_id, seq FROM ahead"))

    def go_ahead(self, seqs: Mapping[str, int]) -> None:
        """Agents were taken in from all partitions at once."""
        self._db.executemany("INSERT OR REPLACE INTO ahead VALUES (?, ?)", list(seqs.items()))

    def begin_again(self) -> None:
        """Forget all positions: of a table that is replaced."""
        self._db.execute("DELETE FROM position")
        self._db.execute("DELETE FROM ahead")

    def vectors(self, model: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The vectors of these contents that are known, by content."""
        found: dict[bytes, bytes] = {}
        ordered = sorted(keys)  # as they lie in the file
        for start in range(0, len(ordered), VECTORS_AT_ONCE):
            some = ordered[start : start + VECTORS_AT_ONCE]
            marks = ",".join("?" * len(some))
            sql = f"SELECT content, numbers FROM vector WHERE model = ? AND content IN ({marks})"
            found.update(self._read(sql, [model, *some]))
        return found

    def keep_vectors(self, model: str, vectors: Mapping[bytes, bytes]) -> None:
        """Keep vectors by content."""
        rows = [(model, content, numbers) for content, numbers in vectors.items()]
        self._db.executemany("INSERT OR REPLACE INTO vector VALUES (?, ?, ?)", rows)

    def drop_vectors(self, keys: Iterable[bytes]) -> None:
        """Forget the vectors of these contents, of all models; their bytes are overwritten."""
        self._db.executemany("DELETE FROM vector WHERE content = ?", [(key,) for key in keys])

    def keep_only(self, keys: Collection[bytes]) -> None:
        """Forget the vectors of all contents but these, of all models; their bytes are overwritten."""
        known = [content for (content,) in self._read("SELECT DISTINCT content FROM vector")]
        self.drop_vectors(content for content in known if content not in keys)

    def vector_count(self) -> int:
        """Vectors that are kept."""
        return self._read("SELECT count(*) FROM vector")[0][0]

    def flush(self) -> None:
        """Leave nothing of what was deleted in the journal."""
        try:
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def close(self) -> None:
        """Let go of the file. Idempotent."""
        self._db.close()
