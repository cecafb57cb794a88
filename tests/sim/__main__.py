"""See a seed again, or find the seeds that catch broken guards.

python -m tests.sim SEED            what happens in the world of that seed, and the verdict
python -m tests.sim FIRST LAST      only the seeds that fail, of FIRST to LAST (exclusive)
python -m tests.sim --mutations     for every guard of the store the first seed that fails without it
"""

import sys

from .simulation import Failed, simulate, trace


def main(arguments: list[str]) -> int:
    """The exit code."""
    match arguments:
        case ["--mutations", *names]:
            from .mutations import table

            return table(names)
        case [seed]:
            return show(int(seed))
        case [first, last]:
            return sum(not judged(seed) for seed in range(int(first), int(last)))
        case _:
            print(__doc__)
            return 2


def show(seed: int) -> int:
    """Print what happens in the world of `seed`."""
    try:
        world = simulate(seed)
    except Failed as error:
        print("\n".join(trace(error.world)))
        print(f"seed {seed} FAILED: {error.reason}")
        return 1
    print("\n".join(trace(world)))
    print(f"seed {seed} is right: {len(world.history.acknowledged)} commits acknowledged, {world.calls} calls")
    return 0


def judged(seed: int) -> bool:
    """Whether `seed` passes; prints a line if not."""
    try:
        simulate(seed)
    except Failed as error:
        print(f"seed {seed}: {error.reason}")
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
