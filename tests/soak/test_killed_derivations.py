"""A derivation in a real process, killed with SIGKILL a hundred times: the same memories as without a kill."""

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.ports.real_clock import RealClock, RealIds, make_store
from everlog.events import UserMessage
from tests.soak.derivation_victim import MESSAGES_MAX

ROOT = Path(__file__).parents[2]
KILLS = 100
CITIES = ("Kiel", "Rome", "Oslo", "Lima", "Porto", "Bonn", "Turin")
TABLES = ("facts", "memory_sources", "outdated", "entities", "mentions")
TIMES = ("recorded_at", "noted_at")
"""Columns that differ between two runs: the time of writing."""


def say(root: Path, count: int) -> None:
    """Create an agent that was told so many messages; every second one states something."""

    async def told() -> None:
        clock, ids = RealClock(), RealIds()
        async with LocalSystem(make_store(root, clock, ids)).agent("sam", Settings(model="offline")) as agent:
            texts = [
                f"I live in {CITIES[number % len(CITIES)]}." if number % 2 else f"I like book {number}."
                for number in range(count)
            ]
            for first in range(0, count, 50):
                said = [UserMessage(text=text, name="Ann", imported=True) for text in texts[first : first + 50]]
                await agent.commit(said, turn=0, step=0)

    asyncio.run(told())


def rows(root: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of what was derived, without the seqs and times that two runs do not share."""
    with LocalSystem(make_store(root, RealClock(), RealIds())).view("sam") as view:
        found = {table: view.rows(table) for table in TABLES}
        cursors = view.rows("derivations")
    assert [row["to_seq"] for row in cursors] == sorted({row["to_seq"] for row in cursors}), "a batch was derived twice"
    return {table: [{k: v for k, v in row.items() if k not in TIMES} for row in some] for table, some in found.items()}


def run(root: Path, sync: int, when: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.soak.derivation_victim", str(root), str(sync), when]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


@pytest.mark.long
@pytest.mark.soak
def test_a_derivation_that_is_killed_a_hundred_times_derives_the_same(tmp_path: Path) -> None:
    """Each process is killed before or after a sync of one of its first commits, and the next one continues: in the end
    every row equals that of a run without a kill, seqs included.
    """
    count = 2 * KILLS * MESSAGES_MAX
    say(tmp_path / "whole", count)
    shutil.copytree(tmp_path / "whole", tmp_path / "killed")
    assert run(tmp_path / "whole", 0, "").stdout == "done\n"
    for number in range(KILLS):
        died = run(tmp_path / "killed", 1 + number % 3, "before" if number % 2 else "after")
        assert died.returncode == -9, f"kill {number}: {died.stdout}{died.stderr}"
    assert run(tmp_path / "killed", 0, "").stdout == "done\n"
    assert rows(tmp_path / "killed") == rows(tmp_path / "whole")
