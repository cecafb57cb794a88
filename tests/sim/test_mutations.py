"""The simulation finds what it is for: without any one guard of the store some seed fails."""

import pytest

from .breaking import BREAKS
from .mutations import CAUGHT, fails, first_to_fail

NEARBY = 100
"""Seeds that are tried when a change of the store has changed what happens in the one that is written down."""


@pytest.mark.parametrize("guard", [name for name, caught in CAUGHT.items() if caught.seed is not None])
def test_a_seed_finds_out_that_a_guard_is_missing(guard: str) -> None:
    """With the guard the seed passes, without it the seed fails; `python -m tests.sim --mutations` finds the seeds."""
    caught = CAUGHT[guard]
    assert caught.seed is not None
    if fails(caught.scenario, caught.seed) or not fails(caught.scenario, caught.seed, guard):
        assert first_to_fail(guard, caught.scenario, NEARBY) is not None


def test_every_guard_is_accounted_for() -> None:
    """Each guard has the seed that finds out, or the reason why none can: another guard protects the same."""
    assert set(CAUGHT) <= set(BREAKS)
    assert all(caught.why for caught in CAUGHT.values() if caught.seed is None)
