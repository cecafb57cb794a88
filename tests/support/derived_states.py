"""Derive the states of the same records once in a process of the ordinary suite.

DuckDB takes 20 ms to plan the query of a state, whatever the number of records. The tests of crashes, damages and
checks seal and check one store again and again, so they would ask for the same states hundreds of times.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest

from everlog.projections.state import SqlStateDeriver

KEPT_MAX = 256
"""Maximum number of results in memory."""
BYTES_MAX = 1024 * 1024
"""Maximum bytes of a result that is kept."""


def content(table: pa.Table | None) -> bytes:
    """Return a digest of the rows of a table, which does not depend on their chunks; for no table an empty one."""
    if table is None:
        return b""
    with pa.BufferOutputStream() as out:
        with pa.ipc.new_stream(out, table.schema) as stream:
            stream.write_table(table.combine_chunks())
        return hashlib.blake2b(out.getvalue()).digest()


@contextmanager
def remembered() -> Iterator[None]:
    """Let derivers of this process return an earlier result for the same maker and the same rows, inside the block."""
    derive = SqlStateDeriver.__call__
    kept: dict[tuple[str, bytes, bytes], pa.Table] = {}

    def remember(self: SqlStateDeriver, earlier: pa.Table | None, records: pa.Table) -> pa.Table:
        key = (self.maker, content(earlier), content(records))
        found = kept.pop(key, None)
        if found is None:
            found = derive(self, earlier, records)
        if found.nbytes <= BYTES_MAX:
            kept[key] = found  # the newest is last
            if len(kept) > KEPT_MAX:
                del kept[next(iter(kept))]
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SqlStateDeriver, "__call__", remember)
        yield
