"""Run a cluster under a constant load for minutes, and say of each of its processes whether it levels off.

    python -m tests.soak.cluster_soak --load constant --minutes 40 [--agents 400] [--rate 25] [--words FOLDER]

starts a Ray of its own with shared agents in two shards, a tenth of them with a model behind the gateway, and sends
`rate` messages a second to agents in turn. It samples every process at an eighth, a quarter, half, three quarters and
the end of the time, and the archive once more at rest. A sample is the smallest measurement of a minute: hosts return
free memory and compact their rows from time to time, and what counts is what they keep. It prints a table after each
sample, and the verdicts at the end; it exits with status 1 if a process grows or the load stalls.

Used by `cluster_soak`. The load must stay constant: messages that cannot be sent in time are counted and not made up
for, because a load that catches up hides a stall.
"""

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

from bench.fleet import words
from bench.support import endpoint, fleet_rig
from everlog.actors.agent_system import AgentSystem
from everlog.actors.cluster.os_processes import descendants
from everlog.actors.hosting.cluster_status import ArchiveStatus
from everlog.actors.ports.real_clock import RealClock, RealIds
from everlog.store import FileStore
from tests.soak.soak_table import (
    ArchiveSizes,
    ProcessSample,
    Sample,
    archive_table,
    is_level,
    process_table,
    verdicts,
)

SHARDS = 2
GATEWAY_PART = 10
"""One of so many agents has a model behind the gateway."""
MOMENTS = (1 / 8, 1 / 4, 1 / 2, 3 / 4, 1.0)
"""Parts of the time after which the cluster is sampled."""
LOOK_S, LOOK_PAUSE_S = 60, 5
"""Seconds before a moment in which each process is measured, and between two measurements."""
BEAT_S = 0.2
"""Seconds between two groups of messages."""
WAITING_S = 20
"""Seconds' worth of messages that may wait for their answers; more are not sent."""
LOOKS_MAX, AGE_MAX_S = 10, 3
"""Attempts to get figures of the archive that are at most so many seconds old."""
REST_S = 25
"""Seconds without load before the archive is sampled at rest: more than its longest pauses together."""


