"""Measures that keep the memory of a host with idle agents small."""

import platform

import pytest

from everlog.actors.hosting.process_memory import purge_duckdb
from everlog.projections import Projections


@pytest.mark.skipif(
    (platform.system(), platform.machine()) != ("Linux", "x86_64"), reason="DuckDB brings jemalloc on Linux x86-64 only"
)
def test_the_allocator_of_duckdb_is_found() -> None:
    """DuckDB's allocator is found under its expected name. If it were not, an idle host would keep unneeded memory."""
    with Projections():
        assert purge_duckdb()
