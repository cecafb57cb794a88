"""Measure messages between agents beside plain talk in the same process: messages a second, and their CPU.

Run as `python -m bench.mail.between_agents [--quick]`. docs/explanation/benchmarks.md explains the keys of its figures.

The agents are in one shard and use the offline model. In each round, a person talks to each agent; then a person has
each of them tell another one something, which makes two turns and the delivery between them. A message counts
when it is in the receiver's log and is recorded as delivered in the sender's.
"""

import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.support.harness import Figure, Line, Noise, among, line, median, noise, options, show, workspace
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent_system import AgentSystem
from everlog.actors.api import open_system

KEYS = ("between_per_s", "between_cpu_ratio")
GOALS = {"between_cpu_ratio": "< 4"}
LOOK_S = 0.5
"""Seconds between two looks at what has arrived; their CPU is not counted."""
ARRIVED = """SELECT count(*) FILTER (state = 'received') AS arrived, count(*) FILTER (state = 'pending') AS pending
FROM agent_messages"""


class Plan(msgspec.Struct, frozen=True):
    """Scale of the measurement. The claim is about the default."""

    agents: int = 1000
    rounds: int = 3


QUICK = Plan(agents=200, rounds=2)


class Cost(msgspec.Struct, frozen=True):
    """Cost of a message."""

    wall_s: float
    cpu_s: float


class Seen(msgspec.Struct, frozen=True):
    """Costs of messages, by round."""

    noise: Noise
    plain: Sequence[Cost]
    between: Sequence[Cost]


class Meter:
    """Meter of time and CPU, which leaves out what the looks of the meter cost."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        self.looks_s = 0.0

    def cost(self, messages: int) -> Cost:
        """Return the cost of each of so many messages."""
        cpu = time.process_time() - self._cpu - self.looks_s
        return Cost((time.perf_counter() - self._wall) / messages, cpu / messages)


async def _all_said(system: AgentSystem, messages: Sequence[tuple[str, str]]) -> None:
    async for sent in system.send_many(messages):
        if sent.error is not None:
            raise sent.error


async def _arrived(system: AgentSystem, messages: int, meter: Meter) -> None:
    """Wait until so many messages have arrived in all logs, and none is on its way."""
    while True:
        await asyncio.sleep(LOOK_S)
        began = time.process_time()
        row = (await system.sql(ARRIVED)).to_pylist()[0]
        meter.looks_s += time.process_time() - began
        if row["arrived"] >= messages and not row["pending"]:
            return


async def measured(plan: Plan, folder: Path, machine: Noise) -> Seen:
    """Talk to the agents, and have them talk."""
    plain, between, arrived = [], [], 0
    names = [f"agent-{number}" for number in range(plan.agents)]
    writes = Settings(optional_functions=("message_agent",))
    async with open_system(folder / "store", runtime="local", placement="shared", shards=1) as system:
        async for made in system.create_many(names, writes):
            if made.error is not None:
                raise made.error
        for number in range(plan.rounds):
            meter = Meter()
            await _all_said(system, [(name, f"Hello number {number}") for name in names])
            plain.append(meter.cost(plan.agents))
            meter, step = Meter(), number + 1
            others = [names[(place + step) % plan.agents] for place in range(plan.agents)]
            orders = [f"Tell @{other} that dinner is at {number}" for other in others]
            await _all_said(system, list(zip(names, orders, strict=True)))
            arrived += plan.agents
            await _arrived(system, arrived, meter)
            between.append(meter.cost(plan.agents))
    return Seen(machine, plain, between)


def figures(seen: Seen) -> list[Figure]:
    """Return the figures, in the order of KEYS."""
    plain_s, plain_cpu = median([one.wall_s for one in seen.plain]), median([one.cpu_s for one in seen.plain])
    between_s, between_cpu = median([one.wall_s for one in seen.between]), median([one.cpu_s for one in seen.between])
    return [
        Figure("between_per_s", 1 / between_s, "messages/s", 1 / plain_s),
        Figure("between_cpu_ratio", between_cpu / plain_cpu, "ratio", 1.0),
    ]


def lines(seen: Seen, found: Sequence[Figure]) -> list[Line]:
    """Return the table."""
    runs = f"{among([one.cpu_s * 1000 for one in seen.between])} ms of CPU"
    return [line(one, GOALS.get(one.key, ""), runs if one.key == "between_cpu_ratio" else "") for one in found]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    args = options("mail.between_agents", "What messages between agents cost, beside plain talk.", argv)
    with workspace() as folder:
        seen = asyncio.run(measured(QUICK if args.quick else Plan(), folder, noise(folder)))
    found = figures(seen)
    show("mail.between_agents", seen.noise, found, lines(seen, found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
