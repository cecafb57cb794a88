"""A simulated shard from a seed: callers, a disk that fails, restarted processes, and little room in memory.

`python -m tests.support.cluster.sim_shard [NAME ...]` searches the first seed that detects each missing guard.
"""

import asyncio
import random
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any
from unittest.mock import patch

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.commands import Command, StreamItem
from everlog.actors.hosting.shard import Shard
from everlog.actors.hosting.shard_journal import ShardJournal
from everlog.events import Busy, ClusterError, EverlogError, HostLost, ModelError, PartitionBusy, Record, StoreError
from everlog.store import MemoryStore
from everlog.testing import CountingIds
from tests.support.agents.journal_world import SHARD
from tests.support.agents.virtual_time_runtime import open_ref
from tests.support.agents.virtual_time_shard import SharedHome
from tests.support.cluster import sim_checks
from tests.support.cluster.sim_world import Client
from tests.support.virtual_time import WallClock

AGENTS = ("ada", "ben", "cyd", "dot")
SETTLED_S = 10_000


class Visitor(Client):
    """A caller that talks to all agents of a shard."""

    def __init__(self, number: int, world: "World") -> None:
        self.number = number
        self.cluster: Any = world
        self.runtime: Any = world
        self.said = []
        self.told_of_losses = 0

    async def live(self, count: int, settings: Settings) -> None:
        chance, ends = self.cluster.chance, []
        for agent_id in AGENTS:
            opening = self.ref(agent_id)
            await self.until(lambda opened=opening: open_ref(opened, settings))
        for _ in range(count):
            await asyncio.sleep(chance.choice([0, 0, 0.3, 3, 40]) * chance.random())
            agent_id = chance.choice(AGENTS)
            what = self.say(agent_id) if chance.random() < 0.9 else self.until(self.ref(agent_id).resume)
            ends.append(asyncio.create_task(_awaited(what)))
            if chance.random() < 0.5:
                await ends[-1]
        await asyncio.gather(*ends)

    async def until(self, attempt: Callable[[], Awaitable[Any]]) -> Any:
        while True:
            try:
                return await attempt()
            except (HostLost, Busy, StoreError) as error:
                self.told_of_losses += isinstance(error, HostLost)
                self.cluster.expect(error)
            await asyncio.sleep(1 + self.cluster.chance.random())


async def _awaited(what: Awaitable[Any]) -> None:
    with suppress(ModelError, ClusterError):
        await what


