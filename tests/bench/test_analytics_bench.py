"""The process that asks while writers are measured: the bench notices if it dies."""

import select
import signal
from pathlib import Path

import pytest

from bench.analytics import asking
from everlog.store import FileStore


def test_a_process_that_died_fails_the_bench(tmp_path: Path) -> None:
    """It was not there for all of the measuring."""
    store = FileStore.create(tmp_path / "store", lambda: 1, "s")
    with pytest.raises(RuntimeError, match="ended with -9"), asking(store) as child:
        child.send_signal(signal.SIGKILL)
        child.wait()


def test_a_process_that_answers_is_well(tmp_path: Path) -> None:
    """Run queries until the block ends."""
    store = FileStore.create(tmp_path / "store", lambda: 1, "s")
    with asking(store) as child:
        assert child.stdout is not None
        child.send_signal(signal.SIGCONT)
        assert select.select([child.stdout], [], [], 60)[0]
