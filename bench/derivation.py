"""Measure the derivation of facts by rules: CPU time of 10,000 messages, and bytes of a derived memory.

Run as `python -m bench.derivation`. docs/explanation/benchmarks.md explains the keys of its figures, and `tests/bench`
checks them.

One agent on the disk, told messages of two speakers of which one in three states something, is asked for its facts. The
floor of the CPU time is reading the same records from the log; that of the bytes is the object of the fact alone.
"""

import asyncio
import sys
import time
from collections.abc import Sequence

import msgspec

from bench.support.harness import Figure, Line, Noise, line, median, noise, options, show, workspace
from everlog.actors.agent.agent import Agent
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.derivation.conclusions import DerivationReport
from everlog.actors.derivation.rule_facts import RuleFacts
from everlog.actors.deriving.memory_derivation import MemoryDerivation
from everlog.actors.ports.real_clock import RealClock
from everlog.events import FactEnded, FactNoted, Record, UserMessage
from everlog.store import FileStore

KEYS = ("derive_cpu_s", "derived_bytes")
GOALS = ("<= 30", "< 400")
AGENT = "sam"
START = 1_683_720_000_000_000
"""Time of the first message: 10 May 2023, 12:00 UTC."""
HOUR = 3_600_000_000
CITIES = ("Kiel", "Bonn", "Rome", "Oslo", "Lima", "Porto", "New York", "St. Gallen")
THINGS = ("tea", "jazz", "old maps", "hiking in the Alps", "Mondays", "sailing", "cold soup")
FILLER = (
    "Good morning! How was your weekend, and did the storm pass your street in the end?",
    "I think we should meet on Friday, if the weather allows, and bring the drawings of the boat.",
    "That sounds wonderful. The pictures that you sent of the harbour are still on my wall.",
    "It rained all day yesterday, so nothing came of the walk that the children had looked forward to.",
)


class Plan(msgspec.Struct, frozen=True):
    """Scale of the measurement. The claim is about the default."""

    messages: int = 10_000
    runs: int = 3


QUICK = Plan(messages=2_000, runs=1)


class Seen(msgspec.Struct, frozen=True):
    """Everything that was measured."""

    noise: Noise
    messages: int
    derive_s: list[float]
    """CPU seconds of each run, for all of the messages."""
    read_s: list[float]
    report: DerivationReport
    statements: int
    """Projections that one run asked for."""
    sizes: list[int]
    """Bytes of text and payload of each derived memory."""
    objects: list[int]
    """Bytes of the objects of its facts."""


def said(number: int) -> str:
    """Return the text of a message."""
    city, thing = CITIES[number // 3 % len(CITIES)], THINGS[number // 3 % len(THINGS)]
    stated = (
        f"I moved to {city} last month, by the way. The flat is small.",
        f"My friend Person{number} works at Company{number % 97} and lives in {city}.",
        f"I really love {thing}, and my favourite number is {number}.",
        f"Person{number // 9} no longer lives in {city}, I saw the van yesterday.",
    )
    return FILLER[number % len(FILLER)] if number % 3 else stated[number // 3 % len(stated)]


def measure(plan: Plan) -> Seen:
    """Tell an agent the messages, and derive its facts in turns with reading the log."""
    with workspace() as folder:
        quiet = noise(folder)
        store = FileStore.create(folder / "store", RealClock().now, "bench")
        return asyncio.run(_measured(LocalSystem(store), plan, quiet))


async def _measured(system: LocalSystem, plan: Plan, quiet: Noise) -> Seen:
    derive_s: list[float] = []
    read_s: list[float] = []
    async with system.agent(AGENT, Settings()) as agent:
        for first in range(0, plan.messages, 1_000):
            numbers = range(first, min(first + 1_000, plan.messages))
            events = [UserMessage(text=said(n), name=("Ann", "Bo")[n % 2]) for n in numbers]
            times = [START + n * HOUR for n in numbers]
            await agent.commit(events, turn=0, step=0, said_at=times)
        for generation in range(1, plan.runs + 1):
            begun = time.process_time()
            read = sum(1 for record in agent.records(1) if record.type == UserMessage.kind)
            read_s.append(time.process_time() - begun)
            counting = Counting(agent)
            begun = time.process_time()
            report = await MemoryDerivation(counting, "facts", RuleFacts(), generation).run()
            derive_s.append(time.process_time() - begun)
            if read != plan.messages or report.read != plan.messages:
                raise RuntimeError(f"read {read} and derived from {report.read} of {plan.messages} messages")
        derived = [record for record in agent.records(1) if record.type in (FactNoted.kind, FactEnded.kind)]
    sizes, objects = [_size(record) for record in derived], [_object_size(record) for record in derived]
    return Seen(quiet, plan.messages, derive_s, read_s, report, counting.statements, sizes, [n for n in objects if n])


class Counting:
    """An agent that counts the projections that it is asked for."""

    def __init__(self, agent: Agent) -> None:
        self.agent_id, self.head, self.zone, self.turn = agent.agent_id, agent.head, agent.zone, agent.turn
        self.records, self.now, self.commit = agent.records, agent.now, agent.commit
        self._agent, self.statements = agent, 0

    async def rows(self, name: str, as_of: int | None = None) -> Sequence[dict[str, object]]:
        """Return the rows of a projection."""
        self.statements += 1
        return await self._agent.rows(name, as_of)  # type: ignore[return-value]


def _size(record: Record) -> int:
    return len((record.text or "").encode()) + len(record.payload.encode())


def _object_size(record: Record) -> int:
    return len(msgspec.json.decode(record.payload).get("object", "").encode())


def figures(seen: Seen) -> list[Figure]:
    """Return the figures. CPU time is that of 10,000 messages."""
    share = 10_000 / seen.messages
    return [
        Figure("derive_cpu_s", median(seen.derive_s) * share, "s", median(seen.read_s) * share),
        Figure("derived_bytes", sum(seen.sizes) / len(seen.sizes), "bytes", sum(seen.objects) / len(seen.objects)),
    ]


def lines(seen: Seen, found: Sequence[Figure]) -> list[Line]:
    """Return the table."""
    cpu, size = (line(figure, goal) for figure, goal in zip(found, GOALS, strict=True))
    return [
        cpu, Line("  messages", f"{seen.messages:,}"), Line("  facts noted and ended", f"{seen.report.noted:,}"),
        Line("  projections asked for", f"{seen.statements}"), size, Line("  the largest", f"{max(seen.sizes)}"),
    ]  # fmt: skip


def report(plan: Plan) -> None:
    """Measure what `plan` asks for and print it."""
    seen = measure(plan)
    found = figures(seen)
    show("derivation", seen.noise, found, lines(seen, found))


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    args = options("derivation", "Facts by rules: CPU time of 10,000 messages, and bytes of a derived memory.", argv)
    report(QUICK if args.quick else Plan())
    return 0


if __name__ == "__main__":
    sys.exit(main())
