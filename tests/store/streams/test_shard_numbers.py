"""The number of shards of a store that changes while agents run: every process sees it, and no crash loses it."""

import random
from pathlib import Path

import pytest

from everlog.events import BadInput, CorruptLog
from everlog.store import SHARDS_MAX, FileStore, Log, MemoryStore, Store, is_shared
from everlog.store.base.names import partition_of, shard_of
from everlog.store.check.check_register import check_register
from tests.contract.log_contract import Drafts
from tests.store.conftest import now
from tests.support.store.faulty_disk import Crash, FaultyDisk

ROOT = Path("/sim")
NAMES = [f"agent {number}" for number in range(40)]
DRAFTS = Drafts()


@pytest.fixture(params=["memory", "files"])
def store(request: pytest.FixtureRequest) -> Store:
    if request.param == "memory":
        return MemoryStore(2, now)
    return FileStore.create(ROOT, now, "sim", shards=2, disk=FaultyDisk())


def files(disk: FaultyDisk, shards: int | None = None) -> FileStore:
    return FileStore.create(ROOT, now, "sim", shards=shards, shards_new=2, disk=disk)


def speak(store: Store, names: list[str]) -> dict[str, int]:
    """Let each agent say something. Return the length of its stream."""
    ends = {}
    for name in names:
        log: Log = store.open(name, "test")
        ends[name] = log.append(name, store.reader(name, log).head(name).seq, [DRAFTS.one("a word")]).records[-1].seq
        log.close()
    return ends


def test_new_agents_go_to_the_new_number_and_others_stay_where_they_are(store: Store) -> None:
    """After a change an agent is placed by the new number; those that were there keep their logs, and can use them."""
    store.register_many(NAMES[:20], shared=True)
    speak(store, NAMES[:20])
    assert store.set_shards(5)
    assert store.shards == 5
    store.register_many(NAMES[20:], shared=True)
    places = store.assigned()
    assert [places[name] for name in NAMES] == [
        shard_of(name, 2 if number < 20 else 5) for number, name in enumerate(NAMES)
    ]
    assert set(speak(store, NAMES[:20]).values()) == {2}


@pytest.mark.parametrize("number", [0, -1, SHARDS_MAX + 1])
def test_an_impossible_number_is_refused(store: Store, number: int) -> None:
    """A store keeps its number if it is asked for none, for fewer or for too many shards."""
    with pytest.raises(BadInput, match="1 to 999 shards"):
        store.set_shards(number)
    assert store.shards == 2


def test_the_same_number_changes_nothing(store: Store) -> None:
    """The number that the store has already is no change."""
    assert not store.set_shards(2)
    assert store.set_shards(3)
    assert not store.set_shards(3)


def test_agents_go_to_new_shards_and_out_of_those_that_are_no_more(store: Store) -> None:
    """After 2 -> 4 -> 1 each agent has been moved each time, and has all its records in order."""
    store.register_many(NAMES, shared=True)
    for number in (4, 1):
        speak(store, NAMES)
        store.set_shards(number)
        for name in NAMES:
            log = store.open(name, "test")
            store.begin_move(log, name, shard_of(name, store.shards))
            log.close()
    ends = speak(store, NAMES)
    assert set(store.assigned().values()) == {"shard-000"}
    for name in NAMES:
        records = list(store.reader(name).read(name))
        assert [record.seq for record in records] == list(range(1, ends[name] + 1))
        assert sum(record.text == "a word" for record in records) == 3


def test_a_shard_that_is_no_more_can_be_left_and_no_unknown_one_entered(store: Store) -> None:
    """A move may lead to any shard that the store has had, and to no other."""
    store.register("sam", shared=True)
    speak(store, ["sam"])
    store.set_shards(4)
    store.set_shards(1)
    log = store.open("sam", "test")
    with pytest.raises(BadInput, match="this store's 4 shards"):
        store.begin_move(log, "sam", "shard-004")
    to = "shard-003"
    store.begin_move(log, "sam", to)
    log.close()
    assert store.partition_of("sam") == to
    speak(store, ["sam"])


