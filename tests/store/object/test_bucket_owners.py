"""Owners of a log in a bucket: how one is fenced however late its requests arrive, and what an owner leaves."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest

from everlog.events import Fenced, PartitionBusy
from everlog.store import FileStore, check, folder_of
from everlog.store.object.object_disk import ObjectDisk
from everlog.store.partition import epoch
from tests.contract.log_contract import NOW, Drafts
from tests.contract.test_bucket_logs import ROOT, memory_bucket
from tests.support.seeds import seeds
from tests.support.store.bucket_server import make_bucket, s3_server, settings


def now() -> int:
    return NOW


@pytest.fixture
def opened() -> Callable[[], FileStore]:
    """Return a function that opens the same store as another process would."""
    bucket = memory_bucket()
    FileStore.create(ROOT, now, "tests", disk=ObjectDisk(bucket, ROOT)).register("sam")
    return lambda: FileStore(ROOT, now, disk=ObjectDisk(bucket, ROOT))


def test_a_put_that_arrives_after_all_is_sealed_is_refused(
    opened: Callable[[], FileStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A put of an owner that was stopped before it, and continued when a new owner had sealed and deleted the frames,
    fails: the append is not acknowledged and not stored.
    """
    drafts = Drafts()
    old = opened().open("sam", "old")
    kept = list(old.append("sam", 0, drafts.some(2)).records)
    disk: ObjectDisk = old._where.disk  # type: ignore[assignment]
    put, new = disk.bucket.put_new, opened()

    def late(key: str, content: bytes) -> None:
        log = new.open("sam", "new", take_over=True)
        kept.extend(log.append("sam", 2, drafts.some(1)).records)
        log.seal()
        log.close()
        put(key, content)

    with monkeypatch.context() as stopped:
        # The look beside the put came before the new owner's epoch, too: only the put itself can fail.
        stopped.setattr(epoch.Ownership, "seems_latest", lambda _: True)
        stopped.setattr(disk.bucket, "put_new", _once(late, put))
        with pytest.raises(Fenced):
            old.append("sam", 2, drafts.some(1))
    assert list(opened().reader("sam").read("sam")) == kept


def _once(first: Callable[..., None], then: Callable[..., None]) -> Callable[..., None]:
    """Return a function that calls `first` the first time, and `then` afterwards."""
    calls = [then, first]

    def call(key: str, content: bytes) -> None:
        (calls.pop() if len(calls) > 1 else then)(key, content)

    return call


def test_an_owner_that_closed_is_followed_in_its_file(opened: Callable[[], FileStore]) -> None:
    """After a clean close the next owner continues in the same file of frames, and publishes no manifest."""
    drafts = Drafts()
    for seq in range(3):
        log = opened().open("sam", "test")
        log.append("sam", seq, drafts.some(1))
        log.close()
    where = opened().partition(opened().partition_of("sam"))
    assert len([name for name in where.disk.names(where.path) if name.endswith(".open")]) == 1
    assert where.numbers("manifest-") == [1]
    assert check(where, deep=True).ok


def test_an_ended_file_is_not_continued(opened: Callable[[], FileStore]) -> None:
    """If a new owner ended the file and gave up, and both owners are done, the next one begins another file."""
    drafts = Drafts()
    old = opened().open("sam", "old")
    old.append("sam", 0, drafts.some(1))
    where = old._where
    assert where.disk.end(old._file.path, old._file.length)
    old.close()
    log = opened().open("sam", "new")
    log.append("sam", 1, drafts.some(1))
    log.close()
    assert [record.seq for record in opened().reader("sam").read("sam")] == [1, 2]


def test_an_owner_of_another_machine_is_live_until_it_is_done(
    opened: Callable[[], FileStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log that another machine has open is busy without a take-over, and free when it was closed there."""
    log = opened().open("sam", "there")
    machine = SimpleNamespace(uname=lambda: SimpleNamespace(nodename="another machine"), getpid=lambda: 7)
    monkeypatch.setattr(epoch, "os", machine)
    with pytest.raises(PartitionBusy):
        opened().open("sam", "here")
    log.close()
    opened().open("sam", "here").close()


def test_a_lost_object_of_frames_is_damage(opened: Callable[[], FileStore]) -> None:
    """If an object of frames before the last is deleted, reading names the damage and invents nothing."""
    drafts = Drafts()
    log = opened().open("sam", "test")
    for seq in range(3):
        log.append("sam", seq, drafts.some(1))
    log.close()
    bucket = opened().disk.bucket  # type: ignore[attr-defined]
    parts = bucket.objects("parts")
    bucket.delete([parts[1].key])
    where = opened().partition(opened().partition_of("sam"))
    assert not check(where, deep=True).ok


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    with s3_server() as address:
        make_bucket(address, "bucket")
        yield address


def _kills(service: str, home: Path, seed: int, kills: int) -> None:
    """Kill writers at random moments; check that all that they were told is there, once and in order."""
    chance, url = Random(seed), f"s3://bucket/kills-{seed}"
    with settings(service, home):
        FileStore.create(folder_of(url), now, "tests").register("sam")
        told: list[str] = []
        for life in range(kills):
            command = [sys.executable, "-m", "tests.support.store.bucket_victim", str(folder_of(url)), str(life)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as victim:
                assert victim.stdout is not None
                for _ in range(chance.randrange(1, 12)):
                    told.append(victim.stdout.readline().strip())
                victim.kill()
                told += victim.stdout.read().split("\n")[:-1]
        told = [line for line in told if line and line != "open"]
        store = FileStore(folder_of(url), now)
        records = list(store.reader("sam").read("sam"))
        ids = [record.event_id for record in records]
        assert [record.seq for record in records] == list(range(1, len(records) + 1))
        assert len(set(ids)) == len(ids)
        assert set(told) <= set(ids)
        assert [event_id for event_id in ids if event_id in set(told)] == told
        assert len(told) > kills
        assert check(store.partition(store.partition_of("sam")), deep=True).ok


@pytest.mark.parametrize("seed", seeds(1, label="kills in a bucket", below=1000))
def test_killed_writers_lose_nothing_in_a_bucket(service: str, tmp_path: Path, seed: int) -> None:
    """After six kills at random moments, behind the real protocol, each acknowledged event is there once."""
    _kills(service, tmp_path, seed, 6)


@pytest.mark.long
@pytest.mark.simulation
@pytest.mark.parametrize("seed", range(5))
def test_many_killed_writers_lose_nothing_in_a_bucket(service: str, tmp_path: Path, seed: int) -> None:
    """The same holds after a hundred kills."""
    _kills(service, tmp_path, 1000 + seed, 100)
