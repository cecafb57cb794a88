"""The contract of side files, for each place: a folder, a bucket, and a bucket whose requests fail."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from everlog.events import StoreError
from everlog.store import change_whole, folder_of, read_whole
from everlog.store.object.bucket import UnknownOutcome
from everlog.store.object.bucket_side_files import BucketSideFiles
from everlog.store.object.obstore_bucket import ObstoreBucket
from everlog.store.stores.side_files import FOLDER_FILES, SideFiles, side_files_of
from tests.contract.side_files_contract import SideFilesContract
from tests.contract.test_bucket_logs import ROOT, memory_bucket
from tests.support.store.bucket_server import make_bucket, s3_server, settings


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    with s3_server() as address:
        make_bucket(address, "bucket")
        yield address


class TestSideFilesInAFolder(SideFilesContract):
    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        return tmp_path / "store"

    @pytest.fixture
    def files(self) -> SideFiles:
        return FOLDER_FILES


class TestSideFilesInABucket(SideFilesContract):
    @pytest.fixture
    def root(self) -> Path:
        return ROOT

    @pytest.fixture
    def files(self) -> SideFiles:
        return BucketSideFiles(memory_bucket(), ROOT)


class TestSideFilesOverTheProtocol(SideFilesContract):
    @pytest.fixture
    def root(self, service: str, tmp_path: Path) -> Iterator[Path]:
        with settings(service, tmp_path):
            yield folder_of(f"s3://bucket/{tmp_path.name}/store")

    @pytest.fixture
    def files(self, root: Path) -> SideFiles:
        return side_files_of(root)


class Flaky(ObstoreBucket):
    """A bucket of which every third request fails, before or after it took effect."""

    def __init__(self, store: Any) -> None:
        super().__init__(store, "memory://flaky")
        self._chance = random.Random(1)

    def _tried(self, request: Any, *args: Any) -> Any:
        luck = self._chance.random()
        if luck < 0.15:
            raise UnknownOutcome("no answer", "Try again.")
        answer = request(*args)
        if luck < 0.3:
            raise UnknownOutcome("no answer", "Try again.")
        return answer

    def put_new(self, *args: Any) -> None:
        self._tried(super().put_new, *args)

    def put_over(self, *args: Any) -> None:
        self._tried(super().put_over, *args)

    def get_tagged(self, *args: Any) -> Any:
        return self._tried(super().get_tagged, *args)

    def tag(self, *args: Any) -> Any:
        return self._tried(super().tag, *args)

    def children(self, *args: Any) -> Any:
        return self._tried(super().children, *args)

    def delete(self, *args: Any) -> None:
        self._tried(super().delete, *args)


class TestSideFilesInAFlakyBucket(SideFilesContract):
    @pytest.fixture
    def root(self) -> Path:
        return ROOT

    @pytest.fixture
    def files(self) -> SideFiles:
        from obstore.store import MemoryStore

        return BucketSideFiles(Flaky(MemoryStore()), ROOT, pause=lambda _: None, pauses_s=(0,) * 20)


def test_a_write_that_arrives_once_more_replaces_nothing() -> None:
    """A write that was repeated and arrives again after a newer one finds its condition broken."""
    bucket = memory_bucket()
    late: list[Any] = []
    put_over = bucket.put_over

    def remember(*args: Any) -> None:
        late.append(args)
        put_over(*args)

    bucket.put_over = remember  # type: ignore[method-assign]
    files = BucketSideFiles(bucket, ROOT)
    for content in (b"first", b"second", b"third"):
        files.write(ROOT / "keys.json", content)
    with pytest.raises(FileExistsError):
        put_over(*late[0])
    found = files.read(ROOT / "keys.json")
    assert found is not None
    assert found[0] == b"third"


def test_a_change_that_always_comes_too_late_is_an_error(tmp_path: Path) -> None:
    """A change gives up after some attempts and says so; what others wrote stays."""
    path = tmp_path / "keys.json"

    def change(content: bytes | None) -> bytes:
        FOLDER_FILES.write(path, (content or b"") + b"x")
        return b"mine"

    with pytest.raises(StoreError, match="other processes changed"):
        change_whole(path, change)
    assert read_whole(path) == b"x" * 100


def test_another_machine_finds_the_files(service: str, tmp_path: Path) -> None:
    """A file that one machine writes beside a store in a bucket is read by another machine, with another home."""
    url = "s3://bucket/shared/store"
    with settings(service, tmp_path / "one"):
        change_whole(folder_of(url) / "keys.json", lambda _: b"keys")
    with settings(service, tmp_path / "two"):
        assert read_whole(folder_of(url) / "keys.json") == b"keys"
