"""Measures that keep the memory of a host with idle agents small."""

import gc
import platform
import weakref

import pytest

from everlog.actors.hosting.process_memory import give_back, purge_duckdb
from everlog.projections import Projections


@pytest.mark.skipif(
    (platform.system(), platform.machine()) != ("Linux", "x86_64"), reason="DuckDB brings jemalloc on Linux x86-64 only"
)
def test_the_allocator_of_duckdb_is_found() -> None:
    """DuckDB's allocator is found under its expected name. If it were not, an idle host would keep unneeded memory."""
    with Projections():
        assert purge_duckdb()


class _Cycle:
    def __init__(self) -> None:
        self.own = self


def test_what_refers_to_itself_is_gone_at_rest() -> None:
    """A host collects such objects seldom, so its rest collects them, also those that a collection has seen before."""
    gc.disable()
    try:
        held = weakref.ref(_Cycle())
        assert held() is not None
        give_back()
        assert held() is None
    finally:
        gc.enable()
