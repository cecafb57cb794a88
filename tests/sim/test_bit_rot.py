"""P4: bits that rot are found."""

import pytest

from tests.sim.bit_rot import rot

CHUNK = 20
SEEDS = 80
SEEDS_LONG = 2000


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_rot_is_never_taken_for_data(first: int) -> None:
    """With any bit of any file changed, a read gives the same records or an error, and an error changes nothing."""
    for seed in range(first, first + CHUNK):
        rot(seed)


@pytest.mark.long
@pytest.mark.parametrize("first", range(SEEDS, SEEDS + SEEDS_LONG, CHUNK))
def test_rot_is_never_taken_for_data_in_many_worlds(first: int) -> None:
    """The same for two thousand other worlds."""
    for seed in range(first, first + CHUNK):
        rot(seed)
