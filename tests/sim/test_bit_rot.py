"""P4: rotten bits are found."""

import pytest

from tests.sim.bit_rot import rot
from tests.support.seeds import seeds

CHUNK = 20
SEEDS = 2000


@pytest.mark.parametrize("seed", seeds(5, label="rot", below=SEEDS))
def test_rot_is_never_taken_for_data(seed: int) -> None:
    """After any bit of any file has changed, a read gives the same records or an error, and an error changes no
    file.
    """
    rot(seed)


@pytest.mark.long
@pytest.mark.simulation
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_rot_is_never_taken_for_data_in_many_worlds(first: int) -> None:
    """The same holds in two thousand worlds."""
    for seed in range(first, first + CHUNK):
        rot(seed)
