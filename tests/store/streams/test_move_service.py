"""Agents that move between partitions: no record is lost, duplicated or shown twice, whenever the power fails."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from everlog.events import GENESIS, BadInput, CorruptLog, Draft, Moved, UnknownAgent, event_of, extend
from everlog.events.lifecycle import AgentMoved
from everlog.store import Append, FileLog, FileStore, Log, MemoryStore, Store, check, check_moves, partition_of
from everlog.store.base.move_records import arrival, departure
from everlog.store.streams.register_file import Assignment
from tests.contract.log_contract import Drafts
from tests.contract.seal_contract import erasing
from tests.store.conftest import now
from tests.store.sealed.test_seal_pass import Counting
from tests.support.seeds import few_and_all, pick
from tests.support.store.faulty_disk import Crash, FaultyDisk

ROOT = Path("/sim")
HOME = partition_of("sam")
ROUTE = [HOME, "shard-000", HOME, "shard-001", "shard-000"]
"""Partitions of sam, one after another."""


@pytest.fixture(params=["memory", "files"])
def store(request: pytest.FixtureRequest) -> Store:
    if request.param == "memory":
        store: Store = MemoryStore(2, now)
    else:
        store = FileStore.create(ROOT, now, "sim", shards=2, disk=FaultyDisk())
    store.register("sam")
    return store


def say(log: Log, drafts: list[Draft], seq: int) -> None:
    log.append("sam", seq, drafts)


def travel(store: Store, route: list[str], words: dict[int, list[Draft]]) -> None:
    """Let sam write some messages in each partition of the route, from its present one on. A repeated call is
    idempotent.
    """
    for stop, place in enumerate(route):
        said = {record.event_id for record in store.reader("sam").read("sam")}
        if words[stop][-1].event_id not in said:
            log = store.open("sam", "test")
            assert log.partition == place
            say(log, words[stop], store.reader("sam", log).head("sam").seq)
            log.close()
        following = words.get(stop + 1, [])
        later = stop + 1 < len(route) and following[-1].event_id not in said
        if later and store.partition_of("sam") == place:
            log = store.open_partition(place, "test")
            store.begin_move(log, "sam", route[stop + 1])
            log.close()


def words_for(route: list[str]) -> dict[int, list[Draft]]:
    drafts = Drafts()
    return {stop: [drafts.one(f"stop {stop} word {number}") for number in range(2)] for stop in range(len(route))}


def assert_whole(store: Store) -> list[str]:
    """Check that all reads agree, that the stream has no gap, that the chain is valid, and that each move is recorded
    once. Return the texts.
    """
    reader = store.reader("sam")
    records = list(reader.read("sam"))
    assert [record.seq for record in records] == list(range(1, len(records) + 1))
    assert len({record.event_id for record in records}) == len(records)
    chain = GENESIS
    for record in records:
        event = event_of(record)
        if isinstance(event, AgentMoved):
            assert (event.seq, event.chain) == (record.seq - 1, chain.hex())
        chain = extend(chain, record)
        assert reader.chain("sam", record.seq) == chain
    head = reader.head("sam")
    assert (head.seq, head.chain) == (len(records), chain if records else GENESIS)
    assert reader.table("sam").column("seq").to_pylist() == [record.seq for record in records]
    assert list(reader.read("sam", 2, 4)) == records[1:4]
    moves = [event for record in records if isinstance(event := event_of(record), AgentMoved)]
    assert [move.direction for move in moves] == (["to", "from"] * len(moves))[: len(moves)]
    return [record.text for record in records if record.text]


def test_an_agent_is_read_through_all_partitions_that_it_was_in(store: Store) -> None:
    """After a move to another partition and back, every read gives all records, once, in order; so does a read through
    the owner's log.
    """
    words = words_for(ROUTE)
    travel(store, ROUTE, words)
    assert assert_whole(store) == [draft.text for drafts in words.values() for draft in drafts]
    assert store.assigned() == {"sam": "shard-000"}
    log = store.open("sam", "test")
    mine = store.reader("sam", log)
    assert list(mine.read("sam")) == list(store.reader("sam").read("sam"))
    assert mine.head("sam") == store.reader("sam").head("sam") == log.head("sam")
    assert mine.partition == log.partition == "shard-000"
    log.close()


def test_a_left_partition_refuses_the_agents_records(store: Store) -> None:
    """After begin_move the old log refuses with Moved; repeating begin_move or finish_move is harmless."""
    log = store.open("sam", "test")
    drafts = Drafts()
    say(log, drafts.some(2), 0)
    store.begin_move(log, "sam", "shard-001")
    store.begin_move(log, "sam", "shard-001")
    assert log.head("sam").seq == 3 and log.head("sam").away
    (refused,) = log.append_group([Append("sam", 3, drafts.some(1))])
    assert isinstance(refused, Moved)
    for ask in (lambda: store.finish_move(log, "sam"), lambda: store.begin_move(log, "sam", "shard-000")):
        with pytest.raises(Moved, match="shard-001"):
            ask()
    there = store.open_partition("shard-001", "test")
    assert store.finish_move(there, "sam") and not store.finish_move(there, "sam")
    there.append("sam", 4, drafts.some(1))
    assert len(assert_whole(store)) == 3


def test_an_agent_moves_only_to_partitions_of_the_store(store: Store) -> None:
    """A partition other than its own and the shards is BadInput; an agent without records moves without a record."""
    log = store.open("sam", "test")
    for place in ("shard-002", partition_of("ann"), "elsewhere"):
        with pytest.raises(BadInput, match="cannot move to"):
            store.begin_move(log, "sam", place)
    store.begin_move(log, "sam", HOME)
    store.begin_move(log, "sam", "shard-000")
    assert store.partition_of("sam") == "shard-000"
    there = store.open("sam", "test")
    there.append("sam", 0, Drafts().some(1))
    assert there.partition == "shard-000" and store.reader("sam").head("sam").seq == 1
    with pytest.raises(UnknownAgent):
        store.begin_move(log, "ann", "shard-000")


CHANGES = ("create", "write", "sync", "link", "remove", "sync_dir", "make_dirs", "truncate")


def crashes(route: list[str], words: dict[int, list[Draft]], count: int | None = None) -> Iterator[FaultyDisk]:
    """Yield the disk after a death before `count` changes of the disk in a journey, or each: of the process, and of the
    machine.
    """
    whole = FaultyDisk()
    FileStore.create(ROOT, now, "sim", shards=2, disk=whole).register("sam")
    start = len(whole.log)
    travel(FileStore(ROOT, now, disk=whole), route, words)
    steps = [step for step in range(start, len(whole.log)) if whole.log[step][0] in CHANGES]
    for step in pick(steps, count, label="journeys"):
        disk = FaultyDisk()
        FileStore.create(ROOT, now, "sim", shards=2, disk=disk).register("sam")
        disk.crash_at = step
        with pytest.raises(Crash):
            travel(FileStore(ROOT, now, disk=disk), route, words)
        yield disk.power_loss()
        yield disk.killed()


@pytest.mark.parametrize("count", few_and_all(8, part="storage"))
def test_a_journey_that_ended_anywhere_is_finished(count: int | None) -> None:
    """After a crash at an operation all records are there, and the next owner reaches the uninterrupted result."""
    route = ROUTE[:3]
    words = words_for(route)
    everything = [draft.text for drafts in words.values() for draft in drafts]
    for disk in crashes(route, words, count):
        store = FileStore(ROOT, now, disk=disk)
        said = assert_whole(store)
        assert said == everything[: len(said)] and check_moves(store) == []
        travel(store, route, words)
        assert assert_whole(store) == everything
        assert check_moves(store) == []
        assert all(check(store.partition(partition)).ok for partition in store.partitions())


def test_check_finds_partitions_that_do_not_fit_together(tmp_path: Path) -> None:
    """A partition that was replaced by an older copy of itself is reported, although it is whole by itself."""
    store = FileStore.create(tmp_path, now, "s", shards=2)
    store.register("sam")
    travel(store, ROUTE[:2], words_for(ROUTE[:2]))
    assert check_moves(store) == []
    path = max((tmp_path / "log" / HOME).glob("*.open"))
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.rindex(b"EVLF")])
    for mark in path.parent.glob("closed-*"):  # the older copy had an older mark
        mark.unlink()
    assert check(store.partition(HOME)).ok
    (error,) = check_moves(store)
    assert "seq 3 is in none of the partitions" in error


def test_states_are_of_all_that_an_agent_said_anywhere() -> None:
    """Sealed in each partition, an agent has a state of all earlier records, followed by the rest. A state of an
    earlier moment has no later record.
    """
    disk = FaultyDisk()
    store = FileStore.create(ROOT, now, "sim", shards=2, disk=disk)
    store.register("sam")
    words = words_for(ROUTE)
    for stop in range(len(ROUTE)):
        log = store.open("sam", "test")
        say(log, words[stop], store.reader("sam", log).head("sam").seq)
        if stop % 2 == 0:
            log.seal(Counting())
        reader = store.reader("sam", log)
        state = reader.state("sam", "counting")
        assert state is not None and state.rows.column("seq").to_pylist() == [state.seq]
        if stop % 2 == 0:
            assert state.seq == reader.head("sam").seq
        assert reader.table("sam", state.seq + 1).num_rows == reader.head("sam").seq - state.seq
        for then in range(1, reader.head("sam").seq + 1):
            known = reader.state("sam", "counting", then)
            assert known is None or (known.rows.column("seq").to_pylist() == [known.seq] and known.seq <= then)
        (together,) = [states for states in store.states("counting") if "sam" in states.agents]
        assert together.rows is not None and together.rows.to_pylist() == state.rows.to_pylist()
        assert together.after.num_rows == reader.head("sam").seq - state.seq
        if stop + 1 < len(ROUTE):
            store.begin_move(log, "sam", ROUTE[stop + 1])
        log.close()
    assert_whole(store)
    assert check_moves(store) == []
    for partition in store.partitions():
        report = check(store.partition(partition), deep=True, derive=Counting())
        assert report.ok, report.errors


def test_an_erasure_leaves_the_moves() -> None:
    """Erasing all messages keeps the records of moves, which link the stream's partitions."""
    disk = FaultyDisk()
    store = FileStore.create(ROOT, now, "sim", shards=2, disk=disk)
    store.register("sam")
    travel(store, ROUTE[:2], words_for(ROUTE[:2]))
    log = store.open("sam", "test")
    head = log.head("sam")
    log.append("sam", head.seq, [erasing(1, head.seq)])
    log.seal()
    kinds = [record.type for record in log.read("sam") if not record.payload.startswith('{"erased"')]
    assert kinds == ["agent_moved", "records_erased"]
    log.close()
    assert check(store.partition("shard-000"), deep=True).ok
    assert assert_whole(store) == ["stop 0 word 0", "stop 0 word 1"]


