"""P1 to P10 and P20 hold whatever disk, clock, processes and people do, in any order that a seed produces."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sim.scenarios import beginning, meeting, sealing
from tests.sim.sim_store_world import World
from tests.sim.simulation import simulate, trace
from tests.support.seeds import seeds

CHUNK = 50
SEEDS = 10_000
SEEDS_OTHER = 2000
WORLDS = 30
"""Number of worlds whose traces are examined."""
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("seed", seeds(15, label="simulation", below=SEEDS))
def test_no_seed_breaks_a_promise(seed: int) -> None:
    """In no simulated world is anything lost, invented, out of order, acknowledged twice or refused without reason."""
    simulate(seed)


@pytest.mark.long
@pytest.mark.simulation
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_no_seed_of_many_breaks_a_promise(first: int) -> None:
    """The same holds in ten thousand worlds."""
    for seed in range(first, first + CHUNK):
        simulate(seed)


@pytest.mark.parametrize("scenario", [beginning, sealing, meeting])
@pytest.mark.parametrize("seed", seeds(5, label="scenarios", below=SEEDS_OTHER))
def test_no_scenario_breaks_a_promise(scenario: Callable[[int], World], seed: int) -> None:
    """The promises hold where many processes make the store at once, where owners seal until the power fails, and where
    owners meet.
    """
    scenario(seed)


@pytest.mark.long
@pytest.mark.simulation
@pytest.mark.parametrize("scenario", [beginning, sealing, meeting])
@pytest.mark.parametrize("first", range(0, SEEDS_OTHER, CHUNK))
def test_no_scenario_breaks_a_promise_in_many_worlds(scenario: Callable[[int], World], first: int) -> None:
    """The same holds in two thousand worlds of each scenario."""
    for seed in range(first, first + CHUNK):
        scenario(seed)


def test_a_seed_reproduces() -> None:
    """The same seed gives the same calls in the same order, also in another process with another hash seed."""
    command = [sys.executable, "-m", "tests.sim", "3"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "7"}
    shown = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout
    assert shown.splitlines()[:-1] == trace(simulate(3))


def test_the_worlds_are_worth_simulating() -> None:
    """Most worlds acknowledge appends, and each kind of trouble occurs in some of them."""
    worlds = [simulate(seed) for seed in range(WORLDS)]
    assert sum(len(world.history.acknowledged) > 3 for world in worlds) > WORLDS * 2 / 3
    happened = {what for world in worlds for _, what, _ in world.trace}
    assert happened >= {"is killed", "is stopped", "loses power", "storm", "clock", "Ctrl-C", "  EIO", "sealed"}
