"""Parse each statement of a DuckDB once, for plain values: parsing takes as long as running a small statement.

Used by `row_updates` and the engine.
"""

from collections.abc import Sequence

import duckdb

_PLAIN = {"TIMESTAMP WITH TIME ZONE": 'epoch_us("{0}") AS "{0}"', "UUID": '"{0}"::VARCHAR AS "{0}"'}
"""Conversion of columns of these types into plain Python values."""


def plain_text(db: duckdb.DuckDBPyConnection, query: str, parameters: Sequence[object]) -> str:
    """Return the query with times as integers (microseconds UTC) and ids as text: Python needs no library."""
    columns = db.execute(f"DESCRIBE {query}", list(parameters)).fetchall()
    replaced = ", ".join(_PLAIN[kind].format(name) for name, kind, *_ in columns if kind in _PLAIN)
    return f"SELECT * REPLACE ({replaced}) FROM ({query})" if replaced else query


def run_optimizers(db: duckdb.DuckDBPyConnection, keep: frozenset[str] | None) -> None:
    """Run only the optimizers in `keep`; None: all. Planning is half the cost of a query over few rows."""
    names = {name for (name,) in db.execute("SELECT name FROM duckdb_optimizers()").fetchall()} if keep else set()
    db.execute(f"SET disabled_optimizers = '{','.join(sorted(names - (keep or set())))}'")


class ParsedStatements:
    """Statements of one connection. DuckDB still plans one each time that it reads a table."""

    def __init__(self, db: duckdb.DuckDBPyConnection) -> None:
        self._db = db
        self._parsed: dict[str, duckdb.Statement] = {}

    def parsed(self, text: str) -> duckdb.Statement:
        """Return the statement of a text."""
        if text not in self._parsed:
            self._parsed[text] = self._db.extract_statements(text)[0]
        return self._parsed[text]

    def plain(self, query: str, examples: Sequence[object]) -> duckdb.Statement:
        """Return the statement of a query whose values are plain; `examples`: parameters of the right types."""
        if query not in self._parsed:
            self._parsed[query] = self._db.extract_statements(plain_text(self._db, query, examples))[0]
        return self._parsed[query]

    def run(self, text: str, parameters: Sequence[object] = ()) -> duckdb.DuckDBPyConnection:
        """Run the statement of a text, and return the connection with its result."""
        return self._db.execute(self.parsed(text), list(parameters))

    def clear(self) -> None:
        """Drop everything, before the connection is closed: DuckDB prints a complaint if statements outlive it."""
        self._parsed.clear()
