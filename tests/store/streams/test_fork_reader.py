"""Forks: read as one log with their ancestors, made completely or not at all, without changing the parent."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from everlog.events import (  # fmt: skip
    GENESIS,
    AgentForked,
    BadInput,
    Record,
    StoreError,
    UnknownAgent,
    UsageError,
    event_of,
    extend,
    uuid7,
)
from everlog.store import FileStore, MemoryStore, Store, check, check_moves, partition_of
from everlog.store.base.contract import LogReader
from tests.contract.draft_builders import NOW, Drafts
from tests.contract.seal_contract import erasing
from tests.store.conftest import now
from tests.store.sealed.test_seal_pass import Counting
from tests.store.streams.test_move_service import CHANGES
from tests.support.store.faulty_disk import Crash, FaultyDisk

ROOT = Path("/sim")
FORK_ID = uuid7(NOW, 77)


@pytest.fixture(params=["memory", "files"])
def store(request: pytest.FixtureRequest) -> Store:
    if request.param == "memory":
        return MemoryStore(2, now)
    return FileStore.create(ROOT, now, "sim", shards=2, disk=FaultyDisk())


def say(store: Store, name: str, drafts: Drafts, count: int, *, seal: bool = False) -> None:
    store.register(name)
    log = store.open(name, "test")
    for _ in range(count):
        log.append(name, store.reader(name, log).head(name).seq, [drafts.one(f"{name} said {drafts.one().event_id}")])
    if seal:
        log.seal(Counting())
    log.close()


def fork(store: Store, parent: str, at: int, name: str) -> list[Record]:
    return list(store.fork(parent, at, name, event_id=uuid7(NOW, at * 1000 + len(name))))


def words(records: Iterator[Record]) -> list[tuple[int, str | None]]:
    return [(record.seq, record.text) for record in records]


def assert_whole(reader: LogReader, name: str) -> None:
    """Check that all reads of an agent agree, that its stream has no gap, and that its chain is valid."""
    records = list(reader.read(name))
    assert [record.seq for record in records] == list(range(1, len(records) + 1))
    chains = [GENESIS]
    for record in records:
        event = event_of(record)
        if isinstance(event, AgentForked):
            assert (event.parent_seq, event.chain) == (record.seq - 1, chains[-1].hex())
        chains.append(extend(chains[-1], record))
    head = reader.head(name)
    assert (head.seq, head.chain) == (len(records), chains[-1])
    assert [reader.chain(name, seq) for seq in range(head.seq + 1)] == chains
    table = reader.table(name)
    assert table.column("seq").to_pylist() == [record.seq for record in records]
    assert set(table.column("agent_id").to_pylist()) <= {name}
    assert table.column("text").to_pylist() == [record.text for record in records]
    assert reader.table(name, 2, 4).column("seq").to_pylist() == [r.seq for r in records if 2 <= r.seq <= 4]
    assert words(reader.read(name, 2, 4)) == words(iter(records[1:4]))


def test_a_fork_is_its_parent_up_to_the_cut_and_then_itself(store: Store) -> None:
    """At every fork point the fork has the parent's records, then its own; the parent is unchanged."""
    drafts = Drafts()
    say(store, "sam", drafts, 6)
    before = list(store.reader("sam").read("sam"))
    for at in range(1, 7):
        name = f"sam{at}"
        (first,) = fork(store, "sam", at, name)
        assert (first.agent_id, first.seq, first.type) == (name, at + 1, "agent_forked")
        say(store, name, drafts, 2)
        reader = store.reader(name)
        assert_whole(reader, name)
        assert words(reader.read(name, 1, at)) == words(iter(before[:at]))
        assert {record.agent_id for record in reader.read(name, at + 1)} == {name}
        assert reader.head(name).seq == at + 3
        assert store.parent_of(name) == ("sam", at)
    assert list(store.reader("sam").read("sam")) == before
    assert store.parent_of("sam") is None
    assert store.forks_of("sam") == {f"sam{at}": at for at in range(1, 7)}


