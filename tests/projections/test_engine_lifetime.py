"""Engines that are not closed, such as that of a view which a program opens, reads once and drops."""

import ctypes
import platform
import subprocess
import sys
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from everlog.projections import HEAD, Projections
from everlog.projections.hot import hot_database
from tests.laws.test_projections import many
from tests.support import engines

ROOT = Path(__file__).parents[2]


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


class _HeapFigures(ctypes.Structure):
    """Figures of glibc's heap, in bytes."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    ]  # fmt: skip


def heap_bytes() -> int:
    """Return the bytes of the heap that are in use, those of DuckDB's objects among them."""
    figures = ctypes.CDLL(None).mallinfo2
    figures.restype = _HeapFigures
    return int(figures().uordblks)


def print_growth() -> None:
    """Print by how many bytes the heap grows from one compaction to the next, with 300 questions between them."""
    engine, wanted = many(60)

    def ask(times: int) -> int:
        for _ in range(times):
            engine.answers("context_window", wanted[:10])
        engine.compact()
        return heap_bytes()

    with engine:
        ask(300)  # DuckDB's queue of freed blocks gets the capacity for as many
        before = ask(300)
        print(ask(300) - before)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc tells what its heap has")
def test_an_engine_keeps_nothing_of_the_questions_that_it_has_answered() -> None:
    """Compacted, an engine takes no more of the heap of its process after 300 questions than before them."""
    script = "from tests.projections.test_engine_lifetime import print_growth; print_growth()"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 600 * 1024


def test_compacting_leaves_the_limit_of_memory() -> None:
    """The limit by which compacting makes DuckDB look for memory is not kept."""
    limit = "SELECT current_setting('memory_limit') AS most"
    with engines.own(), Projections(memory_mb=300) as engine:
        before = engine.query(limit)
        engine.compact()
        assert engine.query(limit) == before
        assert engine.rows("standing", "sam", HEAD) == []
