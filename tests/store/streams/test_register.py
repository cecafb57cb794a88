"""The register of agents: each agent's partition, for single agents and for thousands."""

import errno
from pathlib import Path

import pytest

from everlog.events import BadInput, CorruptLog, StoreError, UnknownAgent
from everlog.store import SHARDS_MAX, FileStore, MemoryStore, Store, partition_of
from everlog.store.base.names import hash_of
from everlog.store.streams import register
from tests.store.conftest import now
from tests.support.store.faulty_disk import Crash, FaultyDisk

ROOT = Path("/sim")
NAMES = [f"agent {number}" for number in range(300)]


def begun(disk: FaultyDisk, shards: int | None = 7) -> FileStore:
    return FileStore.create(ROOT, now, "sim", shards=shards, disk=disk)


@pytest.fixture(params=["memory", "files"])
def shared(request: pytest.FixtureRequest) -> Store:
    return MemoryStore(7) if request.param == "memory" else begun(FaultyDisk())


def test_a_store_keeps_the_number_of_shards_that_it_was_made_with(tmp_path: Path) -> None:
    """Opening with another number of shards is BadInput that names both numbers; without a number the store is
    opened.
    """
    assert FileStore.create(tmp_path, now, "s", shards=4).shards == 4
    assert FileStore.create(tmp_path, now, "s").shards == FileStore.create(tmp_path, now, "s", shards=4).shards == 4
    for other in (0, 5):
        with pytest.raises(BadInput, match=f"has 4 shared partitions, not {other}.*everlog cluster shards 8"):
            FileStore.create(tmp_path, now, "s", shards=other)
    assert FileStore.create(tmp_path / "new", now, "s").shards == 0


@pytest.mark.parametrize("shards", [-1, SHARDS_MAX + 1])
def test_a_number_of_shards_that_cannot_be_makes_no_store(tmp_path: Path, shards: int) -> None:
    """A number outside 0 to SHARDS_MAX is BadInput, and nothing is made."""
    with pytest.raises(BadInput, match=f"0 to {SHARDS_MAX}"):
        FileStore.create(tmp_path / "store", now, "s", shards=shards)
    assert not (tmp_path / "store").exists()


def test_agents_that_share_are_in_the_shard_of_their_name(shared: Store) -> None:
    """A shared agent is in the shard that the hash of its name gives; a dedicated agent has its own partition."""
    assert shared.register("sam", shared=True) and shared.register("ann")
    assert not shared.register("sam") and not shared.register("ann", shared=True)
    shard = f"shard-{int(hash_of('sam')[:8], 16) % 7:03d}"
    assert shared.assigned() == {"ann": partition_of("ann"), "sam": shard}
    assert shared.partition_of("sam") == shard == shared.reader("sam").partition
    with pytest.raises(UnknownAgent, match="'sam'"):
        shared.partition_of("sma")


@pytest.mark.parametrize("many", [False, True])
def test_no_agent_shares_in_a_store_without_shards(many: bool) -> None:
    """A shared agent in a store without shards is BadInput with that reason, and no agent is registered."""
    for store in (MemoryStore(), begun(FaultyDisk(), None)):
        with pytest.raises(BadInput, match="this store has no shards"):
            store.register_many(["sam"], shared=True) if many else store.register("sam", shared=True)
        assert store.agents() == []


def test_many_are_registered_as_one_by_one(shared: Store) -> None:
    """register_many places every agent like register, returns the new agents in order, and takes a repeated name
    once.
    """
    assert shared.register(NAMES[3], shared=True)
    assert shared.register_many([*NAMES, NAMES[1]], shared=True) == NAMES[:3] + NAMES[4:]
    assert shared.register_many(NAMES, shared=True) == []
    assert shared.agents() == sorted(NAMES) == list(shared.assigned())
    assert {shared.partition_of(name) for name in NAMES} == {f"shard-{number:03d}" for number in range(7)}
    assigned = shared.assigned()
    for name in NAMES:
        assert assigned[name] == shared.partition_of(name) == shared.reader(name).partition


def test_one_impossible_name_of_many_registers_no_agent(shared: Store) -> None:
    """One impossible name among many is BadInput before any agent is registered."""
    with pytest.raises(BadInput):
        shared.register_many(["sam", ""], shared=True)
    assert shared.agents() == []


