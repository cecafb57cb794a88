"""P5, P6, P8 and P10 in files: errors of the disk, ids across reopenings, segments, and group commit."""

import errno
import os
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from everlog.events import BadInput, Poisoned, Record, StaleId, StoreError, UnknownAgent
from everlog.store import Append, FileStore, MemoryStore, Partition, RealDisk, Store, check
from everlog.store.base.disk import RealFile
from everlog.store.log import group_commit
from tests.contract.log_contract import DAY, NOW, Drafts
from tests.store.conftest import now
from tests.support.store.faulty_disk import FaultyDisk

ROOT = Path("/sim")


def simulated() -> tuple[FaultyDisk, FileStore]:
    disk = FaultyDisk()
    store = FileStore.create(ROOT, now, "sim", disk=disk)
    store.register("sam")
    return disk, store


@pytest.mark.parametrize("operation", ["write", "sync", "exists"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EMFILE])
@pytest.mark.parametrize("partial", [0, 1, 47, 48, 100, 10**6])
def test_p10_a_failed_append_poisons_and_the_log_opens_again(operation: str, code: int, partial: int) -> None:
    """The failed append raises StoreError with the cause, every later append is refused, and reopening the log heals
    it.
    """
    disk, store = simulated()
    log = store.open("sam", "one")
    drafts = Drafts()
    log.append("sam", 0, drafts.some(2))
    partial = partial if operation == "write" else 0
    disk.fail(operation, code, partial=partial)
    lost = drafts.some(2)
    with pytest.raises(StoreError, match=os.strerror(errno.ENOSPC if partial else code)) as caught:
        log.append("sam", 2, lost)
    assert type(caught.value) is StoreError
    for _ in range(2):
        with pytest.raises(Poisoned):
            log.append("sam", 2, drafts.some(1))
    assert log.head("sam").seq == 2 and len(list(log.read("sam"))) == 2
    log.close()
    again = store.open("sam", "two")
    whole = again.head("sam").seq == 4
    assert whole == (operation != "write" or partial > 1000)
    assert again.append("sam", 2, lost).repeated == whole
    assert [record.seq for record in again.read("sam")] == [1, 2, 3, 4]
    assert check(store.partition(log.partition)).ok


def test_p10_a_full_disk_at_opening_heals() -> None:
    """A disk that is full while the log is opened causes only that opening to fail."""
    for position in range(1, 4):
        disk, store = simulated()
        for _ in range(position):
            disk.fail("sync", errno.ENOSPC, name=["", ".open", "manifest"][position - 1])
        if position != 2:
            with pytest.raises(StoreError, match="full"):
                store.open("sam", "one")
        disk.faults.clear()
        assert store.open("sam", "two", take_over=True).append("sam", 0, Drafts().some(1)).number == 1


def test_p10_a_folder_without_rights_names_path_and_cure() -> None:
    """A read-only file system becomes a StoreError that names the operation, the path and the cure."""
    disk, store = simulated()
    disk.fail("create", errno.EROFS)
    with pytest.raises(StoreError, match=r"could not take /sim/log/.*Read-only.*Mount it for writing"):
        store.open("sam", "one")
    disk.fail("create", errno.EACCES)
    with pytest.raises(StoreError, match=r"could not register an agent in /sim/agents/.*permissions"):
        store.register("ann")


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_p10_a_real_read_only_folder(tmp_path: Path) -> None:
    """On a real folder without the right to write, creating a store fails cleanly."""
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="permissions"):
        FileStore.create(tmp_path / "store", now, "tests")


def test_reading_a_store_writes_nothing(store: FileStore, filled: list[list[Record]]) -> None:
    """Opening for reading, and reading, leave every file and folder unchanged."""

    def state() -> list[tuple[str, int, int]]:
        return sorted((str(p), p.stat().st_mtime_ns, p.stat().st_size) for p in store.root.rglob("*"))

    before = state()
    fresh = FileStore(store.root, now)
    reader = fresh.reader("sam")
    assert reader.table().num_rows == 12 and reader.head("sam").seq == 8 and fresh.agents() == ["sam"]
    assert reader.damage is None and state() == before


def test_a_place_without_a_store_is_said(tmp_path: Path) -> None:
    """Opening a folder without a store is a StoreError that names the folder; an unknown agent is UnknownAgent."""
    with pytest.raises(StoreError, match="no store in"):
        FileStore(tmp_path, now)
    with pytest.raises(UnknownAgent):
        FileStore.create(tmp_path, now, "one").reader("sam")
    assert FileStore.create(tmp_path, now, "two").store_id == "one"


def test_a_torn_tail_is_no_damage_while_its_writer_lives() -> None:
    """A reader warns of a torn tail only if no living owner may be completing the tail."""
    disk, store = simulated()
    log = store.open("sam", "one")
    disk.fail("write", errno.ENOSPC, partial=50)
    with pytest.raises(StoreError):
        log.append("sam", 0, Drafts().some(1))
    reader = store.reader("sam")
    assert reader.table().num_rows == 0 and reader.damage is None
    log.close()
    assert reader.table().num_rows == 0 and reader.damage is not None and reader.damage.bytes == 50


