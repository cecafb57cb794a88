"""Files beside a store in a bucket are found by every machine, and `everlog store check` looks at all of the bucket."""

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from everlog.interfaces.cli.main import main
from everlog.store.object.bucket_rules import danger_of
from tests.support.store.bucket_server import client_of, keep_versions, make_bucket, s3_server, settings

Run = Callable[..., str]


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    with s3_server() as address:
        make_bucket(address, "bucket")
        yield address


@pytest.fixture
def home(service: str, tmp_path: Path) -> Iterator[Path]:
    with settings(service, tmp_path, EVERLOG_STORE="", EVERLOG_RUNTIME="local"):
        yield tmp_path


@pytest.fixture
def run(home: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a command on a machine without a cache, and returns what it prints."""

    def ran(*words: str, code: int = 0) -> str:
        shutil.rmtree(home / ".cache", ignore_errors=True)
        found = main([*words])
        told = capsys.readouterr()
        assert found == code, told.err + told.out
        return told.out

    return ran


def test_every_machine_finds_the_files_beside_the_logs(run: Run, home: Path) -> None:
    """Keys, presets, servers, agents of others, defaults and findings about models that one machine writes, another one
    without its cache reads, and neither has a file of them.
    """
    store = ["--store", "s3://bucket/beside"]
    run(*store, "create", "sam", "--model", "offline")
    run(*store, "keys", "create", "laptop", "--role", "read")
    assert "laptop" in run(*store, "keys", "list")
    run(*store, "preset", "add", "persona", "pirate", "You are a pirate.")
    assert "You are a pirate." in run(*store, "preset", "show", "persona", "pirate")
    run(*store, "mcp", "add", "clock", "--command", f"{sys.executable} -m mcp_server_time")
    assert "mcp_server_time" in run(*store, "mcp", "list", "--json")
    run(*store, "mcp", "remove", "clock")
    assert "mcp_server_time" not in run(*store, "mcp", "list", "--json")
    key = json.loads(run(*store, "keys", "list", "--json"))[0]["id"]
    run(*store, "keys", "revoke", key)
    assert [path for path in home.rglob("*") if path.suffix in (".json", ".toml", ".txt")] == []


def test_a_copy_has_the_files_beside_the_logs(run: Run, home: Path) -> None:
    """A store is copied from a folder into a bucket and back with its keys and presets."""
    here, there, back = str(home / "here"), "s3://bucket/with-files", str(home / "back")
    run("--store", here, "create", "sam", "--model", "offline")
    run("--store", here, "keys", "create", "laptop", "--role", "read")
    run("--store", here, "preset", "add", "human", "ada", "She likes tea.")
    assert '"side_files":2' in run("store", "copy", here, there, "--json")
    assert "laptop" in run("--store", there, "keys", "list")
    assert '"side_files":2' in run("store", "copy", there, back, "--json")
    for name in ("keys.json", "presets/humans/ada.txt"):
        assert (home / "back" / name).read_bytes() == (home / "here" / name).read_bytes()
    assert (home / "back" / "keys.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("place", ["folder", "bucket"])
def test_a_sound_store_is_said_to_be_sound(run: Run, home: Path, place: str) -> None:
    """The check of a store without a fault counts its logs, records and files, and ends with 0; as JSON, too."""
    store = ["--store", str(home / "store") if place == "folder" else "s3://bucket/sound"]
    run(*store, "send", "sam", "hello", "--model", "offline")
    run(*store, "log", "seal", "--all")
    run(*store, "keys", "create", "laptop", "--role", "read")
    told = run(*store, "store", "check")
    assert "1 log with" in told
    assert "1 file beside the logs" in told
    assert "0 failures, 0 warnings" in told
    found = json.loads(run(*store, "store", "check", "--json"))
    assert found["healthy"]
    assert found["logs"][0]["errors"] == []
    assert {one["level"] for one in found["findings"]} == {"ok"}


@pytest.mark.parametrize("place", ["folder", "bucket"])
def test_damage_is_found_wherever_it_is(run: Run, service: str, home: Path, place: str) -> None:
    """A changed byte of a sealed file, a side file that is none, one with a wrong value, and what is not everlog's are
    each named, and the check ends with 1.
    """
    make_bucket(service, "damaged")
    root = home / "store"
    store = ["--store", str(root) if place == "folder" else "s3://damaged/store"]
    run(*store, "send", "sam", "hello", "--model", "offline")
    run(*store, "log", "seal", "--all")
    objects = client_of(service)

    def names() -> list[str]:
        if place == "folder":
            return [str(path.relative_to(root)) for path in root.rglob("*.parquet")]
        listed = objects.list_objects_v2(Bucket="damaged", Prefix="store/")["Contents"]
        return [one["Key"].removeprefix("store/") for one in listed if one["Key"].endswith(".parquet")]

    def content(name: str) -> bytes:
        if place == "folder":
            return (root / name).read_bytes()
        return bytes(objects.get_object(Bucket="damaged", Key=f"store/{name}")["Body"].read())

    def put(name: str, content: bytes) -> None:
        if place == "folder":
            (root / name).write_bytes(content)
        else:
            objects.put_object(Bucket="damaged", Key=f"store/{name}", Body=content)

    (sealed,) = names()
    changed = bytearray(content(sealed))
    changed[len(changed) // 2] ^= 1
    put(sealed, bytes(changed))
    put("keys.json", b'{"keys": [')
    put("models.toml", b"[models.x]\nwindow = 'wide'\n")
    put("report.csv", b"theirs")
    found = json.loads(run(*store, "store", "check", "--json", code=1))
    said = "\n".join(one["said"] for one in found["findings"] if one["level"] == "fail")
    assert not found["healthy"]
    assert "damage in 1 of 1 log" in said
    assert "keys.json is damaged" in said
    assert "models.toml" in said
    others = next(one for one in found["findings"] if one["check"] == "others")
    assert "report.csv" in others["said"]
    assert others["level"] == ("warn" if place == "folder" else "fail")


def test_a_rule_that_deletes_and_old_versions_are_named(run: Run, service: str) -> None:
    """A lifecycle rule that deletes objects of the store, versioning that was switched on, and the old versions that it
    keeps are each a failure; a rule for another prefix is none.
    """
    make_bucket(service, "ruled")
    store = ["--store", "s3://ruled/store"]
    run(*store, "send", "sam", "hello", "--model", "offline")
    client = client_of(service)
    rules = [
        {"ID": "tidy", "Status": "Enabled", "Filter": {"Prefix": "store/log"}, "Expiration": {"Days": 30}},
        {"ID": "logs", "Status": "Enabled", "Filter": {"Prefix": "web/"}, "Expiration": {"Days": 1}},
    ]
    client.put_bucket_lifecycle_configuration(Bucket="ruled", LifecycleConfiguration={"Rules": rules})
    told = run(*store, "store", "check", code=1)
    assert "the rule 'tidy' for 'store/log' deletes objects after 30 days" in told
    assert "'logs'" not in told
    client.delete_bucket_lifecycle(Bucket="ruled")
    run(*store, "store", "check")
    keep_versions(service, "ruled")
    for content in (b"1", b"2"):
        client.put_object(Bucket="ruled", Key="store/keys.json", Body=content)
    client.delete_object(Bucket="ruled", Key="store/keys.json")
    told = run(*store, "store", "check", code=1)
    assert "versioning is enabled" in told
    assert "3 old versions under the prefix" in told


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"Expiration": {"Days": 1}}, "deletes objects after 1 days"),
        ({"Prefix": "a", "Expiration": {"Date": "2030-01-01"}}, "deletes objects on 2030-01-01"),
        ({"Filter": {"And": {"Prefix": "a/b/log/", "Tags": []}}, "Expiration": {"Days": 1}}, "deletes objects"),
        ({"Transitions": [{"Days": 1, "StorageClass": "DEEP_ARCHIVE"}]}, "cannot be read"),
        ({"Transitions": [{"Days": 1, "StorageClass": "STANDARD_IA"}]}, ""),
        ({"Status": "Disabled", "Expiration": {"Days": 1}}, ""),
        ({"Filter": {"Tag": {"Key": "k", "Value": "v"}}, "Expiration": {"Days": 1}}, ""),
        ({"Filter": {"Prefix": "a/c/"}, "Expiration": {"Days": 1}}, ""),
        ({"NoncurrentVersionExpiration": {"NoncurrentDays": 1}}, ""),
        ({"Expiration": {"ExpiredObjectDeleteMarker": True}}, ""),
    ],
)
def test_a_rule_is_told_from_a_harmless_one(rule: dict[str, Any], said: str) -> None:
    """A rule counts if it is in force, is for objects of the store, and deletes them or makes them unreadable."""
    found = danger_of({"ID": "r", "Status": "Enabled", **rule}, "a/b/")
    assert (said in found) if said else found == ""


def test_what_a_service_does_not_tell_is_said(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without botocore, or with credentials that may not read the rules, the check says what it did not look at, and
    is no failure.
    """
    store = ["--store", "s3://bucket/untold"]
    run(*store, "send", "sam", "hello", "--model", "offline")
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "botocore.session", None)
        told = run(*store, "store", "check")
    assert "were not looked at" in told
    assert "everlog[object-check]" in told
    from botocore.exceptions import ClientError

    class Denying:
        def __getattr__(self, name: str) -> Any:
            def denied(**_: object) -> None:
                raise ClientError({"Error": {"Code": "AccessDenied"}}, name)

            return denied

    monkeypatch.setattr("everlog.store.object.bucket_rules.client_of", lambda _: Denying())
    told = run(*store, "store", "check")
    assert "did not tell its lifecycle rules (AccessDenied)" in told
    assert "0 failures, 2 warnings" in told
