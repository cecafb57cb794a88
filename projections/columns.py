"""Convert columns of an answer that other tools have no type for: they are returned as DuckDB's own texts.

Used by `fleet_views`.
"""

from collections.abc import Sequence

from duckdb.sqltypes import DuckDBPyType

_ODD = frozenset({"bignum", "bit", "geometry", "interval", "time with time zone", "union", "variant"})
_HOLDS = frozenset({"array", "list", "map", "struct", "tuple"})
"""Types whose children are types, or sizes."""


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
