"""Drafts that were appended before a move, and are appended again after it: they are the first commit again (P6)."""

from pathlib import Path

import msgspec
import pytest

from everlog.events import Draft, DuplicateId
from everlog.events.ids import uuid7
from everlog.store import FileStore, MemoryStore, Store, repeated_elsewhere
from everlog.store.streams.moved_reader import CLOCKS_US
from tests.contract.log_contract import Drafts
from tests.store.conftest import now
from tests.support.store.faulty_disk import FaultyDisk


@pytest.fixture(params=["memory", "files"])
def store(request: pytest.FixtureRequest) -> Store:
    if request.param == "memory":
        store: Store = MemoryStore(2, now)
    else:
        store = FileStore.create(Path("/sim"), now, "sim", shards=2, disk=FaultyDisk())
    store.register("sam")
    return store


def moved(store: Store, *commits: list[Draft]) -> None:
    """Append these commits, then move sam to a shard, where he says something else."""
    log = store.open("sam", "test")
    for drafts in commits:
        log.append("sam", log.head("sam").seq, drafts)
    store.begin_move(log, "sam", "shard-001")
    log.close()
    log = store.open("sam", "test")
    assert log.partition == "shard-001"
    log.close()


def test_a_commit_of_before_the_move_is_found_whole(store: Store) -> None:
    """The same drafts give the first commit, with its records; others give none."""
    drafts = Drafts()
    first, second, later = [[drafts.one(f"{name} a"), drafts.one(f"{name} b")] for name in ("first", "second", "later")]
    moved(store, first, second)
    reader = store.reader("sam")
    commit = repeated_elsewhere(reader, second)
    assert commit is not None
    assert commit.repeated
    assert [(record.seq, record.text) for record in commit.records] == [(3, "second a"), (4, "second b")]
    assert repeated_elsewhere(reader, later) is None


def test_other_content_under_a_known_id_is_refused(store: Store) -> None:
    """A part of a commit, and other words under its id, are DuplicateId, as in one partition."""
    drafts = Drafts()
    both = [drafts.one("a"), drafts.one("b")]
    moved(store, both)
    reader = store.reader("sam")
    with pytest.raises(DuplicateId, match="another commit"):
        repeated_elsewhere(reader, both[:1])
    with pytest.raises(DuplicateId, match="other content"):
        repeated_elsewhere(reader, [msgspec.structs.replace(both[0], text="c"), both[1]])


def test_a_new_id_is_not_looked_up(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """An id that is newer than the move, by more than clocks may differ, costs no look into the past."""
    drafts = Drafts()
    moved(store, [drafts.one("a")])
    reader = store.reader("sam")
    at = next(record.recorded_at for record in reader.read("sam", 2))
    new = msgspec.structs.replace(drafts.one("b"), event_id=uuid7(at + CLOCKS_US + 1_000_000, 7))
    monkeypatch.setattr(type(reader._places[0]), "table", None)  # type: ignore[attr-defined]
    assert repeated_elsewhere(reader, [new]) is None


def test_an_agent_that_never_moved_has_no_other_place(store: Store) -> None:
    """The log of its one partition knows all of its ids."""
    draft = Drafts().one("a")
    log = store.open("sam", "test")
    log.append("sam", 0, [draft])
    log.close()
    assert repeated_elsewhere(store.reader("sam"), [draft]) is None
