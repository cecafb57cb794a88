"""Measure a fork of an agent with 100,000 events: time and bytes, at its head and at any earlier moment.

Run as `python -m bench.forks`; `bench.replay_agent` includes its figures.

The agent is that of `bench.as_of`. A fork is all that `everlog fork` does after it has started: open the store, view
the moment, register the name, and make the first record durable. The floor is its syncs: as many bare appends to the
same volume.
"""

import random
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.as_of import AGENT, QUICK, Plan, grow, store_in
from bench.support.harness import (  # fmt: skip
    BareFile,
    Figure,
    Line,
    Noise,
    among,
    line,
    median,
    noise,
    options,
    show,
    timed,
    workspace,
)
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.ports.real_clock import RealClock
from everlog.events import canonical_bytes
from everlog.store import FileStore

KEYS = ("fork_ms", "fork_bytes")
GOALS = ("< 20", "< 4000")
FORKS = 40
SYNCS = 12
"""Number of durable steps of a fork: folders, register, epoch, manifest, file, record."""


class Seen(msgspec.Struct, frozen=True):
    """Everything that was measured: wall milliseconds, and bytes."""

    noise: Noise
    head: list[float]
    past: list[float]
    syncs: list[float]
    bytes: list[int]
    record: int
    """Bytes of the one record of a fork, as JSON: the floor."""


def size_of(root: Path) -> int:
    """Return the bytes of all files in a folder."""
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())


def fork(root: Path, at: int | None, name: str) -> None:
    """Do what `everlog fork` does."""
    LocalSystem(FileStore(root, RealClock().now)).fork(AGENT, name, at=at)


def measure(plan: Plan) -> Seen:
    """Grow the agent, then fork it at its head and at random moments, in turns."""
    with workspace() as folder:
        before = noise(folder)
        store = store_in(folder / "store")
        grow(store, plan)
        return forked(store, plan, before)


def forked(store: FileStore, plan: Plan, before: Noise) -> Seen:
    """Fork the grown agent at its head and at random moments, in turns."""
    root, chance = store.root, random.Random(7)
    bare = BareFile(root / "bare")
    fork(root, None, "warm")
    head: list[float] = []
    past: list[float] = []
    syncs: list[float] = []
    sizes: list[int] = []
    for number in range(FORKS):
        at, size = chance.randint(plan.events // 100, plan.events), size_of(root)
        head.append(timed(lambda number=number: fork(root, None, f"head {number}")))  # type: ignore[misc]
        sizes.append(size_of(root) - size)
        past.append(timed(lambda at=at, number=number: fork(root, at, f"past {number}")))  # type: ignore[misc]
        syncs.append(timed(lambda: [bare.append(256) for _ in range(SYNCS)]))
    bare.close()
    (record,) = list(store.reader("head 0").read("head 0"))[-1:]
    return Seen(before, head, past, syncs, sizes, len(canonical_bytes(record)))


def figures(seen: Seen) -> list[Figure]:
    """Return the medians over all forks, at the head and before it."""
    return [
        Figure(KEYS[0], median([*seen.head, *seen.past]), "ms", median(seen.syncs)),
        Figure(KEYS[1], median(seen.bytes), "bytes", seen.record),
    ]


def lines(seen: Seen, found: Sequence[Figure]) -> list[Line]:
    """Return the table: the figures with their goals, then details."""
    return [*(line(figure, goal) for figure, goal in zip(found, GOALS, strict=True)), *times(seen)]


def times(seen: Seen) -> list[Line]:
    """Return the rows of the measured times."""
    kinds = {"fork at the head": seen.head, "fork at a moment": seen.past, f"{SYNCS} bare syncs": seen.syncs}
    return [Line(name, f"{median(each):.1f} ms", "", "", among(each) + " ms") for name, each in kinds.items()]


def report(plan: Plan) -> None:
    """Measure what `plan` asks for and print it."""
    seen = measure(plan)
    found = figures(seen)
    show("forks", seen.noise, found, lines(seen, found))


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    args = options("forks", "What a fork of a long agent costs.", argv)
    report(QUICK if args.quick else Plan())
    return 0


if __name__ == "__main__":
    sys.exit(main())
