"""P1 to P10 and P20: whatever disk, clock, processes and people do, in any order that a seed finds."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sim.scenarios import beginning, meeting, sealing
from tests.sim.sim_store_world import World
from tests.sim.simulation import simulate, trace

CHUNK = 50
SEEDS = 300
SEEDS_OTHER = 100
SEEDS_OTHER_LONG = 2000
SEEDS_LONG = 10_000
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_no_seed_breaks_a_promise(first: int) -> None:
    """In no simulated world is anything lost, invented, out of order, acknowledged twice or refused without reason."""
    for seed in range(first, first + CHUNK):
        simulate(seed)


@pytest.mark.long
@pytest.mark.parametrize("first", range(SEEDS, SEEDS + SEEDS_LONG, CHUNK))
def test_no_seed_of_many_breaks_a_promise(first: int) -> None:
    """The same for ten thousand other worlds."""
    for seed in range(first, first + CHUNK):
        simulate(seed)


@pytest.mark.parametrize("scenario", [beginning, sealing, meeting])
@pytest.mark.parametrize("first", range(0, SEEDS_OTHER, CHUNK))
def test_no_scenario_breaks_a_promise(scenario: Callable[[int], World], first: int) -> None:
    """The same where many make the store at once, where owners seal until the power goes, and where owners meet."""
    for seed in range(first, first + CHUNK):
        scenario(seed)


@pytest.mark.long
@pytest.mark.parametrize("scenario", [beginning, sealing, meeting])
@pytest.mark.parametrize("first", range(SEEDS_OTHER, SEEDS_OTHER + SEEDS_OTHER_LONG, CHUNK))
def test_no_scenario_breaks_a_promise_in_many_worlds(scenario: Callable[[int], World], first: int) -> None:
    """The same for two thousand other worlds of each."""
    for seed in range(first, first + CHUNK):
        scenario(seed)


def test_a_seed_reproduces() -> None:
    """The same seed gives the same calls in the same order, in another process and with other hashes too."""
    command = [sys.executable, "-m", "tests.sim", "3"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "7"}
    shown = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout
    assert shown.splitlines()[:-1] == trace(simulate(3))


def test_the_worlds_are_worth_simulating() -> None:
    """Most worlds acknowledge something, and each kind of trouble befalls some of them."""
    worlds = [simulate(seed) for seed in range(60)]
    assert sum(len(world.history.acknowledged) > 3 for world in worlds) > 40
    happened = {what for world in worlds for _, what, _ in world.trace}
    assert happened >= {"is killed", "is stopped", "loses power", "storm", "clock", "Ctrl-C", "  EIO", "sealed"}