def test_every_process_sees_a_change_at_once() -> None:
    """A store that was opened before the change reads the new number, and each new one too."""
    disk = FaultyDisk()
    first, second = files(disk), files(disk)
    assert second.shards == 2
    first.set_shards(3)
    second.set_shards(7)
    assert first.shards == second.shards == files(disk).shards == 7
    assert first.shard_numbers.all() == (2, 3, 7)


def test_two_changes_at_once_follow_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change that finds the name of its file taken is made after the other one."""
    disk = FaultyDisk()
    first, second = files(disk), files(disk)
    first.set_shards(3)
    seen = [(2,), (2, 3)]  # the second process looked before the first one wrote
    monkeypatch.setattr(second.shard_numbers, "all", lambda: seen.pop(0))
    monkeypatch.setattr(second.shard_numbers, "_known", (0, (2,)))
    assert not second.set_shards(3)
    monkeypatch.undo()
    assert second.set_shards(4)
    assert first.shard_numbers.all() == (2, 3, 4)


def test_a_crash_at_any_step_keeps_one_of_the_two_numbers() -> None:
    """If the power fails at any step, the store has the old number or the new one, and what was acknowledged stays."""
    crashes, done = 0, False
    while not done:
        disk = FaultyDisk()
        files(disk).set_shards(3)
        disk.crash_at = len(disk.log) + crashes
        try:
            done = files(disk).set_shards(5)
        except Crash:
            crashes += 1
        for chance in (None, random.Random(crashes)):
            again = files(disk.power_loss(chance))
            assert again.shards == 5 if done else again.shards in (3, 5)
            again.set_shards(6)
            assert again.shards == 6
    assert crashes > 5


def test_a_damaged_or_lost_file_is_an_error() -> None:
    """No bit of a file can change unseen, and a file that is missing before others is missed."""
    disk = FaultyDisk()
    store = files(disk)
    store.set_shards(3)
    store.set_shards(4)
    first = ROOT / "shards" / "000001"
    content = disk.read(first)
    for place in range(len(content)):
        disk.remove(first)
        file = disk.create(first)
        file.write([content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]], 0)
        file.close()
        with pytest.raises(CorruptLog, match="000001"):
            _ = files(disk).shards
    disk.remove(first)
    with pytest.raises(CorruptLog, match="has lost a file"):
        _ = files(disk).shards


def test_a_check_misses_the_folder_if_there_are_more_shards() -> None:
    """If the whole folder is lost, the check says so as soon as one of its shards was used."""
    disk = FaultyDisk()
    store = files(disk)
    store.set_shards(9)
    store.register_many(NAMES, shared=True)
    speak(store, NAMES)
    assert not check_register(store).errors
    for name in disk.names(ROOT / "shards"):
        disk.remove(ROOT / "shards" / name)
    (error,) = check_register(files(disk)).errors
    assert "tells of no such shard" in error


@pytest.mark.parametrize("numbers", [(2,), (2, 5), (2, 5, 3)])
def test_a_lost_file_of_the_register_is_missed_whatever_the_number_was(numbers: tuple[int, ...]) -> None:
    """An agent that began in a shard by an earlier number, and has lost its file in the register, is never begun
    again.
    """
    disk = FaultyDisk()
    for number in numbers:
        store = files(disk)
        store.set_shards(number)
        name = f"of {number}"
        store.register(name, shared=True)
        speak(store, [name])
    for number in numbers:
        store = files(disk)
        name = f"of {number}"
        disk.remove(store.register_files.path_of(name))
        for shared in (True, False):
            with pytest.raises(CorruptLog, match="the file of"):
                files(disk).register(name, shared=shared)


def test_a_store_without_shards_can_get_some() -> None:
    """A store that was made without shards gets them later; its agents stay in logs of their own until they move."""
    store = files(FaultyDisk(), shards=0)
    store.register("sam")
    speak(store, ["sam"])
    with pytest.raises(BadInput, match="everlog cluster shards 8"):
        store.register("ann", shared=True)
    store.set_shards(2)
    store.register("ann", shared=True)
    assert store.partition_of("sam") == partition_of("sam")
    assert is_shared(store.partition_of("ann"))