def test_the_parent_continues_and_its_forks_do_not_see_it(store: Store) -> None:
    drafts = Drafts()
    say(store, "sam", drafts, 3)
    fork(store, "sam", 2, "tom")
    say(store, "sam", drafts, 3)
    reader = store.reader("tom")
    assert_whole(reader, "tom")
    assert reader.head("tom").seq == 3


def test_a_fork_can_be_forked_before_and_after_its_cut(store: Store) -> None:
    """A fork of a fork reads through all ancestors, and each fork knows how many records it shares with each."""
    drafts = Drafts()
    say(store, "sam", drafts, 5)
    fork(store, "sam", 4, "tom")
    say(store, "tom", drafts, 3)
    fork(store, "tom", 7, "after")
    fork(store, "tom", 2, "before")
    say(store, "before", drafts, 2)
    fork(store, "before", 4, "last")
    for name in ("tom", "after", "before", "last"):
        assert_whole(store.reader(name), name)
    texts = [text for _, text in words(store.reader("last").read("last")) if text]
    assert [text.split()[0] for text in texts] == ["sam", "sam", "before"]
    assert store.forks_of("sam") == {"after": 4, "before": 2, "last": 2, "tom": 4}
    assert store.forks_of("tom") == {"after": 7, "before": 2, "last": 2}


def test_a_fork_goes_through_moves_of_its_parent_and_its_own(store: Store) -> None:
    drafts = Drafts()
    say(store, "sam", drafts, 2)
    log = store.open("sam", "test")
    store.begin_move(log, "sam", "shard-000")
    log.close()
    say(store, "sam", drafts, 2)
    for at in range(1, 7):
        name = f"fork {at}"
        fork(store, "sam", at, name)
        assert_whole(store.reader(name), name)
        log = store.open(name, "test")
        store.begin_move(log, name, "shard-001")
        log.close()
        say(store, name, drafts, 1)
        assert store.partition_of(name) == "shard-001" and store.parent_of(name) == ("sam", at)
        assert_whole(store.reader(name), name)


@pytest.mark.parametrize(
    ("parent", "at", "name", "said"),
    [
        ("sam", 0, "tom", "has records 1 to 3"),
        ("sam", 4, "tom", "has records 1 to 3"),
        ("sam", 2, "sam", "There is an agent 'sam' already"),
        ("sam", 2, "ann", "There is an agent 'ann' already, a fork of 'sam' at seq 1"),
        ("sam", 2, "source:tom", "cannot be the name of an agent"),
        ("sam", 2, "", "name of an agent is empty"),
    ],
)
def test_a_fork_that_cannot_be_is_refused_and_takes_no_name(
    store: Store, parent: str, at: int, name: str, said: str
) -> None:
    say(store, "sam", Drafts(), 3)
    fork(store, "sam", 1, "ann")
    with pytest.raises(BadInput, match=said):
        fork(store, parent, at, name)
    assert store.agents() == ["ann", "sam"]
    with pytest.raises(UnknownAgent):
        fork(store, "nobody", 1, "tom")


def test_what_is_erased_in_the_parent_is_gone_in_its_forks(store: Store) -> None:
    say(store, "sam", Drafts(), 4)
    fork(store, "sam", 3, "tom")
    log = store.open("sam", "test")
    log.append("sam", 4, [erasing(1, 4)])
    log.seal()
    log.close()
    assert [text for _, text in words(store.reader("tom").read("tom"))][:3] == [None] * 3
    assert_whole(store.reader("tom"), "tom")


