"""Measure an agent's own Ray actor: the time until its agent is open, and its private memory.

Run as `python -m bench.dedicated`; `support.fleet_rig` measures memory with it. docs/explanation/benchmarks.md explains
the keys of its figures, and `tests/bench` checks them.

The floor is a bare Ray actor, `class Bare` below, created in the same cluster and in turns with the agents: Ray's own
cost of a process. Nothing else is created meanwhile; the cluster is started for the measurement and stopped after it.
Processes of the cluster have bytecode, as those of an installed package do: without it a bare actor takes three times
the CPU, most of it to compile Ray.
"""

import asyncio
import os
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.support.harness import Figure, Line, Noise, among, line, median, noise, options, ratios, show, workspace
from everlog.actors.agent.commands import OpenAgent
from everlog.actors.cluster.cluster_claim import ClusterClaim
from everlog.actors.cluster.placement import dedicated
from everlog.actors.cluster.ray_address import prepare
from everlog.actors.ports.real_clock import RealClock, RealIds, monotonic_us
from everlog.store import FileStore

KEYS = ("dedicated_create_ratio", "dedicated_extra_mb")
IDLE_S = 600


class Plan(msgspec.Struct, frozen=True):
    """Scale of the measurement. The claim is about the default."""

    actors: int = 12
    """Number of agents, and of bare actors."""


QUICK = Plan(actors=6)


class Bare:
    """The smallest actor that Ray can host."""

    def ready(self) -> int:
        """Return the process id."""
        return os.getpid()


class Made(msgspec.Struct, frozen=True):
    """Seconds to create one actor, the CPU of its process until then, and its memory."""

    seconds: float
    cpu_s: float
    private_mb: float


class Seen(msgspec.Struct, frozen=True):
    """Everything that was measured."""

    noise: Noise
    bare: list[Made]
    agents: list[Made]


def private_mb(pid: int) -> float:
    """Return the memory of a process that it shares with no other process, in MiB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(part.split()[1]) for part in lines if part.startswith(("Private_Clean:", "Private_Dirty:"))) / 1024


def cpu_s(pid: int) -> float:
    """Return the CPU seconds that a process has used, in steps of 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(ticks) for ticks in fields[11:13]) / os.sysconf("SC_CLK_TCK")


def keep_bytecode(folder: Path) -> None:
    """Have the processes that this one starts read and write bytecode in a folder, whatever the environment says."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(folder)


async def measure(plan: Plan) -> Seen:
    """Create bare actors and agents, one after the other, in turns."""
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    clock, ids, chance = RealClock(), RealIds(), random.Random(1)
    with workspace() as folder:
        keep_bytecode(folder / "bytecode")
        store = FileStore.create(folder / "store", clock.now, ids.new(clock.now()))
        prepare(store.root, "")
        from everlog.actors.cluster.ray_placement import RayHostProvider
        from everlog.actors.cluster.ray_runtime import joined

        seen = Seen(noise(folder), [], [])
        async with joined(store, "") as runtime:
            await runtime.ready()
            claim = ClusterClaim("bench", None, clock=clock, now_us=monotonic_us, note=print)
            places = RayHostProvider(str(store.root.resolve()), IDLE_S, claim)
            for number in range(plan.actors):
                opening = OpenAgent(id=ids.new(clock.now()))
                makers = [(seen.bare, _bare(number)), (seen.agents, _agent(store, places, number, opening))]
                chance.shuffle(makers)
                for made, making in makers:
                    begun = time.perf_counter()
                    pid = await making
                    seconds = time.perf_counter() - begun
                    made.append(Made(seconds, cpu_s(pid), private_mb(pid)))
    return seen


async def _bare(number: int) -> int:
    import ray

    handle = ray.remote(Bare).options(name=f"bare-{number}", lifetime="detached", num_cpus=0).remote()
    pid: int = await handle.ready.remote()
    return pid


async def _agent(store: FileStore, places: Any, number: int, opening: OpenAgent) -> int:
    name = f"agent-{number}"
    store.register(name)
    placed = await places.start(dedicated(name))
    async for _ in places.perform(placed, name, opening):
        pass
    pid: int = placed.pid
    return pid


def figures(seen: Seen) -> list[Figure]:
    """Return medians over the actors. The first of each kind is left out, because it warms up caches for the others."""
    bare, agents = seen.bare[1:], seen.agents[1:]
    ratio = median(ratios([made.seconds for made in agents], [made.seconds for made in bare]))
    floor_mb = median([made.private_mb for made in bare])
    extra = median([made.private_mb for made in agents]) - floor_mb
    return [Figure(KEYS[0], ratio, "x", 1.0), Figure(KEYS[1], extra, "MiB", floor_mb)]


def lines(seen: Seen, found: Sequence[Figure]) -> list[Line]:
    """Return the table."""
    seconds = [[made.seconds for made in several[1:]] for several in (seen.agents, seen.bare)]
    cpu = [[made.cpu_s for made in several[1:]] for several in (seen.agents, seen.bare)]
    return [
        line(found[0], "<= 1.3", among(ratios(*seconds))),
        line(found[1], "<= 25", among([made.private_mb for made in seen.agents[1:]], 1)),
        Line("an agent's actor, until it is open", f"{median(seconds[0]):.3g} s", "", "", among(seconds[0])),
        Line("a bare actor, until it answers", f"{median(seconds[1]):.3g} s", "", "", among(seconds[1])),
        Line("CPU of an agent's process until then", f"{median(cpu[0]):.3g} s", "", "", among(cpu[0])),
        Line("CPU of a bare actor's process", f"{median(cpu[1]):.3g} s", "", "", among(cpu[1])),
    ]


def report(plan: Plan) -> None:
    """Measure what `plan` asks for and print it."""
    seen = asyncio.run(measure(plan))
    found = figures(seen)
    show("dedicated", seen.noise, found, lines(seen, found))


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    args = options("dedicated", "What an agent's own Ray actor costs, compared with a bare one.", argv)
    report(QUICK if args.quick else Plan())
    return 0


if __name__ == "__main__":
    sys.exit(main())
