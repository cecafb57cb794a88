"""Generations of a name: a fork that takes the name of a deleted agent has a stream of its own, and is found by the
name.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from everlog.events import BadInput, CorruptLog, UnknownAgent, uuid7
from everlog.store import FileStore, MemoryStore, Store, bare_name, check_new_name, generation_of, partition_of
from everlog.store.check.repair_register import look_at_register, repair_register
from tests.contract.draft_builders import NOW, Drafts
from tests.store.check.test_repair_register import faults
from tests.store.conftest import now
from tests.store.streams.test_lost_streams import begun, file_of, remove, say
from tests.support.store.faulty_disk import Crash, FaultyDisk

SECOND = "tom@gen2"
CHANGES = {"create", "write", "sync", "link", "remove", "sync_dir", "make_dirs"}


@pytest.fixture(params=["memory", "files"])
def store(request: pytest.FixtureRequest) -> Store:
    return MemoryStore(2, now) if request.param == "memory" else begun(FaultyDisk())


def fork(store: Store, name: str, parent: str = "sam", at: int = 2) -> None:
    store.fork(parent, at, name, event_id=uuid7(NOW, at * 1000 + len(name)))


def written(store: Store, *names: str) -> Store:
    """Let agents write some records, one of them in a shard."""
    for name in names:
        store.register(name, shared=name == "ann")
        log = store.open(name, "test")
        log.append(name, 0, Drafts(NOW + 100_000 * (1 + sum(name.encode()))).some(3))
        log.close()
    return store


def test_a_name_leads_to_its_newest_agent_and_an_ending_to_one_of_them(store: Store) -> None:
    """`latest` finds the newest generation; NAME@genN is that one, and NAME@gen1 the first."""
    written(store, "sam", "tom")
    assert [store.latest(name) for name in ("sam", "tom", "nobody", "tom@gen1")] == ["sam", "tom", "nobody", "tom"]
    assert store.next_generation("tom") == SECOND
    fork(store, SECOND)
    fork(store, store.next_generation(SECOND))
    assert store.latest("tom") == "tom@gen3"
    assert [store.latest(f"tom@gen{number}") for number in (1, 2, 3, 4)] == ["tom", SECOND, "tom@gen3", "tom@gen4"]
    with pytest.raises(UnknownAgent):
        store.reader("tom@gen4")
    assert store.parent_of(SECOND) == ("sam", 2) and store.parent_of("tom") is None


def test_generations_share_no_record(store: Store) -> None:
    """Records of the deleted agent stay what they were, also if both agents are in the same shard."""
    written(store, "sam", "tom")
    before = list(store.reader("tom").read("tom"))
    fork(store, SECOND)
    for name in ("tom", SECOND):
        log = store.open(name, "test")
        store.begin_move(log, name, "shard-001")
        log.close()
        store.open(name, "test").close()
    assert [*store.reader("tom").read("tom")][: len(before)] == before
    seqs = [(record.agent_id, record.seq) for record in store.reader(SECOND).read(SECOND)]
    assert seqs == [("sam", 1), ("sam", 2), (SECOND, 3), (SECOND, 4), (SECOND, 5)]


def test_no_other_stream_is_taken_for_a_generation(store: Store) -> None:
    """Sources, shared blocks and names that are as long as a name can be have no generations."""
    for name in ("source:tom", "block:tom@gen2", "x" * 255):
        assert store.latest(name) == name
    with pytest.raises(BadInput, match="1 to 255 bytes"):
        fork(written(store, "sam"), store.next_generation("x" * 255))


def test_a_name_with_the_ending_is_not_given_to_a_new_agent(store: Store) -> None:
    """Otherwise the name without the ending would lead to an agent that has nothing to do with it."""
    written(store, "sam", "tom")
    for name in ("tom@gen2", "new@gen1", "a@gen999999"):
        with pytest.raises(BadInput, match="cannot be called"):
            check_new_name(name, store.partition_of)
    for name in ("tom@gen", "tom@gen0", "tom@gen02", "tom@gen2x", "@gen2", "tom@2"):
        assert bare_name(name) == name
        check_new_name(name, store.partition_of)
    fork(store, SECOND)
    check_new_name(SECOND, store.partition_of)
    assert generation_of(SECOND) == ("tom", 2) and generation_of("tom@gen3").earlier == ["tom@gen1", "tom@gen2"]


def test_an_agent_that_had_such_a_name_already_keeps_it(store: Store) -> None:
    """An agent of an older everlog, or of another store, is found by its own name."""
    written(store, "tom@gen1", "tom")
    assert store.latest("tom@gen1") == "tom@gen1" and store.latest("tom") == "tom"


def test_a_generation_from_another_store_is_not_skipped(store: Store) -> None:
    """If a still later agent of the name is here, the next one cannot begin: the name would lead to the later one."""
    written(store, "sam", "tom")
    fork(store, "tom@gen3")
    assert store.latest("tom") == "tom"
    with pytest.raises(BadInput, match="'tom@gen3' came from another store"):
        store.next_generation("tom")


def made() -> FaultyDisk:
    disk = FaultyDisk()
    store = begun(disk)
    for name in ("sam", "tom"):
        say(store, name, 3)
    fork(store, SECOND)
    say(store, SECOND)
    return disk


@pytest.mark.parametrize("lost", ["file", "folder"])
def test_the_loss_of_a_newer_agent_never_leads_to_the_older_one(lost: str) -> None:
    """A lost file of the register, or a lost log, of the newest agent is an error for the name; the repair of the
    register makes the file again from the log.
    """
    disk = made()
    gone = file_of(SECOND) if lost == "file" else Path("/sim/log") / partition_of(SECOND)
    remove(disk, lambda path: gone in (path, *path.parents))
    store = begun(disk)
    with pytest.raises(CorruptLog, match=r"[Rr]estore"):
        store.reader(store.latest("tom")).head(SECOND)
    assert faults(store)
    if lost == "file":
        repair_register(store, look_at_register(store))
        assert begun(disk).latest("tom") == SECOND and faults(begun(disk)) == []
        assert begun(disk).parent_of(SECOND) == ("sam", 2)


def test_the_lookup_of_a_name_costs_two_looks_at_the_disk_and_reads_nothing() -> None:
    """A name without a later agent costs one look into the register, for a file that is not there, and one at the logs,
    also in a store with shards.
    """
    disk = FaultyDisk()
    store = begun(disk)
    say(store, "sam", 3, shared=True)
    looks: list[Path] = []
    exists: Callable[[Path], bool] = disk.exists

    def counted(path: Path) -> bool:
        looks.append(path)
        return exists(path)

    def missed(path: Path, *_: int | None) -> bytes:
        looks.append(path)
        assert not exists(path)
        raise FileNotFoundError(path)

    disk.exists = counted  # type: ignore[method-assign]
    disk.read = missed  # type: ignore[method-assign]
    disk.names = None  # type: ignore[assignment, method-assign]
    assert store.latest("sam") == "sam" and len(looks) == 2


def test_a_fork_of_a_deleted_name_that_was_interrupted_anywhere_is_finished_by_the_same_call() -> None:
    """After a crash before any change of the disk, the name leads to the old agent or to the new one, the old one has
    all of its records, and the same fork is finished.
    """

    def start() -> tuple[FaultyDisk, FileStore]:
        disk = FaultyDisk()
        store = begun(disk)
        for name in ("sam", "tom"):
            say(store, name, 3)
        return disk, store

    whole, store = start()
    first = len(whole.log)
    fork(store, SECOND)
    steps = [step for step in range(first, len(whole.log)) if whole.log[step][0] in CHANGES]
    assert len(steps) > 5
    found = set()
    for step in steps:
        disk, store = start()
        disk.crash_at = step
        with pytest.raises(Crash):
            fork(store, SECOND)
        for after in (disk.power_loss(), disk.killed()):
            store = begun(after)
            assert store.reader("tom").head("tom").seq == 3
            found.add(newest := store.latest("tom"))
            wanted = newest if newest == SECOND else store.next_generation(newest)
            if newest == "tom" or not store.reader(newest).head(newest).seq:
                fork(store, wanted)
            assert store.latest("tom") == SECOND and store.reader(SECOND).head(SECOND).seq == 3
            assert faults(store) == []
    assert found == {"tom", SECOND}
