"""Run a cluster for minutes while its agents are activated and unloaded: memory and open files of its processes must
not grow.

    python -m tests.soak.cluster_soak [--minutes 20] [--agents 600] [--words FOLDER]
    python -m tests.soak.cluster_soak --load constant --minutes 40 [--agents 400] [--rate 25] [--words FOLDER]

The second form is that of `constant_load`: agents stay active, and the load is the same all the time. The first form
starts Ray on this machine, with agents in two shards and a few dedicated ones that are unloaded after some seconds, and
sends messages to some of the agents at a time: real words, if the data set is available. At the end it prints a table:
for each process that ran all the time its memory (resident, and private) and its open files after a warm-up and at the
end, its private memory after each quarter, and the growth of its memory. It exits with status 1 if a figure grew more
than allowed.
"""

import argparse
import asyncio
import os
import random
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from bench.fleet import words
from everlog.actors.agent_system import AgentSystem
from everlog.actors.api import open_system
from tests.cluster.conftest import descendants
from tests.soak.constant_load import constant_load

IDLE_S = 4
"""Idle seconds before an agent is unloaded: more than a host needs to start, so that one host is not unloaded before
another has started.
"""
SHARDS = 2
ALONE = 3
AT_ONCE = 60
"""Number of agents that get a message at the same time."""
PAUSE_S = 0.2
ALONE_PAUSE_S = 12
"""Seconds after which a dedicated agent has been unloaded."""
LOOK_S = 5
WARM_PART = 0.34
"""Share of the time that counts as warm-up."""
GROWTH_MIB_MAX, GROWTH_PART_MAX = 24.0, 0.12
"""Allowed growth of a process, the higher of MiB and share of its memory: allocators keep pages."""
FILES_MAX = 8
"""Number of open files by which a process may exceed its number after the warm-up."""
LOG_MONITOR = "log_monitor.py"
"""Process of Ray that keeps logs of ended workers open up to its own limit, and is therefore not checked."""
MIB = 2**20


class Look(NamedTuple):
    """Measurement of a process at one moment, in bytes and files."""

    at: float
    resident: int
    private: int
    """Memory that the process wrote, and shares with no other."""
    files: int


class Process(NamedTuple):
    """A process that ran all the time, with its first and last measurement after the warm-up."""

    name: str
    first: Look
    last: Look
    slope: float
    """Growth of its private memory, in bytes a minute."""
    quarters: Sequence[Look] = ()
    """Last measurement of each quarter of the run."""

    @property
    def faults(self) -> list[str]:
        """Return a text for each figure that grew more than allowed."""
        grown = self.last.private - self.first.private
        found = []
        if grown > max(GROWTH_MIB_MAX * MIB, GROWTH_PART_MAX * self.first.private):
            found.append(f"{self.name} grew by {grown / MIB:.0f} MiB")
        if self.last.files > self.first.files + FILES_MAX and not self.name.startswith(LOG_MONITOR):
            found.append(f"{self.name} has {self.last.files} open files, and had {self.first.files}")
        return found


def look_at(pid: int) -> Look | None:
    """Measure a process; None if it has ended."""
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        files = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return None
    kib = {line.split(":")[0]: int(line.split()[1]) for line in rollup[1:] if line.endswith("kB")}
    # Clean pages of a library count as private as soon as no other process has it loaded: they are no growth.
    return Look(time.monotonic(), kib.get("Rss", 0) * 1024, kib.get("Private_Dirty", 0) * 1024, files)


def script_of(pid: int) -> str:
    """Return the name of the file that a Python process runs, or an empty string."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return ""
    return next((Path(word).name for word in words if word.endswith(".py")), "")


class Looks:
    """Measurements of all processes."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._names: dict[int, str] = {}
        self._looks: dict[int, list[Look]] = defaultdict(list)

    def add(self, names: dict[int, str]) -> None:
        """Measure all of these processes. A `python` process is named after its script."""
        for pid, name in names.items():
            found = look_at(pid)
            if found is not None:
                self._names[pid] = script_of(pid) or name if name == "python" else name
                self._looks[pid].append(found)

    def processes(self) -> list[Process]:
        """Return the processes that lived from the warm-up to the end."""
        now = time.monotonic()
        warm = self._began + WARM_PART * (now - self._began)
        found = []
        for pid, looks in self._looks.items():
            steady = [look for look in looks if look.at >= warm]
            lived = looks[0].at <= warm and looks[-1].at >= now - 3 * LOOK_S
            if lived and len(steady) > 1:
                ends = [self._began + part * (now - self._began) / 4 for part in range(1, 5)]
                quarters = [([look for look in looks if look.at <= end] or looks)[-1] for end in ends]
                name = f"{self._names[pid]} ({pid})"
                found.append(Process(name, steady[0], steady[-1], slope_of(steady), quarters))
        return sorted(found)


