"""The repair of the register: every lost, damaged or wrong file is made again from the logs, also after a crash."""

import itertools
from pathlib import Path

import msgspec
import pytest

from everlog.events import CorruptLog, PartitionBusy, uuid7
from everlog.store import (
    FileStore,
    check,
    check_forks,
    check_moves,
    check_register,
    partition_of,
)
from everlog.store.check.repair_plan import RepairPlan
from everlog.store.check.repair_register import look_at_register, repair_register
from everlog.store.streams.register_file import Assignment, encode_assignments
from tests.contract.draft_builders import NOW
from tests.store.streams.test_lost_streams import begun, family, file_of, mark_of, remove, say
from tests.support.seeds import few_and_all, pick
from tests.support.store.export_helpers import save
from tests.support.store.faulty_disk import Crash, FaultyDisk, Inode

CHANGES = {"create", "write", "sync", "link", "remove", "sync_dir", "make_dirs"}
NAMES = ("ann", "bob", "kid", "max", "sam")
MOVED = ".000002"


def repaired(disk: FaultyDisk) -> RepairPlan:
    """Repair the register on a disk. Return the plan, after which nothing is left to do."""
    store = begun(disk)
    plan = look_at_register(store)
    repair_register(store, plan)
    again = look_at_register(begun(disk))
    assert again.changes == [] and again.unrepairable == plan.unrepairable
    return plan


def faults(store: FileStore) -> list[str]:
    """Return the faults that `log check --all --deep` reports."""
    found = [error for name in store.partitions() for error in check(store.partition(name), deep=True).errors]
    return [*found, *check_register(store).errors, *check_moves(store), *check_forks(store)]


def streams(store: FileStore) -> dict[str, list[str]]:
    """Return the event ids of all records of each agent, and where it is."""
    found = {name: [r.event_id for r in store.reader(name).read(name)] for name in store.agents()}
    return {name: [store.partition_of(name), *ids] for name, ids in found.items()}


def spoil(disk: FaultyDisk, path: Path, content: bytes) -> None:
    """Give a file another content, durably."""
    inode = Inode()
    inode.content, inode.durable = bytearray(content), content
    disk.files[path] = disk.durable_names[path] = inode


def moved_file(name: str) -> Path:
    return file_of(name).with_name(file_of(name).name + MOVED)


def whole() -> tuple[FaultyDisk, dict[str, list[str]]]:
    disk = FaultyDisk()
    return disk, streams(family(disk))


def test_a_sound_register_is_left_alone() -> None:
    """Nothing is planned for a store without a fault: not for forks, moved agents, files of everlog 0.1, and agents
    that were registered and have not begun.
    """
    disk, before = whole()
    store = begun(disk)
    store.register("new")
    store.register("new too", shared=True)
    spoil(disk, file_of("sam"), msgspec.json.encode(Assignment("sam", partition_of("sam"))))
    state = disk.state()
    assert repaired(disk) == RepairPlan()
    assert disk.state() == state and faults(store) == []
    assert streams(store) == {**before, "new": [partition_of("new")], "new too": [store.partition_of("new too")]}


@pytest.mark.parametrize("lost", [*itertools.combinations(NAMES, 1), ("kid", "sam"), NAMES])
def test_lost_files_are_made_again(lost: tuple[str, ...]) -> None:
    """After the repair every agent has all of its records, in the partition that it was in, and no fault is left."""
    disk, before = whole()
    remove(disk, lambda path: any(path == file_of(name) for name in lost))
    assert len(faults(begun(disk))) >= len(lost)
    plan = repaired(disk)
    assert [change.stream for change in plan.changes] == sorted(lost) and plan.unrepairable == []
    store = begun(disk.power_loss())
    assert streams(store) == before and faults(store) == []
    for name in NAMES:
        say(store, name)
    assert faults(store) == []


def test_the_lost_file_of_a_move_is_no_fault_of_the_register() -> None:
    """Without the newest file of an agent that moved, the agent is where its log says after a repair, or by itself."""
    disk, before = whole()
    remove(disk, lambda path: path == moved_file("max"))
    assert any("holds records of 'max', but the register has it in" in fault for fault in faults(begun(disk)))
    assert [change.stream for change in repaired(disk).changes] == ["max"]
    assert streams(begun(disk)) == before and faults(begun(disk)) == []


def test_a_damaged_or_wrong_file_is_kept_beside_the_right_one() -> None:
    """The bytes stay, under a name that the register ignores; a second repair keeps other bytes under another name."""
    disk, before = whole()
    path = file_of("kid")
    right = bytes(disk.files[path].content)
    wrong = encode_assignments([Assignment("kid", partition_of("kid"), 1, "ann", 1)])
    for content, ending in (
        (b"x", ".damaged"), (b"y", ".damaged.2"), (b"x", ".damaged"), (wrong, ".wrong"),
        (encode_assignments([Assignment("kid", partition_of("kid"))]), ".wrong.2"),
        (encode_assignments([Assignment("sam", partition_of("sam"))]), ".damaged.3"),
        (encode_assignments([Assignment("kid", "shard-000", 1, "sam", 2)]), ".wrong.3"),
    ):  # fmt: skip
        spoil(disk, path, content)
        assert faults(begun(disk))
        assert [change.kind for change in repaired(disk).changes] == ["registered"]
        assert bytes(disk.files[path].content) == right
        assert bytes(disk.files[path.with_name(path.name + ending)].content) == content
        assert streams(begun(disk)) == before and faults(begun(disk)) == []


