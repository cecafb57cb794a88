"""Run agents in this process: a host for each agent in use, a shard for those that share a log, timers, one gateway.

Used by `open_system` for the runtime `local`. The runtime belongs to one event loop, and one agent has at most one host
here; after `close` no command may open an agent again.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from everlog.actors.agent.commands import Command, FireTimer, SessionCapabilities, StreamItem
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.hosting.agent_factory import GatewayCall, HostLink, session_system
from everlog.actors.hosting.command_batch import BatchCommand, BatchOutcome, errors_of, outcomes
from everlog.actors.hosting.host import Host
from everlog.actors.hosting.shard import Shard
from everlog.actors.hosting.timer_schedule import DeliveryCallback, HeartbeatBatch, TimerSchedule
from everlog.actors.memory.shared_block_writer import SharedBlockWriter
from everlog.actors.ports.agent_constants import IDLE_S
from everlog.actors.ports.effects import ArchiveClient
from everlog.actors.ports.ports import Ports
from everlog.actors.sharding.shard_mover import CommandsSender, ShardMover, ShardMoves
from everlog.events import EverlogError, HostLost, Record, UnknownAgent
from everlog.store import FileStore, is_shared


class LocalRuntime:
    """Runtime whose hosts run on the event loop of the caller."""

    def __init__(
        self,
        system_of: Callable[[SessionCapabilities], LocalSystem],
        *,
        ports: Ports,
        idle_s: float = IDLE_S,
        timers: bool = True,
        partition_of: Callable[[str], str] | None = None,
        shard_of: Callable[[str, HostLink], Shard] | None = None,
        mover: Callable[[CommandsSender], ShardMover] | None = None,
        blocks: SharedBlockWriter,
    ) -> None:
        """Create the runtime. `timers`: fire the timers of agents that were opened here.

        `partition_of` returns the partition of an agent, `shard_of` makes the host of a shared partition, and `mover`
        what moves agents between these; None: every agent has a log of its own.
        """
        self.blocks = blocks
        """Client of the store's shared blocks, which are edited in this process."""
        self._timers = timers
        self._partition_of = partition_of
        self._shard_of = shard_of
        self._shards: dict[str, Shard] = {}
        self._system_of = system_of
        self._ports = ports
        self._idle_s = idle_s
        self._hosts: dict[str, Host] = {}
        self._schedule = TimerSchedule(self._fire, clock=ports.clock, sleep=ports.sleep)
        self._link = HostLink(
            notify_timers=self._schedule.know, send_letters=partial(errors_of, self.perform_many)
        )  # fmt: skip
        self._timing: asyncio.Task[None] | None = None
        self._mover = None if mover is None else mover(partial(errors_of, self.perform_many))
        self._closed = False

    async def perform(self, agent_id: str, command: Command, seen: int = 0) -> AsyncIterator[StreamItem]:
        """Carry out a command, and yield what follows; see `Host.perform`. Raises HostLost after `close`."""
        shard = self._ready(agent_id)
        answer = self.host(agent_id).perform(command, seen) if shard is None else shard.perform(agent_id, command, seen)
        async for collected in answer:
            yield collected

    async def _perform_and_collect(self, agent_id: str, command: Command, collected: list[Record]) -> Any:
        shard = self._ready(agent_id)
        if shard is None:
            return await self.host(agent_id).perform_and_collect(command, collected)
        return await shard.perform_and_collect(agent_id, command, collected)

    def _ready(self, agent_id: str) -> Shard | None:
        """Return the shard of an agent; None if the agent has a log of its own. Raises HostLost after `close`."""
        if self._closed:
            raise HostLost(f"The system is closed, and {agent_id!r} with it. Open it again.")
        self._keep_time()
        return self.shard(agent_id)

    def check_capabilities(self, capabilities: SessionCapabilities | None) -> None:
        """Accept all capabilities: any function can be used in this process."""

    def perform_many(self, orders: Sequence[BatchCommand]) -> AsyncIterator[Sequence[BatchOutcome]]:
        """Carry out many commands at once; see `Runtime.perform_many`."""
        return outcomes(self._perform_and_collect, orders)

    @property
    def next_timer_at(self) -> int | None:
        """Time of the next heartbeat to send, microseconds UTC; None if there is none, or if none is sent here."""
        return self._schedule.next_at if self._timers else None

    @property
    def firing(self) -> int:
        """Number of timed heartbeats in progress."""
        return self._schedule.firing

    def _keep_time(self) -> None:
        if self._timing is None and self._timers:
            self._timing = asyncio.get_running_loop().create_task(self._schedule.run())

    def shard(self, agent_id: str) -> Shard | None:
        """Return the shard of an agent; None if the agent has a log of its own."""
        if self._partition_of is None or self._shard_of is None:
            return None
        try:
            partition = self._partition_of(agent_id)
        except UnknownAgent:  # the agent's own host raises it again, with names that are near
            return None
        if not is_shared(partition):
            return None
        if partition not in self._shards:
            self._shards[partition] = self._shard_of(partition, self._link)
        return self._shards[partition]

    def host(self, agent_id: str) -> Host:
        """Return the host of an agent, and make it if there is none."""
        if agent_id not in self._hosts:
            self._hosts[agent_id] = Host(
                agent_id,
                self._system_of,
                idle_s=self._idle_s,
                ports=self._ports,
                link=self._link,
            )
        return self._hosts[agent_id]

    async def move_to_shards(self, *, begin: bool = True) -> ShardMoves:
        """Begin to move the agents that are out of place; see `ShardingRuntime.move_to_shards`."""
        if begin and self._mover is not None and not self._closed:
            self._mover.begin()
        return ShardMoves() if self._mover is None else self._mover.status

    async def unload(self, agent_id: str) -> bool:
        """Unload an agent, so that another process can open it. Return False if the agent is at work."""
        shard = self.shard(agent_id)
        if shard is not None:
            return await shard.unload()
        host = self._hosts.get(agent_id)
        return host is None or await host.passivate()

    async def close(self) -> None:
        """Unload all agents. Running turns are interrupted, and finished when their agents are opened next."""
        # First refuse commands and stop the timers: either would open an agent again behind the loop below.
        self._closed = True
        if self._timing is not None:
            self._timing.cancel()
            await asyncio.wait([self._timing])
        if self._mover is not None:
            await self._mover.stop()
        for host in self._hosts.values():
            await host.close()
        for shard in self._shards.values():
            await shard.close()
        await self.blocks.close()

    async def _fire(self, beats: HeartbeatBatch, over: DeliveryCallback) -> None:
        await asyncio.gather(*[self._fire_one(agent_id, command, over) for agent_id, command in beats])

    async def _fire_one(self, agent_id: str, command: FireTimer, over: DeliveryCallback) -> None:
        try:
            async for _ in self.perform(agent_id, command):
                pass
        except UnknownAgent:
            self._schedule.know(agent_id, ())
        except EverlogError as error:  # the timer is still in the log, and is tried again
            self._ports.note(f"{agent_id!r}: {error}")
        finally:
            over(agent_id)


