"""Lend engines of projections the databases that earlier engines have returned.

Starting a DuckDB takes 20 ms of CPU, half of a short test, and a suite starts thousands. So a database is reused, by
one engine at a time. An engine's tables are in an attached database, which is detached when the engine is closed; its
prepared statements, temporary tables and registered names belong to a connection, which is closed too. The deep suite
and the processes that tests start use new databases.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import duckdb

from everlog.projections import engine

IDLE_MAX = 8
"""Maximum number of idle databases of one configuration."""


class Lent:
    """A connection of an engine; closing it makes its database free for the next engine."""

    def __init__(self, database: duckdb.DuckDBPyConnection, idle: list[duckdb.DuckDBPyConnection]) -> None:
        self._database, self._idle = database, idle
        self._connection = database.cursor()
        self._connection.execute("ATTACH ':memory:' AS lent")
        self._connection.execute("USE lent")
        self._open = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def close(self) -> None:
        """Drop everything that the engine made. Idempotent."""
        if self._open:
            self._open = False
            self._connection.close()
            self._database.execute("DETACH lent")
            self._database.execute("RESET disabled_optimizers")
            if len(self._idle) < IDLE_MAX:
                self._idle.append(self._database)


@contextmanager
def lent() -> Iterator[None]:
    """Let all engines of this process borrow their databases while the block runs."""
    idle: dict[str, list[duckdb.DuckDBPyConnection]] = defaultdict(list)

    def connect(path: str, config: dict[str, Any]) -> Any:
        free = idle[repr(config)]
        return Lent(free.pop() if free else duckdb.connect(path, config=config), free)

    real = engine.duckdb
    engine.duckdb = SimpleNamespace(**{**vars(real), "connect": connect})
    try:
        yield
    finally:
        engine.duckdb = real
        for databases in idle.values():
            for database in databases:
                database.close()
