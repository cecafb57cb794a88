"""An interrupted or refused restore: no reader sees a part of an agent, and no other agent is changed."""

import errno
from pathlib import Path

import pytest

from everlog.events import BadInput, PartitionBusy, StoreError, UsageError
from everlog.store import FileStore, MemoryStore, check, partition_of
from everlog.store.stores.opener import FileOpener
from everlog.store.streams.register_file import Assignment
from tests.contract.draft_builders import NOW, Drafts
from tests.store.conftest import now
from tests.store.sealed.test_seal_pass import Counting
from tests.store.streams.test_fork_reader import assert_whole, fork, say
from tests.store.streams.test_move_service import CHANGES, ROUTE, travel, words_for
from tests.support.seeds import few_and_all, pick
from tests.support.store.export_helpers import assert_fine, assert_same, save
from tests.support.store.faulty_disk import Broken, Crash, FaultyDisk

ROOT = Path("/sim")
OTHER = Path("/other")


@pytest.mark.parametrize("count", few_and_all(3, part="storage"))
def test_a_restore_interrupted_anywhere_leaves_all_agents_or_none(tmp_path: Path, count: int | None) -> None:
    """After a crash before any change of the disk, each agent is visible completely or not at all, an incomplete one
    cannot be opened, and the same restore finishes it.
    """
    source = FileStore.create(OTHER, now, "other", shards=2, disk=FaultyDisk())
    source.register("sam")
    travel(source, ROUTE[:2], words_for(ROUTE[:2]))
    fork(source, "sam", 5, "tom")
    say(source, "tom", Drafts(NOW + 5_000_000), 2)
    fork(source, "tom", 7, "ann")
    say(source, "ann", Drafts(NOW + 6_000_000), 1)
    path = tmp_path / "ann.everlog"
    save(source, "ann", path)
    whole = FaultyDisk()
    FileStore.create(ROOT, now, "sim", disk=whole)
    start = len(whole.log)
    FileStore(ROOT, now, disk=whole).restore(path, Counting())
    steps = [step for step in range(start, len(whole.log)) if whole.log[step][0] in CHANGES]
    assert len(steps) > 30
    for step in pick(steps, count, label="restoring"):
        crashing = FaultyDisk()
        FileStore.create(ROOT, now, "sim", disk=crashing)
        crashing.crash_at = step
        with pytest.raises(Crash):
            FileStore(ROOT, now, disk=crashing).restore(path, Counting())
        for disk in (crashing.power_loss(), crashing.killed()):
            store = FileStore(ROOT, now, disk=disk)
            for name in store.agents():
                assert_whole(store.reader(name), name)
                assert store.reader(name).head(name).seq == {"sam": 7, "tom": 8, "ann": 9}[name]
            store.restore(path, Counting())
            assert_same(source, store, "ann")
            for name in ("sam", "tom"):
                assert [r.type for r in store.reader(name).read(name)].count("agent_deleted") == 1
            assert_fine(store)
            say(store, "ann", Drafts(NOW + 9_000_000), 1)
            assert not [path for path in disk.files if path.name == "restoring"]


