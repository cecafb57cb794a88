"""A bucket that cannot hold a store, and a service that refuses, give errors that say whose fault it is."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from everlog.events import BadInput, StoreError, UsageError
from everlog.store import FileStore, folder_of
from everlog.store.object import obstore_bucket
from everlog.store.object.bucket import UnknownOutcome
from everlog.store.object.obstore_bucket import ObstoreBucket, open_bucket
from everlog.store.object.open_bucket import check_bucket
from tests.contract.log_contract import NOW, Drafts
from tests.support.store.bucket_server import KEYS, make_bucket, s3_server, settings


def now() -> int:
    return NOW


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    with s3_server() as address:
        make_bucket(address, "bucket")
        make_bucket(address, "versions", versions=True)
        yield address


@pytest.fixture
def home(service: str, tmp_path: Path) -> Iterator[Path]:
    with settings(service, tmp_path):
        yield tmp_path


def created(url: str) -> FileStore:
    return FileStore.create(folder_of(url), now, "tests")


def test_a_bucket_that_does_not_exist_is_named(home: Path) -> None:
    """A store cannot be made in a bucket that does not exist, and the error says so."""
    with pytest.raises(StoreError, match="no such bucket: s3://nowhere/store"):
        created("s3://nowhere/store")


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AWS_ENDPOINT_URL_S3"])
@pytest.mark.parametrize(
    "value",
    [
        "", "foo", "localhost:9000", "http://", "http://[::1", "http://[1]:1", "ftp://host", "http://a b", "http:/host",
        "http://host:99999", " http://host", "http://host/a b", "http://host?x=1", "http://host#f", "://", "http://ü",
        "http://user:pass word@host", "http://user:secret@host",
    ],
)  # fmt: skip
def test_an_impossible_address_of_the_service_is_refused(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value that is no address is refused before a request is sent, by the name of its variable, and never with a
    password.
    """
    monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=rf"The variable {name} must be the address of a service") as refused:
        open_bucket("s3://bucket/store")
    assert (repr(value) in str(refused.value)) is (bool(value) and "@" not in value)


@pytest.mark.parametrize(
    "value",
    [
        "http://127.0.0.1:1",
        "HTTPS://S3.eu-1.example.com",
        "http://[::1]:1/",
        "http://a_b:65535/path/x%20y",
        "http://h:1/a;b=!",
    ],
)
def test_possible_addresses_are_tried(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value that is an address is used: the error is that nothing answers there."""
    for name, setting in {**KEYS, "AWS_ENDPOINT_URL": value}.items():
        monkeypatch.setenv(name, setting)
    monkeypatch.setattr(obstore_bucket, "TIMEOUT", "1s")
    with pytest.raises(UnknownOutcome):
        open_bucket("s3://bucket/store").size("everlog.json")


def test_objects_of_others_are_left_alone(home: Path) -> None:
    """No store is made among objects of others, which stay as they were."""
    other = open_bucket("s3://bucket/others")
    other.put_new("report.csv", b"theirs")
    with pytest.raises(StoreError, match=r"1 objects that are not everlog's, for example report\.csv"):
        created("s3://bucket/others")
    assert [found.key for found in other.objects("")] == ["report.csv"]


def test_a_bucket_with_versions_is_refused(home: Path) -> None:
    """A bucket that would keep erased records in old versions is refused, with the reason."""
    with pytest.raises(StoreError, match="keeps old versions"):
        created("s3://versions/store")


class Unconditional(ObstoreBucket):
    """A service that ignores the condition of a put."""

    def put_new(self, key: str, content: bytes | memoryview) -> None:
        self.put(key, content)


def test_a_service_without_conditional_writes_is_found_out_by_trying() -> None:
    """A service that replaces an object although it should only create one is refused, and nothing is left in it."""
    from obstore.store import MemoryStore

    bucket = Unconditional(MemoryStore(), "memory://bucket/store")
    with pytest.raises(OSError, match="If-None-Match"):
        check_bucket(bucket)
    assert bucket.objects("") == []


class Refusing(BaseHTTPRequestHandler):
    """A service that answers every request with one error."""

    code = ""

    def answer(self) -> None:
        content = f"<Error><Code>{self.code}</Code><Message>no</Message></Error>".encode()
        self.send_response(403)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def service_that_says(code: str) -> type[Refusing]:
    """Return the service whose answer to every request is the error `code`."""
    answers = {f"do_{method}": Refusing.answer for method in ("GET", "HEAD", "PUT", "POST", "DELETE")}
    return type("Service", (Refusing,), {**answers, "code": code})


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("RequestTimeTooSkewed", "the clock of this machine"),
        ("InvalidAccessKeyId", "refused the credentials"),
        ("SignatureDoesNotMatch", "refused the credentials"),
        ("AccessDenied", "refused the credentials"),
    ],
)
def test_a_refusal_is_explained_without_secrets(code: str, said: str, tmp_path: Path) -> None:
    """A wrong clock and wrong credentials are told apart, and no error contains a secret."""
    server = HTTPServer(("127.0.0.1", 0), service_that_says(code))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        with (
            settings(f"http://127.0.0.1:{server.server_port}", tmp_path),
            pytest.raises(StoreError, match=said) as told,
        ):
            created("s3://bucket/store")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert KEYS["AWS_SECRET_ACCESS_KEY"] not in f"{told.value} {told.value.__cause__}"


@pytest.mark.parametrize("url", ["s3://bucket", "s3:///store", "ftp://bucket/store", "s3://a/../b", "s3://k:s@b/store"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    """An address without a prefix, of another kind, or with credentials in it is refused as bad input."""
    with pytest.raises(BadInput):
        folder_of(url)


def test_a_refused_append_is_not_lost(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An append that the service refuses fails, and all that was acknowledged before is there afterwards."""
    store, drafts = created("s3://bucket/refused"), Drafts()
    store.register("sam")
    log = store.open("sam", "test")
    kept = log.append("sam", 0, drafts.some(2))
    bucket = store.disk.bucket  # type: ignore[attr-defined]
    with monkeypatch.context() as broken:

        def refuse(key: str, content: bytes) -> None:
            raise PermissionError(13, "no")

        broken.setattr(bucket, "put_new", refuse)
        with pytest.raises(StoreError):
            log.append("sam", 2, drafts.some(1))
        log.close()
    again = FileStore(folder_of("s3://bucket/refused"), now).open("sam", "test", take_over=True)
    assert list(again.read("sam")) == list(kept.records)
    again.append("sam", 2, drafts.some(1))
    again.close()
