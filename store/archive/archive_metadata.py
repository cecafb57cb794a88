"""Store the archive's metadata in one SQLite file: the serving table, positions, and cached vectors.

    serving     the table that serves: its generation, whose vectors it holds, and its version after our last write
    position    of each partition, the last commit whose rows are in the table
    ahead       the last seq of agents that were read from all of their partitions at once
    vector      vectors by model and content, so that a text is embedded only once
    passage     vectors of the passages of messages by model, stream and seq (message_vectors.py)

Rows are written first and the position after. `writing` is set while rows are written. If the writer died, the table
may be one version ahead of this file, and the same records are followed again.

Used by `archive_writer`, `row_caches`, `embedding_cache` and `message_vectors`.
"""

import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from everlog.events import ArchiveError
from everlog.store.archive import file_checksums
from everlog.store.archive.archive_constants import PASSAGE_RULES
from everlog.store.archive.archive_table import Tables
from everlog.store.base.permissions import create_file

NOTES = "archive.sqlite"
"""Name of the file."""
SCHEMA_VERSION = 1
"""Version of the file's tables."""
VECTORS_AT_ONCE = 500
"""Number of keys that are looked up together."""

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
CREATE TABLE IF NOT EXISTS passage (
    model TEXT NOT NULL, agent_id TEXT NOT NULL, seq INTEGER NOT NULL, rules INTEGER NOT NULL, numbers BLOB NOT NULL,
    PRIMARY KEY (model, agent_id, seq));  -- with a rowid: else rows above a quarter of a page take another page
