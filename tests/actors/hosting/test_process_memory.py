"""Measures of a host that keep the memory of an idle agent small."""

import platform

import pytest

from everlog.actors.hosting.process_memory import purge_duckdb
from everlog.projections import Projections


@pytest.mark.skipif(
    (platform.system(), platform.machine()) != ("Linux", "x86_64"), reason="DuckDB brings jemalloc on Linux x86-64 only"
)
def test_what_duckdb_keeps_in_reserve_can_be_given_back() -> None:
    """Its allocator is found under the name that we know. Were it not, a host at rest would keep more than it needs."""
    with Projections():
        assert purge_duckdb()
