"""A log writes none of its objects often: Google accepts about one write of an object a second."""

from collections import Counter
from typing import Any

from everlog.store import FileStore
from everlog.store.object.object_disk import FOLDER, ObjectDisk
from everlog.store.object.obstore_bucket import ObstoreBucket
from tests.contract.log_contract import NOW, Drafts
from tests.contract.test_bucket_logs import ROOT

OPENINGS, APPENDS = 4, 25


class Counting(ObstoreBucket):
    """A bucket in memory that counts the writes of each object."""

    def __init__(self) -> None:
        from obstore.store import MemoryStore

        super().__init__(MemoryStore(), "memory://bucket/store")
        self.writes: Counter[str] = Counter()

    def put_new(self, key: str, content: Any) -> None:
        super().put_new(key, content)
        self.writes[key] += 1

    def put(self, key: str, content: Any) -> None:
        super().put(key, content)
        self.writes[key] += 1


def test_no_commit_writes_an_object_that_was_written_before() -> None:
    """Each of many commits makes objects of its own. Written again are only the mark of the log's folder, once by each
    process, and the names of the files that a sealing removes, once.
    """
    bucket, drafts = Counting(), Drafts()
    FileStore.create(ROOT, lambda: NOW, "tests", disk=ObjectDisk(bucket, ROOT)).register("sam")
    seq = 0
    for _ in range(OPENINGS):
        store = FileStore(ROOT, lambda: NOW, disk=ObjectDisk(bucket, ROOT), segment_bytes_max=2_000)
        log = store.open("sam", "test", take_over=True)
        for _ in range(APPENDS):
            seq = log.append("sam", seq, drafts.some(1)).records[-1].seq
        log.seal()
        log.close()
    again = {key: count for key, count in bucket.writes.items() if count > 1}
    folder = f"log/{store.partition_of('sam')}"
    assert sum(key.startswith("parts/") for key in bucket.writes) >= seq
    assert again.pop(f"{folder}/{FOLDER}") == 1 + OPENINGS
    assert again
    assert all(key.startswith(folder) and key.endswith(".open") and count == 2 for key, count in again.items())