def test_states_of_the_parent_are_those_of_its_forks() -> None:
    """A fork continues from the parent's newest state before the fork point, until the fork has a state of its own."""
    store = FileStore.create(ROOT, now, "sim", shards=2, disk=FaultyDisk())
    drafts = Drafts()
    say(store, "sam", drafts, 4, seal=True)
    say(store, "sam", drafts, 3)
    for at, newest in ((3, None), (4, 4), (6, 4)):
        name = f"fork {at}"
        fork(store, "sam", at, name)
        state = store.reader(name).state(name, "counting")
        assert (None if state is None else state.seq) == newest
        if state is not None:
            assert state.rows.column("agent_id").to_pylist() == [name]
        say(store, name, drafts, 2, seal=True)
        state = store.reader(name).state(name, "counting")
        assert state is not None and state.seq == at + 3
        (together,) = [states for states in store.states("counting") if name in states.agents]
        assert together.rows is not None and together.rows.to_pylist() == state.rows.to_pylist()
        assert check(store.partition(partition_of(name)), deep=True, derive=Counting()).ok
        assert_whole(store.reader(name), name)
    assert check_moves(store) == []


def made(disk: FaultyDisk) -> FileStore:
    store = FileStore.create(ROOT, now, "sim", disk=disk)
    say(store, "sam", Drafts(), 3)
    return store


def test_a_fork_that_was_interrupted_anywhere_is_finished_by_the_same_call() -> None:
    """After a crash before any change of the disk the fork exists completely or not at all, the parent is unchanged,
    and no other agent gets the name.
    """
    whole = FaultyDisk()
    made(whole)
    start = len(whole.log)
    fork(FileStore(ROOT, now, disk=whole), "sam", 2, "tom")
    steps = [step for step in range(start, len(whole.log)) if whole.log[step][0] in CHANGES]
    assert len(steps) > 5
    for step in steps:
        crashing = FaultyDisk()
        made(crashing)
        crashing.crash_at = step
        with pytest.raises(Crash):
            fork(FileStore(ROOT, now, disk=crashing), "sam", 2, "tom")
        for disk in (crashing.power_loss(), crashing.killed()):
            store = FileStore(ROOT, now, disk=disk)
            assert_whole(store.reader("sam"), "sam")
            if "tom" not in store.agents():
                fork(store, "sam", 2, "tom")
            elif store.reader("tom").head("tom").seq:
                with pytest.raises(BadInput, match="There is an agent 'tom' already"):
                    fork(store, "sam", 2, "tom")
            else:
                with pytest.raises(UsageError, match="was interrupted"):
                    store.open("tom", "test")
                with pytest.raises(BadInput, match="There is an agent 'tom' already"):
                    fork(store, "sam", 1, "tom")
                fork(store, "sam", 2, "tom")
            assert_whole(store.reader("tom"), "tom")
            assert store.reader("tom").head("tom").seq == 3
            assert check(store.partition(partition_of("tom"))).ok


def test_only_a_fork_begins_a_stream_in_the_middle(store: Store) -> None:
    """A record at a seq above 1 of a stream without records is refused, whatever its content."""
    say(store, "sam", Drafts(), 3)
    store.register("tom")
    log = store.open("tom", "test")
    with pytest.raises(Exception, match="expected"):
        log.append("tom", 2, [Drafts().one()])


def test_a_fork_is_refused_while_an_erasure_is_pending(store: Store) -> None:
    """While an erasure is pending, a fork is refused, because the fork would keep the words for ever; afterwards the
    fork has the tombstones, and so has a fork of a fork.
    """
    drafts = Drafts()
    say(store, "sam", drafts, 4)
    fork(store, "sam", 3, "tom")
    log = store.open("sam", "test")
    log.append("sam", 4, [erasing(1, 2)])
    for parent in ("sam", "tom"):
        with pytest.raises(StoreError, match="an erasure of its records"):
            fork(store, parent, 3, "ann")
    log.seal()
    log.close()
    assert not store.reader("tom").erasing("tom")
    fork(store, "tom", 3, "ann")
    assert [text is None for _, text in words(store.reader("ann").read("ann", 1, 3))] == [True, True, False]
