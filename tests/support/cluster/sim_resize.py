"""Simulated shards whose number changes, from a seed: callers, processes that die, and agents that move meanwhile."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any
from unittest.mock import patch

import msgspec

from everlog.actors.agent.activation import ActivationFactory
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.commands import Command, SessionCapabilities, StreamItem
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.hosting import shard_journal
from everlog.actors.hosting.agent_factory import HostLink, session_system
from everlog.actors.hosting.local_runtime import LocalRuntime
from everlog.actors.hosting.shard import Shard
from everlog.actors.sharding.shard_mover import ShardMover, misplaced
from everlog.events import EverlogError, ModelError, PartitionBusy
from everlog.store import MemoryStore
from everlog.testing import CountingIds
from tests.support.agents.journal_world import in_place
from tests.support.agents.virtual_time_runtime import Home
from tests.support.cluster import sim_checks
from tests.support.cluster.sim_shard import AGENTS, Visitor
from tests.support.virtual_time import WallClock

SETTLED_S = 1000


class ShardsHome(Home):
    """One process with a shard for each partition that is used."""

    def __init__(self, store: Any, idle_s: float) -> None:
        super().__init__(store, idle_s=idle_s)
        self.shards: dict[str, Shard] = {}
        self._idle_s = idle_s
        self.runtime = LocalRuntime(
            self._system_of, ports=self.ports, partition_of=store.partition_of, shard_of=self._shard,
            mover=lambda send: ShardMover(store, send, self._in_place), blocks=self.blocks,
        )  # fmt: skip

    @property
    def _in_place(self) -> Any:
        return msgspec.structs.replace(self.ports, aside=in_place)

    def _shard(self, partition: str, link: HostLink) -> Shard:
        self.shards[partition] = Shard(
            partition, self.store, self._system_of, ports=self._in_place, link=link, idle_s=self._idle_s
        )
        return self.shards[partition]

    def _system_of(self, lent: SessionCapabilities, enter: ActivationFactory | None = None) -> LocalSystem:
        return session_system(self.store, lent, self.ask, ports=self.ports, enter=enter, blocks=self.blocks)


class World:
    """Shards in one process after the other; each process moves what is out of place."""

    real = False

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.clock, self.ids = WallClock(), CountingIds()
        self.store: Any = MemoryStore(self.chance.randint(1, 4), self.clock.now)
        self.idle_s = self.chance.choice([1, 30, 300])
        self.think_s = self.chance.choice([0, 0.1, 5])
        self.homes: list[ShardsHome] = []
        self.ended_at = 0
        self.resized = 0
        self.visitors = [Visitor(number, self) for number in range(self.chance.randint(1, 3))]  # type: ignore[arg-type]

    async def think(self) -> None:
        await asyncio.sleep(self.chance.random() * self.think_s)

    @property
    def home(self) -> ShardsHome:
        return self.homes[-1]

    async def begin(self) -> None:
        """Start the next process, which takes up the moves that were left."""
        home = ShardsHome(self.store, self.idle_s)
        home.ids = self.ids
        self.homes.append(home)
        await home.runtime.move_to_shards()

    async def perform(self, agent_id: str, command: Command, seen: int = 0) -> AsyncIterator[StreamItem]:
        """Perform a command in the running process."""
        async for heard in self.home.runtime.perform(agent_id, command, seen):
            yield heard

    def expect(self, error: EverlogError) -> None:
        """Check that callers may get this error: PartitionBusy only if an earlier process can still own the log."""
        assert len(self.homes) > 1 or not isinstance(error, PartitionBusy), error

    async def befall(self) -> None:
        """Change the number of shards, and kill processes, until the task is cancelled."""
        pace = self.chance.choice([1, 5, 30])
        while True:
            await asyncio.sleep(self.chance.random() * pace)
            shards = list(self.home.shards.values())
            match self.chance.choice(["resize", "resize", "move", "passivate", "kill", "fence"]):
                case "resize":
                    self.resized += self.store.set_shards(self.chance.randint(1, 4))
                    await self.home.runtime.move_to_shards()
                case "move":
                    with suppress(EverlogError):
                        await self.home.ref(self.chance.choice(AGENTS)).move("shared")
                case "passivate" if shards:
                    await self.chance.choice(shards).passivate(self.chance.choice(AGENTS))
                case "kill":
                    before = self.home
                    await before.leave()
                    await self.begin()
                case "fence" if shards:  # the previous process continues for a while
                    before = self.home
                    for shard in shards:
                        self.store.open_partition(shard.partition, "other", take_over=True).close()
                    await self.begin()
                    self.later.append(asyncio.create_task(self.leave(before, 30)))

    async def leave(self, home: ShardsHome, after_s: float) -> None:
        """End a process later."""
        await asyncio.sleep(after_s)
        await home.leave()

    async def live(self) -> None:
        self.later: list[asyncio.Task[None]] = []
        self.store.register_many(AGENTS, shared=True)
        await self.begin()
        befalls = asyncio.create_task(self.befall())
        await asyncio.gather(*(visitor.live(8, Settings()) for visitor in self.visitors))
        befalls.cancel()
        await asyncio.wait([befalls])
        await asyncio.sleep(100)  # the previous processes end
        await self.home.leave()
        await self.begin()
        for agent_id in AGENTS:
            with suppress(ModelError):
                await self.visitors[0].until(self.home.ref(agent_id).resume)
        await asyncio.sleep(SETTLED_S)
        self.out_of_place = misplaced(self.store)
        self.ended_at = self.clock.now()
        for home in self.homes:
            await home.leave()
        await asyncio.sleep(100)

    def check(self) -> None:
        """Check that nothing is lost or done twice, and that each agent is where it belongs in the end."""
        assert not self.out_of_place, f"not moved: {self.out_of_place}"
        for agent_id in AGENTS:
            sim_checks.check_log(self, agent_id)


def simulate(seed: int) -> World:
    """Simulate and check the world of a seed."""
    return sim_checks.lived(World(seed))


async def _ruthless(self: Shard, agent_id: str, **_: Any) -> bool:
    self._hosts.pop(agent_id, None)
    return True


def _nothing(*_: Any) -> None:
    """Replace `repeated_elsewhere`."""


BREAKS: dict[str, tuple[int, Callable[[], AbstractContextManager[Any]]]] = {
    "an agent at work stays": (8, lambda: patch.object(Shard, "passivate", _ruthless)),
    "what is sent again after a move is known": (
        6,
        lambda: patch.object(shard_journal, "repeated_elsewhere", _nothing),
    ),
}
"""By guard: a seed that detects its absence, and a patch that removes it."""
NEARBY = 30
"""Further seeds that are tried when a code change has altered the world of the recorded seed."""


def fails(seed: int, guard: str = "") -> bool:
    """Return True if the world of a seed fails, without a guard if one is given."""
    return bool(sim_checks.error_of(simulate, seed, BREAKS[guard][1]() if guard else nullcontext()))
