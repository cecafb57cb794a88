"""Missing files: their content is reported missing in words, and no record is cut, hidden or started again because of
it.
"""

import shutil
from pathlib import Path

import pytest

from everlog.events import CorruptLog
from everlog.store import FileStore
from tests.support.agent_world import CountingIds, TickingClock, World, say


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    """A store whose agent sam was opened three times and has a log."""
    clock, ids = TickingClock(), CountingIds()
    made = FileStore.create(tmp_path, clock.now, ids.new(clock.now()))
    import asyncio

    for _ in range(3):
        world = World(say("Yes."), store=made)
        world.clock, world.ids = clock, ids
        world.system._ports = world.ports
        asyncio.run(world.tell("Hello"))
    return made


def content(store: FileStore) -> bytes:
    """All bytes of the log's open files."""
    return b"".join(path.read_bytes() for path in sorted(store.root.glob("log/*/*.open")))


def test_removed_epochs_lose_no_record(store: FileStore) -> None:
    """The log knows a newer epoch than the files do: an error, and not a byte less, however often it is tried."""
    before = content(store)
    for path in store.root.glob("log/*/epoch-*"):
        path.unlink()
    with pytest.raises(CorruptLog, match="epoch"):
        store.open("sam", "test")
    assert content(store) == before
    assert store.reader("sam").head("sam").seq > 0


def test_a_lost_configuration_is_not_a_new_store(store: FileStore) -> None:
    """everlog.json is gone, the logs are not: nothing is begun again over them."""
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
    """A registered agent whose log is gone is missed, not born again."""
    shutil.rmtree(store.root / "log")
    for ask in (lambda: store.reader("sam"), lambda: store.open("sam", "test")):
        with pytest.raises(CorruptLog, match="is missing"):
            ask()
