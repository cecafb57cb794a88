"""A store in a bucket of Google Cloud Storage or of Azure keeps what one of S3 keeps, and refuses what it refuses."""

import shutil
import threading
from collections.abc import Iterator
from http.server import HTTPServer
from pathlib import Path
from uuid import uuid4

import pytest

from everlog.events import StoreError, UsageError
from everlog.interfaces.cli.main import main
from everlog.store import FileStore, folder_of
from everlog.store.object import obstore_bucket
from everlog.store.object.bucket import UnknownOutcome
from everlog.store.object.obstore_bucket import ObstoreBucket, open_bucket
from everlog.store.object.open_bucket import check_bucket, check_forgets
from tests.contract.log_contract import NOW
from tests.store.object.test_bucket_refusals import service_that_says
from tests.support.store.cloud_services import (
    TOKEN,
    CloudService,
    azure_variables,
    cloud_service,
    cloud_settings,
    google_variables,
    keeping_versions,
)
from tests.support.store.google_server import PAGE, google_server

OLD_DATE = (
    "AuthenticationFailed</Code><AuthenticationErrorDetail>Request date header too old: 'x'</AuthenticationErrorDetail>"
    "<Code>"
)
"""Answer of Azure to a request of a wrong clock, according to its documentation."""


@pytest.fixture(scope="module", params=["gs", "az"])
def service(request: pytest.FixtureRequest) -> Iterator[CloudService]:
    with cloud_service(request.param) as running:
        running.make_bucket("bucket")
        yield running


@pytest.fixture
def url(service: CloudService, tmp_path: Path) -> Iterator[str]:
    """Set the variables for the service; return an address that no other test uses."""
    with cloud_settings(service, tmp_path, EVERLOG_STORE="", EVERLOG_RUNTIME="local"):
        yield f"{service.scheme}://bucket/{uuid4().hex}"


def created(url: str) -> FileStore:
    return FileStore.create(folder_of(url), lambda: NOW, "tests")


def test_an_object_is_created_once(url: str) -> None:
    """A put that creates an object fails if there is one, which stays as it was."""
    bucket = open_bucket(url)
    bucket.put_new("log/a", b"1")
    with pytest.raises(FileExistsError):
        bucket.put_new("log/a", b"2")
    assert bucket.get("log/a") == b"1"


def test_an_object_is_replaced_only_if_it_is_the_one_that_was_read(url: str) -> None:
    """A put under the condition of a tag succeeds once, fails after any other put, and creates nothing."""
    bucket = open_bucket(url)
    bucket.put_new("keys.json", b"1")
    content, tag = bucket.get_tagged("keys.json")
    assert (content, bucket.tag("keys.json")) == (b"1", tag)
    bucket.put_over("keys.json", b"2", tag)
    with pytest.raises(FileExistsError):
        bucket.put_over("keys.json", b"3", tag)
    assert bucket.get("keys.json") == b"2"
    last = bucket.tag("keys.json")
    bucket.delete(["keys.json"])
    assert last is not None
    with pytest.raises((FileExistsError, FileNotFoundError)):
        bucket.put_over("keys.json", b"4", last)
    assert bucket.tag("keys.json") is None


def test_ranges_listings_and_deletes(url: str) -> None:
    """Ranges end at the end of an object, a listing has all pages, and the deletion of a missing object is no error."""
    bucket = open_bucket(url)
    name = "names/a b%2F+ü&<.json"
    bucket.put(name, b"0123456789")
    assert (bucket.get(name, 7), bucket.get(name, 2, 3), bucket.get(name, 8, 9)) == (b"789", b"234", b"89")
    assert (bucket.get(name, 10), bucket.get(name, 10, 1), bucket.size(name)) == (b"", b"", 10)
    keys = [f"parts/log/{number:04d}" for number in range(PAGE + 1)]
    for key in keys:
        bucket.put_new(key, b"")
    assert [found.key for found in bucket.objects("parts/log")] == keys
    assert bucket.children("") == ["names", "parts"]
    assert bucket.children("parts/log") == [key.rpartition("/")[2] for key in keys]
    bucket.delete([*keys, "missing"])
    assert [tuple(found) for found in bucket.objects("")] == [(name, 10)]
    assert bucket.get_all([name, name]) == [b"0123456789"] * 2
    with pytest.raises(FileNotFoundError):
        bucket.get("missing")
    assert (bucket.size("missing"), bucket.tag("missing")) == (None, None)


