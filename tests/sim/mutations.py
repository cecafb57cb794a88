"""A simulation is worth what it finds: without any one guard of the store, some seed fails.

`CAUGHT` is the list: for each guard the scenario and the seed that found out that it was missing, or why none can.
`python -m tests.sim --mutations [NAME ...]` looks for the first such seeds and prints them.
"""

from collections.abc import Callable
from typing import NamedTuple

from . import guards, guards_reading
from .breaking import BREAKS
from .rot import rot
from .simulation import Failed, simulate
from .world import World

SCENARIOS: dict[str, Callable[[int], World]] = {"run": simulate, "rot": rot}
SEARCH = {"run": 1500, "rot": 200}
"""Seeds of each scenario that are tried before a guard is taken for one that no seed needs."""


class Caught(NamedTuple):
    """What found out that a guard was missing."""

    scenario: str
    seed: int | None
    """None: no seed does."""
    why: str = ""
    """Why no seed does."""


assert guards and guards_reading  # they fill BREAKS
CAUGHT: dict[str, Caught] = {}


def fails(scenario: str, seed: int, guard: str = "") -> str:
    """How `seed` fails without `guard`; empty if it passes."""
    try:
        if guard:
            with BREAKS[guard][1]():
                SCENARIOS[scenario](seed)
        else:
            SCENARIOS[scenario](seed)
    except Failed as failed:
        return failed.reason
    return ""


def first_to_fail(guard: str, scenario: str, count: int) -> int | None:
    """The first of `count` seeds that passes with the guard and fails without it."""
    return next((seed for seed in range(count) if fails(scenario, seed, guard) and not fails(scenario, seed)), None)


def search(guard: str) -> Caught:
    """What finds out that `guard` is missing."""
    for scenario, count in SEARCH.items():
        seed = first_to_fail(guard, scenario, count)
        if seed is not None:
            return Caught(scenario, seed)
    return Caught("run", None, "?")


def table(names: list[str]) -> int:
    """Search for the guards `names`, or all; print a line for each."""
    for name in names or BREAKS:
        caught = search(name)
        how = "" if caught.seed is None else fails(caught.scenario, caught.seed, name)
        print(f'    "{name}": Caught("{caught.scenario}", {caught.seed}),  # {how[:90]}', flush=True)
    return 0
