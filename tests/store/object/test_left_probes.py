"""Objects with which a bucket is tried do not stay in it, whatever happens to the requests of the trial."""

import json
from pathlib import Path

import pytest

from everlog.interfaces.cli.main import main
from everlog.store.object import open_bucket as opening
from everlog.store.object.bucket import UnknownOutcome
from everlog.store.object.obstore_bucket import ObstoreBucket, open_bucket
from everlog.store.object.open_bucket import PROBE, check_bucket, check_forgets
from tests.support.store.bucket_server import make_bucket, s3_server, settings


class Silent(ObstoreBucket):
    """A service that carries out puts and does not say so; its next `deaf` deletes are lost on the way."""

    def __init__(self, deaf: int = 0) -> None:
        from obstore.store import MemoryStore

        super().__init__(MemoryStore(), "memory://bucket/store")
        self.deaf = deaf

    def put(self, key: str, content: bytes | memoryview) -> None:
        super().put(key, content)
        raise UnknownOutcome("the service did not answer", "Try again.")

    def delete(self, keys: list[str]) -> None:
        if keys and self.deaf:
            self.deaf -= 1
            raise UnknownOutcome("the service did not answer", "Try again.")
        super().delete(keys)

    @property
    def keys(self) -> list[str]:
        """Names of all objects."""
        return [found.key for found in self.objects("")]


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "wait", lambda _: None)


@pytest.mark.parametrize("deaf", [0, 5])
@pytest.mark.parametrize("check", [check_bucket, check_forgets])
def test_an_object_whose_put_had_an_unknown_outcome_is_deleted(check, deaf: int) -> None:
    """If it is unknown whether the first put of a trial was carried out, its object is deleted, in several attempts if
    need be.
    """
    bucket = Silent(deaf)
    with pytest.raises(UnknownOutcome):
        check(bucket)
    assert bucket.keys == []


@pytest.mark.parametrize("check", [check_bucket, check_forgets])
def test_what_a_trial_left_is_deleted_by_the_next_one(check) -> None:
    """The next trial deletes an object that a trial could not delete, or a killed process left, and nothing else."""
    bucket = Silent(deaf=1000)
    with pytest.raises(UnknownOutcome):
        check(bucket)
    (left,) = bucket.keys
    bucket = ObstoreBucket(bucket._store, bucket.url)
    bucket.put_new(f"{PROBE}-of-a-killed-process", b"1")
    bucket.put_new("everlog.json", b"{}")
    check(bucket)
    assert left.startswith(PROBE)
    assert [found.key for found in bucket.objects("")] == ["everlog.json"]


@pytest.mark.parametrize("others", [1, 2])
def test_a_bucket_is_accepted_although_another_process_deletes_the_object(others: int) -> None:
    """A process that takes the object of a trial for a left one, and deletes it, makes no good bucket look bad."""

    class Shared(ObstoreBucket):
        """A bucket in which another process deletes the object before a put, a few times."""

        left = others

        def put_new(self, key: str, content: bytes | memoryview) -> None:
            if self.left:
                self.left -= 1
                self.delete([key])
            super().put_new(key, content)

    from obstore.store import MemoryStore

    bucket = Shared(MemoryStore(), "memory://bucket/store")
    check_bucket(bucket)
    assert bucket.objects("") == []


def test_the_check_of_a_store_names_what_a_trial_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`everlog store check` names an object that a trial left as such, and as a warning; an erasure deletes it."""
    with s3_server() as address, settings(address, tmp_path, EVERLOG_RUNTIME="local"):
        make_bucket(address, "bucket")
        store = ["--store", "s3://bucket/store"]
        assert main([*store, "send", "sam", "hello", "--model", "offline"]) == 0
        open_bucket("s3://bucket/store").put_new(f"{PROBE}-there-7", b"1")
        capsys.readouterr()
        assert main([*store, "store", "check", "--json"]) == 0
        others = [one for one in json.loads(capsys.readouterr().out)["findings"] if one["check"] == "others"]
        assert [one["level"] for one in others] == ["warn", "ok"]
        assert f"{PROBE}-there-7" in others[0]["said"]
        assert main([*store, "erase", "sam", "--match", "hello", "--yes"]) == 0
        assert open_bucket("s3://bucket/store").size(f"{PROBE}-there-7") is None