def test_commands_work(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An agent is made, talked to, shown, searched, verified, asked by SQL over open and sealed files, erased from,
    checked and copied, although the folder of this machine vanishes between any two commands.
    """

    def run(*words: str) -> str:
        shutil.rmtree(tmp_path / ".cache", ignore_errors=True)
        code = main(["--store", url, *words])
        told = capsys.readouterr()
        assert code == 0, told.err
        return told.out

    run("create", "sam", "--model", "offline")
    assert "Ada" in run("send", "sam", "hello, my name is Ada")
    assert "my name is Ada" in run("show", "sam")
    assert "no difference" in run("verify", "sam")
    before = run("sql", "SELECT count(*) FROM records")
    run("log", "seal", "--all")
    assert run("sql", "SELECT count(*) FROM records") == before
    run("archive", "insert", "sam", "The key is under the mat")
    assert "under the mat" in run("archive", "search", "sam", "where is the key")
    run("erase", "sam", "--match", "Ada", "--yes")
    assert "Ada" not in run("show", "sam")
    assert "has other requests than S3 for its rules" in run("store", "check")
    assert main(["store", "copy", url, str(tmp_path / "copy")]) == 0
    assert main(["--store", str(tmp_path / "copy"), "verify", "sam"]) == 0


def test_a_bucket_that_does_not_exist_is_named(service: CloudService, url: str) -> None:
    """A store cannot be made in a bucket or container that does not exist, and the error says so."""
    with pytest.raises(StoreError, match=f"no such bucket: {service.scheme}://nowhere/store"):
        created(f"{service.scheme}://nowhere/store")


def test_wrong_credentials_are_refused_without_secrets(
    service: CloudService, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong credentials give an error that names the variables of the service, and no secret, whether a store is made
    or looked for.
    """
    for name, value in service.wrong.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StoreError, match="refused the credentials") as told:
        created(url)
    with pytest.raises(OSError, match="refused the credentials"):
        open_bucket(url).size("everlog.json")
    text = f"{told.value} {told.value.__cause__!r}"
    assert not {value for name, value in service.wrong.items() if "KEY" in name or "TOKEN" in name} & set(text.split())
    assert service.secret not in text


def test_objects_of_others_are_left_alone(url: str) -> None:
    """No store is made among objects of others, which stay as they were."""
    other = open_bucket(url)
    other.put_new("report.csv", b"theirs")
    with pytest.raises(StoreError, match=r"1 objects that are not everlog's, for example report\.csv"):
        created(url)
    assert [found.key for found in other.objects("")] == ["report.csv"]


def test_a_bucket_that_forgets_is_accepted(url: str) -> None:
    """A bucket that gives versions to objects, but keeps no old ones, is accepted, and the trial leaves nothing."""
    bucket = open_bucket(url)
    check_bucket(bucket)
    check_forgets(bucket)
    assert bucket.objects("") == []


def test_a_bucket_of_google_that_keeps_old_versions_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bucket that would keep erased records in old generations is refused, when a store is made and by an erasure."""
    with google_server(TOKEN) as server:
        server.make_bucket("bucket", versions=True)
        for name, value in {**google_variables(server.address), "HOME": str(tmp_path)}.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(StoreError, match="keeps old versions"):
            created("gs://bucket/store")
        with pytest.raises(OSError, match="keeps old versions"):
            check_forgets(open_bucket("gs://bucket/store"))


def test_a_container_of_azure_that_keeps_old_versions_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container whose account has blob versioning is refused, when a store is made and by an erasure."""
    with cloud_service("az") as service, keeping_versions(service) as variables:
        service.make_bucket("bucket")
        for name, value in {**variables, "HOME": str(tmp_path)}.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(StoreError, match="keeps old versions"):
            created("az://bucket/store")
        with pytest.raises(OSError, match="keeps old versions"):
            check_forgets(open_bucket("az://bucket/store"))


