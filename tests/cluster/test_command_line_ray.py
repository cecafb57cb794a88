"""The command line with Ray, as README.md shows it: real commands in separate processes."""

import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from everlog.actors.cluster.ray_address import cluster_file

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
        assert "runs already" in everlog("up", code=1)
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