def test_a_name_without_a_record_anywhere_is_given_up_and_free_again() -> None:
    """The registration of an agent that lost all records is kept as `.lost`, and the name can be created again."""
    disk, before = whole()
    say(begun(disk), "solo")
    for path, inode in disk.files.items():
        if partition_of("solo") in path.parts and path.suffix == ".open":
            inode.content.clear()
    (change,) = repaired(disk).changes
    assert (change.stream, change.kind) == ("solo", "given_up") and "has no record in any log" in change.text
    store = begun(disk)
    assert streams(store) == before and faults(store) == []
    assert file_of("solo").with_name(file_of("solo").name + ".lost") in disk.files
    say(store, "solo", 2)
    assert store.reader("solo").head("solo").seq == 2 and faults(store) == []


@pytest.mark.parametrize("name", ["solo", "joe"])
def test_a_name_whose_log_folder_is_lost_is_given_up(name: str) -> None:
    """The same holds if the whole folder of the log is missing, of a dedicated agent or of a shard."""
    disk = FaultyDisk()
    store = begun(disk)
    say(store, "sam")
    say(store, name, shared=name == "joe")
    place = store.partition_of(name)
    remove(disk, lambda path: place in path.parts)
    assert [change.kind for change in repaired(disk).changes] == ["given_up"]
    assert faults(begun(disk)) == []
    say(begun(disk), name, shared=name == "joe")
    assert faults(begun(disk)) == [] and begun(disk).agents() == sorted(["sam", name])


def test_a_dedicated_log_that_was_opened_and_has_no_record_frees_its_name() -> None:
    """If the register lost the file of an agent that had not begun, the repair makes the name free."""
    disk = FaultyDisk()
    store = begun(disk)
    store.register("sam")
    store.open("sam", "test").close()
    remove(disk, lambda path: path in (file_of("sam"), mark_of("sam")))
    with pytest.raises(CorruptLog, match="in the register, is missing"):
        begun(disk).register("sam")
    (change,) = repaired(disk).changes
    assert (change.stream, change.kind) == ("", "given_up")
    say(begun(disk), "sam")
    assert faults(begun(disk)) == []
    remove(disk, lambda path: path == file_of("sam"))
    with pytest.raises(CorruptLog, match="in the register, is missing"):  # it has a record now
        begun(disk).register("sam")


def test_an_agent_that_lost_its_records_after_a_move_continues_where_it_left() -> None:
    """Its records before the move are whole: it arrives again, after its departure, and the change says so."""
    disk, _ = whole()
    place = begun(disk).partition_of("max")
    for path, inode in disk.files.items():
        if place in path.parts and path.suffix == ".open":
            inode.content.clear()
    store = begun(disk)
    lost = {name for name in NAMES if store.partition_of(name) == place} - {"max"}
    assert any("'max' is registered and has begun" in fault for fault in faults(store))
    changes = {change.stream: change.kind for change in repaired(disk).changes}
    assert changes == {"max": "continued", **dict.fromkeys(lost, "given_up")}
    say(begun(disk), "max")
    assert faults(begun(disk)) == []


def test_forks_get_the_parent_whose_chain_matches(tmp_path: Path) -> None:
    """A fork of a fork is found, and a fork from an export, whose first record may name a fork that is not here."""
    disk, _ = whole()
    store = begun(disk)
    store.fork("kid", 4, "grandkid", event_id=uuid7(NOW, 70))
    store.fork("kid", 1, "early", event_id=uuid7(NOW, 71))
    store.fork("early", 1, "earlier", event_id=uuid7(NOW, 72))
    before = streams(store)
    save(store, "earlier", tmp_path / "earlier.everlog")
    names = [*NAMES, "grandkid", "early", "earlier"]
    remove(disk, lambda path: any(path == file_of(name) for name in names))
    assert repaired(disk).unrepairable == []
    assert streams(begun(disk)) == before and faults(begun(disk)) == []
    other = FaultyDisk()
    store = begun(other)
    store.restore(tmp_path / "earlier.everlog")
    before = streams(store)
    remove(other, lambda path: path == file_of("earlier"))
    assert repaired(other).unrepairable == []
    assert streams(begun(other)) == before and faults(begun(other)) == []


