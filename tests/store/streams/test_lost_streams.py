"""Names, folders and records that are lost: none of them begins again, and what never began is no loss."""

from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import msgspec
import pytest

from everlog.events import CorruptLog, StoreError, uuid7
from everlog.store import FileStore, MemoryStore, partition_of
from everlog.store.base.names import hash_of
from everlog.store.streams.register_file import Assignment
from tests.contract.draft_builders import NOW, Drafts
from tests.store.conftest import now
from tests.support.seeds import few_and_all, pick
from tests.support.store.faulty_disk import Crash, FaultyDisk

ROOT = Path("/sim")
REPAIR = "everlog log repair-register"


def begun(disk: FaultyDisk, shards: int = 2) -> FileStore:
    return FileStore.create(ROOT, now, "sim", shards=shards, disk=disk)


def say(store: FileStore, name: str, count: int = 1, *, shared: bool = False) -> None:
    """Let an agent, which is created if it does not exist, write some records."""
    store.register(name, shared=shared)
    log = store.open(name, "test")
    seq = store.reader(name, log).head(name).seq
    log.append(name, seq, Drafts(NOW + 1000 * (seq + crc32(name.encode()))).some(count))
    log.close()


def mark_of(name: str) -> Path:
    digest = hash_of(name)
    return ROOT / "agents" / digest[:2] / f"{digest}.new"


def file_of(name: str) -> Path:
    return mark_of(name).with_suffix("")


def remove(disk: FaultyDisk, wanted: Callable[[Path], bool]) -> None:
    """Remove files and folders from a disk."""
    for names in (disk.files, disk.durable_names):
        for path in [path for path in names if wanted(path)]:
            del names[path]
    disk.folders -= {path for path in disk.folders if wanted(path)}


def family(disk: FaultyDisk) -> FileStore:
    """Sam with a fork Kid; Ann and Bob in shards, and Max, who moved from his own log to a shard."""
    store = begun(disk)
    say(store, "sam", 3)
    store.fork("sam", 2, "kid", event_id=uuid7(NOW, 7))
    say(store, "kid")
    for name in ("ann", "bob"):
        say(store, name, 2, shared=True)
    say(store, "max", 2)
    log = store.open("max", "test")
    store.begin_move(log, "max", "shard-001")
    log.close()
    say(store, "max", 2)
    return store


@pytest.mark.parametrize("shared", [False, True])
def test_a_mark_exists_exactly_until_the_first_record_is_durable(shared: bool) -> None:
    """Registering creates the mark with the same sync, and the first commit removes it; later ones look for nothing."""
    disk = FaultyDisk()
    store = begun(disk)
    start = len(disk.log)
    store.register("sam", shared=shared)
    syncs = [operation for operation, _ in disk.log[start:] if operation in ("sync", "sync_dir", "make_dirs")]
    assert syncs == ["make_dirs", "make_dirs", "sync", "sync_dir"]
    assert mark_of("sam") in disk.durable_names
    log = store.open("sam", "test")
    assert mark_of("sam") in disk.files
    log.append("sam", 0, Drafts().some(1))
    assert mark_of("sam") not in disk.files
    log.close()
    store.register_many(["a", "b", "c"], shared=True)
    assert all(mark_of(name) in disk.durable_names for name in "abc")


def test_a_mark_that_a_power_failure_brought_back_means_nothing_and_is_removed() -> None:
    """The removal of a mark is not synced. After a power loss the agent has its records, and opening it removes the
    mark.
    """
    disk = FaultyDisk()
    say(begun(disk), "sam", 2)
    after = disk.power_loss()
    assert mark_of("sam") in after.files
    store = begun(after)
    store.check_not_lost("sam")
    say(store, "sam", 1)
    assert store.reader("sam").head("sam").seq == 3 and mark_of("sam") not in after.files


def test_a_mark_that_cannot_be_removed_fails_no_append() -> None:
    """The commit is acknowledged, and the next opening removes the mark."""
    disk = FaultyDisk()
    store = begun(disk)
    store.register("sam")
    log = store.open("sam", "test")
    disk.fail("remove", 5)
    assert log.append("sam", 0, Drafts().some(1)).number == 1
    log.close()
    assert mark_of("sam") in disk.files
    store.open("sam", "test").close()
    assert mark_of("sam") not in disk.files