def slope_of(looks: Sequence[Look]) -> float:
    """Return the growth of private memory in bytes a minute, by least squares."""
    at = [look.at / 60 for look in looks]
    size = [float(look.private) for look in looks]
    mean_at, mean_size = sum(at) / len(at), sum(size) / len(size)
    across = sum((one - mean_at) ** 2 for one in at)
    return sum((a - mean_at) * (s - mean_size) for a, s in zip(at, size, strict=True)) / across if across else 0.0


def table(processes: Sequence[Process]) -> str:
    """Return the measurements as a table."""
    quarters = "".join(f"{f'own {part}/4':>9}" for part in range(1, 5))
    lines = [f"{'process':36}{'resident MiB':>16}{'own MiB':>16}{quarters}{'MiB/min':>9}{'files':>12}"]
    for one in processes:
        resident = f"{one.first.resident / MIB:.0f} - {one.last.resident / MIB:.0f}"
        own = f"{one.first.private / MIB:.1f} - {one.last.private / MIB:.1f}"
        files = f"{one.first.files} - {one.last.files}"
        marks = "".join(f"{look.private / MIB:>9.1f}" for look in one.quarters)
        lines.append(f"{one.name:36}{resident:>16}{own:>16}{marks:>36}{one.slope / MIB:>9.2f}{files:>12}")
    return "\n".join(lines)


class Soak:
    """Agents, and tasks that send messages to them."""

    def __init__(self, system: AgentSystem, agents: int, seed: int, lines: Sequence[str]) -> None:
        """`lines`: messages to choose from."""
        self.system = system
        self.lines = lines
        self.names = [f"agent {number}" for number in range(agents)]
        self.alone = [f"alone {number}" for number in range(ALONE)]
        self.looks = Looks()
        self.messages = 0
        self.activations = 0
        self._chance = random.Random(seed)

    async def run(self, seconds: float) -> None:
        """Create the agents and send messages to them."""
        async for made in self.system.create_many(self.names):
            assert made.error is None, made.error
        async for made in self.system.create_many(self.alone, placement="dedicated"):
            assert made.error is None, made.error
        end = time.monotonic() + seconds
        beside = [asyncio.ensure_future(self._look()), asyncio.ensure_future(self._talk_alone())]
        try:
            while time.monotonic() < end:
                await self._talk(self._chance.sample(self.names, AT_ONCE))
                await asyncio.sleep(PAUSE_S)
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)

    async def _talk_alone(self) -> None:
        """Send messages to dedicated agents, whose hosts have to be started each time."""
        while True:
            await asyncio.sleep(ALONE_PAUSE_S)
            await self._talk([self._chance.choice(self.alone)])

    async def _talk(self, names: Sequence[str]) -> None:
        said = [(name, self._chance.choice(self.lines)) for name in names]
        async for sent in self.system.send_many(said):
            assert sent.error is None, sent.error
            self.messages += 1

    async def _look(self) -> None:
        while True:
            runtime: Any = self.system.runtime
            status = await runtime.status()
            names = {os.getpid(): "who talks", **descendants(os.getpid())}
            names |= {host.pid: f"host of {host.place}" for host in status.hosts}
            self.looks.add(names)
            await asyncio.sleep(LOOK_S)


async def soak(folder: Path, seconds: float, agents: int, lines: Sequence[str], seed: int = 7) -> Soak:
    """Run the soak on a new store in `folder`, with its own Ray cluster. `lines`: messages to choose from."""
    async with open_system(folder / "store", runtime="ray", placement="shared", shards=SHARDS, idle_s=IDLE_S) as system:
        running = Soak(system, agents, seed, lines)
        await running.run(seconds)
    return running


def main(arguments: Sequence[str]) -> int:
    """Run the soak from the command line. Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--agents", type=int, default=600)
    parser.add_argument("--load", choices=("churn", "constant"), default="churn")
    parser.add_argument("--rate", type=float, default=25, help="messages a second of the constant load")
    parser.add_argument("--words", help="folder of public data sets; without it EVERLOG_DATA, or everyday words")
    wanted = parser.parse_args(arguments)
    with TemporaryDirectory(prefix="soak") as folder:
        os.environ |= {"RAY_TMPDIR": folder, "RAY_AUTH_MODE": "disabled"}
        os.environ.pop("RAY_ADDRESS", None)
        if wanted.load == "constant":
            load = constant_load(Path(folder), wanted.minutes * 60, wanted.agents, wanted.rate, wanted.words)
            return 0 if asyncio.run(load) else 1
        source, lines = words(wanted.words)
        running = asyncio.run(soak(Path(folder), wanted.minutes * 60, wanted.agents, lines))
    processes = running.looks.processes()
    faults = [fault for one in processes for fault in one.faults]
    print(table(processes))
    told = f"{running.messages} messages ({source}) to {wanted.agents} agents"
    print(f"{wanted.minutes:g} minutes, {told}; {faults or 'all flat'}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
