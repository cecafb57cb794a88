"""The contract of the log, run against a store in a bucket: in memory, and behind the real protocol on loopback."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from everlog.store import FileStore, Store, folder_of
from everlog.store.object.object_disk import ObjectDisk
from everlog.store.object.obstore_bucket import ObstoreBucket
from tests.contract.log_contract import NOW
from tests.contract.test_logs import FileContract
from tests.support.store.bucket_server import make_bucket, s3_server, settings
from tests.support.store.cloud_services import CloudService, cloud_service, cloud_settings

ROOT = Path("/bucket")


def memory_bucket() -> ObstoreBucket:
    """Return an empty bucket in memory, which has conditional writes as services have them."""
    from obstore.store import MemoryStore

    return ObstoreBucket(MemoryStore(), "memory://bucket/store")


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    with s3_server() as address:
        make_bucket(address, "contract")
        yield address


class TestBucketLog(FileContract):
    LONG = ("test_p9_text_and_payload_of_any_size",)
    """Tests of sizes below that of the largest commit, which another test of the bucket appends."""

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


@pytest.mark.long
@pytest.mark.storage
class TestBucketLogOverTheProtocol(FileContract):
    """Requests of obstore to a service over HTTP, whose conditions, listings and ranges are not those of the memory."""

    @pytest.fixture
    def store(self, service: str, tmp_path: Path) -> Iterator[Store]:
        with settings(service, tmp_path):
            # The folder of a test has a name of its own, and so has its prefix: the bucket is shared by all tests.
            yield FileStore.create(folder_of(f"s3://contract/{tmp_path.name}"), lambda: NOW, "contract")


@pytest.fixture(scope="module", params=["gs", "az"])
def cloud(request: pytest.FixtureRequest) -> Iterator[CloudService]:
    with cloud_service(request.param) as running:
        running.make_bucket("contract")
        yield running


@pytest.mark.long
@pytest.mark.storage
class TestBucketLogOverOtherProtocols(FileContract):
    """Requests of obstore to services of the protocols of Google and Azure."""

    @pytest.fixture
    def store(self, cloud: CloudService, tmp_path: Path) -> Iterator[Store]:
        with cloud_settings(cloud, tmp_path):
            yield FileStore.create(folder_of(f"{cloud.scheme}://contract/{tmp_path.name}"), lambda: NOW, "contract")
