"""A process that follows or rebuilds is killed at each of its steps, and the next process leaves no gap and no
duplicate.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.support.store.archive_world import Chance, World, rows_of

STEPS_OF_A_BATCH = {"embed", "embedded", "writing", "rows", "position"}
STEPS = STEPS_OF_A_BATCH | {"copied", "compact", "compacted", "rebuild", "built", "swapped"}


class Victims:
    """The process that forks the children to be killed."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.support.store.archive_victim"], cwd=ROOT, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def kill(self, what: str, step: int, root: Path) -> str:
        """Let a child follow or rebuild, and die at that step. Return the name of the step, or `done`."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(f"{what} {step} {root}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()


@pytest.fixture(scope="module")
def victims() -> Iterator[Victims]:
    found = Victims()
    yield found
    found.close()


def killed(tmp_path: Path, victims: Victims, seed: int, kills: int) -> set[str]:
    """Kill `kills` children, each at another step. Return the steps at which they died."""
    world = World(tmp_path / "store")
    chance = Chance(world, seed)
    died: list[str] = []
    step = 0
    while len(died) < kills:
        for _ in range(5):
            chance.act()
        if step % 4 == 1:
            world.erase("sam", 1, 1) if world.seq("sam") > 1 else chance.act()
        step = step % 9 + 1
        name = victims.kill("rebuild" if len(died) % 4 == 3 else "follow", step, tmp_path / "store")
        assert name in STEPS | {"done"}
        if name != "done":
            died.append(name)
        archive = world.archive()
        archive.follow()
        assert archive.check() == [], name
        if len(died) % 5 == 0:
            rows = rows_of(archive)
            archive.rebuild()
            assert rows_of(archive) == rows, name
        assert len(list((tmp_path / "store" / "archive").glob("*.lance"))) == 1, name
        archive.close()
    world.close()
    return set(died)


def test_killed_at_each_step_of_a_batch_nothing_is_lost_or_double(tmp_path: Path, victims: Victims) -> None:
    """After each of twelve kills the next process has exactly the rows of a rebuild."""
    assert killed(tmp_path, victims, 11, 12) >= STEPS_OF_A_BATCH


@pytest.mark.long
@pytest.mark.storage
@pytest.mark.parametrize("seed", range(5))
def test_killed_two_hundred_times(tmp_path: Path, victims: Victims, seed: int) -> None:
    """The same holds after forty kills of each of five stores."""
    assert killed(tmp_path, victims, 20 + seed, 40) >= STEPS_OF_A_BATCH


@pytest.mark.parametrize("rounds", [1, pytest.param(6, marks=[pytest.mark.long, pytest.mark.storage])])
def test_two_processes_follow_the_same_log_without_duplicates(tmp_path: Path, victims: Victims, rounds: int) -> None:
    """While one process follows a log another one follows it too, in the deep suite two others: each adds the records
    that the others have not added.
    """
    others = [victims] if rounds == 1 else [victims, Victims()]
    world = World(tmp_path / "store")
    chance = Chance(world, 31)
    archive = world.archive()
    for _ in range(rounds):
        for _ in range(8):
            chance.act()
        for process in others:
            assert process._process.stdin
            process._process.stdin.write(f"follow 1000 {tmp_path / 'store'}\n")
            process._process.stdin.flush()
        archive.follow()
        for process in others:
            assert process._process.stdout and process._process.stdout.readline().strip() == "done"
        archive.follow()
        assert archive.check() == []
    rows = rows_of(archive)
    archive.rebuild()
    assert rows_of(archive) == rows
    archive.close()
    world.close()
    for process in others[1:]:
        process.close()