class World:
    """One shard, in one process after the other."""

    real = False

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.clock, self.ids, self.store = WallClock(), CountingIds(), MemoryStore(shards=1)
        self.idle_s = self.chance.choice([1, 30, 300])
        self.agents_max = self.chance.choice([1, 2, 10])
        self.think_s = self.chance.choice([0, 0.1, 5])
        self.homes: list[SharedHome] = []
        self.failures = self.ended_at = 0
        self.visitors = [Visitor(number, self) for number in range(self.chance.randint(1, 3))]

    async def think(self) -> None:
        await asyncio.sleep(self.chance.random() * self.think_s)

    @property
    def home(self) -> SharedHome:
        return self.homes[-1]

    def begin(self) -> None:
        """Start the next process; it fences an earlier owner that does not know about it."""
        home = SharedHome(self.store, idle_s=self.idle_s, agents_max=self.agents_max)
        home.ids = self.ids
        self.homes.append(home)

    async def perform(self, agent_id: str, command: Command, seen: int = 0) -> AsyncIterator[StreamItem]:
        """Perform a command in the running process."""
        async for heard in self.home.runtime.perform(agent_id, command, seen):
            yield heard

    def expect(self, error: EverlogError) -> None:
        """Check that callers may get this error: PartitionBusy only if an earlier process can still own the log."""
        busy = isinstance(error, PartitionBusy) and len(self.homes) > 1
        assert busy or isinstance(error, (HostLost, Busy)) or "the disk is broken" in str(error), error

    async def befall(self) -> None:
        """Cause random failures of processes and disks, until the task is cancelled."""
        pace = self.chance.choice([1, 5, 30])
        while True:
            await asyncio.sleep(self.chance.random() * pace)
            match self.chance.choice(["fail", "fail", "passivate", "release", "kill", "fence"]):
                case "fail" if self.home.shard._ticks is not None:
                    self.home.fail_next()
                    self.failures += 1
                case "passivate":
                    await self.home.shard.passivate(self.chance.choice(AGENTS))
                case "release":
                    await self.home.shard.unload()
                case "kill":
                    before = self.home
                    self.begin()
                    await self.leave(before)
                    await self.home.shard.recover(AGENTS, {})
                case "fence":  # the previous process continues for a while
                    before = self.home
                    self.store.open_partition(SHARD, "other", take_over=True).close()
                    self.begin()
                    self.later.append(asyncio.create_task(self.leave(before, 30)))

    async def leave(self, home: SharedHome, after_s: float = 0) -> None:
        """End a process."""
        await asyncio.sleep(after_s)
        await home.leave()

    async def live(self) -> None:
        self.later: list[asyncio.Task[None]] = []
        self.store.register_many(AGENTS, shared=True)
        self.begin()
        befalls = asyncio.create_task(self.befall())
        await asyncio.gather(*(visitor.live(8, Settings()) for visitor in self.visitors))
        befalls.cancel()
        await asyncio.wait([befalls])
        await self.home.shard.recover(AGENTS, {})
        await asyncio.sleep(SETTLED_S)
        self.ended_at = self.clock.now()
        await self.settle()

    async def settle(self) -> None:
        """Check the memory at the end, and close everything."""
        assert len(self.home.shard._hosts) == 0, "nobody has let go of them"
        for agent_id in AGENTS:
            await self.visitors[0].until(lambda name=agent_id: self.last_words(name))
        ticks: Any = self.home.shard._ticks
        self.engine = dict(ticks.projections._records)
        for home in self.homes:
            await home.leave()
        await asyncio.sleep(100)

    async def last_words(self, agent_id: str) -> None:
        async for _ in self.perform(agent_id, self.home.say("[steps=1] The end.")):
            pass

    def check(self) -> None:
        """Check that nothing is lost or done twice, and that memory agrees with the log."""
        for agent_id in AGENTS:
            records = sim_checks.check_log(self, agent_id)
            assert self.engine.get(agent_id, records) == records, f"the engine has something else of {agent_id}"
        assert len(self.engine) <= max(2 * self.agents_max, 1)


def simulate(seed: int) -> World:
    """Simulate and check the world of a seed."""
    return sim_checks.lived(World(seed))


Patch = AbstractContextManager[Any]


def _late(self: ShardJournal, records: Sequence[Record]) -> None:
    asyncio.get_running_loop().call_later(0.01, REAL_PROJECT, self, records)


async def _merciless(self: Shard, agent_id: str, **_: Any) -> bool:
    host = self._hosts.pop(agent_id, None)
    if host is not None:
        await host.passivate()
    return True


REAL_PROJECT = ShardJournal._project
BREAKS: dict[str, tuple[int, Callable[[], Patch]]] = {
    "projected before it is answered": (0, lambda: patch.object(ShardJournal, "_project", _late)),
    "what was lost is not written": (
        8,
        lambda: patch.object(ShardJournal, "lose", lambda self, error: self._on_lost(error)),
    ),
    "not let go of at work": (0, lambda: patch.object(Shard, "passivate", _merciless)),
    "who leaves is forgotten": (0, lambda: patch.object(ShardJournal, "leave", lambda *_: None)),
}
"""By guard: the seed that detects its absence, and a patch that removes it."""


def fails(seed: int, guard: str = "") -> str:
    """Return the error of a seed's world without a guard, or an empty string."""
    return sim_checks.error_of(simulate, seed, BREAKS[guard][1]() if guard else nullcontext())


def main(names: list[str]) -> None:
    for name in names or BREAKS:
        seed = next((seed for seed in range(100) if fails(seed, name)), None)
        print(f"{name}: {seed}  {fails(seed, name)[:100] if seed is not None else '-'}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
