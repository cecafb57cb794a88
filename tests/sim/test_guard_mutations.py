"""The simulation detects missing guards: without any one guard of the store some seed fails."""

import pytest

from tests.sim.broken_guards import BREAKS
from tests.sim.mutations import CAUGHT, SEARCH, fails, first_to_fail
from tests.support.seeds import split

NEARBY = 100
"""Number of seeds to try if a change of the store has changed the run of the recorded seed."""
COMMON = [name for name, caught in CAUGHT.items() if caught.seed is not None and not caught.rare]
RARE = [name for name, caught in CAUGHT.items() if caught.seed is not None and caught.rare]


def assert_found_out(guard: str, seeds: int) -> None:
    """Check that the recorded seed, or one of `seeds`, passes with the guard and fails without it."""
    scenario, seed = CAUGHT[guard].scenario, CAUGHT[guard].seed
    assert seed is not None
    if fails(scenario, seed) or not fails(scenario, seed, guard):
        assert first_to_fail(guard, scenario, seeds) is not None, (
            f"search again: python -m tests.sim --mutations {guard!r}"
        )


@pytest.mark.parametrize("guard", split(COMMON, 2, label="guards of the store", part="simulation"))
def test_a_seed_finds_out_that_a_guard_is_missing(guard: str) -> None:
    """With the guard the seed passes, without it the seed fails."""
    assert_found_out(guard, NEARBY)


@pytest.mark.long
@pytest.mark.simulation
@pytest.mark.parametrize("guard", RARE)
def test_a_rare_seed_finds_out_that_a_guard_is_missing(guard: str) -> None:
    """The same holds for guards that few worlds need; after a change of the store, the seed may have to be searched for
    again.
    """
    assert_found_out(guard, SEARCH[CAUGHT[guard].scenario])


def test_every_guard_is_accounted_for() -> None:
    """Each guard has a seed that detects its absence, or the reason why none does."""
    assert set(CAUGHT) == set(BREAKS)
    assert all(caught.why for caught in CAUGHT.values() if caught.seed is None)


@pytest.mark.parametrize("guard", BREAKS)
def test_every_guard_can_be_broken(guard: str) -> None:
    """The code that each break replaces exists in the store. All breaks are tried in every commit, not only the drawn
    ones.
    """
    with BREAKS[guard][1]():
        pass