def local_runtime(
    store: FileStore,
    ask: GatewayCall,
    archive: ArchiveClient | None,
    *,
    ports: Ports,
    idle_s: float,
    timers: bool,
) -> LocalRuntime:
    """Return the runtime that runs the agents of a store in this process. `ask`: a gateway's. `archive`: None: searches
    compare words only.
    """
    blocks = SharedBlockWriter(store, ports)
    idle_capabilities: dict[str, SessionCapabilities] = {}
    system_of = partial(session_system, store, ask=ask, ports=ports, archive=archive, blocks=blocks)

    def rest() -> None:
        if archive is not None:
            archive.rest()

    def shard_of(partition: str, link: HostLink) -> Shard:
        return Shard(
            partition, store, lambda capabilities, enter: system_of(capabilities, enter=enter), ports=ports,
            idle_s=idle_s, link=msgspec.structs.replace(link, on_rest=rest), capabilities=idle_capabilities,
        )  # fmt: skip

    def mover(send: CommandsSender) -> ShardMover:
        return ShardMover(store, send, ports)

    return LocalRuntime(
        system_of, ports=ports, idle_s=idle_s, timers=timers,
        partition_of=store.partition_of, shard_of=shard_of, mover=mover, blocks=blocks,
    )  # fmt: skip
