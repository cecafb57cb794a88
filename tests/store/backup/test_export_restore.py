"""Exports and restores: the restored records equal the exported ones, and the agent continues after them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from everlog.events import BadInput, event_of
from everlog.events.lifecycle import AgentMoved
from everlog.store import FileStore, MemoryStore, Store, partition_of
from tests.contract.draft_builders import NOW, Drafts
from tests.contract.seal_contract import erasing
from tests.store.conftest import now
from tests.store.streams.test_fork_reader import assert_whole, fork, say
from tests.store.streams.test_move_service import ROUTE, travel, words_for
from tests.support.store.export_helpers import assert_fine, assert_same, save, through
from tests.support.store.faulty_disk import FaultyDisk

MakeStore = Callable[[str], Store]


@pytest.fixture(params=["memory", "files"])
def made(request: pytest.FixtureRequest) -> MakeStore:
    """Return a function that makes empty stores of one implementation."""

    def make(name: str) -> Store:
        if request.param == "memory":
            return MemoryStore(2, now)
        return FileStore.create(Path("/") / name, now, name, shards=2, disk=FaultyDisk())

    return make


@pytest.fixture
def store(made: MakeStore) -> Store:
    return made("sim")


@pytest.fixture
def other(made: MakeStore) -> Store:
    return made("other")


def test_an_agent_comes_out_as_it_went_in_and_continues(store: Store, other: Store, tmp_path: Path) -> None:
    drafts = Drafts()
    say(store, "sam", drafts, 5)
    done = through(store, "sam", other, tmp_path)
    assert [(r.stream.agent_id, r.written) for r in done.streams] == [("sam", 5)]
    assert_same(store, other, "sam")
    assert_fine(other)
    for place in (store, other):
        say(place, "sam", Drafts(NOW + 5_000_000), 2)
    assert_same(store, other, "sam")
    assert_fine(other)


def test_commits_stay_whole_and_apart(store: Store, other: Store, tmp_path: Path) -> None:
    """One commit is restored as one, and two as two, although commits of other agents are between them."""
    drafts = Drafts()
    store.register("sam", shared=True)
    log = store.open("sam", "test")
    for count in (2, 1, 3):
        log.append("ann", log.head("ann").seq, drafts.some(1))
        log.append("sam", log.head("sam").seq, drafts.some(count))
    log.close()
    through(store, "sam", other, tmp_path)
    assert [record.commit for record in other.reader("sam").read("sam")] == [1, 1, 2, 3, 3, 3]


def test_commits_of_two_partitions_stay_two(store: Store, other: Store, tmp_path: Path) -> None:
    """The departure and the arrival of a moved agent have, by chance, the same commit number in two partitions, and
    stay two commits.
    """
    for name, count in (("ann", 2), ("sam", 1)):
        store.register(name, shared=name == "ann")
        log = store.open_partition("shard-000" if name == "ann" else partition_of(name), "test")
        for seq in range(count):
            log.append(name, seq, Drafts(NOW + seq * 1_000_000 + len(name) * count).some(1))
        if name == "sam":
            log.append(name, 1, Drafts(NOW + 7_000_000).some(2))
            store.begin_move(log, "sam", "shard-000")
        log.close()
    store.open("sam", "test").close()
    assert [record.commit for record in store.reader("sam").read("sam")] == [1, 2, 2, 3, 3]
    through(store, "sam", other, tmp_path)
    assert [record.commit for record in other.reader("sam").read("sam")] == [1, 2, 2, 3, 4]


def test_restoring_again_changes_nothing(store: Store, other: Store, tmp_path: Path) -> None:
    """A second restore writes nothing; later records of the agent stay."""
    say(store, "sam", Drafts(), 3)
    assert through(store, "sam", other, tmp_path).written == 3
    assert through(store, "sam", other, tmp_path).written == 0
    say(other, "sam", Drafts(NOW + 5_000_000), 2)
    before = list(other.reader("sam").read("sam"))
    assert other.restore(tmp_path / "sam.everlog").written == 0
    assert list(other.reader("sam").read("sam")) == before


def test_an_agent_that_has_the_first_of_the_records_gets_the_others(store: Store, other: Store, tmp_path: Path) -> None:
    drafts = Drafts()
    say(store, "sam", drafts, 3)
    through(store, "sam", other, tmp_path)
    say(store, "sam", drafts, 4)
    assert through(store, "sam", other, tmp_path).written == 4
    assert_same(store, other, "sam")
    assert_fine(other)


def test_a_name_of_another_agent_is_refused(store: Store, other: Store, tmp_path: Path) -> None:
    """If the agent of that name has other records, fewer or more, or is a fork of another agent, nothing is changed,
    and no agent is added.
    """
    say(store, "sam", Drafts(), 3)
    fork(store, "sam", 3, "tom")
    say(store, "tom", Drafts(NOW + 5_000_000), 1)
    save(store, "tom", tmp_path / "tom.everlog")
    for count in (1, 6):
        say(other, "tom", Drafts(NOW + 9_000_000 * count), count)
        before = list(other.reader("tom").read("tom"))
        with pytest.raises(BadInput, match="an agent 'tom' already, and its records differ"):
            other.restore(tmp_path / "tom.everlog")
        assert list(other.reader("tom").read("tom")) == before and other.agents() == ["tom"]


def test_a_fork_brings_its_ancestors_and_is_restored_as_a_fork(
    store: Store, other: Store, made: MakeStore, tmp_path: Path
) -> None:
    """An ancestor is restored as far as the fork needs it, for forks of forks with fork points before and after their
    parents' own records.
    """
    drafts = Drafts()
    say(store, "sam", drafts, 5)
    fork(store, "sam", 4, "tom")
    say(store, "tom", drafts, 3)
    fork(store, "tom", 6, "after")
    say(store, "after", drafts, 1)
    fork(store, "tom", 2, "before")
    say(store, "before", drafts, 1)
    done = through(store, "after", other, tmp_path)
    streams = [(r.stream.agent_id, r.stream.from_seq, r.stream.to_seq, r.written) for r in done.streams]
    assert streams == [("sam", 1, 4, 4), ("tom", 5, 6, 2), ("after", 7, 8, 2)]
    assert other.agents() == ["after", "sam", "tom"]
    assert other.parent_of("after") == ("tom", 6) and other.parent_of("tom") == ("sam", 4)
    assert_same(store, other, "after")
    done = through(store, "before", other, tmp_path)
    assert [(r.stream.agent_id, r.written) for r in done.streams] == [("sam", 0), ("before", 2)]
    assert other.parent_of("before") == ("sam", 2)
    assert_same(store, other, "before")
    for name in ("sam", "tom"):
        with pytest.raises(BadInput, match=f"'{name}' was restored only as an ancestor .* begin with another store"):
            through(store, name, other, tmp_path)
    assert_fine(other)
    third = made("third")
    for name in ("sam", "tom", "after", "before"):
        assert not any(restored.ended for restored in through(store, name, third, tmp_path).streams)
    for name in ("sam", "tom", "after", "before"):
        assert_same(store, third, name)
    assert_fine(third)


def test_a_missing_ancestor_is_restored_up_to_the_cut_and_ended(
    store: Store, other: Store, made: MakeStore, tmp_path: Path
) -> None:
    """Only the fork is not deleted, and it can be exported to a third store; a fork with an earlier fork point finds
    all its records.
    """
    drafts = Drafts()
    say(store, "sam", drafts, 5)
    fork(store, "sam", 4, "tom")
    say(store, "tom", drafts, 2)
    fork(store, "tom", 6, "ann")
    fork(store, "sam", 3, "early")
    assert [r.ended for r in through(store, "ann", other, tmp_path).streams] == [True, True, False]
    for name, end in (("sam", 5), ("tom", 7)):
        last = list(other.reader(name).read(name))[-1]
        assert (last.seq, last.type, last.agent_id) == (end, "agent_deleted", name)
    assert [(r.written, r.ended) for r in through(store, "early", other, tmp_path).streams] == [(0, False), (1, False)]
    third = made("third")
    done = through(other, "ann", third, tmp_path)
    assert [(r.stream.agent_id, r.stream.to_seq, r.ended) for r in done.streams] == [
        ("sam", 4, True), ("tom", 6, True), ("ann", 7, False),
    ]  # fmt: skip
    for place in (other, third):
        say(place, "ann", Drafts(NOW + 5_000_000), 1)
        assert_whole(place.reader("ann"), "ann")
        assert_fine(place)


def test_an_ancestor_is_never_half_of_a_commit(store: Store, other: Store, tmp_path: Path) -> None:
    """If the fork point is in the middle of a commit, the restored ancestor ends with that commit, and both can be
    read.
    """
    store.register("sam")
    log = store.open("sam", "test")
    log.append("sam", 0, Drafts().some(4))
    log.append("sam", 4, Drafts(NOW + 1_000_000).some(2))
    log.close()
    fork(store, "sam", 2, "tom")
    done = through(store, "tom", other, tmp_path)
    assert [(r.stream.agent_id, r.stream.to_seq) for r in done.streams] == [("sam", 4), ("tom", 3)]
    assert_same(store, other, "tom")
    found = [(record.commit, record.type) for record in other.reader("sam").read("sam")]
    assert found == [(1, "user_message")] * 4 + [(2, "agent_deleted")]


def test_an_agent_that_moved_is_whole_in_one_partition_and_moves_on(store: Store, other: Store, tmp_path: Path) -> None:
    """The moves are complete in the restored agent: it is here, takes records, is sealed, forked and moved again, and
    every check passes.
    """
    store.register("sam")
    travel(store, ROUTE, words_for(ROUTE))
    through(store, "sam", other, tmp_path)
    assert other.route("sam") == [partition_of("sam")]
    assert_same(store, other, "sam")
    assert_fine(other)
    drafts = Drafts(NOW + 50_000_000)
    say(other, "sam", drafts, 1, seal=True)
    for place in ("shard-001", partition_of("sam"), "shard-000"):
        log = other.open("sam", "test")
        other.begin_move(log, "sam", place)
        log.close()
        say(other, "sam", drafts, 1, seal=True)
        assert_whole(other.reader("sam"), "sam")
        assert_fine(other)
    third = MemoryStore(2, now)
    through(other, "sam", third, tmp_path)
    assert_same(other, third, "sam")


def test_forks_cut_at_every_record_of_a_move_are_restored(store: Store, made: MakeStore, tmp_path: Path) -> None:
    """If the fork point is the parent's departure, the parent is restored up to its arrival."""
    store.register("sam")
    travel(store, ROUTE[:3], words_for(ROUTE[:3]))
    for at in range(1, store.reader("sam").head("sam").seq + 1):
        name = f"fork {at}"
        fork(store, "sam", at, name)
        other = made(f"other {at}")
        done = through(store, name, other, tmp_path)
        assert not other.reader("sam").head("sam").away
        assert done.streams[0].stream.to_seq in (at, at + 1)
        assert_same(store, other, name)
        say(other, "sam", Drafts(NOW + 50_000_000), 1)
        assert_whole(other.reader("sam"), "sam")
        assert_fine(other)


