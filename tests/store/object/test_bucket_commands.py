"""Commands on a store in a bucket, behind the real protocol on loopback."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from everlog.interfaces.cli.main import main
from tests.support.store.bucket_server import keep_versions, make_bucket, s3_server, settings

URL = "s3://bucket/commands"


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    with s3_server() as address:
        make_bucket(address, "bucket")
        yield address


@pytest.fixture
def home(service: str, tmp_path: Path) -> Iterator[Path]:
    with settings(service, tmp_path, EVERLOG_STORE="", EVERLOG_RUNTIME="local"):
        yield tmp_path


def test_commands_work_on_a_bucket(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An agent in a bucket is made, talked to, shown, verified, replayed, forked, asked by SQL and checked; the folder
    of this machine may vanish between any two commands.
    """

    def run(*words: str) -> str:
        shutil.rmtree(home / ".cache", ignore_errors=True)
        code = main(["--store", URL, *words])
        told = capsys.readouterr()
        assert code == 0, told.err
        return told.out

    assert "Created sam" in run("create", "sam", "--model", "offline")
    assert "Ada" in run("send", "sam", "hello, my name is Ada")
    assert "sam" in run("agents")
    assert "my name is Ada" in run("show", "sam")
    assert "no difference" in run("verify", "sam")
    assert "Ada" in run("replay", "sam")
    assert "Created bob" in run("fork", "sam", "--new-name", "bob")
    assert "14" in run("sql", "SELECT count(*) FROM records")
    run("log", "check", "--all")
    run("log", "seal", "--all")
    assert "my name is Ada" in run("show", "sam")
    assert run("send", "sam", "remember that I like tea")
    assert "no difference" in run("verify", "sam")


def test_an_erasure_is_refused_once_the_bucket_keeps_old_versions(
    service: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bucket whose versioning was switched on later would keep what an erasure removes: nothing is erased."""
    make_bucket(service, "later")
    store = ["--store", "s3://later/store"]
    assert main([*store, "send", "sam", "my name is Ada", "--model", "offline"]) == 0
    keep_versions(service, "later")
    assert main([*store, "erase", "sam", "--match", "Ada", "--yes"]) != 0
    told = capsys.readouterr().err
    assert "keeps old versions" in told
    assert "Nothing was erased" in told
    assert main([*store, "show", "sam"]) == 0
    assert "Ada" in capsys.readouterr().out


def test_a_store_is_copied_into_a_bucket_and_back(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A store moves from a folder into a bucket and into another folder by `store copy`, with all that was said; what
    is not copied is named, and a place that is taken is refused.
    """

    def run(*words: str) -> str:
        shutil.rmtree(home / ".cache", ignore_errors=True)
        code = main([*words])
        told = capsys.readouterr()
        assert code == 0, told.err
        return told.out

    here, there, back = str(home / "here"), "s3://bucket/copied", str(home / "back")
    run("--store", here, "create", "sam", "--model", "offline")
    run("--store", here, "send", "sam", "hello, my name is Ada")
    (home / "here" / "prices.toml").write_text("")
    told = run("store", "copy", here, there)
    assert "Copied 1 stream" in told
    assert "prices.toml" in told
    run("--store", there, "send", "sam", "I like tea")
    assert "no difference" in run("--store", there, "verify", "sam")
    assert '"kept":0' in run("store", "copy", there, back, "--json")
    assert "I like tea" in run("--store", back, "show", "sam")
    assert "no damage" in run("--store", back, "log", "check", "--all", "--deep")
    assert main(["store", "copy", here, there]) != 0
    assert "is not empty" in capsys.readouterr().err


def test_a_load_test_runs_on_a_bucket(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`everlog fleet` counts the messages and the bytes of a store in a bucket, for agents that share logs."""
    words = ["fleet", "--here", "--agents", "2", "--messages", "1", "--placement", "shared", "--json"]
    assert main(["--store", "s3://bucket/fleet", *words]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (report["lost"], report["doubled"]) == (0, 0)
    assert report["bytes_per_message"] > 0


def test_errors_name_the_address(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An error about a store in a bucket names its address, and no folder of this machine."""
    assert main(["--store", "s3://nowhere/store", "create", "sam", "--model", "offline"]) != 0
    told = capsys.readouterr().err
    assert "s3://nowhere/store" in told
    assert ".cache" not in told
