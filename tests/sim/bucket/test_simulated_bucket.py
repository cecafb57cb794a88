"""The promises hold in a bucket whose requests fail, arrive late and meet, in any order that a seed produces."""

from collections.abc import Callable

import pytest

from tests.sim.bucket.bucket_guards import GUARDS
from tests.sim.bucket.bucket_world import in_bucket, late_in_bucket, meeting_in_bucket
from tests.sim.sim_store_world import World
from tests.sim.simulation import Failed
from tests.support.seeds import seeds, split

SEEDS = 10_000
CHUNK = 50
NEARBY = 400
"""Number of seeds to try if a change of the store has changed the run of the recorded seed."""
CAUGHT: dict[str, tuple[Callable[[int], World], int]] = {
    "look beside a put": (in_bucket, 21),
    "a file is ended": (in_bucket, 18),
    "puts are conditional": (in_bucket, 17),
    "an unknown outcome is no success": (in_bucket, 0),
    "ends stay": (in_bucket, 42),
    "a removal is said first": (in_bucket, 77),
    "leftovers are swept": (late_in_bucket, 18),
    "read, then end": (in_bucket, 76),
}
"""The kind of world and the seed that detect the absence of each guard."""


@pytest.mark.parametrize("seed", seeds(8, label="simulated bucket", below=SEEDS))
@pytest.mark.parametrize("kind", [in_bucket, meeting_in_bucket, late_in_bucket])
def test_no_seed_breaks_a_promise_in_a_bucket(kind: Callable[[int], World], seed: int) -> None:
    """In no simulated bucket is anything lost, invented, out of order, acknowledged twice or refused without reason."""
    kind(seed)


@pytest.mark.parametrize("seed", [968, 1372, 4013])
def test_an_interrupted_removal_leaves_nothing_that_is_erased_later(seed: int) -> None:
    """Requests that fail while sealed frames are deleted leave no content that a later erasure of the same owner does
    not reach: these seeds showed it.
    """
    late_in_bucket(seed)


@pytest.mark.long
@pytest.mark.simulation
@pytest.mark.parametrize("kind", [in_bucket, meeting_in_bucket, late_in_bucket])
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_no_seed_of_many_breaks_a_promise_in_a_bucket(kind: Callable[[int], World], first: int) -> None:
    """The same holds in ten thousand worlds of each kind."""
    for seed in range(first, first + CHUNK):
        kind(seed)


def test_requests_of_dead_processes_arrive() -> None:
    """In some worlds a put of a killed process takes effect later."""
    worlds = [in_bucket(seed) for seed in range(40)]
    assert any(what == "gets late" for world in worlds for _, what, _ in world.trace)


def _fails(kind: Callable[[int], World], seed: int, guard: str = "") -> bool:
    try:
        if guard:
            with GUARDS[guard][1]():
                kind(seed)
        else:
            kind(seed)
    except Failed:
        return True
    return False


@pytest.mark.parametrize("guard", split([*GUARDS], 1, label="guards of the bucket", part="simulation"))
def test_a_seed_finds_out_that_a_guard_of_the_bucket_is_missing(guard: str) -> None:
    """Without any one guard of the store in a bucket some seed fails, which passes with it."""
    kind, recorded = CAUGHT[guard]
    assert any(_fails(kind, seed, guard) and not _fails(kind, seed) for seed in (recorded, *range(NEARBY)))
