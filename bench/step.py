"""Measure the cost of one turn of one agent, without the model, and if it grows with the agent's age.

Run as `python -m bench.step`. docs/explanation/benchmarks.md explains the keys of its figures, and `tests/bench` checks
them.

A young agent and an old one live in one process and run their turns alternately, so that a busy minute affects both:
the 100 turns before turn 200 of the young one, the 100 turns before turn 1,000 of the old one. After each turn its
bytes are written and synced once more to a bare file: the floor.
"""

import asyncio
import random
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

from bench.support.harness import BareFile, Figure, Line, Noise, among, line, median, noise, options, show, workspace
from bench.support.script import CountingDisk, InstantModel, words
from everlog.actors.agent.agent import Agent
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.ports.ports import Ports
from everlog.actors.ports.real_clock import RealClock, RealIds
from everlog.events import Record, UserMessage
from everlog.store import FileStore

KEYS = ("turn_ms_200", "turn_ms_1000", "turn_growth", "turn_cpu_ms", "syncs_per_turn")
MESSAGE_WORDS = 20


class Plan(msgspec.Struct, frozen=True):
    """Scale of the measurement. The claim is about the default."""

    young: int = 200
    """Turn before which the young agent is measured."""
    old: int = 1000
    measured: int = 100
    """Number of turns measured of each."""
    runs: int = 5
    window: int = 8000
    """Context window in tokens."""


QUICK = Plan(runs=1)


class Turn(msgspec.Struct, frozen=True):
    """Measurements of one turn."""

    wall_ms: float
    cpu_ms: float
    syncs: int
    bare_ms: float
    """Milliseconds for the same bytes, synced as often, in a bare file."""
    bare_cpu_ms: float
    bytes: int
    commits: int


class Run(msgspec.Struct, frozen=True):
    """Measured turns of one young and one old agent, run alternately."""

    young: list[Turn]
    old: list[Turn]


