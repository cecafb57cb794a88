"""Read rows from other programs' data: one SELECT over Parquet, CSV, JSON, or a DuckDB database.

Used by `interfaces/documents/query_rows.py`, for `everlog load`. The connection must not be able to write or install
anything.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb

from everlog.events import BadInput
from everlog.projections.projection_constants import MEMORY_MB, THREADS

ROWS = 256
"""Number of rows that are fetched at a time."""


def select(query: str, databases: Mapping[str, Path]) -> Iterator[list[tuple[str, Any]]]:
    """Return the rows of a SELECT in batches, each row as pairs of column and value, in the order of the query.

    `databases` can be read under their names, and are not changed. The query may read any file that this process may
    read; it cannot write one, install anything, or use more than MEMORY_MB. Raise BadInput; for a row that cannot be
    read, while the rows are fetched.
    """
    connection = duckdb.connect(
        ":memory:",
        config={
            "threads": THREADS,
            "memory_limit": f"{MEMORY_MB}MB",
            "temp_directory": "",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
        },
    )
    connection.execute("SET TimeZone = 'UTC'")
    for name, path in databases.items():
        _attach(connection, name, path)
    try:
        statements = connection.extract_statements(query)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            kinds = " and ".join(statement.type.name for statement in statements) or "empty"
            raise BadInput(f"The query has to be one SELECT; this is {kinds}. Nothing was loaded.")
        connection.execute(statements[0])
    except duckdb.Error as error:
        raise _bad(error) from error
    return _fetched(connection)


def _fetched(connection: duckdb.DuckDBPyConnection) -> Iterator[list[tuple[str, Any]]]:
    columns = [column[0] for column in connection.description or ()]
    try:
        while rows := connection.fetchmany(ROWS):
            for row in rows:
                yield list(zip(columns, row, strict=True))
    except duckdb.Error as error:
        raise _bad(error) from error
    finally:
        connection.close()


def _attach(connection: duckdb.DuckDBPyConnection, name: str, path: Path) -> None:
    quoted, called = str(path).replace("'", "''"), name.replace('"', '""')
    try:
        connection.execute(f"ATTACH '{quoted}' AS \"{called}\" (READ_ONLY, TYPE DUCKDB)")
    except duckdb.Error as error:
        raise BadInput(f"{path} cannot be opened as a database of DuckDB: {_first(error)}") from error


def _bad(error: duckdb.Error) -> BadInput:
    return BadInput(f"The query failed: {_first(error)}")


def _first(error: duckdb.Error) -> str:
    """Return DuckDB's message without the excerpt that marks the position."""
    return " ".join(str(error).split("\n\n", 1)[0].split())
