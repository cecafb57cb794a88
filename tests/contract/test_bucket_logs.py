"""The contract of the log, run against a store in a bucket: in memory, and behind the real protocol on loopback."""

from pathlib import Path

import pytest

from everlog.store import FileStore, Store
from everlog.store.object.object_disk import ObjectDisk
from everlog.store.object.obstore_bucket import ObstoreBucket
from tests.contract.log_contract import NOW
from tests.contract.test_logs import FileContract

ROOT = Path("/bucket")


def memory_bucket() -> ObstoreBucket:
    """Return an empty bucket in memory, which has conditional writes as services have them."""
    from obstore.store import MemoryStore

    return ObstoreBucket(MemoryStore(), "memory://bucket/store")


class TestBucketLog(FileContract):
    @pytest.fixture
    def store(self) -> Store:
        return FileStore.create(ROOT, lambda: NOW, "contract", disk=ObjectDisk(memory_bucket(), ROOT))


@pytest.mark.long
@pytest.mark.storage
class TestBucketLogInSmallSegments(FileContract):
    @pytest.fixture
    def store(self) -> Store:
        disk = ObjectDisk(memory_bucket(), ROOT)
        return FileStore.create(ROOT, lambda: NOW, "contract", disk=disk, segment_bytes_max=1)