class Talker:
    """One agent in conversation."""

    def __init__(self, agent: Agent, disk: CountingDisk, heard: list[Record], seed: int) -> None:
        self.agent = agent
        self.disk = disk
        self.heard = heard
        self.summaries = 0
        self._chance = random.Random(seed)

    async def turn(self) -> None:
        """Send a message and run the agent until it is idle."""
        await self.agent.receive(UserMessage(text=words(self._chance, MESSAGE_WORDS)))
        await self.agent.run()

    def forget(self) -> None:
        """Drop the collected records, and count the summaries among them."""
        self.summaries += sum(record.type == "summary" for record in self.heard)
        self.heard.clear()

    async def age(self, turns: int) -> None:
        """Run turns that are not measured."""
        for _ in range(turns):
            await self.turn()
            self.forget()

    async def measured(self, bare: BareFile) -> Turn:
        """Measure one turn, and its bytes once more in a bare file."""
        before = len(self.disk.syncs)
        cpu, wall = time.process_time(), time.perf_counter()
        await self.turn()
        wall_ms, cpu_ms = (time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000
        syncs = self.disk.syncs[before:]
        commits = len({record.commit for record in self.heard})
        self.forget()
        cpu, wall = time.process_time(), time.perf_counter()
        for count in syncs:
            bare.append(count)
        bare_ms, bare_cpu_ms = (time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000
        return Turn(wall_ms, cpu_ms, len(syncs), bare_ms, bare_cpu_ms, sum(syncs), commits)


async def run(folder: Path, plan: Plan, seed: int) -> Run:
    """Measure one young and one old agent, each in a log of its own; the old one's earlier turns come first."""
    disk, clock, ids = CountingDisk(), RealClock(), RealIds()
    store = FileStore.create(folder / f"store-{seed}", clock.now, ids.new(clock.now()), disk=disk)
    system = LocalSystem(store, models=lambda _: InstantModel(seed), ports=Ports(clock=clock, ids=ids))
    bare = BareFile(folder / f"bare-{seed}")
    async with AsyncExitStack() as stack:
        young, old = [await _talker(stack, system, disk, name, plan, seed) for name in ("young", "old")]
        await old.age(plan.old - plan.measured)
        await young.age(plan.young - plan.measured)
        for talker in (young, old):
            assert talker.summaries, f"{talker.agent.agent_id} was not past its first summary when it was measured"
        measured = Run([], [])
        for _ in range(plan.measured):
            measured.young.append(await young.measured(bare))
            measured.old.append(await old.measured(bare))
        assert (young.agent.turn, old.agent.turn) == (plan.young, plan.old)
    bare.close()
    return measured


async def _talker(
    stack: AsyncExitStack, system: LocalSystem, disk: CountingDisk, name: str, plan: Plan, seed: int
) -> Talker:
    heard: list[Record] = []
    settings = Settings(model="instant", window=plan.window)
    agent = await stack.enter_async_context(system.agent(name, settings, command="bench.step", on_commit=heard.extend))
    return Talker(agent, disk, heard, seed)


def measure(plan: Plan) -> tuple[Noise, list[Run]]:
    """Do every run, one after the other, on the current folder's file system."""
    with workspace() as folder:
        before = noise(folder)
        return before, [asyncio.run(run(folder, plan, seed)) for seed in range(1, plan.runs + 1)]


def _medians(runs: Sequence[Run], age: str, field: str) -> list[float]:
    """Return the median over the measured turns, of each run."""
    return [median([getattr(turn, field) for turn in getattr(run, age)]) for run in runs]


def _mean(runs: Sequence[Run], field: str) -> float:
    turns = [getattr(turn, field) for run in runs for turn in run.old]
    return sum(turns) / len(turns)


def figures(runs: Sequence[Run]) -> list[Figure]:
    """Return the five figures: medians of the runs' medians; syncs are a mean, because cost depends on their mean."""
    young, old = _medians(runs, "young", "wall_ms"), _medians(runs, "old", "wall_ms")
    bare_young, bare_old = _medians(runs, "young", "bare_ms"), _medians(runs, "old", "bare_ms")
    return [
        Figure("turn_ms_200", median(young), "ms", median(bare_young)),
        Figure("turn_ms_1000", median(old), "ms", median(bare_old)),
        Figure("turn_growth", median(_ratios(old, young)), "ratio", median(_ratios(bare_old, bare_young))),
        Figure(
            "turn_cpu_ms", median(_medians(runs, "old", "cpu_ms")), "ms", median(_medians(runs, "old", "bare_cpu_ms"))
        ),
        Figure("syncs_per_turn", _mean(runs, "syncs"), "syncs", _mean(runs, "commits")),
    ]


def _ratios(over: Sequence[float], under: Sequence[float]) -> list[float]:
    return [a / b for a, b in zip(over, under, strict=True)]


def lines(runs: Sequence[Run], found: Sequence[Figure], plan: Plan) -> list[Line]:
    """Return the table: the figures with their goals, then details."""
    young, old = _medians(runs, "young", "wall_ms"), _medians(runs, "old", "wall_ms")
    cpu_young, cpu_old = _medians(runs, "young", "cpu_ms"), _medians(runs, "old", "cpu_ms")
    ranges = [f"{last - plan.measured + 1} to {last}" for last in (plan.young, plan.old)]
    return [
        line(found[0], "best peer: 20", among(young)),
        line(found[1], "best peer: 20", among(old)),
        line(found[2], "<= 1.1", among(_ratios(old, young))),
        line(found[3], "6 (8 accepted; best peer: 12)", among(cpu_old)),
        line(found[4], "<= 2.1 (best peer: 8)", f"mean of {plan.runs * plan.measured} turns"),
        Line("turns measured", f"{ranges[0]} and {ranges[1]}", "", f"a window of {plan.window:,} tokens"),
        Line(
            "CPU growth", f"{median(_ratios(cpu_old, cpu_young)):.3g} ratio", "", "", among(_ratios(cpu_old, cpu_young))
        ),
        Line("bytes per turn", f"{_mean(runs, 'bytes'):,.0f} in the open file", "", "best peer: 1,200 to 1,600"),
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    args = options("step", "What one turn of an agent costs without the model, and whether that grows.", argv)
    plan = QUICK if args.quick else Plan()
    report(plan)
    return 0


def report(plan: Plan) -> None:
    """Measure what `plan` asks for and print it."""
    seen, runs = measure(plan)
    found = figures(runs)
    show("step", seen, found, lines(runs, found, plan))


if __name__ == "__main__":
    sys.exit(main())