def test_agents_of_one_shard_share_its_log(shared: Store) -> None:
    """Opening a partition by its name gives the log of all its agents."""
    shared.register_many(NAMES, shared=True)
    inside = [name for name in NAMES if shared.partition_of(name) == "shard-002"]
    log = shared.open_partition("shard-002", "test")
    assert log.partition == "shard-002" == shared.reader(inside[0]).partition
    log.close()
    assert shared.open(inside[1], "test").partition == "shard-002"


def test_registering_many_costs_few_syncs() -> None:
    """The number of syncs does not grow with the number of names, but with the 256 folders at most."""
    disk = FaultyDisk()
    store = begun(disk)
    store.register_many(NAMES[:100], shared=True)
    start = len(disk.log)
    store.register_many([f"other {number}" for number in range(3000)], shared=True)
    syncs = [operation for operation, _ in disk.log[start:] if operation in ("sync", "sync_dir", "make_dirs")]
    assert len(syncs) <= 3 * 256 + 7


def test_after_a_crash_at_any_step_the_same_call_continues() -> None:
    """After a power loss at any operation every visible agent is complete, and the same call registers the others."""
    whole = FaultyDisk()
    begun(whole).register_many(NAMES[:12], shared=True)
    for step in range(len(whole.log)):
        disk = FaultyDisk()
        disk.crash_at = step
        try:
            begun(disk).register_many(NAMES[:12], shared=True)
        except Crash:
            pass
        after = disk.power_loss()
        store = begun(after)
        seen = store.assigned()
        added = store.register_many(NAMES[:12], shared=True)
        assert {*seen, *added} == set(NAMES[:12]) and not set(seen) & set(added)
        final = begun(after.power_loss())
        assert final.assigned() == begun(whole).assigned()
        assert all(final.reader(name).agents() == [] for name in NAMES[:12])


def test_when_the_disk_is_full_the_same_call_continues_later() -> None:
    """A full disk fails the call with StoreError; when there is room, the same call registers the remaining agents."""
    disk = FaultyDisk()
    store = begun(disk)
    disk.fail("link", errno.ENOSPC, name=hash_of(NAMES[5]))
    with pytest.raises(StoreError, match="disk is full"):
        store.register_many(NAMES[:12], shared=True)
    before = store.agents()
    assert {*before, *store.register_many(NAMES[:12], shared=True)} == set(NAMES[:12])
    assert NAMES[5] not in before
    assert not [path for path in disk.files if path.name.endswith(".tmp")]


def test_a_file_of_another_agent_is_damage(tmp_path: Path) -> None:
    """A register entry that names another agent raises CorruptLog with the file's name."""
    store = FileStore.create(tmp_path, now, "s", shards=2)
    store.register_many(["sam", "ann"], shared=True)
    path = tmp_path / "agents" / hash_of("sam")[:2] / hash_of("sam")
    path.unlink()
    path.write_bytes((tmp_path / "agents" / hash_of("ann")[:2] / hash_of("ann")).read_bytes())
    for ask in (store.agents, store.assigned, lambda: store.reader("sam")):
        with pytest.raises(CorruptLog, match="of another agent"):
            ask()


def test_a_cached_agent_that_another_process_moved_is_found_in_its_new_partition() -> None:
    """The store's cache never hides a move by another process: the next lookup finds the new partition."""
    disk = FaultyDisk()
    ours, theirs = begun(disk), begun(disk)
    ours.register("sam")
    for partition in ("shard-001", "shard-003", partition_of("sam")):
        before = ours.partition_of("sam")
        log = theirs.open("sam", "test")
        theirs.begin_move(log, "sam", partition)
        log.close()
        assert before != ours.partition_of("sam") == partition == ours.assigned()["sam"]


def test_a_cached_agent_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second lookup of an agent reads no file, until more agents are looked up than the cache holds."""
    monkeypatch.setattr(register, "KNOWN_MAX", 3)
    disk = FaultyDisk()
    store = begun(disk)
    store.register_many(NAMES[:4], shared=True)
    reads: list[Path] = []
    read = disk.read
    monkeypatch.setattr(disk, "read", lambda path, *part: reads.append(path) or read(path, *part))
    for names, looked in ((NAMES[:3], 3), (NAMES[:3], 3), (NAMES[3:4], 4), (NAMES[:1], 5)):
        for name in names:
            store.partition_of(name)
        assert len(reads) == looked
