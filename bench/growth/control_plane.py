"""Drive the supervisor for many agents on many simulated nodes, in one process.

Run as `python -m bench.growth.control_plane --agents 1000000 --nodes 1000`. The figures are memory, and CPU time until
the hosts of a node that died run elsewhere. No agent works, no log is read and no network is used: the supervisor with
its queues and the schedule of timers are measured as they run in production. docs/explanation/scale.md explains them.
"""

import argparse
import asyncio
import gc
import json
import sys
import time
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from pathlib import Path
from zlib import crc32

import msgspec

from everlog.actors.agent.commands import Command, CommandResult, SessionCapabilities, StreamItem
from everlog.actors.cluster.placement import CommandErrors, HostedPartition, HostHandle, dedicated
from everlog.actors.cluster.supervisor import Supervisor
from everlog.actors.hosting.pending_work import PendingWork
from everlog.actors.hosting.timer_schedule import DueTimer
from everlog.actors.ports.agent_constants import ACTIVATIONS_MAX
from everlog.actors.ports.ports import Ports
from everlog.actors.ports.real_clock import RealClock, RealIds
from everlog.events import HostLost
from everlog.events.times import MICROSECONDS
from everlog.store.base.store_constants import SHARDS_MAX

BATCH = 1000
"""Agents that are placed in one call, as a caller with many agents does."""
YEAR_US = 365 * 86_400 * MICROSECONDS


class Measured(msgspec.Struct, kw_only=True):
    """Figures of one run."""

    placement: str
    agents: int
    nodes: int
    hosts: int
    timers: int
    timers_left_out: int
    hosts_mib: float
    """Resident memory that the hosts added."""
    timers_mib: float
    total_mib: float
    place_cpu_us: float
    """Microseconds of CPU time for the first look-up of an agent's host, which starts it."""
    find_cpu_us: float
    """Microseconds of CPU time for each later look-up."""
    lost_hosts: int
    """Hosts of the node that died."""
    lost_cpu_s: float
    """Seconds of CPU time until all of them ran on other nodes."""
    status_cpu_ms: float


class Nodes:
    """Simulated nodes, each with hosts that start at once and do nothing. See `HostProvider`."""

    def __init__(self, count: int) -> None:
        self._living: dict[int, dict[str, asyncio.Future[None]]] = {node: {} for node in range(count)}
        self._order = list(self._living)
        self._started = 0

    async def find(self, place: HostedPartition) -> HostHandle | None:
        return None

    async def start(self, place: HostedPartition) -> HostHandle:
        self._started += 1
        node = self._order[self._started % len(self._order)]
        placed = HostHandle(f"{self._started:x}", self._started, node, f"node-{node}")
        self._living[node][placed.key] = asyncio.get_running_loop().create_future()
        await asyncio.sleep(0)
        return placed

    async def is_alive(self, placed: HostHandle) -> bool:
        return placed.key in self._living.get(placed.handle, {})

    async def death(self, placed: HostHandle) -> None:
        ended = self._living.get(placed.handle, {}).get(placed.key)
        if ended is not None:
            await ended

    async def prepare(self, place: HostedPartition, placed: HostHandle) -> HostHandle | None:
        return None

    async def take_over(self, prepared: HostHandle) -> HostHandle | None:
        return prepared

    async def discard(self, prepared: HostHandle) -> None:
        self._living[prepared.handle].pop(prepared.key, None)

    async def retire(self, placed: HostHandle) -> bool:
        self._living[placed.handle].pop(placed.key).set_result(None)
        return False

    async def perform(self, placed: HostHandle, agent_id: str, command: Command) -> AsyncIterator[StreamItem]:
        if not await self.is_alive(placed):
            raise HostLost("the node has died")
        yield CommandResult()

    async def perform_many(
        self, placed: HostHandle, commands: Sequence[tuple[str, Command]]
    ) -> AsyncIterator[CommandErrors]:
        yield [(agent_id, None) for agent_id, _ in commands]

    async def recover(self, placed: HostHandle, capabilities: Mapping[str, SessionCapabilities]) -> None:
        if not await self.is_alive(placed):
            raise HostLost("the node has died")

    def hosts(self) -> int:
        """Return the number of hosts that run."""
        return sum(map(len, self._living.values()))

    def lose(self, node: int) -> int:
        """Let a node die with all its hosts. Return their number."""
        ended = self._living.pop(node)
        self._order.remove(node)
        for future in ended.values():
            future.set_result(None)
        return len(ended)