def test_p6_ids_are_remembered_over_reopenings_and_segments(store: FileStore, drafts: Drafts) -> None:
    """After a close a repeat is recognized, whatever file has its commit."""
    small = FileStore(store.root, now, segment_bytes_max=2000)
    appends = [drafts.some(2) for _ in range(8)]
    log = small.open("sam", "one")
    for number, mine in enumerate(appends):
        log.append("sam", 2 * number, mine)
    for _ in range(2):
        for number, mine in enumerate(appends, 1):
            again = log.append("sam", 0, mine)
            assert (again.number, again.repeated) == (number, True)
            assert [record.text for record in again.records] == ["word 0", "word 1"]
        log.close()
        log = small.open("sam", "next")
    assert check(store.partition(log.partition)).files > 2


def test_p6_what_was_forgotten_is_refused_and_never_doubled(store: FileStore) -> None:
    """A forgotten id, even in exactly the same draft, is StaleId and never becomes a second record."""
    clock = [NOW]
    small = FileStore(store.root, lambda: clock[0], segment_bytes_max=1)
    log = small.open("sam", "one")
    old = Drafts().some(1)
    log.append("sam", 0, old)
    clock[0] = NOW + DAY + 10_000
    later = Drafts(clock[0])
    log.append("sam", 1, later.some(1))
    for _ in range(2):
        with pytest.raises(StaleId):
            log.append("sam", log.head("sam").seq, old)
        log.append("sam", log.head("sam").seq, later.some(1))
        log.close()
        log = small.open("sam", "two")
    assert [record.seq for record in log.read("sam")] == [1, 2, 3, 4]


Step = tuple[str, int, list[tuple[str, str]], bool]


class Counting(RealDisk):
    """A disk that counts syncs of frames; a sync waits until enough appends are queued."""

    def __init__(self) -> None:
        self.syncs = 0

    def create(self, path: Path) -> RealFile:
        file = super().create(path)
        if path.suffix == ".open":
            real = file.sync

            def sync() -> None:
                self.syncs += 1
                real()

            file.sync = sync  # type: ignore[method-assign]
        return file


def test_group_commit_loses_nothing_and_shares_syncs(tmp_path: Path) -> None:
    """Eight threads append at the same time: every commit is in the log once, in order, with fewer syncs than
    appends.
    """
    disk = Counting()
    store = FileStore.create(tmp_path, now, "threads", disk=disk)
    store.register("shared")
    log = store.open("shared", "test")
    acknowledged: list[int] = []

    def work(thread: int) -> None:
        drafts = Drafts(NOW + thread * 10_000_000)
        for number in range(100):
            acknowledged.append(log.append(f"agent {thread}", number, drafts.some(1)).number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(acknowledged) == list(range(1, 801))
    assert disk.syncs < 800
    assert check(store.partition(log.partition)).commits == 800
    assert log.table().column("commit").to_pylist() == list(range(1, 801))


def test_a_full_queue_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above its limit the queue refuses with StoreError and stores nothing; a long group is split instead."""
    _, store = simulated()
    log = store.open("sam", "one")
    monkeypatch.setattr(group_commit, "GROUP_APPENDS_MAX", 3)
    drafts = Drafts()
    results = log.append_group([Append("sam", number, drafts.some(1)) for number in range(10)])
    assert [result.number for result in results if not isinstance(result, StoreError)] == list(range(1, 11))
    monkeypatch.setattr(group_commit, "GROUP_APPENDS_MAX", 0)
    with pytest.raises(StoreError, match="limit is 0"):
        log.append("sam", 10, drafts.some(1))
    assert log.append_group([]) == []
    with pytest.raises(BadInput):
        log.append("sam", 10, [])


WORDS = st.tuples(st.none() | st.text(max_size=20), st.sampled_from(["{}", '{"a":[1]}']))
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["ann", "bob", "é"]),
        st.integers(0, 3),
        st.lists(WORDS, min_size=1, max_size=4),
        st.booleans(),
    ),
    max_size=12,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS, segment=st.sampled_from([1, 3000, 10**6]))
def test_the_file_log_is_the_memory_log(steps: list[Step], segment: int) -> None:
    """After random appends, right and wrong, with reopenings, both logs give the same answers and have the same
    records.
    """
    files = FileStore.create(ROOT, now, "s", disk=FaultyDisk(), segment_bytes_max=segment)
    stores: list[Store] = [MemoryStore(), files]
    logs = []
    for store in stores:
        store.register("shared")
        logs.append(store.open("shared", "test"))
    drafts = Drafts()
    for agent_id, off, words, reopen in steps:
        mine = [drafts.one(text, payload) for text, payload in words]
        seq = max(0, logs[0].head(agent_id).seq - off // 2)
        answers = [log.append_group([Append(agent_id, seq, mine), Append(agent_id, seq, mine)]) for log in logs]
        assert str(answers[0]) == str(answers[1])
        if reopen:
            for log in logs:
                log.close()
            logs = [store.open("shared", "test") for store in stores]
            assert str(logs[0].append_group([Append(agent_id, seq, mine)])) == str(
                logs[1].append_group([Append(agent_id, seq, mine)])
            )
    assert logs[0].table().equals(logs[1].table())
    assert logs[0].agents() == logs[1].agents() == stores[1].reader("shared").agents()
    for agent_id in logs[0].agents():
        assert list(logs[0].read(agent_id)) == list(logs[1].read(agent_id))
        assert logs[0].head(agent_id) == logs[1].head(agent_id) == stores[1].reader("shared").head(agent_id)


def test_the_partition_knows_its_folder(where: Partition, store: FileStore) -> None:
    """A store lists its partitions by name."""
    assert store.partitions() == [where.name]