def test_a_half_restored_agent_cannot_be_opened_or_mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Creating an agent of that name, and restoring another export of it, are refused with what to do."""
    monkeypatch.setattr("everlog.store.backup.restore_service.RESTORE_COMMITS", 2)
    source = FileStore.create(OTHER, now, "other", disk=FaultyDisk())
    say(source, "sam", Drafts(), 6)
    first, second = tmp_path / "first.everlog", tmp_path / "second.everlog"
    save(source, "sam", first)
    say(source, "sam", Drafts(NOW + 5_000_000), 1)
    save(source, "sam", second)
    disk = FaultyDisk()
    store = FileStore.create(ROOT, now, "sim", disk=disk)
    whole = FaultyDisk()
    FileStore.create(ROOT, now, "sim", disk=whole).restore(first)
    writes = [step for step, (kind, name) in enumerate(whole.log) if kind == "write" and name.endswith(".open")]
    assert len(writes) == 3
    disk.crash_at = writes[2]
    with pytest.raises(Crash):
        store.restore(first)
    store = FileStore(ROOT, now, disk=disk.killed())
    assert store.agents() == []
    assert "a restore was interrupted" in check(store.partition(partition_of("sam"))).notes[0]
    with pytest.raises(BadInput, match="restore of another export of 'sam' was interrupted"):
        store.restore(second)
    assert (store.partitions(), store.partitions(restoring=True)) == ([], [partition_of("sam")])
    say(store, "ann", Drafts(NOW + 7_000_000), 2)
    for take in (
        lambda: store.register("sam"),
        lambda: store.register_many(["tom", "sam"]),
        lambda: store.fork("ann", 2, "sam", event_id=Drafts(NOW + 8_000_000).one().event_id),
    ):
        with pytest.raises(UsageError, match=r"restore of 'sam' was interrupted.*`everlog restore`.*remove /sim/log/"):
            take()
    assert store.agents() == ["ann"]
    store.restore(first)
    assert store.partitions() == sorted([partition_of("ann"), partition_of("sam")])
    store.restore(second)
    assert_same(source, store, "sam")


def test_a_name_registered_just_before_an_interrupted_restore_is_not_locked(tmp_path: Path) -> None:
    """If the name was registered just before an interrupted restore began, the same restore still finishes."""
    source = FileStore.create(OTHER, now, "other", disk=FaultyDisk())
    say(source, "sam", Drafts(), 6)
    save(source, "sam", tmp_path / "sam.everlog")
    disk = FaultyDisk()
    store = FileStore.create(ROOT, now, "sim", disk=disk)
    whole = FaultyDisk()
    FileStore.create(ROOT, now, "sim", disk=whole).restore(tmp_path / "sam.everlog")
    disk.crash_at = next(step for step, (kind, name) in enumerate(whole.log) if kind == "write" and ".open" in name)
    with pytest.raises(Crash):
        store.restore(tmp_path / "sam.everlog")
    store = FileStore(ROOT, now, disk=disk.killed())
    store._register.add(Assignment("sam", partition_of("sam")))
    with pytest.raises(UsageError, match="was interrupted"):
        store.open("sam", "test")
    store.restore(tmp_path / "sam.everlog")
    assert_same(source, store, "sam")
    assert_fine(store)


def test_an_opener_frees_an_agent_that_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the process died at the last step but one, and the export is lost, opening makes the name usable."""
    source = FileStore.create(OTHER, now, "other", disk=FaultyDisk())
    say(source, "sam", Drafts(), 6)
    fork(source, "sam", 4, "tom")
    for name in ("sam", "tom"):
        save(source, name, tmp_path / f"{name}.everlog")
    store = FileStore.create(ROOT, now, "sim", disk=FaultyDisk())
    store.restore(tmp_path / "sam.everlog")
    with monkeypatch.context() as patched:
        patched.setattr(FileOpener, "release_restored", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.restore(tmp_path / "tom.everlog")
    assert partition_of("tom") not in store.partitions()
    store.open("tom", "test").close()
    assert partition_of("tom") in store.partitions()
    assert_same(source, store, "tom")
    assert_fine(store)


def interrupted(_: FileOpener, agent_id: str) -> None:
    if agent_id == "tom":
        raise KeyboardInterrupt


def test_a_log_that_is_open_elsewhere_is_not_restored_into(tmp_path: Path) -> None:
    store, other = MemoryStore(), MemoryStore()
    say(store, "sam", Drafts(), 2)
    save(store, "sam", tmp_path / "sam.everlog")
    other.restore(tmp_path / "sam.everlog")
    drafts = Drafts(NOW + 5_000_000)
    say(store, "sam", drafts, 1)
    save(store, "sam", tmp_path / "more.everlog")
    log = other.open("sam", "everlog chat")
    with pytest.raises(PartitionBusy):
        other.restore(tmp_path / "more.everlog")
    assert log.head("sam").seq == 2


@pytest.mark.parametrize("operation", ["create", "write", "sync", "link", "sync_dir"])
def test_a_failing_disk_leaves_no_agent_half_restored(tmp_path: Path, operation: str) -> None:
    """After a disk error at any of the first operations there is a StoreError and no new agent, and the next try
    finishes.
    """
    source = MemoryStore(0, now)
    say(source, "sam", Drafts(), 3)
    save(source, "sam", tmp_path / "sam.everlog")
    for which in range(6):
        disk = FaultyDisk()
        store = FileStore.create(ROOT, now, "sim", disk=disk)
        count = [kind for kind, _ in disk.log].count(operation)
        whole = FaultyDisk()
        FileStore.create(ROOT, now, "sim", disk=whole).restore(tmp_path / "sam.everlog", Counting())
        places = [step for step, (kind, _) in enumerate(whole.log) if kind == operation][count:]
        if which >= len(places):
            break
        disk.breaks_at, disk.broken = places[which], Broken(errno.ENOSPC, frozenset({operation}))
        with pytest.raises(StoreError, match="No space left"):
            store.restore(tmp_path / "sam.everlog", Counting())
        disk.broken = None
        store = FileStore(ROOT, now, disk=disk)
        assert all(store.reader(name).head(name).seq == 3 for name in store.agents())
        store.restore(tmp_path / "sam.everlog", Counting())
        assert_same(source, store, "sam")
        assert_fine(store)


def test_a_name_without_records_is_filled_if_it_was_meant_so(tmp_path: Path) -> None:
    """A name that was registered without records can be restored, in its own partition or in a shard; a name that was
    registered for another kind of agent cannot.
    """
    source = MemoryStore(0, now)
    say(source, "sam", Drafts(), 3)
    fork(source, "sam", 2, "tom")
    save(source, "tom", tmp_path / "tom.everlog")
    store = FileStore.create(ROOT, now, "sim", shards=2, disk=FaultyDisk())
    store.register("sam", shared=True)
    store.register("tom")
    with pytest.raises(BadInput, match="an agent 'tom' already"):
        store.restore(tmp_path / "tom.everlog")
    assert store.reader("sam").head("sam").seq == 0
    store = FileStore.create(OTHER, now, "sim", shards=2, disk=FaultyDisk())
    store.register("sam", shared=True)
    store.restore(tmp_path / "tom.everlog")
    assert store.partition_of("sam").startswith("shard-")
    assert_same(source, store, "tom")
    assert_fine(store)


def test_a_source_with_other_documents_prevents_the_restore(tmp_path: Path) -> None:
    """The kind of stream is checked before the restore: a source is called a source in the error, and no agent is
    added.
    """
    source, store = MemoryStore(0, now), MemoryStore(0, now)
    say(source, "sam", Drafts(), 2)
    for place, at in ((source, 1), (store, 2)):
        say(place, "source:books", Drafts(NOW + at), 2)
    save(source, "sam", tmp_path / "x.everlog", sources=["books"], streams=["source:books"])
    with pytest.raises(BadInput, match="a source 'books' already"):
        store.restore(tmp_path / "x.everlog")
    assert store.agents() == []


def test_an_agent_that_is_here_is_never_left_on_a_move_of_another_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the process dies while the agent's missing records, a move among them, are being restored, the agent can be
    opened.
    """
    monkeypatch.setattr("everlog.store.backup.restore_service.RESTORE_COMMITS", 1)
    source = FileStore.create(OTHER, now, "other", shards=2, disk=FaultyDisk())
    words = words_for(ROUTE[:3])
    first, second = tmp_path / "first.everlog", tmp_path / "second.everlog"
    source.register("sam")
    travel(source, ROUTE[:1], words)
    save(source, "sam", first)
    travel(source, ROUTE[:3], words)
    save(source, "sam", second)
    whole = FaultyDisk()
    FileStore.create(ROOT, now, "sim", disk=whole).restore(first)
    start = len(whole.log)
    FileStore(ROOT, now, disk=whole).restore(second)
    writes = [step for step in range(start, len(whole.log)) if whole.log[step][0] == "write"]
    assert len(writes) > 6
    for step in writes:
        disk = FaultyDisk()
        FileStore.create(ROOT, now, "sim", disk=disk).restore(first)
        disk.crash_at = step
        with pytest.raises(Crash):
            FileStore(ROOT, now, disk=disk).restore(second)
        store = FileStore(ROOT, now, disk=disk.killed())
        assert not store.reader("sam").head("sam").away
        store.open("sam", "test").close()
        assert store.route("sam") == [partition_of("sam")]
        store.restore(second)
        assert_same(source, store, "sam")