def sample_process(pid: int) -> ProcessSample | None:
    """Measure a process; None if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        files = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return None
    kib = {line.split(":")[0]: int(line.split()[1]) for line in lines[1:] if line.endswith("kB")}
    return ProcessSample(kib.get("Rss", 0) * 1024, kib.get("Pss", 0) * 1024, files) if kib else None


def name_of(pid: int) -> str:
    """Return the name of a process: that of its Ray actor, its script or its program; empty for an idle worker."""
    try:
        text = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""
    if text.startswith("ray::"):
        name = text.split("\0")[0].split(".")[0].split()[0]
        return "" if name == "ray::IDLE" else name
    parts = text.split("\0")
    return next((Path(part).name for part in parts if part.endswith(".py")), Path(parts[0]).name)


def archive_sizes(seen: ArchiveStatus | None) -> ArchiveSizes:
    """Return the sizes of the archive; zeros if it did not answer."""
    if seen is None:
        return ArchiveSizes()
    return ArchiveSizes(**{name: getattr(seen, name) for name in ArchiveSizes.__struct_fields__})


class ConstantLoad:
    """Agents that get messages at a constant rate, and samples of the cluster."""

    def __init__(self, system: AgentSystem, agents: int, rate: float, lines: Sequence[str]) -> None:
        self._system = system
        self._names = [f"agent-{number:04d}" for number in range(agents)]
        self._rate = rate
        self._lines = lines
        self._sent = self.answered = self.failed = self.late = self._waiting = 0
        self._begun = 0.0
        self.samples: list[Sample] = []
        self._hosts: dict[int, str] = {}
        """Names of the hosts that any status had: one at work may be missing in a status."""

    async def run(self, seconds: float) -> None:
        """Create the agents, send messages for so many seconds, and print each sample."""
        gate = self._names[::GATEWAY_PART]
        await fleet_rig.make(self._system, gate, "instant")
        await fleet_rig.make(self._system, [name for name in self._names if name not in set(gate)])
        self._begun = time.monotonic()
        sending = asyncio.ensure_future(self._send_all(seconds))
        try:
            for part in MOMENTS:
                self.samples.append(await self._sample(await self._look(self._begun + part * seconds)))
                print(f"{process_table(self.samples)}\n\n{archive_table(self.samples)}\n", flush=True)
            await sending
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)

    async def _send_all(self, seconds: float) -> None:
        groups: set[asyncio.Task[None]] = set()
        while (passed := time.monotonic() - self._begun) < seconds:
            due = int(passed * self._rate) - self._sent - self.late
            if due > 0:
                group = asyncio.ensure_future(self._send(due))
                groups.add(group)
                group.add_done_callback(groups.discard)
            await asyncio.sleep(BEAT_S)
        await asyncio.wait_for(asyncio.gather(*groups), WAITING_S * 3)

    async def _send(self, count: int) -> None:
        """Send messages to the agents whose turn it is; none if too many wait for their answers."""
        if self._waiting > WAITING_S * self._rate:
            self.late += count
            return
        places = range(self._sent, self._sent + count)
        self._sent += count
        self._waiting += count
        said = [(self._names[place % len(self._names)], self._lines[place % len(self._lines)]) for place in places]
        async for outcome in self._system.send_many(said):
            self._waiting -= 1
            if outcome.error is None:
                self.answered += 1
            else:
                self.failed += 1
                print(f"failed: {outcome.error!r}"[:500], flush=True)

    async def _look(self, moment: float) -> dict[int, ProcessSample]:
        """Measure every process during LOOK_S before a moment. Return the smallest measurement of each."""
        await asyncio.sleep(max(0.0, moment - LOOK_S - time.monotonic()))
        least: dict[int, ProcessSample] = {}
        while True:
            for pid in (os.getpid(), *descendants(os.getpid())):
                if (found := sample_process(pid)) is not None:
                    least[pid] = min(found, least.get(pid, found), key=attrgetter("resident"))
            if time.monotonic() >= moment:
                return least
            await asyncio.sleep(LOOK_PAUSE_S)

    async def _sample(self, looked: Mapping[int, ProcessSample]) -> Sample:
        """Return a sample of the cluster now, with these measurements of its processes."""
        runtime: Any = self._system.runtime
        status = await runtime.status()
        for _ in range(LOOKS_MAX):
            if status.archive is not None and status.archive.age_s < AGE_MAX_S:
                break
            await asyncio.sleep(1)
            status = await runtime.status()
        self._hosts |= {host.pid: f"host of {host.place}" for host in status.hosts}
        names = {pid: self._hosts.get(pid) or name_of(pid) for pid in descendants(os.getpid())}
        names[os.getpid()] = "client"
        processes = {f"{name} ({pid})": looked[pid] for pid, name in names.items() if name and pid in looked}
        minute = round((time.monotonic() - self._begun) / 60, 1)
        return Sample(minute, self.answered, self.failed, self.late, processes, archive_sizes(status.archive))

    async def rest(self) -> ArchiveSizes:
        """Return the sizes of the archive after some seconds without load."""
        await asyncio.sleep(REST_S)
        return (await self._sample({})).archive


async def constant_load(folder: Path, seconds: float, agents: int, rate: float, data: str | None) -> bool:
    """Run the load on a new store in `folder`. Return True if every process levels off."""
    source, lines = words(data)
    clock = RealClock()
    FileStore.create(folder / "store", clock.now, RealIds().new(clock.now()), shards=SHARDS)
    print(f"{agents} agents, {rate:g} messages a second of {source}, {seconds / 60:g} minutes", flush=True)
    with endpoint.serving() as port:
        async with fleet_rig.cluster(folder / "store", f"http://127.0.0.1:{port}/v1") as system:
            load = ConstantLoad(system, agents, rate, lines)
            await load.run(seconds)
            rested = await load.rest()
    found = verdicts(load.samples, rate)
    print("\n".join(f"- {name}: {text}" for name, text in found.items()))
    print(f"- the archive at rest: {rested.versions} versions, {rested.files} files, {rested.disk_bytes:,} bytes")
    return is_level(found)
