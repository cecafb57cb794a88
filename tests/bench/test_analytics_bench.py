"""The reading process of `bench.analytics`: the bench notices if that process dies."""

import select
import signal
from pathlib import Path

import pytest

from bench.analytics import asking
from everlog.store import FileStore


def test_a_process_that_died_fails_the_bench(tmp_path: Path) -> None:
    """The bench fails, because the killed process did not read during the whole measurement."""
    store = FileStore.create(tmp_path / "store", lambda: 1, "s")
    with pytest.raises(RuntimeError, match="ended with -9"), asking(store) as child:
        child.send_signal(signal.SIGKILL)
        child.wait()


def test_a_process_that_answers_is_well(tmp_path: Path) -> None:
    """The reading process runs queries until the block ends."""
    store = FileStore.create(tmp_path / "store", lambda: 1, "s")
    with asking(store) as child:
        assert child.stdout is not None
        child.send_signal(signal.SIGCONT)
        assert select.select([child.stdout], [], [], 60)[0]
