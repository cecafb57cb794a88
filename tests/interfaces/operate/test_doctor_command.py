"""`everlog doctor`: each fault of an installation is found, named with its cure, and decides the exit code."""

import json
import resource
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from everlog.interfaces.operate import machine_checks, service_checks, store_checks
from everlog.store import FileStore
from tests.support.cli.command_line import HandClock, Line


def findings(cli: Line, *argv: str) -> dict[str, Any]:
    """Return the last finding of each check by name, and the exit code as "exit"."""
    code, out, err = cli("doctor", "--json", *argv)
    assert err == ""
    shape = json.loads(out)
    assert shape["healthy"] is (code == 0)
    return {**{one["check"]: one for one in shape["findings"]}, "exit": code}


@pytest.fixture(autouse=True)
def closed(cli: Line) -> None:
    """Begin with a store that only its owner may enter."""
    cli.ok("create", "sam")


def test_a_sound_installation_is_healthy(cli: Line) -> None:
    """Every check is ok, or a warning about this machine; exit code 0; nothing in the store is changed."""
    before = {path: path.stat().st_mtime_ns for path in cli.root.rglob("*")}
    found = findings(cli)
    assert found["exit"] == 0
    for check in ("python", "clock", "defaults", "zone", "owner", "permissions", "store", "register", "locks", "models",
                  "endpoint default", "cluster"):  # fmt: skip
        assert found[check]["level"] == "ok", check
    assert found["store"]["said"].endswith("1 agent, 1 log")
    assert {path: path.stat().st_mtime_ns for path in cli.root.rglob("*")} == before


def test_it_prints_a_line_for_each_finding_and_a_sum(cli: Line) -> None:
    """For people: the level, the check, what was found, the cure below, and the counts at the end."""
    out = cli.ok("doctor")
    assert "\nok    register: its files are whole, and each log that it names exists\n" in out
    assert out.splitlines()[-1].startswith("0 failures, ")


def test_no_store_is_no_fault(cli: Line) -> None:
    """Before the first agent the store does not exist; the doctor does not make it."""
    shutil.rmtree(cli.root)
    found = findings(cli)
    assert found["exit"] == 0
    assert found["store"]["said"].endswith("does not exist yet: the first agent makes it")
    assert not cli.root.exists()


def test_a_store_that_others_may_enter_is_a_warning(cli: Line) -> None:
    """The finding has the command that closes it."""
    cli.root.chmod(0o755)
    found = findings(cli)
    assert found["permissions"]["level"] == "warn" and "chmod -R go=" in found["permissions"]["said"]
    assert found["exit"] == 0


def test_a_damaged_register_is_a_failure(cli: Line) -> None:
    """A file of the register that is not what was written is found without reading a log."""
    file = next((cli.root / "agents").glob("*/*"))
    file.write_bytes(b"{}")
    found = findings(cli)
    assert found["exit"] == 1
    assert found["store"]["level"] == "fail" or found["register"]["level"] == "fail"


def test_open_logs_are_named(cli: Line) -> None:
    """A log that a process has open is no fault: it is only named."""
    log = FileStore(cli.root, cli.clock.now).open("sam", "everlog chat")
    found = findings(cli)
    log.close()
    assert found["locks"]["level"] == "ok" and "no log" not in found["locks"]["said"]
    assert findings(cli)["locks"]["said"].endswith("no log")


