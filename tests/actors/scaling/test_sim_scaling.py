"""Simulated shards that follow their load while processes die and agents move, in the order that a seed draws."""

import pytest

from tests.support.cluster.sim_scaling import simulate
from tests.support.seeds import seeds

pytestmark = pytest.mark.usefixtures("simulated_worlds")

SEEDS = 2000
CHUNK = 40


@pytest.mark.parametrize("seed", seeds(3, label="scaled shards", below=SEEDS))
def test_no_seed_loses_or_doubles_anything(seed: int) -> None:
    """For any load and any deaths, each input is in the log once, each turn ends, and no agent is out of place."""
    simulate(seed)


@pytest.mark.long
@pytest.mark.hosts
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_no_seed_of_many_loses_or_doubles_anything(first: int) -> None:
    """The promises hold in two thousand worlds."""
    for seed in range(first, first + CHUNK):
        simulate(seed)


def test_the_simulated_worlds_follow_their_load() -> None:
    """In some worlds the number changes because of the load, agents are moved because of it, and processes die."""
    worlds = [simulate(seed) for seed in range(6)]
    assert sum(world.changes[0] for world in worlds) > 6
    assert sum(world.changes[1] for world in worlds) > 0
    assert any(len(world.homes) > 2 for world in worlds)
