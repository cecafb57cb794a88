"""Run the cluster that `bench.fleet` measures: Ray on this machine, a store with shards, and agents in it.

Used by `bench.fleet`.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec

from bench.dedicated import private_mb
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.commands import SessionCapabilities
from everlog.actors.agent_system import AgentSystem
from everlog.actors.cluster.os_processes import descendants
from everlog.actors.cluster.ray_address import prepare
from everlog.actors.hosting.cluster_status import HostStatus, StatusSource
from everlog.actors.ports.agent_constants import SHARD_TEND_S
from everlog.actors.ports.ports import Ports
from everlog.actors.ports.real_clock import monotonic_us
from everlog.interfaces.fleet import load_generator as load
from everlog.store import SEAL_BYTES_MIN, FileStore

IDLE_S = 3600
REST_S = SHARD_TEND_S + 1
"""Seconds in which an idle host begins to rest."""
REST_S_MAX = 180
STEADY = 0.01
"""Part of its memory by which a host at rest may differ between two looks."""
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


class Round(msgspec.Struct, frozen=True):
    """Results of a round in which every agent got so many messages."""

    tally: load.LoadTally
    driver_ms: float
    """CPU milliseconds of this process, for each message."""
    hosts_ms: float
    """CPU milliseconds of all hosts, for each message."""
    all_ms: float
    """CPU milliseconds of all processes (driver, hosts, archive, supervisor, Ray), for each message."""


@asynccontextmanager
async def cluster(root: Path, base_url: str) -> AsyncIterator[AgentSystem]:
    """Run the agents of a store under a Ray of its own; another Ray on this machine is not joined."""
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    os.environ.setdefault("OPENAI_API_KEY", "none")
    ports = Ports()
    store = FileStore(root, ports.clock.now)
    prepare(store.root, "")
    from everlog.actors.cluster.ray_runtime import joined

    async with joined(store, "", idle_s=IDLE_S) as runtime:
        await runtime.ready()
        yield AgentSystem(
            runtime, store, capabilities=SessionCapabilities(base_url=base_url), ports=ports, ask=runtime.ask,
            archive=runtime.archive, placement="shared",
        )  # fmt: skip


async def hosts(system: AgentSystem) -> Sequence[HostStatus]:
    """Return the status of each host."""
    assert isinstance(system.runtime, StatusSource)
    return (await system.runtime.status()).hosts


async def rested_bytes(system: AgentSystem) -> int:
    """Wait until the hosts are at rest. Return their private memory, in bytes.

    A host at rest seals first, which takes seconds and much memory, and gives back afterwards. It is at rest when
    nothing is left to seal, and its memory has been steady for REST_S. Raises AssertionError after REST_S_MAX seconds.
    """
    before: list[int] = []
    steady_s = 0
    for _ in range(REST_S_MAX):
        await asyncio.sleep(1)
        found = await hosts(system)
        now = [host.memory_bytes for host in found]
        steady = len(now) == len(before) and all(
            host.unsealed_bytes < SEAL_BYTES_MIN and abs(host.memory_bytes - earlier) <= STEADY * earlier
            for host, earlier in zip(found, before, strict=True)
        )
        steady_s = steady_s + 1 if steady else 0
        if steady_s >= REST_S:
            return sum(now)
        before = now
    raise AssertionError(f"the hosts do not come to rest: {before} bytes")


async def warm(system: AgentSystem, names: Sequence[str], plain: Sequence[str], lines: Sequence[str]) -> None:
    """Have each host do once what allocates memory once: answer plain and real words, and seal its log."""
    await talk(system, names, lines, 1)
    due: set[int] = set()
    while len(due) < len(found := await hosts(system)):
        due.update(host.pid for host in found if host.unsealed_bytes >= SEAL_BYTES_MIN)
        await talk(system, names, plain, 5)


def actors_mib() -> float:
    """Return the private memory of every process that runs an everlog actor: hosts, supervisor, gateway.

    Ray's idle workers, its raylet and its other processes are not counted; the 60 MiB of an empty worker are.
    """
    return sum(private_mb(pid) for pid in descendants(os.getpid()) if _runs_an_actor(pid))


def _runs_an_actor(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return words.startswith(b"ray::") and not words.startswith(b"ray::IDLE")


async def make(system: AgentSystem, names: Sequence[str], model: str | None = None) -> None:
    """Create agents, or activate them."""
    failed = await load.make(system, names, Settings(model=model), at_once=1000)
    assert not failed, failed[0].error


async def talk(system: AgentSystem, names: Sequence[str], lines: Sequence[str], messages: int) -> Round:
    """Send each agent so many messages, as fast as they answer. Raises AssertionError if any message failed."""
    pids = [host.pid for host in await hosts(system)]
    driver, others, tree = time.process_time(), sum(map(_cpu_s, pids)), _tree_cpu()
    run = load.LoadRun(system, names, lines, messages, at_once=len(names), now=monotonic_us)
    tally = await run.run()
    driver, others = time.process_time() - driver, sum(map(_cpu_s, pids)) - others
    total = driver + sum(spent - tree.get(pid, 0.0) for pid, spent in _tree_cpu().items())
    assert not tally.faults, tally.faults
    return Round(tally, *(1000 * spent / tally.answered for spent in (driver, others, total)))


def _tree_cpu() -> dict[int, float]:
    """Return the CPU seconds of each descendant of this process that runs."""
    spent = {}
    for pid in descendants(os.getpid()):
        with suppress(OSError):  # it has ended meanwhile
            spent[pid] = _cpu_s(pid)
    return spent


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS


async def opened_ms(system: AgentSystem, name: str) -> float:
    """Return the milliseconds until an existing agent is open, from driver to host and back."""
    begun = time.perf_counter()
    await system.agent(name, create=False)
    return (time.perf_counter() - begun) * 1000