def test_little_space_is_found(cli: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """Below two gigabytes a warning, below 100 MB a failure."""
    for free, level in ((10**12, "ok"), (10**9, "warn"), (10**7, "fail")):
        monkeypatch.setattr(store_checks.shutil, "disk_usage", lambda _, free=free: SimpleNamespace(free=free))
        assert findings(cli)["space"]["level"] == level


def test_another_owner_is_a_failure(cli: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of two owners lock each other out."""
    monkeypatch.setattr(store_checks.os, "getuid", lambda: 12345)
    found = findings(cli)
    assert found["owner"]["level"] == "fail" and found["exit"] == 1


def test_a_mistake_in_a_file_of_defaults_is_a_failure(
    cli: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The doctor names it and ends: no other command would run."""
    config = tmp_path / "config.toml"
    config.write_text('modle = "x"')
    monkeypatch.setenv("EVERLOG_CONFIG", str(config))
    found = findings(cli)
    assert found["defaults"]["level"] == "fail" and "Did you mean 'model'?" in found["defaults"]["said"]
    assert found["exit"] == 1 and "store" not in found
    config.write_text('zone = "Mars/Base"')
    assert findings(cli)["zone"]["level"] == "fail"


def test_an_unknown_variable_is_a_warning(cli: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """A misspelt variable has no effect: its right name is proposed. A misspelt limit is a failure, as everywhere."""
    monkeypatch.setenv("EVERLOG_STROE", "/tmp/x")
    shape = json.loads(cli.ok("doctor", "--json"))
    warned = [one for one in shape["findings"] if one["check"] == "variables" and one["level"] == "warn"]
    assert [one["cure"] for one in warned] == ["Did you mean EVERLOG_STORE?"]
    monkeypatch.setenv("EVERLOG_GATEWAY_ASK_MAX", "3")
    assert cli("doctor")[0] == 1


def test_keys_are_named_and_never_shown(cli: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each endpoint of models.toml says whether the variable with its key is set."""
    (cli.root / "models.toml").write_text('[endpoints.mine]\nurl = "http://127.0.0.1:9/v1"\nkey = "MY_KEY"\n')
    assert findings(cli)["endpoint mine"]["level"] == "warn"
    monkeypatch.setenv("MY_KEY", "a-very-secret-value")
    assert findings(cli)["endpoint mine"]["said"] == "http://127.0.0.1:9/v1: key in MY_KEY"
    assert "a-very-secret-value" not in cli.ok("doctor") + cli.ok("doctor", "--json")


def test_endpoints_are_contacted_only_if_asked(cli: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --online nothing is connected; with it, an endpoint that does not answer is a failure."""
    (cli.root / "models.toml").write_text('[endpoints.mine]\nurl = "http://127.0.0.1:9/v1"\n')
    called: list[str] = []

    def answers(address: str) -> bool:
        called.append(address)
        return False

    monkeypatch.setattr(service_checks, "answers", answers)
    assert findings(cli)["exit"] == 0 and called == []
    found = findings(cli, "--online")
    assert called == ["127.0.0.1:9", "api.openai.com:443"]
    assert found["endpoint mine"]["level"] == "fail" and found["exit"] == 1


def test_a_cluster_that_does_not_answer_is_a_failure(cli: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """RAY_ADDRESS that nothing listens at, and a cluster of `everlog up` that has ended by itself, are found."""
    (cli.root / "cluster.json").write_text('{"address":"127.0.0.1:9","pid":1}')
    found = findings(cli)
    assert found["cluster"]["level"] == "warn" and "has ended without `down`" in found["cluster"]["said"]
    monkeypatch.setattr(service_checks, "answers", lambda _: False)
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    assert findings(cli)["cluster"]["level"] == "fail"


def test_a_clock_that_was_never_set_is_a_failure(cli: Line) -> None:
    """Records get the times of the clock."""
    machine = {one.check: one for one in machine_checks.check_machine(0, {})}
    assert machine["clock"].level == "fail"
    assert isinstance(cli.clock, HandClock)


def test_few_open_files_are_a_warning(cli: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cure is the command that raises the limit."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 4096))
    found = findings(cli)
    assert found["open files"] == {
        "check": "open files", "level": "warn", "said": "the limit is 256",
        "cure": "Raise the limit before you start everlog: `ulimit -n 1024`.",
    }  # fmt: skip


def test_a_missing_package_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Required packages must be there; an extra that is missing is only named, with the command that installs it."""
    requires = ["msgspec>=0.22", "nosuchpackage>=1", "otherpackage>=1; extra == 'local'", "ruff; extra == 'dev'"]
    monkeypatch.setattr(machine_checks.metadata, "requires", lambda _: requires)
    machine = {one.check: one for one in machine_checks.check_machine(2 * 10**15, {})}
    assert (machine["packages"].level, machine["packages"].said) == ("fail", "missing: nosuchpackage")
    assert (machine["extra local"].level, machine["extra local"].cure) == ("ok", "pip install 'everlog[local]'")
    assert "extra dev" not in machine
