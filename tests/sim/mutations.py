"""The simulation proves its worth: without any one guard of the store, some seed fails.

`CAUGHT` lists for each guard the scenario and the seed that detect its absence, or the reason why no seed can. `python
-m tests.sim --mutations [NAME ...]` searches for the first such seeds and prints them.
"""

from typing import NamedTuple

from tests.sim import read_guards, write_guards
from tests.sim.broken_guards import BREAKS
from tests.sim.scenarios import SCENARIOS
from tests.sim.simulation import Failed

SEARCH = {"run": 1000, "rot": 200, "beginning": 500, "sealing": 1000, "meeting": 500}
"""Number of seeds of each scenario that are tried before a guard counts as one that no seed needs."""


class Caught(NamedTuple):
    """The scenario and the seed that find a missing guard."""

    scenario: str
    seed: int | None
    """The seed; None if no seed detects the absence."""
    why: str = ""
    """The reason why no seed finds it."""
    rare: bool = False
    """True if fewer than three of a hundred seeds detect the absence."""


assert write_guards and read_guards  # these modules fill BREAKS
ONE_PLACE = (
    "the header checksum is salted with file and offset, and only one frame is ever un-synced: what parses at a place "
    "was made for it, and follows; tests/store/partition/test_bit_flips.py forges frames that do not"
)
CAUGHT = {
    "sync": Caught("sealing", 0),
    "folder of a new file": Caught("sealing", 11, rare=True),
    "sync of a manifest": Caught("sealing", 0),
    "folder of a manifest": Caught("sealing", 3),
    "folder of an epoch": Caught("sealing", 3),
    "folder of the store's file": Caught("sealing", 1),
    "the loser syncs": Caught("run", 2241, rare=True),
    "poison": Caught("run", 10),
    "settle": Caught("run", 375, rare=True),
    "settle writes again": Caught("run", 114, rare=True),
    "cut bytes are kept": Caught("run", 97, rare=True),
    "cut names are kept": Caught("run", 1490, rare=True),
    "look for a higher epoch": Caught("run", 0),
    "epoch before tail": Caught("meeting", 4),
    "an epoch is one's own": Caught("run", 11),
    "a manifest is one's own": Caught("run", 19),
    "goes on": Caught("meeting", 1),
    "goes on after all of them": Caught("meeting", 104, rare=True),
    "a number of long ago": Caught("meeting", 356, rare=True),
    "busy": Caught("run", 47, rare=True),
    "a newer manifest fences": Caught("meeting", 3),
    "sweep": Caught("meeting", 0),
    "header checksum": Caught("rot", 181, rare=True),
    "body checksum": Caught("rot", 0),
    "damage is no tail": Caught("rot", 46),
    "length of a closed file": Caught("run", 12),
    "own reads are durable": Caught("run", 5),
    "look again": Caught("meeting", 15),
    "expected seq": Caught("sealing", 0),
    "ids": Caught("run", 2),
    "ids across openings": Caught("sealing", 1),
    "ids of sealed files": Caught("sealing", 4),
    "ids that are too old": Caught("sealing", 50, rare=True),
    "sync of a sealed file": Caught("sealing", 9),
    "folder of a sealed file": Caught("sealing", 853, rare=True),
    "old files last": Caught("sealing", 5),
    "sealed row group checksum": Caught("rot", 6),
    "order of sealed records": Caught("sealing", 0),
    "erasure": Caught("sealing", 0),
    "erasure in older files": Caught("sealing", 0),
    "erasure is finished": Caught("sealing", 10),
    "cut bytes are erased": Caught("sealing", 267, rare=True),
    "sync of an epoch": Caught("run", None, "a torn epoch file is of an unknown host: nobody goes on in its file"),
    "previous frame": Caught("run", None, ONE_PLACE),
    "commit number": Caught("run", None, ONE_PLACE),
    "epoch in a file": Caught("run", None, ONE_PLACE),
}
"""The entries by name of the guard."""


def fails(scenario: str, seed: int, guard: str = "") -> str:
    """Return the error of `seed` without `guard`; empty if the seed passes."""
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
    """Return the first of `count` seeds that passes with the guard and fails without it."""
    return next((seed for seed in range(count) if fails(scenario, seed, guard) and not fails(scenario, seed)), None)


def search(guard: str) -> Caught:
    """Search for a seed that detects the absence of `guard`."""
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
