"""Run the agents of one shard as a Ray actor.

Made by `RayHostProvider`; see `host_actors` for the part that it shares with the actor of one agent.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any

from everlog.actors.agent.commands import Command, SessionCapabilities, StreamItem
from everlog.actors.cluster import ray_api
from everlog.actors.cluster.host_actors import LOOK_S, HostActor
from everlog.actors.cluster.pickling import unpack
from everlog.actors.hosting.cluster_status import HostStatus
from everlog.actors.hosting.metrics import ProcessMetrics
from everlog.actors.hosting.pending_work import pending_work
from everlog.actors.hosting.process_memory import collect_garbage_seldom
from everlog.actors.hosting.shard import Shard
from everlog.events import EverlogError, Record


class SharedActor(HostActor):
    """Ray actor of the agents of one shard."""

    _recoveries = 0
    """Number of recoveries in progress."""

    def _begin(self) -> None:
        collect_garbage_seldom()
        self._meters = ProcessMetrics(ray_api.MAKERS, placement="shared", node=ray_api.own_node())
        self._shard = Shard(
            self._place.name, self._store, self._system, ports=self._ports, idle_s=self._idle_s,
            link=self._link, meters=self._meters,
        )  # fmt: skip
        self._metering = asyncio.get_running_loop().create_task(self._meter())

    def _performed(self, agent_id: str, command: Command, seen: int) -> AsyncIterator[StreamItem]:
        return self._shard.perform(agent_id, command, seen)

    async def _collect_for(self, agent_id: str, command: Command, collected: list[Record]) -> Any:
        return await self._shard.perform_and_collect(agent_id, command, collected)

    async def recover(self, capabilities: Mapping[str, SessionCapabilities]) -> EverlogError | None:
        """Finish the turns that the shard's agents left unfinished, newest first. Return the error if that could not
        begin.
        """
        self._recoveries += 1
        try:
            return await self._recovered(capabilities)
        finally:
            self._recoveries -= 1

    async def _recovered(self, capabilities: Mapping[str, SessionCapabilities]) -> EverlogError | None:
        try:
            known = (await self._shard.ticks()).log.agents()
            agents = [name for name in known if self._store.partition_of(name) == self._place.name]
        except EverlogError as error:
            return error
        found = await asyncio.to_thread(lambda: list(pending_work(self._store, self._note, agents)))
        hottest = sorted((one for one in found if one.unfinished), key=lambda one: -one.at)
        await self._shard.recover([one.agent_id for one in hottest], {a: unpack(m) for a, m in capabilities.items()})
        return None

    async def seal(self) -> None:
        """Seal the shard's log while its agents are at work, so that little is left to do when they leave."""
        with suppress(EverlogError):  # the log cannot be opened: the next host notes it
            await self._shard.seal(await self._shard.ticks())

    async def status(self) -> HostStatus:
        """Return the figures of this host."""
        return self._shard.status(ray_api.own_node())

    async def _unload_all(self) -> bool:
        # No agent is in memory while the logs are read for a recovery. If this process ended then, the supervisor would
        # begin the recovery again in the next one, without end.
        return not self._recoveries and await self._shard.unload()

    async def _end(self) -> None:
        await self._shard.close()

    async def _meter(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            self._meters.host(self._shard.status(ray_api.own_node()))