def test_logs_that_contradict_each_other_are_named_and_left() -> None:
    """Two streams of one name without a move between them, a fork without its parent's log, and a stream whose first
    records are missing cannot be repaired; all others are.
    """
    disk, _ = whole()
    store = begun(disk)
    twice = Assignment("ann", partition_of("ann"))
    remove(disk, lambda path: path == file_of("ann"))
    store.register_files._check_unknown = list  # type: ignore[assignment]
    store.register_files._known.clear()
    store.register_files.add(twice)
    say(store, "ann", 3)
    remove(disk, lambda path: path == file_of("bob"))
    plan = repaired(disk)
    assert [change.stream for change in plan.changes] == ["bob"]
    (why,) = plan.unrepairable
    assert "'ann' has the records" in why and "no records of moves connect them" in why and "backup" in why
    disk, _ = whole()
    remove(disk, lambda path: partition_of("sam") in path.parts or path in (file_of("kid"), file_of("sam")))
    (why,) = repaired(disk).unrepairable
    assert "'kid' was forked from 'sam' at seq 2, and no sound log of this store has the records" in why
    disk, _ = whole()
    remove(disk, lambda path: partition_of("max") in path.parts or path == file_of("max"))
    (why,) = repaired(disk).unrepairable
    assert "'max' has the records" in why and "those before are missing" in why


def test_the_names_in_a_partition_that_cannot_be_read_stay() -> None:
    """Damage in a log is reported; no name that may be in it is given up."""
    disk, _ = whole()
    store = begun(disk)
    place = store.partition_of("ann")
    for path in [path for path in disk.files if place in path.parts and path.name.startswith("manifest-")]:
        disk.files[path].content[5] ^= 1
    spoil(disk, file_of("ann"), b"x")
    files = {path for path in disk.files if "agents" in path.parts}
    plan = repaired(disk)
    assert [why.partition(" cannot be read")[0] for why in plan.unrepairable[:1]] == [f"log/{place}"]
    assert {path for path in disk.files if "agents" in path.parts} >= files


def test_a_store_that_is_in_use_is_not_repaired() -> None:
    """While a process has any partition open, looking and repairing are PartitionBusy."""
    disk, _ = whole()
    remove(disk, lambda path: path == file_of("ann"))
    plan = look_at_register(begun(disk))
    log = begun(disk).open("sam", "chat")
    for ask in (lambda: look_at_register(begun(disk)), lambda: repair_register(begun(disk), plan)):
        with pytest.raises(PartitionBusy, match="is open in another process"):
            ask()
    log.close()
    repair_register(begun(disk), plan)
    assert faults(begun(disk)) == []


def test_an_interrupted_move_is_left_to_the_next_opening() -> None:
    """A departure that the register does not have yet is no fault: opening finishes it."""
    disk = FaultyDisk()
    store = family(disk)
    log = store.open("sam", "test")
    disk.fail("link", 28, name=moved_file("sam").name)
    with pytest.raises(Exception, match="full"):
        store.begin_move(log, "sam", "shard-000")
    log.close()
    assert faults(begun(disk)) == [] and repaired(disk) == RepairPlan()
    begun(disk).open("sam", "test").close()
    assert begun(disk).partition_of("sam") == "shard-000" and faults(begun(disk)) == []


@pytest.mark.parametrize("count", few_and_all(10, part="storage"))
def test_a_repair_that_crashed_anywhere_is_finished_by_the_same_call(count: int | None) -> None:
    """After a crash before any change of the disk, of the process or of the machine, the same repair ends as one that
    was not interrupted.
    """

    def broken() -> FaultyDisk:
        disk, _ = whole()
        store = begun(disk)
        say(store, "solo")
        store.register("used")
        store.open("used", "test").close()
        for path, inode in disk.files.items():
            if path.suffix == ".open" and store.partition_of("solo") in path.parts:
                inode.content.clear()
                inode.durable = b""
        gone = (file_of("ann"), file_of("used"), mark_of("used"), moved_file("max"))
        remove(disk, lambda path: path in gone)
        spoil(disk, file_of("kid"), b"x")
        spoil(disk, file_of("sam"), encode_assignments([Assignment("sam", "shard-001")]))
        disk.durable_names = dict(disk.files)
        return disk

    def kept(disk: FaultyDisk) -> list[str]:
        found = [path.name for path in disk.files if "agents" in path.parts]  # a mark of a log is never synced
        return sorted(name for name in found if name.endswith((".damaged", ".wrong", ".lost")))

    disk = broken()
    start = len(disk.log)
    expected = repaired(disk)
    end = len(disk.log)
    before = streams(begun(disk))
    assert len(expected.changes) == 6 and expected.unrepairable == []
    assert sorted(before) == sorted(NAMES) and faults(begun(disk)) == []
    steps = [step for step in range(start, end) if disk.log[step][0] in CHANGES]
    for step in pick(steps, count, label="repairing"):
        crashing = broken()
        crashing.crash_at = step
        with pytest.raises(Crash):
            repaired(crashing)
        for after in (crashing.killed(), crashing.power_loss()):
            repaired(after)
            store = begun(after)
            assert streams(store) == before and faults(store) == []
            assert kept(after) == kept(disk)
            say(store, "used")
            say(store, "solo")