DROP TABLE IF EXISTS message;
"""


class ServingTable(msgspec.Struct, frozen=True):
    """The table that answers searches."""

    generation: int
    embedder: str
    dimension: int
    chunker: int
    version: int
    """Version of the LanceDB table after our last write."""
    writing: int = 0
    """1 while rows are written, else 0."""
    written: int = 0
    """Number of rows written since the table was last compacted."""
    writes: int = 0
    """Number of writes since the table was last compacted."""


class FollowPosition(msgspec.Struct, frozen=True):
    """Position up to which a partition was followed."""

    commit: int
    mark: str
    """Event id of the last record of that commit, which tells it apart from another commit of that number."""


class ArchiveMetadata:
    """Metadata in a SQLite file. The caller makes sure that only one thread at a time uses it."""

    def __init__(self, path: Path, *, durable: bool = True) -> None:
        """Open the file, and create it if there is none. `durable`: changes survive a power loss when `change` returns;
        else the last ones may be lost then, which suits vectors that can be made again. Raises ArchiveError, OSError.
        """
        self._path = path
        try:
            # Before SQLite does: it gives its journals the mode of the database. A file that is there is not opened:
            # to close it would drop the locks of this process's other connections, whose journal another process then
            # removes while they write to it (sqlite.org/howtocorrupt.html, 2.2).
            with suppress(FileExistsError):
                os.close(create_file(path, os.O_RDWR | os.O_EXCL))
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=60)
            self._db.execute("PRAGMA journal_mode=WAL")
            # FULL: a position must be durable when `change` returns. secure_delete: erased vectors must not stay in
            # free pages.
            self._db.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            self._db.execute("PRAGMA secure_delete=ON")
            self._db.executescript(_TABLES + file_checksums.TABLE)
            found = self._db.execute("PRAGMA user_version").fetchone()[0]
            if not found:
                self._db.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        except sqlite3.DatabaseError as error:
            raise self._unusable(error) from error
        if found not in {0, SCHEMA_VERSION}:
            raise ArchiveError(f"{path} has format {found}, this everlog knows {SCHEMA_VERSION}. Use a newer everlog.")

    def _unusable(self, error: sqlite3.Error) -> ArchiveError:
        return ArchiveError(
            f"{self._path} cannot be used: {error}. No memory is lost: the archive is made from the log. Make room if "
            f"the disk is full; otherwise remove the folder {self._path.parent}, and it is created again."
        )

    @contextmanager
    def change(self) -> Iterator[None]:
        """Run the changes inside as one transaction: all of them become durable, or none."""
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
        """Return the table that answers searches; None if there is none yet."""
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
        """Replace the serving table, and list its files unless rows are being written."""
        self._db.execute(
            "INSERT OR REPLACE INTO serving VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)", msgspec.structs.astuple(serving)
        )
        if not serving.writing:
            file_checksums.list_files(self._db, Tables(self._path.parent).path(serving.generation))

    def damaged_files(self, table: Path) -> list[str]:
        """Return the files of a LanceDB table that are not as they were written, and faults of this file itself."""
        broken = [text for (text,) in self._read("PRAGMA integrity_check") if text != "ok"]
        return [*(f"{self._path}: {text}" for text in broken), *self._damaged(table)]

    def check_files(self, table: Path) -> None:
        """Raise ArchiveError if a file of a LanceDB table is not as it was written."""
        for path in self._damaged(table):
            raise file_checksums.damage_error(path)

    def _damaged(self, table: Path) -> Iterator[str]:
        try:
            yield from file_checksums.damaged_files(self._db, table)
        except (OSError, sqlite3.Error) as error:
            raise ArchiveError(f"{table} cannot be read: {error}. No memory is lost: the log has all.") from error

    def positions(self) -> dict[str, FollowPosition]:
        """Return the position of each partition."""
        rows = self._read('SELECT partition, "commit", mark FROM position')
        return {partition: FollowPosition(commit, mark) for partition, commit, mark in rows}

    def position(self, partition: str) -> FollowPosition:
        """Return the position of one partition; commit 0 if it was never followed."""
        rows = self._read('SELECT "commit", mark FROM position WHERE partition = ?', [partition])
        return FollowPosition(*rows[0]) if rows else FollowPosition(0, "")

    def reach(self, positions: Mapping[str, FollowPosition]) -> None:
        """Set the positions of partitions."""
        rows = [(name, position.commit, position.mark) for name, position in positions.items()]
        self._db.executemany("INSERT OR REPLACE INTO position VALUES (?, ?, ?)", rows)

    def ahead(self) -> dict[str, int]:
        """Return the last seq of each agent that was read from all of its partitions at once."""
        return dict(self._read("SELECT agent_id, seq FROM ahead"))

    def set_ahead(self, seqs: Mapping[str, int]) -> None:
        """Set the last seq of agents that were read from all of their partitions at once."""
        self._db.executemany("INSERT OR REPLACE INTO ahead VALUES (?, ?)", list(seqs.items()))

    def clear_positions(self) -> None:
        """Delete all positions and checksums, because the table is replaced, perhaps by one of the same name."""
        self._db.execute('DELETE FROM "file"')
        self._db.execute("DELETE FROM position")
        self._db.execute("DELETE FROM ahead")

    def vectors(self, model: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the cached vectors of these contents, by content."""
        found: dict[bytes, bytes] = {}
        ordered = sorted(keys)  # in the order of the file
        for start in range(0, len(ordered), VECTORS_AT_ONCE):
            some = ordered[start : start + VECTORS_AT_ONCE]
            marks = ",".join("?" * len(some))
            sql = f"SELECT content, numbers FROM vector WHERE model = ? AND content IN ({marks})"
            found.update(self._read(sql, [model, *some]))
        return found

    def keep_vectors(self, model: str, vectors: Mapping[bytes, bytes]) -> None:
        """Cache vectors by content."""
        rows = [(model, content, numbers) for content, numbers in vectors.items()]
        self._db.executemany("INSERT OR REPLACE INTO vector VALUES (?, ?, ?)", rows)

    def drop_vectors(self, keys: Iterable[bytes]) -> None:
        """Delete the vectors of these contents, of all models; their bytes are overwritten."""
        self._db.executemany("DELETE FROM vector WHERE content = ?", [(key,) for key in keys])

    def keep_only(self, keys: Collection[bytes]) -> None:
        """Delete the vectors of all contents except these, of all models; their bytes are overwritten."""
        known = [content for (content,) in self._read("SELECT DISTINCT content FROM vector")]
        self.drop_vectors(content for content in known if content not in keys)

    def vector_count(self) -> int:
        """Return the number of cached vectors."""
        return self._read("SELECT count(*) FROM vector")[0][0]

    def message_vectors(self, model: str, agent_id: str) -> dict[int, bytes]:
        """Return the vectors of the messages of a stream, by seq, ascending: those of a message one after the other."""
        sql = "SELECT seq, numbers FROM passage WHERE model = ? AND agent_id = ? AND rules = ? ORDER BY seq"
        return dict(self._read(sql, [model, agent_id, PASSAGE_RULES]))

    def keep_messages(self, model: str, agent_id: str, vectors: Iterable[tuple[int, bytes]]) -> None:
        """Keep vectors of messages of a stream, each with its seq."""
        rows = [(model, agent_id, seq, PASSAGE_RULES, numbers) for seq, numbers in vectors]
        self._db.executemany("INSERT OR REPLACE INTO passage VALUES (?, ?, ?, ?, ?)", rows)

    def drop_messages(self, agents: Iterable[str]) -> None:
        """Delete the vectors of all messages of these streams, of all models; their bytes are overwritten."""
        self._db.executemany("DELETE FROM passage WHERE agent_id = ?", [(agent_id,) for agent_id in agents])

    def message_count(self) -> int:
        """Return the number of messages with a vector, of all models."""
        return self._read("SELECT count(*) FROM passage")[0][0]

    def flush(self) -> None:
        """Empty the journal, which may still hold deleted data."""
        try:
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._db.close()