@pytest.mark.parametrize("how", ["dedicated", "shared", "fork", "move"])
@pytest.mark.parametrize("count", few_and_all(12, part="storage"))
def test_a_creation_that_crashed_anywhere_is_finished_or_was_acknowledged(how: str, count: int | None) -> None:
    """After a crash before any operation of a creation, the same calls finish it: only a lost record is a loss."""

    def create(disk: FaultyDisk) -> None:
        store = begun(disk)
        if how == "fork":
            parent = store.reader("sam").head("sam").seq
            store.fork("sam", parent, "kid", event_id=uuid7(NOW, 7))
            return
        say(store, "kid", shared=how == "shared")
        if how == "move":
            log = store.open("kid", "test")
            store.begin_move(log, "kid", "shard-001")
            log.close()
            say(store, "kid")

    def prepared() -> FaultyDisk:
        disk = FaultyDisk()
        say(begun(disk), "sam", 3)
        return disk

    whole = prepared()
    start = len(whole.log)
    create(whole)
    for step in pick(range(start, len(whole.log)), count, label="creating"):
        disk = prepared()
        disk.crash_at = step
        with pytest.raises(Crash):
            create(disk)
        for after in (disk.killed(), disk.power_loss()):
            store = begun(after)
            for name in store.agents():
                store.check_not_lost(name)
            if how != "fork" or "kid" not in store.agents() or not store.reader("kid").head("kid").seq:
                create(after)
            assert begun(after).reader("kid").head("kid").seq >= 1


def test_an_agent_that_lost_its_records_never_begins_again() -> None:
    """A registered agent that had a record and has none is refused by its owner and by `check_not_lost`, without a
    change; the others of its shard are not.
    """
    disk = FaultyDisk()
    store = begun(disk, 1)
    say(store, "ann", shared=True)
    for path, inode in disk.files.items():
        if path.suffix == ".open":
            inode.content.clear()
    store.register("bob", shared=True)
    before = {path: bytes(inode.content) for path, inode in disk.files.items() if path.parts[2] == "agents"}
    message = rf"'ann' is registered and has begun, but its log, log/shard-000, has no record of it.*`{REPAIR}`"
    with pytest.raises(CorruptLog, match=message):
        begun(disk, 1).check_not_lost("ann")
    log = store.open("bob", "test")
    with pytest.raises(CorruptLog, match=message):
        store.finish_move(log, "ann")
    log.append("bob", 0, Drafts().some(1))
    log.close()
    after = {path: bytes(inode.content) for path, inode in disk.files.items() if path.parts[2] == "agents"}
    assert before.items() - after.items() == {(mark_of("bob"), b"")} and after.items() <= before.items()


def test_an_agent_that_lost_all_files_of_its_log_gets_no_new_ones() -> None:
    """An empty folder in place of a log is refused before any file is made in it."""
    for name, shared in (("sam", False), ("ann", True)):
        disk = FaultyDisk()
        store = begun(disk)
        say(store, name, shared=shared)
        place = ROOT / "log" / store.partition_of(name)
        remove(disk, lambda path, place=place: path.parent == place)  # type: ignore[misc]
        for take in (lambda: store.open(name, "test"), lambda: store.open_partition(place.name, "host")):  # noqa: B023
            with pytest.raises(CorruptLog, match="is registered and has begun"):
                take()
        assert not [path for path in disk.files if path.parent == place]


def test_a_fork_or_a_moved_agent_that_lost_its_records_never_begins_again() -> None:
    """The same holds for a fork, whose first record is not the first seq, and for an agent after its move."""
    disk = FaultyDisk()
    store = family(disk)
    for name in ("kid", "max"):
        after = disk.killed()
        place = ROOT / "log" / store.partition_of(name)
        for path, inode in after.files.items():
            if path.parent == place and path.suffix == ".open":
                inode.content.clear()
        with pytest.raises(CorruptLog, match=f"'{name}' is registered and has begun"):
            begun(after).open(name, "test")
    after = disk.killed()
    remove(after, lambda path: path.suffix == ".open" and path.parent.name == partition_of("kid"))
    with pytest.raises(StoreError):
        begun(after).fork("sam", 2, "kid", event_id=uuid7(NOW, 8))


def test_no_missing_folder_is_made_where_agents_were() -> None:
    """Opening, registering and moving refuse a partition whose folder is missing although agents are or were in it."""
    disk = FaultyDisk()
    family(disk)
    for place in ("shard-000", "shard-001", partition_of("max"), partition_of("sam")):
        after = disk.killed()
        remove(after, lambda path, place=place: place in path.parts)  # type: ignore[misc]
        lost = begun(after)
        with pytest.raises(CorruptLog, match=f"log/{place}, the log of .* is missing. Restore it from a backup"):
            lost.open_partition(place, "host")
        with pytest.raises(CorruptLog, match="is missing"):
            if place.startswith("shard-"):
                lost.register_many([f"new {number}" for number in range(9)], shared=True)
            lost.open("sam", "test").close()
            log = lost.open("max", "test")
            lost.begin_move(log, "max", place)
        assert not any(place in path.parts for path in after.folders)


