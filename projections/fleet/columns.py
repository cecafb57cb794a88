"""Pass columns to DuckDB and back: those of Arrow and of sealed files. Columns that other tools have no type for are
returned as DuckDB's own texts.

Used by `fleet_views`.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

import duckdb
import pyarrow as pa
from duckdb.sqltypes import DuckDBPyType

from everlog.events import BadInput
from everlog.store import FIGURES, SCHEMA

_ODD = frozenset({"bignum", "bit", "geometry", "interval", "time with time zone", "union", "variant"})
_HOLDS = frozenset({"array", "list", "map", "struct", "tuple"})
"""Types whose children are types, or sizes."""
_COLUMNS = """SELECT table_name, column_name, data_type FROM duckdb_columns()
WHERE table_name IN ({views}) ORDER BY table_name, column_index"""
_known: dict[str, list[tuple[str, str]]] = {}
"""Columns of each view. They depend on no record and on no option of an engine, so that one engine of a process makes
all views to find them out, which takes 150 ms.
"""


class ArrowRows:
    """Arrow table as a relation that can be read any number of times."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._table.schema.__arrow_c_schema__()


def is_odd(kind: DuckDBPyType) -> bool:
    """Return True if a value, or a part of it, has no form in Arrow, Parquet or JSON."""
    if kind.id in _ODD:
        return True
    if kind.id not in _HOLDS:
        return False
    return any(isinstance(child, DuckDBPyType) and is_odd(child) for _, child in kind.children)


def as_texts(query: str, names: Sequence[str], odd: Sequence[bool]) -> str:
    """Return `query` with its odd columns as texts, under the same names."""
    columns = ", ".join(
        f'c{number}{"::VARCHAR" * text} AS "{name.replace(chr(34), chr(34) * 2)}"'
        for number, (name, text) in enumerate(zip(names, odd, strict=True))
    )
    inner = ", ".join(f"c{number}" for number in range(len(names)))
    quoted = query.replace("'", "''")
    return f"SELECT {columns} FROM query('{quoted}') AS t({inner})"


def plain(field: pa.Field) -> pa.Field:
    """Return a field with whole numbers as 64 bits, which every tool reads: DuckDB's sums have 128 bits."""
    return field.with_type(pa.int64()) if field.type == pa.decimal128(38, 0) else field


def cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows with the types of a schema. Raises BadInput for a whole number that has too many bits."""
    try:
        return batch.cast(schema)
    except pa.ArrowInvalid as error:
        raise BadInput(
            f"The query failed: a whole number has more than 64 bits ({error}). Cast it to DOUBLE."
        ) from error


def columns_of(
    db: duckdb.DuckDBPyConnection, views: Sequence[str], make: Callable[[], None]
) -> dict[str, list[tuple[str, str]]]:
    """Return the columns of each of these views, name and type, in their order. `make` makes all of them in `db`."""
    if not _known.keys() >= {*views}:
        make()
        found: dict[str, list[tuple[str, str]]] = {name: [] for name in views}
        for view, column, kind in db.execute(_COLUMNS.format(views=quoted(views))).fetchall():
            found[view].append((column, kind))
        _known.update(found)
    return {name: [*_known[name]] for name in views}


def stopper(db: duckdb.DuckDBPyConnection) -> Callable[[], None]:
    """Return a function that stops what an engine runs in another thread; it does nothing to one that is closed."""

    def stop() -> None:
        with suppress(duckdb.Error):
            db.interrupt()

    return stop


def quoted(paths: Sequence[str]) -> str:
    """Return paths as a list of SQL texts, without the brackets."""
    return ", ".join(f"'{path}'" for path in paths)


def records_in(paths: Sequence[str], figures: Sequence[str] = ()) -> str:
    """Return the query over the records in sealed files, after a UNION ALL; empty without files. `figures`: expressions
    for the columns after those of the log.
    """
    columns = [*(f'"{name}"' for name in SCHEMA.names), *figures]
    return f" UNION ALL SELECT {', '.join(columns)} FROM read_parquet([{quoted(paths)}])" if paths else ""


def figures_in(paths: Sequence[str], older: Collection[str], owed: str) -> str:
    """Return the query over the records in sealed files, with the columns of `FIGURES`. `older`: those of `paths` that
    lack the last of them, for which `owed` is an expression over the others.
    """
    before = set(older)
    newer = records_in([path for path in paths if path not in before], FIGURES.names)
    return newer + records_in([path for path in paths if path in before], [*FIGURES.names[:-1], f"{owed} AS f_owed"])