def test_a_moving_agent_is_exported_without_the_unfinished_move(store: Store, other: Store, tmp_path: Path) -> None:
    """An unfinished move is not exported; a fork at its departure cannot be exported until the move is finished."""
    say(store, "sam", Drafts(), 3)
    log = store.open("sam", "test")
    store.begin_move(log, "sam", "shard-000")
    log.close()
    fork(store, "sam", 4, "tom")
    assert through(store, "sam", other, tmp_path).written == 3
    assert_whole(other.reader("sam"), "sam")
    with pytest.raises(BadInput, match="is moving to another partition"):
        save(store, "tom", tmp_path / "tom.everlog")
    assert not (tmp_path / "tom.everlog").exists()
    assert any(isinstance(event_of(record), AgentMoved) for record in store.reader("sam").read("sam"))


def test_what_was_erased_is_restored_as_erased(store: Store, other: Store, tmp_path: Path) -> None:
    """Tombstones are restored with their digests, and the header has their number; sealing again changes nothing."""
    say(store, "sam", Drafts(), 5)
    log = store.open("sam", "test")
    log.append("sam", 5, [erasing(2, 3)])
    log.seal()
    log.close()
    done = through(store, "sam", other, tmp_path)
    assert done.contents.own.erased == 2
    assert_same(store, other, "sam")
    assert [record.text is None for record in other.reader("sam").read("sam", 1, 5)] == [
        False, True, True, False, False,
    ]  # fmt: skip
    assert_fine(other)