def test_a_name_that_a_partition_knows_is_not_registered_again() -> None:
    """Without its file in the register a name is CorruptLog for every call that registers or looks it up, and nothing
    is changed.
    """
    disk = FaultyDisk()
    family(disk)
    for name in ("sam", "kid", "ann", "bob", "max"):
        after = disk.killed()
        remove(after, lambda path, name=name: path == file_of(name))  # type: ignore[misc]
        store = begun(after)
        before = after.state()
        for ask in (
            lambda: store.register(name), lambda: store.register(name, shared=True),  # noqa: B023
            lambda: store.register_many(["new", name], shared=True), lambda: store.reader(name),  # noqa: B023
            lambda: store.partition_of(name), lambda: store.open(name, "test"),  # noqa: B023
            lambda: store.fork("sam" if name != "sam" else "ann", 1, name, event_id=uuid7(NOW, 9)),  # noqa: B023
        ):  # fmt: skip
            with pytest.raises(CorruptLog, match=rf"{hash_of(name)}, the file of '{name}' in the register, is missing"):
                ask()
        assert after.state() == before and "new" not in store.agents()


def test_a_file_between_two_others_of_an_agent_that_is_lost_is_damage() -> None:
    """The first assignment of an agent that moved cannot be missing."""
    disk = FaultyDisk()
    store = family(disk)
    scan = begun(disk).register_files.scan()
    assert [place.epoch for place in scan.routes["max"]] == [1, 2] and not scan.damaged
    remove(disk, lambda path: path == file_of("max"))
    assert list(begun(disk).register_files.scan().damaged) == [file_of("max")]
    with pytest.raises(CorruptLog, match="is missing, but the register has a later file"):
        store.route("max")


def test_a_thousand_names_are_looked_up_with_one_read_of_each_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registering many names reads the open file of a shard once; a later name reads only what was appended since."""
    disk = FaultyDisk()
    store = begun(disk)
    for name in ("ann", "bob", "max", "zoe"):
        say(store, name, 20, shared=True)
    other = FileStore(ROOT, now, disk=disk)
    sizes: list[int] = []
    read = disk.read

    def counted(path: Path, *part: int) -> bytes:
        content = read(path, *part)
        if path.suffix == ".open":
            sizes.append(len(content))
        return content

    monkeypatch.setattr(disk, "read", counted)
    assert len(other.register_many([f"agent {number}" for number in range(1000)], shared=True)) == 1000
    whole = [len(inode.content) for path, inode in disk.files.items() if path.suffix == ".open"]
    assert sorted(sizes) == sorted(whole) and min(whole) > 0
    del sizes[:]
    other.register("one more", shared=True)
    assert sum(sizes) == 0


def test_a_name_that_another_process_registers_at_the_same_moment_is_no_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the name is registered and has records by the time that the partitions are asked, `register` returns False."""
    disk = FaultyDisk()
    ours, theirs = begun(disk), begun(disk)
    exists = disk.exists

    def late(path: Path) -> bool:
        found = exists(path)
        if path == file_of("sam") and not found:
            monkeypatch.setattr(disk, "exists", exists)
            say(theirs, "sam")
        return found

    for ask in (lambda: ours.register("sam"), lambda: begun(disk).register_many(["sam"])):
        monkeypatch.setattr(disk, "exists", late)
        assert not ask()
    assert ours.reader("sam").head("sam").seq == 1


def test_an_agent_of_an_old_store_without_records_may_begin() -> None:
    """A file of everlog 0.1 has no marks, so its agent begins; with records it is read and continued as ever."""
    disk = FaultyDisk()
    store = begun(disk)
    store.register("sam")
    disk.files[file_of("sam")].content[:] = msgspec.json.encode(Assignment("sam", partition_of("sam")))
    remove(disk, lambda path: path == mark_of("sam"))
    store = begun(disk)
    store.check_not_lost("sam")
    say(store, "sam", 2)
    say(store, "sam", 1)
    assert store.reader("sam").head("sam").seq == 3


def test_a_store_in_memory_keeps_the_same_calls() -> None:
    """In memory no record is lost: `check_not_lost` accepts an agent with and without records."""
    store = MemoryStore(2, now)
    store.register("sam")
    store.check_not_lost("sam")
    store.open("sam", "test").append("sam", 0, Drafts().some(1))
    store.check_not_lost("sam")
