"""Simulated shards that follow a load which changes, from a seed: callers, processes that die, and moves on the way."""

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from unittest.mock import patch

from everlog.actors.hosting.cluster_status import HostStatus
from everlog.actors.hosting.command_batch import errors_of
from everlog.actors.scaling import scaling_plan, shard_scaler
from everlog.actors.scaling.shard_scaler import ShardScaler
from everlog.store import shard_name
from tests.support.cluster import sim_checks
from tests.support.cluster.sim_resize import World
from tests.support.cluster.sim_shard import AGENTS

TIMES = {"LOOK_S": 0.5, "GROW_S": 2, "SHRINK_S": 4, "HOT_S": 1, "COOL_S": 3}
"""Times of the plan in these worlds, which last for some minutes."""


class ScaledWorld(World):
    """Shards in one process after the other; the number follows the load that a chance draws again and again."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.setting = self.chance.choice(["1:4", "2:8", "3:6"])
        self.scaling = True
        self.scalers: list[ShardScaler] = []
        self._running: asyncio.Task[None] | None = None
        self.load: dict[str, tuple[float, str, float]] = {}
        """Processors that each shard uses, its busiest agent, and the share of that one."""
        self._cpu: dict[str, float] = {}
        self._measured_at = 0

    async def begin(self) -> None:
        """Start the next process, and the scaler of its shards; the one before dies with its process."""
        await self._end_scaler()
        await super().begin()
        if self.scaling:
            runtime = self.home.runtime
            assert runtime._mover is not None
            scaler = ShardScaler(
                self.setting, self.store, self.measure, partial(errors_of, runtime.perform_many), runtime._mover,
                self.arrived, ports=self.home._in_place,
            )  # fmt: skip
            self.scalers.append(scaler)
            self._running = asyncio.create_task(scaler.run())

    async def _end_scaler(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
            assert self._running.cancelled(), self._running

    async def arrived(self, agents: Sequence[str]) -> None:
        """Do nothing: callers of these worlds resume their turns themselves."""

    async def measure(self, number: int) -> Sequence[HostStatus | None]:
        """Return what the shards would report; now and then one is silent."""
        now = self.clock.now()
        for shard, (work, *_) in self.load.items():
            self._cpu[shard] = self._cpu.get(shard, 0) + work * (now - self._measured_at)
        self._measured_at = now
        if self.chance.random() < 0.05:
            return [None]
        return [
            HostStatus(
                place=shard, placement="shared", node="n", pid=1, cpu_us=round(self._cpu[shard]), busiest=agent,
                busiest_share=share,
            )
            for shard, (_, agent, share) in self.load.items()
            if shard in map(shard_name, range(number))
        ]  # fmt: skip

    async def change_load(self) -> None:
        """Draw another load again and again: some shards rest, some are busy, and some by one agent."""
        while True:
            busy = self.chance.choice([0.1, 0.5, 1.2])
            assigned = self.store.assigned()
            self.load = {}
            for shard in map(shard_name, range(self.store.shards)):
                here = [agent for agent in AGENTS if assigned[agent] == shard]
                hot = self.chance.choice(here) if here else ""
                self.load[shard] = self.chance.random() * busy, hot, self.chance.choice([0.1, 0.8])
            await asyncio.sleep(self.chance.choice([1, 5, 20]))

    async def befall(self) -> None:
        """Change the load beside what befalls other worlds, until the task is cancelled; the load is constant then."""
        loads = asyncio.create_task(self.change_load())
        try:
            await super().befall()
        finally:
            loads.cancel()
            self.scaling = False
            await self._end_scaler()

    @property
    def changes(self) -> tuple[int, int]:
        """Changes of the number, and moves, because of the load."""
        found = [scaler.status for scaler in self.scalers]
        return sum(s.resizes for s in found if s), sum(s.moves for s in found if s)


def simulate(seed: int) -> ScaledWorld:
    """Simulate and check the world of a seed."""
    with ExitStack() as stack:
        for name, value in TIMES.items():
            stack.enter_context(patch.object(scaling_plan, name, value))
            if hasattr(shard_scaler, name):
                stack.enter_context(patch.object(shard_scaler, name, value))
        return sim_checks.lived(ScaledWorld(seed))
