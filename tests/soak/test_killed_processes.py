"""Real processes, killed with SIGKILL at any moment: no acknowledged message is lost, and nothing is done twice."""

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from everlog.actors.agent.local_system import AgentView, LocalSystem
from everlog.actors.formats import render_request
from everlog.actors.functions.memgpt_functions import BUILTIN
from everlog.actors.replay.rebuild_check import rebuild, verify
from everlog.store import FileStore, check
from tests.actors.prompt.test_context_fit import assert_well_formed
from tests.support.seeds import seeds

ROOT = Path(__file__).parents[2]
MESSAGES = 40
"""Number of messages, more than a process sends before it is killed."""


def start(*arguments: str) -> subprocess.Popen[str]:
    """Start a Python process in the repository, with its output readable as text."""
    return subprocess.Popen(
        [sys.executable, *arguments], cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def killed(store: Path, first: int, chance: random.Random) -> list[dict[str, str]]:
    """Run the sender until it has printed some records, then kill it. Return its complete lines."""
    child = start("-m", "tests.soak.killed_sender", str(store), str(first), str(MESSAGES))
    assert child.stdout is not None
    lines = [child.stdout.readline() for _ in range(chance.randrange(1, 60))]
    for _ in range(chance.randrange(20_000)):  # a short delay, so that the kill falls anywhere in a step
        pass
    child.send_signal(signal.SIGKILL)
    lines += child.stdout.readlines()  # not communicate(): it loses the lines that readline has buffered
    child.communicate()
    return [json.loads(line) for line in lines if line.endswith("\n")]


def judge(store: Path, acknowledged: Counter[tuple[str, str]]) -> None:
    """Check what must be true after all kills and one clean run."""
    files = FileStore(store, lambda: 0)
    for partition in files.partitions():
        assert check(files.partition(partition)).ok
    view = LocalSystem(files).view("sam")
    kept = Counter((r.event_id, r.text or "") for r in view.reader.read("sam") if r.type == "user_message")
    assert set(kept.values()) == {1}
    assert not acknowledged - kept, "an acknowledged message is lost"
    assert {turn["status"] for turn in view.rows("turns")} == {"done"}
    assert all(call["outcome"] == "ok" for call in view.rows("function_calls"))
    assert_well_formed(render_request.messages(view.context()))
    for report in (verify(view, {tool.name: tool for tool in BUILTIN}), rebuild(view)):
        assert not report.faults
    assert_answered(view)
    view.close()


def assert_answered(view: AgentView) -> None:
    """Check that every message has its own turn."""
    inputs = [record for record in view.reader.read("sam") if record.type == "user_message"]
    assert sorted(record.turn for record in inputs) == [turn["turn"] for turn in
                                                       sorted(view.rows("turns"), key=lambda t: t["turn"])]  # fmt: skip


def soak(store: Path, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    acknowledged: Counter[tuple[str, str]] = Counter()
    for number in range(kills):
        shown = killed(store, number * MESSAGES, chance)
        acknowledged.update((line["id"], line["text"]) for line in shown if line["type"] == "user_message")
    end = start("-m", "tests.soak.killed_sender", str(store), "0", "0")
    out, err = end.communicate(timeout=60)
    assert end.returncode == 0, err
    assert '"end"' in out
    print(f"seed {seed}: {kills} kills, {len(acknowledged)} acknowledged messages")
    assert len(acknowledged) > kills / 2, "the kills came too early to prove anything"
    judge(store, acknowledged)


def test_a_few_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    """After SIGKILL at 4 random moments every acknowledged message is there once, every turn is finished, and all
    checks pass.
    """
    soak(tmp_path / "store", 4, seed=seeds(1, label="kills")[0])


@pytest.mark.long
@pytest.mark.soak
def test_two_hundred_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    """The same holds for 200 kills with another seed."""
    soak(tmp_path / "store", 200, seed=2026)


def test_a_second_command_gets_the_owners_name_until_the_owner_is_killed(tmp_path: Path) -> None:
    """A command never fences a live owner; after the owner's death the agent can be opened."""
    everlog = ("-m", "everlog.interfaces.cli.main")
    store = ("--store", str(tmp_path / "store"))
    first = start(*everlog, "chat", "sam", *store)
    assert first.stdin is not None
    assert first.stdout is not None
    first.stdin.write("hello\n")
    first.stdin.flush()
    while "Hello" not in first.stdout.readline():
        pass
    second = start(*everlog, "send", "sam", "hi", *store)
    _, refused = second.communicate(timeout=60)
    assert second.returncode == 1
    assert f"open in process {first.pid} (everlog chat)" in refused
    first.kill()
    first.communicate()
    third = start(*everlog, "send", "sam", "hi again", *store)
    answer, error = third.communicate(timeout=60)
    assert third.returncode == 0, error
    assert answer