def resident_mib() -> float:
    """Return the resident memory of this process now, without what the collector can free."""
    gc.collect()
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("/proc/self/status has no line VmRSS: this benchmark needs Linux")


def shard_of(agent_id: str) -> HostedPartition:
    """Return a shard by the agent's name, evenly, as many as a store can have."""
    return HostedPartition(f"shard-{crc32(agent_id.encode()) % SHARDS_MAX:03d}")


async def _nothing() -> AsyncIterator[Sequence[PendingWork]]:
    for none in ():
        yield none


async def _place(supervisor: Supervisor, names: Sequence[str]) -> float:
    """Look up the hosts of all agents. Return the CPU time of one, in microseconds."""
    began = time.process_time()
    for first in range(0, len(names), BATCH):
        await supervisor.place_many(names[first : first + BATCH])
    return (time.process_time() - began) / len(names) * 1e6


async def _settled(nodes: Nodes, hosts: int, deadline_s: float = 600) -> None:
    """Wait until so many hosts run. Raises RuntimeError if they do not in time."""
    end = time.monotonic() + deadline_s
    while nodes.hosts() < hosts:
        if time.monotonic() > end:
            raise RuntimeError(f"{nodes.hosts()} of {hosts} hosts run after {deadline_s} s")
        await asyncio.sleep(0.05)


async def measure(placement: str, agents: int, node_count: int) -> Measured:
    """Register agents with a timer each, place them, let a node die, and return the figures."""
    clock, nodes = RealClock(), Nodes(node_count)
    names = [f"agent-{number:07d}" for number in range(agents)]
    before = resident_mib()
    place_of = dedicated if placement == "dedicated" else shard_of

    async def places_of(agents: Collection[str]) -> Mapping[str, HostedPartition]:
        return {agent_id: place_of(agent_id) for agent_id in agents}

    supervisor = Supervisor(
        nodes, places_of, activations_max=ACTIVATIONS_MAX,
        ports=Ports(clock=clock, ids=RealIds(), note=lambda _: None),
    )  # fmt: skip
    await supervisor.begin(_nothing())
    try:
        due = clock.now() + YEAR_US
        for number, name in enumerate(names):
            supervisor.schedule.know(name, (DueTimer(due + number, "tea"),))
        with_timers = resident_mib()
        place_us = await _place(supervisor, names)
        with_hosts, hosts = resident_mib(), nodes.hosts()
        find_us = await _place(supervisor, names)
        began = time.process_time()
        status = supervisor.status
        status_ms = (time.process_time() - began) * 1e3
        began = time.process_time()
        lost = nodes.lose(1)
        await _settled(nodes, hosts)
        lost_s = time.process_time() - began
    finally:
        await supervisor.end()
    return Measured(
        placement=placement, agents=agents, nodes=node_count, hosts=hosts, timers=status.timers,
        timers_left_out=status.timers_left_out, hosts_mib=with_hosts - with_timers, timers_mib=with_timers - before,
        total_mib=with_hosts, place_cpu_us=place_us, find_cpu_us=find_us, lost_hosts=lost, lost_cpu_s=lost_s,
        status_cpu_ms=status_ms,
    )  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print one line of JSON for each placement."""
    parser = argparse.ArgumentParser(prog="python -m bench.growth.control_plane", description=__doc__.split("\n\n")[0])
    parser.add_argument("--agents", type=int, default=100_000)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--placement", choices=("shared", "dedicated"), action="append", help="default: both")
    args = parser.parse_args(argv)
    if args.agents < args.nodes or args.nodes < 2:
        parser.error(f"{args.agents} agents on {args.nodes} nodes: there must be 2 nodes, and an agent for each")
    for placement in args.placement or ("shared", "dedicated"):
        found = asyncio.run(measure(placement, args.agents, args.nodes))
        print(json.dumps(msgspec.to_builtins(found)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
