"""Lend engines of projections the databases that earlier engines have returned.

Making a database takes 20 ms of CPU, half of a short test, and a suite makes thousands. So a database is reused, by one
engine at a time, with the statements that it has parsed. When an engine is closed the rows of its tables are deleted; a
database in which that fails, or to which queries of people came, is not reused. The deep suite and the processes that
tests start use new databases.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import pytest

from everlog.projections import engine
from everlog.projections.hot.hot_database import HotDatabase

IDLE_MAX = 8
"""Maximum number of idle databases of one configuration."""
TABLES = ("records", "leaving")
"""Tables of a database, none of which has rows while it is idle."""


class LentDatabase:
    """A database of an engine; closing it makes it free for the next engine."""

    def __init__(self, real: HotDatabase, idle: list[HotDatabase]) -> None:
        self._real, self._idle = real, idle
        self._open = True

    def __getattr__(self, name: str) -> Any:
        if not self._open:
            raise duckdb.ConnectionException("Connection already closed: the database may be lent to another engine")
        return getattr(self._real, name)

    def close(self) -> None:
        """Drop everything that the engine added. Idempotent."""
        if self._open:
            self._open = False
            if len(self._idle) < IDLE_MAX and emptied(self._real):
                self._idle.append(self._real)
            else:
                self._real.close()


def emptied(database: HotDatabase) -> bool:
    """Delete the rows of an engine. Return False if its database cannot be lent again."""
    if database.for_people:
        return False
    try:
        database.db.execute("BEGIN")  # refused in a transaction that was left open, and after a fatal error
        for table in TABLES:
            database.parsed.run(f"DELETE FROM {table}")
        database.db.execute("COMMIT")
        database.db.execute("CHECKPOINT")
    except duckdb.Error:
        return False
    return True


@contextmanager
def own() -> Iterator[None]:
    """Let engines make databases of their own while the block runs, for tests of their memory and of their end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "HotDatabase", HotDatabase)
        yield


@contextmanager
def lent() -> Iterator[None]:
    """Let all engines of this process borrow their databases while the block runs."""
    every: dict[tuple[tuple[str, object], ...], list[HotDatabase]] = defaultdict(list)

    def lend(sql: Callable[[str], str], **limits: object) -> LentDatabase:
        idle = every[tuple(sorted(limits.items()))]
        try:
            real = idle.pop()
        except IndexError:
            real = HotDatabase(sql, **limits)  # type: ignore[arg-type]
        return LentDatabase(real, idle)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "HotDatabase", lend)
        try:
            yield
        finally:
            for idle in every.values():
                for database in idle:
                    database.close()
