"""Simulated shards whose number changes while processes die and agents move, in the order that a seed draws."""

import pytest

from tests.support.cluster.sim_resize import BREAKS, NEARBY, fails, simulate
from tests.support.seeds import seeds

pytestmark = pytest.mark.usefixtures("simulated_worlds")

SEEDS = 2000
CHUNK = 40


@pytest.mark.parametrize("seed", seeds(3, label="resized shards", below=SEEDS))
def test_no_seed_loses_or_doubles_anything(seed: int) -> None:
    """For any numbers of shards and any deaths, each input is in the log once, each turn ends, and each agent is where
    it belongs at last.
    """
    simulate(seed)


@pytest.mark.long
@pytest.mark.hosts
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_no_seed_of_many_loses_or_doubles_anything(first: int) -> None:
    """The promises hold in two thousand worlds."""
    for seed in range(first, first + CHUNK):
        simulate(seed)


def test_the_simulated_worlds_change_their_shards() -> None:
    """The number changes in each of some worlds, and processes follow each other in most."""
    worlds = [simulate(seed) for seed in range(4)]
    assert all(world.resized for world in worlds)
    assert any(len(world.homes) > 2 for world in worlds)


@pytest.mark.parametrize("guard", BREAKS)
def test_a_seed_detects_a_missing_guard(guard: str) -> None:
    """A world with all guards passes, and the same world without one guard fails."""
    seed = BREAKS[guard][0]
    assert any(fails(other, guard) and not fails(other) for other in range(seed, seed + NEARBY))