def test_an_older_export_does_not_bring_back_what_was_erased(store: Store, tmp_path: Path) -> None:
    """Restoring an older export over the agent that has erased since adds nothing, because the chain is equal; content
    stays erased.
    """
    say(store, "sam", Drafts(), 4)
    path = tmp_path / "sam.everlog"
    save(store, "sam", path)
    log = store.open("sam", "test")
    log.append("sam", 4, [erasing(1, 4)])
    log.seal()
    log.close()
    assert store.restore(path).written == 0
    assert all(record.text is None for record in store.reader("sam").read("sam", 1, 4))
    assert b"word" not in repr(list(store.reader("sam").read("sam"))).encode()


def test_an_erasure_that_was_not_carried_out_is_when_it_is_restored(store: Store, other: Store, tmp_path: Path) -> None:
    say(store, "sam", Drafts(), 4)
    log = store.open("sam", "test")
    log.append("sam", 4, [erasing(1, 3)])
    log.close()
    save(store, "sam", tmp_path / "sam.everlog")
    other.restore(tmp_path / "sam.everlog")
    assert [record.text is None for record in other.reader("sam").read("sam", 1, 4)] == [True, True, True, False]


def test_ids_and_kinds_of_any_age_are_taken(store: Store, other: Store, tmp_path: Path) -> None:
    """Records that are years older than the clock, of unknown kinds, are restored; afterwards old ids are refused as
    usual.
    """
    store.register("sam")
    old = Drafts(NOW - 10**15)
    log = store.open("sam", "test")
    log.append("sam", 0, [old.one("was", recorded_at=NOW - 10**15), old.one(None, '{"x":1}', type="of_tomorrow")])
    log.append("sam", 2, [Drafts().one("ist — ünïcode 🦜")])
    log.close()
    through(store, "sam", other, tmp_path)
    assert_same(store, other, "sam")
    assert_fine(other)


