"""The cluster that `bench.fleet` measures: Ray on this machine, a store with shards, and agents in it."""

import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from bench.dedicated import private_mb
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.commands import SessionCapabilities
from everlog.actors.agent_system import AgentSystem
from everlog.actors.cluster.os_processes import descendants
from everlog.actors.cluster.ray_address import prepare
from everlog.actors.hosting.cluster_status import HostStatus, StatusSource
from everlog.actors.ports.ports import Ports
from everlog.actors.ports.real_clock import monotonic_us
from everlog.interfaces.fleet import load_generator as load
from everlog.store import FileStore

IDLE_S = 3600
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


class Round(msgspec.Struct, frozen=True):
    """Every agent told so many messages."""

    tally: load.LoadTally
    driver_ms: float
    """CPU of this process, for each message."""
    hosts_ms: float
    """CPU of all hosts, for each message."""


@asynccontextmanager
async def cluster(root: Path, base_url: str) -> AsyncIterator[AgentSystem]:
    """The agents of a store under a Ray of its own: another that runs on this machine is not joined."""
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
    """How each host is doing."""
    assert isinstance(system.runtime, StatusSource)
    return (await system.runtime.status()).hosts


async def hosts_bytes(system: AgentSystem) -> int:
    """What the processes of all hosts share with no other."""
    return sum(host.memory_bytes for host in await hosts(system))


def actors_mib() -> float:
    """Private memory of every process that runs an actor of ours: hosts, supervisor, gateway. Ray's idle workers, its
    raylet and the rest of it are its own base; that an empty worker costs 60 MiB is counted as ours.
    """
    return sum(private_mb(pid) for pid in descendants(os.getpid()) if _runs_an_actor(pid))


def _runs_an_actor(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return words.startswith(b"ray::") and not words.startswith(b"ray::IDLE")


async def make(system: AgentSystem, names: Sequence[str], model: str | None = None) -> None:
    """Make agents, or bring them into memory."""
    failed = await load.make(system, names, Settings(model=model), at_once=1000)
    assert not failed, failed[0].error


async def talk(system: AgentSystem, names: Sequence[str], lines: Sequence[str], messages: int) -> Round:
    """Tell each agent so many messages, as fast as they answer; all of it is in the logs, once."""
    pids = [host.pid for host in await hosts(system)]
    driver, others = time.process_time(), sum(map(_cpu_s, pids))
    run = load.LoadRun(system, names, lines, messages, at_once=len(names), now=monotonic_us)
    tally = await run.run()
    driver, others = time.process_time() - driver, sum(map(_cpu_s, pids)) - others
    assert not tally.faults, tally.faults
    return Round(tally, driver * 1000 / tally.answered, others * 1000 / tally.answered)


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS


async def opened_ms(system: AgentSystem, name: str) -> float:
    """Milliseconds until an agent that exists can be talked to, driver to host and back."""
    begun = time.perf_counter()
    await system.agent(name, create=False)
    return (time.perf_counter() - begun) * 1000
