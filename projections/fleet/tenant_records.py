"""Read the records of one tenant out of the files of a whole store, under the names that the tenant says.

The names of a tenant's agents begin with its prefix, and those of its sources and shared blocks with `source:` or
`block:` and the prefix. A query of a tenant runs in an engine that has these records and may open no file at all: what
the engine does not have, no query can tell.

Used by `fleet_views`.
"""

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import duckdb
import pyarrow as pa

from everlog.projections.fleet.columns import stopper
from everlog.store import SCHEMA

NAMES_IN_PAYLOADS = ("parent", "source", "origin", "author", "label", "to", "sender", "agent")
"""Fields of events that hold names of agents, sources and shared blocks."""
_PREFIX = re.compile(r"[a-z0-9][a-z0-9-]*~")
_KINDS = ("source:", "block:")
"""Beginnings of the names of streams that are no agents."""
_ROWS_AT_ONCE = 8_192


def owned(name: str, prefix: str) -> str | None:
    """Return the name that a tenant says for a stream; None for a stream that is not the tenant's."""
    for kind in ("", *_KINDS):
        if name.startswith(f"{kind}{prefix}"):
            return kind + name.removeprefix(f"{kind}{prefix}")
    return None


def names_of_tenant(names: Mapping[str, str], prefix: str) -> Mapping[str, str]:
    """Return the newest names of a tenant's agents, as the tenant says them, by the agents' own names."""
    found = {}
    for stream, newest in names.items():
        mine = owned(stream, prefix)
        if mine is not None:
            found[mine] = newest.removeprefix(prefix)
    return found


@contextmanager
def tenant_records(
    paths: Sequence[str],
    fresh: object,
    prefix: str,
    config: Mapping[str, str],
    opened: Callable[[Callable[[], None]], None] = lambda _: None,
) -> Iterator[pa.RecordBatchReader]:
    """Yield the records of the tenant of a prefix, with the columns of `SCHEMA`, in an engine of its own.

    `paths`: sealed files. `fresh`: records that are not sealed, as a relation that DuckDB can register. `config`: of
    DuckDB. `opened` gets the function that stops the reading. Raises DuckDB's errors.
    """
    assert _PREFIX.fullmatch(prefix), "the name of a tenant has no character that SQL or JSON would need to quote"
    with tempfile.TemporaryDirectory(prefix="everlog-sql-") as scratch:
        db = duckdb.connect(":memory:", config={**config, "temp_directory": scratch})
        try:
            opened(stopper(db))
            db.register("fresh", fresh)
            yield db.sql(_query(paths, prefix)).to_arrow_reader(_ROWS_AT_ONCE)
        finally:
            db.close()


def _query(paths: Sequence[str], prefix: str) -> str:
    columns = ", ".join(f'"{name}"' for name in SCHEMA.names)
    files = ", ".join(f"'{path}'" for path in paths)
    sealed = f" UNION ALL SELECT {columns} FROM read_parquet([{files}])" if paths else ""
    beginnings = ["", *_KINDS]
    mine = " OR ".join(f"starts_with(agent_id, '{kind}{prefix}')" for kind in beginnings)
    names = "".join(
        f" WHEN starts_with(agent_id, '{kind}{prefix}') THEN '{kind}' || agent_id[{len(kind) + len(prefix) + 1}:]"
        for kind in beginnings
    )
    payload = "payload"
    for field in NAMES_IN_PAYLOADS:  # a quote inside of a text has a backslash before it: only fields are changed
        payload = f"""replace({payload}, '"{field}":"{prefix}', '"{field}":"')"""
    return f"""SELECT * REPLACE (CASE{names} END AS agent_id, {payload} AS payload)
FROM (SELECT {columns} FROM fresh{sealed}) WHERE {mine}"""
