"""The command line with Ray, as README.md shows it: real commands in separate processes."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from everlog.actors.cluster.os_processes import children
from everlog.actors.cluster.ray_address import cluster_file
from everlog.interfaces.fleet.daemon_commands import LOG_FILE

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.ray


class Shell:
    """Runs `everlog` commands over one store, without RAY_ and EVERLOG_ variables of the caller."""

    def __init__(self, store: Path) -> None:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("RAY_", "EVERLOG_"))}
        home = store.parent / "home"
        home.mkdir()
        self.store = store
        self.environment = {**kept, "EVERLOG_STORE": str(store), "PYTHONPATH": str(ROOT), "HOME": str(home)}

    def __call__(self, *words: str, said: str = "", code: int = 0) -> str:
        """Run a command, which must exit with `code`. Return its stdout, or its stderr if `code` is not 0."""
        run = subprocess.run(
            [sys.executable, "-m", "everlog.interfaces.cli.main", *words], cwd=ROOT, env=self.environment, input=said,
            text=True, capture_output=True, check=False, timeout=120,
        )  # fmt: skip
        assert run.returncode == code, run.stderr
        assert "Traceback" not in run.stderr
        return run.stdout if code == 0 else run.stderr


@pytest.mark.long
@pytest.mark.cluster
def test_the_ray_commands_of_the_page_work(tmp_path: Path) -> None:
    """Each command of "On one machine" exits 0; the agent is the same one in both; nothing is left running.

    In between, chat, memory, events, timers, erase and verify run with --runtime ray.
    """
    everlog = Shell(tmp_path / "store")
    section = (ROOT / "docs" / "how_to" / "run_on_ray.md").read_text().split("## On one machine")[1].split("\n## ")[0]
    lines = [shlex.split(line) for line in re.findall(r"^everlog (.*?)(?:  +#.*)?$", section, re.MULTILINE)]
    assert [words[0] for words in lines] == ["send", "up", "send", "down"]
    everlog("send", "sam", "Hi, my name is Chad and I sail")
    everlog(*lines[0])
    everlog(*lines[1])
    try:
        everlog(*lines[2])
        assert "is running already" in everlog("up", code=1)
        shown = everlog(
            "chat", "sam", "--runtime", "ray", said="What is my name?\n/memory\n/retry\n/pop\n/search sail\n"
        )
        assert "Your name is Chad." in shown and "The model no longer sees" in shown
        assert "open in process" in everlog("send", "sam", "hello", "--runtime", "local", code=1)
        everlog("create", "ann", "--preset", "extras", "--runtime", "ray")
        everlog("timer", "ann", "--every", "1s", "Look outside")
        waited = time.monotonic()
        while "heartbeat" not in everlog("events", "ann") and time.monotonic() - waited < 60:
            pass
        assert "Look outside" in everlog("timers", "ann")
        everlog("timer", "ann", "--cancel", "timer-1")
        everlog("erase", "sam", "--from", "8", "--to", "8", "--yes")
        everlog("delete", "ann", "--yes")
        everlog("verify", "--all")
    finally:
        everlog(*lines[3])
    assert not cluster_file(everlog.store).exists()
    assert "No Ray of `everlog up` is running" in everlog("down", code=1)
    assert everlog("send", "sam", "Where were we?")
    everlog("verify", "--all")
    everlog("rebuild", "--all")
    everlog("log", "check", "--all", "--deep")
    assert _left(everlog.store) == []


@pytest.mark.long
@pytest.mark.cluster
def test_a_call_waits_while_the_cluster_is_restarted(tmp_path: Path) -> None:
    """A call that asked in one cluster is listed without any, is approved in the next one, and runs there once."""
    everlog = Shell(tmp_path / "store")
    everlog("create", "sam")
    everlog("configure", "sam", "--approval", "ask core_memory_*")
    everlog("up")
    try:
        everlog("send", "sam", "My name is Chad", "--runtime", "ray")
        everlog("down")
        assert everlog("down", code=1)
        (waiting,) = json.loads(everlog("approvals", "--json"))
        assert "Chad" not in everlog("memory", "sam")
        everlog("up")
        everlog("approve", "sam", str(waiting["seq"]), "--runtime", "ray")
        assert "Chad" in everlog("memory", "sam")
        assert "was approved at" in everlog("refuse", "sam", str(waiting["seq"]), "--runtime", "ray", code=1)
    finally:
        everlog("down")
    assert everlog("events", "sam").count("approval_decided") == 1
    everlog("verify", "--all")


def _left(store: Path) -> list[str]:
    """Return the processes whose command line names the store."""
    found = []
    for pid in Path("/proc").glob("[0-9]*"):
        try:
            command = (pid / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(store) in command:
            found.append(command)
    return found


def started(everlog: Shell) -> subprocess.Popen[str]:
    """Return a process of `up --foreground` that has printed its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "everlog.interfaces.cli.main", "up", "--foreground"], cwd=ROOT,
        env=everlog.environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None and process.stdout.readline().startswith("127.0.0.1:")
    return process


def said(text: str) -> list[str]:
    """Return what the lines of a log say."""
    return [json.loads(line)["what"] for line in text.splitlines() if line.startswith("{")]


@pytest.mark.long
@pytest.mark.cluster
def test_a_supervisor_can_run_it(tmp_path: Path) -> None:
    """The process that was started is the daemon. SIGTERM ends it with 0, and the log says why; nothing is left."""
    everlog = Shell(tmp_path / "store")
    process = started(everlog)
    try:
        assert everlog("ping").startswith("healthy: 127.0.0.1:")
        assert everlog("send", "sam", "Hi, I sail")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0
    assert said(err)[0] == f"process {process.pid} starts Ray for the store {everlog.store}"
    assert said(err)[-2].startswith("stopping: got SIGTERM (parent process: ")
    assert said(err)[-1] == "Ray is stopped"
    assert "not running" in subprocess.run(
        [sys.executable, "-m", "everlog.interfaces.cli.main", "ping"], cwd=ROOT, env=everlog.environment, text=True,
        capture_output=True, check=False,
    ).stdout  # fmt: skip
    assert not (everlog.store / LOG_FILE).exists()


@pytest.mark.long
@pytest.mark.cluster
def test_the_end_of_ray_is_the_exit_code_1(tmp_path: Path) -> None:
    """If a main process of Ray is killed, the daemon ends with 1: a supervisor starts it again."""
    everlog = Shell(tmp_path / "store")
    process = started(everlog)
    try:
        os.kill(next(pid for pid, name, _ in children(process.pid) if name == "gcs_server"), signal.SIGKILL)
        _, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 1
    assert "A main process of Ray has died: gcs_server" in err


@pytest.mark.long
@pytest.mark.cluster
def test_the_log_in_the_store_says_who_stopped_it(tmp_path: Path) -> None:
    """`everlog down` writes that it sends the signal, and the daemon that it got one."""
    everlog = Shell(tmp_path / "store")
    pid = json.loads(everlog("up", "--json"))["pid"]
    everlog("down")
    lines = said((everlog.store / LOG_FILE).read_text())
    assert any(line.endswith(f"sends SIGTERM to process {pid}") for line in lines)
    assert any(line.startswith("stopping: got SIGTERM") for line in lines)
    assert (everlog.store / LOG_FILE).stat().st_mode & 0o777 == 0o600