def test_the_other_streams_that_are_asked_for_come_along(store: Store, other: Store, tmp_path: Path) -> None:
    for name in ("sam", "source:books"):
        store.register(name)
        log = store.open(name, "test")
        log.append(name, 0, Drafts(NOW + len(name)).some(2))
        log.close()
    contents = save(store, "sam", tmp_path / "x.everlog", sources=["books", "gone"], streams=["source:books"])
    assert contents.sources == ["books", "gone"] and contents.own.agent_id == "sam"
    other.restore(tmp_path / "x.everlog")
    assert (other.agents(), other.sources()) == (["sam"], ["books"])
    assert_same(store, other, "sam")
    assert list(other.reader("source:books").read("source:books"))[1].text == "word 1"


def test_an_export_is_a_prefix_of_what_is_written_meanwhile(store: Store, other: Store, tmp_path: Path) -> None:
    """An agent that is exported while it is open continues to write; the export has the records at its start, and no
    write waits.
    """
    drafts = Drafts()
    store.register("sam")
    log = store.open("sam", "test")
    log.append("sam", 0, drafts.some(3))

    def moved(_done: int, _all: int) -> None:
        log.append("sam", log.head("sam").seq, drafts.some(1))

    contents = save(store, "sam", tmp_path / "sam.everlog", progress=moved)
    assert contents.records == 3 and log.head("sam").seq > 3
    other.restore(tmp_path / "sam.everlog")
    assert [record.text for record in other.reader("sam").read("sam")] == ["word 0", "word 1", "word 2"]