def test_a_service_of_google_without_conditional_writes_is_found_out_by_trying(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service that ignores the condition of a put is refused by the name of the condition, and nothing is stored."""
    with google_server(TOKEN, is_conditional=False) as server:
        server.make_bucket("bucket")
        for name, value in {**google_variables(server.address), "HOME": str(tmp_path)}.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(StoreError, match="x-goog-if-generation-match: 0"):
            created("gs://bucket/store")
        assert server.objects["bucket"] == {}


def test_a_service_that_accepts_one_write_of_an_object_a_second_is_obeyed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a service refuses puts of an object that was written a moment ago, each is repeated until it is accepted: a
    store is made, talked to, given keys, sealed and erased from.
    """
    with google_server(TOKEN, refused=2) as server:
        server.make_bucket("bucket")
        variables = {**google_variables(server.address), "HOME": str(tmp_path), "EVERLOG_RUNTIME": "local"}
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        store = ["--store", "gs://bucket/store"]
        assert main([*store, "send", "sam", "hello", "--model", "offline"]) == 0
        for name in ("laptop", "phone"):
            assert main([*store, "keys", "create", name, "--role", "read"]) == 0
        assert main([*store, "log", "seal", "--all"]) == 0
        assert main([*store, "erase", "sam", "--match", "hello", "--yes"]) == 0
        assert main([*store, "store", "check"]) == 0


def test_a_service_of_azure_without_conditional_writes_is_found_out_by_trying() -> None:
    """A service that ignores the condition of a put is refused by the name of the condition."""
    from obstore.store import MemoryStore

    class Unconditional(ObstoreBucket):
        """A service that ignores the condition of a put."""

        put_new = ObstoreBucket.put

    with pytest.raises(OSError, match="If-None-Match"):
        check_bucket(Unconditional(MemoryStore(), "az://bucket/store"))


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("gs://bucket/store", "GOOGLE_BASE_URL"),
        ("az://bucket/store", "AZURE_STORAGE_ENDPOINT"),
        ("az://bucket/store", "AZURE_ENDPOINT"),
    ],
)
@pytest.mark.parametrize(
    "value", ["", "foo", "http://[1]:1", "http://a b", "http://host:99999", "http://k:secret@host"]
)
def test_an_impossible_address_of_the_service_is_refused(
    url: str, name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value that is no address is refused before a request is sent, by the name of its variable, and never with a
    password.
    """
    monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=rf"The variable {name} must be the address of a service") as refused:
        open_bucket(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("url", ["gs://bucket/store", "az://bucket/store"])
def test_a_service_that_does_not_answer_is_named_by_its_variable(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error for an address at which nothing answers says which variable has the address."""
    for name, value in {**google_variables("http://127.0.0.1:1"), **azure_variables("http://127.0.0.1:1")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(obstore_bucket, "TIMEOUT", "1s")
    with pytest.raises(UnknownOutcome) as told:
        open_bucket(url).size("everlog.json")
    assert ("GOOGLE_BASE_URL" if url.startswith("gs") else "AZURE_STORAGE_ENDPOINT") in told.value.cure


@pytest.mark.parametrize(
    ("url", "name", "value"),
    [
        ("gs://bucket/store", "GOOGLE_SERVICE_ACCOUNT_KEY", "{secret"),
        ("gs://bucket/store", "GOOGLE_SERVICE_ACCOUNT", "/nowhere/secret.json"),
        ("az://bucket/store", "AZURE_STORAGE_ACCOUNT_KEY", "secret!"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(
    url: str, name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Impossible credentials are refused before a request is sent, by the names of variables, without a value."""
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match="Nothing was sent") as told:
        open_bucket(url)
    assert name in str(told.value)
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    ("scheme", "answer", "said"),
    [
        ("az", OLD_DATE, "the clock of this machine"),
        ("az", "AuthenticationFailed", "refused the credentials"),
        ("az", "AuthorizationFailure", "refused the credentials"),
        ("gs", "AccessDenied", "refused the credentials"),
        ("gs", "AuthenticationRequired", "refused the credentials"),
    ],
)
def test_a_refusal_is_explained(
    scheme: str, answer: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong clock and wrong credentials are told apart where the service tells them apart; Google does not, so its
    error names the clock too.
    """
    server = HTTPServer(("127.0.0.1", 0), service_that_says(answer))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}"
    for name, value in {**google_variables(address), **azure_variables(address), "HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    try:
        with pytest.raises(StoreError, match=said) as told:
            created(f"{scheme}://bucket/store")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert scheme == "az" or "clock" in str(told.value)
