"""Missing files are reported, and no record is cut or hidden, and no log restarted, because of them."""

import shutil
from pathlib import Path

import pytest

from everlog.events import CorruptLog
from everlog.store import FileStore
from everlog.testing import CountingIds, ManualClock
from tests.support.agent_world import World, say


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    """Return a store whose agent sam was opened three times and has a log."""
    clock, ids = ManualClock(tick_us=1000), CountingIds()
    made = FileStore.create(tmp_path, clock.now, ids.new(clock.now()))
    import asyncio

    for _ in range(3):
        world = World(say("Yes."), store=made)
        world.clock, world.ids = clock, ids
        world.system._ports = world.ports
        asyncio.run(world.tell("Hello"))
    return made


def content(store: FileStore) -> bytes:
    """Return all bytes of the log's open files."""
    return b"".join(path.read_bytes() for path in sorted(store.root.glob("log/*/*.open")))


def test_removed_epochs_lose_no_record(store: FileStore) -> None:
    """If the log has a newer epoch than the epoch files, opening is an error, and the bytes stay unchanged however
    often it is tried.
    """
    before = content(store)
    for path in store.root.glob("log/*/epoch-*"):
        path.unlink()
    with pytest.raises(CorruptLog, match="epoch"):
        store.open("sam", "test")
    assert content(store) == before
    assert store.reader("sam").head("sam").seq > 0


def test_a_lost_configuration_is_not_a_new_store(store: FileStore) -> None:
    """If everlog.json is missing and logs exist, no new store is made over the logs."""
    before = content(store)
    (store.root / "everlog.json").unlink()
    with pytest.raises(CorruptLog, match=r"everlog\.json is missing"):
        FileStore.create(store.root, lambda: 0, "another")
    assert content(store) == before
    assert not (store.root / "everlog.json").exists()


def test_a_lost_manifest_is_not_an_empty_log(store: FileStore) -> None:
    """Records without a manifest are an error for readers and owners."""
    before = content(store)
    for path in store.root.glob("log/*/manifest-*"):
        path.unlink()
    with pytest.raises(CorruptLog, match="no manifest"):
        store.reader("sam").head("sam")
    with pytest.raises(CorruptLog, match="no manifest"):
        store.open("sam", "test")
    assert content(store) == before


def test_a_lost_folder_is_not_a_new_agent(store: FileStore) -> None:
    """A registered agent whose log is missing is an error, and no new log is made."""
    shutil.rmtree(store.root / "log")
    for ask in (lambda: store.reader("sam"), lambda: store.open("sam", "test")):
        with pytest.raises(CorruptLog, match="is missing"):
            ask()
