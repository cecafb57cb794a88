"""Fixtures that the tests of the file log share."""

from collections.abc import Callable
from pathlib import Path

import pytest

from everlog.events import Record
from everlog.store import FileStore, Partition
from tests.contract.log_contract import NOW, Drafts


def now() -> int:
    return NOW


@pytest.fixture
def drafts() -> Drafts:
    return Drafts()


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    store = FileStore.create(tmp_path / "store", now, "tests")
    store.register("sam")
    return store


@pytest.fixture
def where(store: FileStore) -> Partition:
    return store.partition(store.reader("sam").partition)


@pytest.fixture
def filled(store: FileStore, drafts: Drafts) -> list[list[Record]]:
    """Append six commits of two agents to the partition of sam, and close it. Return their records."""
    log = store.open("sam", "fill")
    commits = []
    for agent_id in ["sam", "sam", "ann", "sam", "ann", "sam"]:
        commits.append(list(log.append(agent_id, log.head(agent_id).seq, drafts.some(2)).records))
    log.close()
    return commits


@pytest.fixture
def open_path(where: Partition) -> Callable[[], Path]:
    """Return the path of the only open file."""
    return lambda: max(where.path.glob("*.open"))
