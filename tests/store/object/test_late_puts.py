"""A put that was sent twice and arrives again when its frames were sealed and deleted."""

import errno
from collections.abc import Sequence
from pathlib import Path

import pytest

from everlog.events import StoreError
from everlog.store import FileStore, check
from everlog.store.object.bucket import Bucket
from everlog.store.object.object_disk import ObjectDisk
from everlog.store.object.obstore_bucket import ObstoreBucket
from tests.contract.log_contract import NOW, Drafts
from tests.contract.test_bucket_logs import ROOT, memory_bucket


def _store(bucket: Bucket) -> FileStore:
    return FileStore.create(ROOT, lambda: NOW, "tests", disk=ObjectDisk(bucket, ROOT))


def _parts(bucket: Bucket) -> dict[str, bytes]:
    return {found.key: bucket.get(found.key) for found in bucket.objects("parts") if found.bytes}


@pytest.fixture
def bucket() -> ObstoreBucket:
    """Return a bucket with a sealed log, into which the first put of its frames has arrived once more."""
    bucket = memory_bucket()
    store = _store(bucket)
    store.register("sam")
    log = store.open("sam", "first")
    log.append("sam", 0, Drafts().some(2))
    sent = _parts(bucket)
    log.seal()
    log.close()
    for key, content in sent.items():
        bucket.put_new(key, content)
    return bucket


def test_a_check_says_what_has_come_back(bucket: ObstoreBucket) -> None:
    """A check of the log names frames that came back after they were sealed, and finds no fault in the log."""
    store = _store(bucket)
    report = check(store.partition(store.partition_of("sam")))
    assert report.ok
    assert [note for note in report.notes if "arrived late" in note and "log seal" in note]


def test_sealing_removes_what_has_come_back(bucket: ObstoreBucket) -> None:
    """After sealing, no frames are left that came back, also if there was nothing to seal."""
    log = _store(bucket).open("sam", "second")
    log.seal()
    log.close()
    assert not _parts(bucket)


def test_sealing_removes_what_an_interrupted_removal_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the service fails while the frames that were sealed are deleted, the same owner deletes the rest when it seals
    next, as for an erasure, and a check names them until then.
    """
    bucket, drafts = memory_bucket(), Drafts()
    store = _store(bucket)
    store.register("sam")
    log = store.open("sam", "owner")
    for seq in range(3):
        log.append("sam", seq, drafts.some(1))
    delete = bucket.delete

    def deletes_one(keys: Sequence[str]) -> None:
        delete(keys[:1])
        if len(keys) > 1:
            raise OSError(errno.EIO, "the service failed")

    with monkeypatch.context() as failing:
        failing.setattr(bucket, "delete", deletes_one)
        with pytest.raises(StoreError, match="could not seal"):
            log.seal()
    assert len(_parts(bucket)) == 2
    notes = check(store.partition(store.partition_of("sam"))).notes
    assert [note for note in notes if "interrupted" in note and "log seal" in note]
    log.seal()
    assert not _parts(bucket)
    log.close()


def test_a_take_over_removes_what_has_come_back(bucket: ObstoreBucket) -> None:
    """An owner whose predecessor may have died with a put on its way removes what came back when it opens the log."""
    _store(bucket).open("sam", "is killed")
    log = _store(bucket).open("sam", "next", take_over=True)
    assert not _parts(bucket)
    log.close()


def test_a_sweep_spares_the_frames_of_a_file_that_begins_meanwhile() -> None:
    """Frames of a writer that begins a file while another lists the leftovers are not among them."""
    bucket = memory_bucket()
    store = _store(bucket)
    store.register("sam")
    looker = ObjectDisk(bucket, ROOT)
    sizes: list[str] = []
    parts, size = bucket.objects, bucket.size
    begun = store.open("sam", "writer")
    begun.append("sam", 0, Drafts().some(1))
    where = Path(begun._where.path)
    bucket.objects = lambda folder: sizes.append("parts") or parts(folder)  # type: ignore[func-returns-value,method-assign]
    bucket.size = lambda key: sizes.append("name") or size(key)  # type: ignore[func-returns-value,method-assign]
    assert looker.leftovers(where) == []
    assert sizes == ["parts", "name"]
    begun.close()