def forged(log: FileLog, place: Append) -> None:
    """Append by hand a record that only a move may append."""
    log.append(place.agent_id, place.expected_seq, place.drafts)


def test_a_move_of_which_one_half_is_missing_is_damage() -> None:
    """An agent that is registered in another partition although its log has no departure is CorruptLog, and nothing is
    written.
    """
    disk = FaultyDisk()
    store = FileStore.create(ROOT, now, "sim", shards=2, disk=disk)
    store.register("sam")
    travel(store, ROUTE[:1], words_for(ROUTE[:1]))
    log = store.open("sam", "test")
    store._register.move(Assignment("sam", "shard-000", 2))
    with pytest.raises(CorruptLog, match="records after it are missing"):
        store.open("sam", "test")
    forged(log, departure("sam", log.head("sam"), "shard-001", 2, now()))
    with pytest.raises(Moved):
        store.finish_move(log, "sam")
    there = store.open_partition("shard-001", "test")
    with pytest.raises(Moved):
        store.finish_move(there, "sam")
    assert there.agents() == []


def test_only_an_arrival_begins_a_stream_in_the_middle(store: Store) -> None:
    """A record at a seq that is not the next is refused, unless it is an arrival that names the stream's old
    partition.
    """
    log, drafts = store.open("sam", "test"), Drafts()
    say(log, drafts.some(3), 0)
    head = log.head("sam")
    for bad in (Append("sam", 7, drafts.some(1)), arrival("sam", head.__class__(2, GENESIS), "shard-000", 3, now())):
        (refused,) = log.append_group([bad])
        assert type(refused).__name__ == "WrongSequence"
    (taken,) = log.append_group([arrival("sam", head.__class__(7, bytes(range(32))), "shard-000", 3, now())])
    assert log.head("sam") == head.__class__(8, extend(bytes(range(32)), taken.records[0]))  # type: ignore[union-attr]
