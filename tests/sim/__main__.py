"""Reproduce a seed, or find the seeds that detect broken guards.

python -m tests.sim [KIND] SEED           the calls in the world of that seed, and the verdict
python -m tests.sim [KIND] FIRST LAST     only the seeds that fail, of FIRST to LAST (exclusive), and their number
python -m tests.sim --mutations           for every guard of the store the first seed that fails without it

Kinds of worlds: run (the default), rot, beginning, sealing, meeting, and in a bucket: bucket, bucket-meeting,
bucket-late.
"""

import sys

from tests.sim import mutations
from tests.sim.scenarios import SCENARIOS
from tests.sim.simulation import Failed, trace


def main(arguments: list[str]) -> int:
    """Run the command. Return the exit code."""
    if arguments[:1] == ["--mutations"]:
        return mutations.table(arguments[1:])
    scenario = arguments.pop(0) if arguments and arguments[0] in SCENARIOS else "run"
    match [int(argument) for argument in arguments if argument.isdecimal()]:
        case [seed]:
            return show(scenario, seed)
        case [first, last]:
            failed = sum(not judged(scenario, seed) for seed in range(first, last))
            print(f"{scenario}: {failed} of {last - first} seeds fail")
            return min(failed, 1)
        case _:
            print(__doc__)
            return 2


def show(scenario: str, seed: int) -> int:
    """Print what happens in the world of `seed`."""
    try:
        world = SCENARIOS[scenario](seed)
    except Failed as error:
        print("\n".join(trace(error.world)))
        print(f"seed {seed} FAILED: {error.reason}")
        return 1
    print("\n".join(trace(world)))
    print(f"seed {seed} is right: {len(world.history.acknowledged)} commits acknowledged, {world.calls} calls")
    return 0


def judged(scenario: str, seed: int) -> bool:
    """Return True if `seed` passes; print a line if not."""
    try:
        SCENARIOS[scenario](seed)
    except Failed as error:
        print(f"seed {seed}: {error.reason}")
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
