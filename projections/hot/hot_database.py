"""One DuckDB in memory with the table `records` and the statements that every engine prepares.

Used by `engine`. Making one takes 20 ms of CPU: most of an engine that answers one question.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, cast

import duckdb
import pyarrow as pa

from everlog.projections.hot.batch_relation import BatchRelation
from everlog.projections.hot.parsed_statements import ParsedStatements, run_optimizers
from everlog.projections.hot.record_insert import RecordInsert
from everlog.projections.hot.row_updates import RowUpdates


class StateRows:
    """Rows of states, which leave the table and come back into it, in one DuckDB."""

    def __init__(self, statements: ParsedStatements, db: duckdb.DuckDBPyConnection) -> None:
        self._db, self._run = db, statements.run
        self._restoring: BatchRelation | None = None

    def insert(self, rows: pa.Table) -> None:
        """Insert rows that have the columns of the table, by a statement that is prepared for the columns of the
        first rows: states of one maker have the same.
        """
        if self._restoring is None or self._restoring.schema != rows.schema:
            self._restoring = BatchRelation(rows.schema)
            self._db.register("restoring", self._restoring)
            self._db.execute("PREPARE restore AS INSERT INTO records FROM restoring")
        self._restoring.batches = rows.to_batches()
        try:
            self._db.execute("EXECUTE restore")
        finally:
            self._restoring.batches = ()

    def found(self, query: str, parameters: Sequence[object]) -> pa.Table:
        """Return the rows of a query over the table, with its columns.

        The query is the largest of all, and asking DuckDB for its rows as Arrow plans it twice, for 20 ms each time: so
        its rows pass through a table, which is empty afterwards.
        """
        self._run(f"INSERT INTO leaving {query}", parameters)
        try:
            return self._db.sql("FROM leaving").to_arrow_table()
        finally:
            self._run("DELETE FROM leaving")


class HotDatabase:
    """A database with the tables of `records.sql`, which are empty, and what inserts, updates and parses. Not
    thread-safe.
    """

    def __init__(
        self,
        sql: Callable[[str], str],
        *,
        few: int,
        few_agents: int,
        optimizers: frozenset[str],
        threads: int,
        memory_mb: int,
    ) -> None:
        """Make the database. `sql` returns the text of a SQL file by its name; `few`: see `RecordInsert`; `few_agents`:
        see `RowUpdates`; `optimizers`: those that run.
        """
        self.db = duckdb.connect(
            ":memory:",
            config={
                "threads": threads,
                "memory_limit": f"{memory_mb}MB",
                "temp_directory": "",
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
            },
        )
        self._memory_mb = memory_mb
        self.db.execute("SET TimeZone = 'UTC'")
        self.db.execute(sql("records"))
        self.insert = RecordInsert(self.db, sql("add"), few)
        self.parsed = ParsedStatements(self.db)
        self.updates = RowUpdates(self.parsed, sql, few_agents)
        self.states = StateRows(self.parsed, self.db)
        run_optimizers(self.db, optimizers)
        self.for_people = False
        """True if the database has the macros, and runs all optimizers, that queries of people need."""

    def columns(self, statement: duckdb.Statement, parameters: Sequence[object], *, many: bool) -> dict[str, list[Any]]:
        """Return the columns of a query's rows. `many`: through Arrow, which is faster for many rows."""
        if many:
            return cast("dict[str, list[Any]]", self.db.sql(statement, params=parameters).to_arrow_table().to_pydict())
        names, rows = self._found(statement, parameters)
        return dict(zip(names, map(list, zip(*rows, strict=True)) if rows else ([] for _ in names), strict=True))

    def rows(self, statement: str | duckdb.Statement, parameters: Sequence[object]) -> list[dict[str, Any]]:
        """Return the rows of a query."""
        names, rows = self._found(statement, parameters)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def _found(
        self, statement: str | duckdb.Statement, parameters: Sequence[object]
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Run a query. Return the names of its columns, and its rows."""
        self.db.execute(statement, list(parameters))
        return [column[0] for column in self.db.description or ()], self.db.fetchall()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block in a transaction. If it raises duckdb.Error, nothing has changed."""
        self.db.execute("BEGIN")
        try:
            yield
            self.db.execute("COMMIT")
        except duckdb.Error:
            self.db.execute("ROLLBACK")
            raise

    def open_to_people(self, macros: Iterable[str]) -> None:
        """Run these statements, which create macros, and from now on plan as queries that are not ours need it."""
        run_optimizers(self.db, None)
        for macro in macros:
            self.db.execute(macro)
        self.insert.prepare()
        self.for_people = True

    def compact(self) -> None:
        """Compress rows that were added, and free what was dropped."""
        self.db.execute("CHECKPOINT")
        # DuckDB keeps some hundred bytes for each block that a query has freed, up to 30 MiB, until it looks for blocks
        # to evict. A limit that cannot be met makes it look, and is then refused.
        with suppress(duckdb.OutOfMemoryException):
            self.db.execute("SET memory_limit = '1KB'")
        self.db.execute(f"SET memory_limit = '{self._memory_mb}MB'")

    def close(self) -> None:
        """Free the memory. Idempotent."""
        self.insert.close()
        self.parsed.clear()
        self.db.close()
