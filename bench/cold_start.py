"""Measure how long a user waits for the first answer: a fresh process of the command, from start to end.

Run as `python -m bench.cold_start`. docs/explanation/benchmarks.md explains the keys of its figures, and `tests/bench`
checks them.

Two figures run the agent in the process of the command: with a store that does not exist yet, and with an agent that
has a long history. Two run it as a Ray actor: in a cluster that is started for the one command, and in one that
`everlog up` keeps running. The floor is a fresh Python that only imports the libraries of the store and the
projections, measured in turns with the commands. The floor for Ray also imports Ray.
"""

import asyncio
import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.support.harness import ROOT, Figure, Line, Noise, among, line, median, noise, options, show, workspace
from bench.support.script import InstantModel, words
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.ports.agent_constants import OFFLINE
from everlog.actors.ports.ports import Ports
from everlog.actors.ports.real_clock import RealClock, RealIds
from everlog.events import UserMessage
from everlog.store import FileStore

KEYS = ("first_answer_s_local", "first_answer_s_1000", "first_answer_s_ray", "first_answer_s_attached")
GOALS = ("< 2.5", "best peer: 2.3", "", "")
FLOOR = ("-c", "import duckdb, pyarrow, msgspec")
RAY_FLOOR = ("-c", "import duckdb, pyarrow, msgspec, ray")
GREETING = "Hi, my name is Chad and I sail"
AGENT = "sam"


class Plan(msgspec.Struct, frozen=True):
    """Scale of the measurement. The claim is about the default."""

    runs: int = 5
    turns: int = 1000
    """Number of turns in the history of the old agent."""
    window: int = 8000
    """Context window of the old agent, in tokens."""
    ray_runs: int = 3
    """Number of processes for each of the two figures with Ray; 0 leaves these out."""


QUICK = Plan(runs=3, ray_runs=2)


class Waited(msgspec.Struct, frozen=True):
    """Seconds until the first line of one process, and until its end."""

    first_line_s: float
    end_s: float


class Seen(msgspec.Struct, frozen=True):
    """Everything that was measured."""

    noise: Noise
    very_first: Waited
    """The first process of all: files not in the page cache yet, no compiled bytecode."""
    local: list[Waited]
    old: list[Waited]
    floor: list[Waited]
    ray: list[Waited]
    attached: list[Waited]
    ray_floor: list[Waited]


def process(*arguments: str) -> Waited:
    """Run a fresh Python. Raises RuntimeError with its output if it failed, or if an everlog command printed
    nothing.
    """
    begun = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, *arguments], cwd=ROOT, env=_environment(), text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as child:  # fmt: skip
        assert child.stdout is not None
        first = child.stdout.readline()
        first_line_s = time.perf_counter() - begun
        _, said = child.communicate()
    waited = Waited(first_line_s, time.perf_counter() - begun)
    if child.returncode or not (first.strip() or arguments in (FLOOR, RAY_FLOOR)):
        raise RuntimeError(f"{' '.join(arguments)} ended with {child.returncode} and said {first!r}\n{said}")
    return waited


def _environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("EVERLOG_", "OPENAI_", "RAY_"))}
    return {**kept, "PYTHONPATH": str(ROOT), "RAY_AUTH_MODE": "disabled"}


def everlog(store: Path, *arguments: str) -> Waited:
    """Run a command, as a user would."""
    return process("-m", "everlog.interfaces.cli.main", "--store", str(store), *arguments)


def send(store: Path, text: str, runtime: str = "local") -> Waited:
    """Run `everlog send`."""
    return everlog(store, "send", AGENT, text, "--runtime", runtime)


async def grow(root: Path, plan: Plan) -> None:
    """Create an agent of the offline model with a history, whose replies come from an instant model."""
    clock, ids, chance = RealClock(), RealIds(), random.Random(1)
    store = FileStore.create(root, clock.now, ids.new(clock.now()))
    system = LocalSystem(store, models=lambda _: InstantModel(), ports=Ports(clock=clock, ids=ids))
    async with system.agent(AGENT, Settings(model=OFFLINE, window=plan.window), command="bench.cold_start") as agent:
        for _ in range(plan.turns):
            await agent.receive(UserMessage(text=words(chance, 20)))
            await agent.run()


def measure(plan: Plan) -> Seen:
    """Run all processes in turns: a fresh store, the old agent, the floor."""
    with workspace() as folder:
        very_first = send(folder / "very-first", GREETING)
        asyncio.run(grow(folder / "old", plan))
        process(*FLOOR)
        seen = Seen(noise(folder), very_first, [], [], [], [], [], [])
        for number in range(plan.runs):
            seen.local.append(send(folder / f"fresh-{number}", GREETING))
            seen.old.append(send(folder / "old", GREETING))
            seen.floor.append(process(*FLOOR))
        for number in range(plan.ray_runs):
            seen.ray.append(send(folder / f"ray-{number}", GREETING, "ray"))
            seen.ray_floor.append(process(*RAY_FLOOR))
        if plan.ray_runs:
            _attached(folder / "attached", plan, seen)
    return seen


def _attached(store: Path, plan: Plan, seen: Seen) -> None:
    """Send to new agents in a cluster that runs already, so that each agent's actor is created too."""
    everlog(store, "up")
    try:
        for number in range(plan.ray_runs):
            name = f"{AGENT}-{number}"
            seen.attached.append(everlog(store, "send", name, GREETING, "--runtime", "ray"))
            seen.ray_floor.append(process(*RAY_FLOOR))
    finally:
        everlog(store, "down")


def figures(seen: Seen) -> list[Figure]:
    """Return the medians of the seconds until the process has ended."""
    floor, ray_floor = (_median_s(waits) if waits else 0.0 for waits in (seen.floor, seen.ray_floor))
    waits = zip(
        KEYS, (seen.local, seen.old, seen.ray, seen.attached), (floor, floor, ray_floor, ray_floor), strict=True
    )
    return [Figure(key, _median_s(waited), "s", under) for key, waited, under in waits if waited]


def _median_s(waits: Sequence[Waited]) -> float:
    return median([waited.end_s for waited in waits])


def lines(seen: Seen, found: Sequence[Figure], plan: Plan) -> list[Line]:
    """Return the table: the figures with their goals, then details."""
    rows = [
        line(figure, goal, among([waited.end_s for waited in waits]))
        for figure, goal, waits in zip(found, GOALS, (seen.local, seen.old, seen.ray, seen.attached), strict=False)
    ]
    firsts = [median([waited.first_line_s for waited in waits]) for waits in (seen.local, seen.old)]
    return [
        *rows,
        Line("first line of stdout", f"{firsts[0]:.3g} s and {firsts[1]:.3g} s", "", "", "fresh and old"),
        Line("very first process", f"{seen.very_first.end_s:.3g} s", "", "", "caches as they were"),
        Line("history of the old agent", f"{plan.turns:,} turns"),
    ]


def report(plan: Plan) -> None:
    """Measure what `plan` asks for and print it."""
    seen = measure(plan)
    found = figures(seen)
    show("cold_start", seen.noise, found, lines(seen, found, plan))


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    args = options("cold_start", "How long a user waits for the first answer of a fresh process.", argv)
    report(QUICK if args.quick else Plan())
    return 0


if __name__ == "__main__":
    sys.exit(main())
