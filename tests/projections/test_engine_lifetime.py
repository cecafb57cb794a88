"""Engines that are not closed, such as that of a view which a program opens, reads once and drops."""

import weakref
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from everlog.projections import Projections
from everlog.projections.hot import hot_database
from tests.support import engines


def test_an_engine_that_is_dropped_closes_its_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine without a reference is freed at once, though its database holds a function of the engine's."""
    opened: list[duckdb.DuckDBPyConnection] = []

    def connect(path: str, config: dict[str, Any]) -> duckdb.DuckDBPyConnection:
        opened.append(duckdb.connect(path, config=config))
        return opened[-1]

    monkeypatch.setattr(hot_database, "duckdb", SimpleNamespace(**{**vars(duckdb), "connect": connect}))
    with engines.own():
        dropped = Projections()
    assert dropped.query("SELECT count(*) AS n FROM records") == [{"n": 0}]
    held = weakref.ref(dropped)
    del dropped
    assert held() is None
    with pytest.raises(duckdb.ConnectionException, match="closed"):
        opened[0].execute("SELECT 1")
