"""Run hosts as Ray actors: the common part, with the clients to the other actors, and the actor of one agent's `Host`.

Made by `RayHostProvider`; called by the supervisor and, directly, by the runtimes of other processes. Each dedicated
agent pays for everything that is imported here: `shared_actor` has what only shards need.

The constructor cannot fail, whatever its node sees of the store: work that can fail is done in `ready`, whose caller
gets the error. An actor holds no state outside the log, and is killed as soon as it has unloaded its agents.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

from everlog.actors.agent.activation import ActivationFactory
from everlog.actors.agent.commands import (
    Command,
    DeliverLetter,
    FireTimer,
    ResumeTurns,
    SessionCapabilities,
    StreamItem,
)
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.cluster import ray_api
from everlog.actors.cluster.archive_actor import archive_client_of
from everlog.actors.cluster.gateway_client import GatewayClient
from everlog.actors.cluster.outcome_codec import pack_outcomes
from everlog.actors.cluster.pickling import unpack
from everlog.actors.cluster.placement import TAKE_OVER_S, FenceRight, HostedPartition
from everlog.actors.cluster.shared_block_actor import ClusterBlockClient
from everlog.actors.cluster.structured_log import StructuredLogger
from everlog.actors.hosting.agent_factory import HostLink, session_system
from everlog.actors.hosting.cluster_status import HostStatus
from everlog.actors.hosting.command_batch import BatchCommand, BatchOutcome, outcomes
from everlog.actors.hosting.host import Host
from everlog.actors.hosting.process_memory import minimize_reserves, own_memory_bytes
from everlog.actors.hosting.timer_schedule import DueTimer
from everlog.actors.ports.ports import Ports
from everlog.actors.ports.real_clock import RealClock, monotonic_us
from everlog.events import ClusterError, EverlogError, Fenced, HostLost, Record
from everlog.events.times import MICROSECONDS
from everlog.store import FileStore, StoreIdentity, restrict_process, store_folder, store_identity

WireItem = StreamItem | EverlogError
"""Item of a host's stream. An error is a value, so that its type and fields survive the way between processes."""

LOOK_S = 1
"""Seconds between two updates of the metrics."""
USED_S = 60
"""Seconds after its last command for which a host is likely to be needed again soon."""
LEAVE_LOOK_S = 0.05
"""Seconds between two attempts to unload agents that are at work."""


class HostActor:
    """Common part of both kinds of host actors."""

    _store: FileStore

    def __init__(
        self, root: str, place: HostedPartition, idle_s: float, right: FenceRight, waits: bool = False
    ) -> None:
        """Create the host. `waits`: it carries out nothing before `take_over`."""
        restrict_process()
        minimize_reserves()
        self._root = root
        self._place = place
        self._idle_s = idle_s
        self._mark = right.mark
        self._begun = self._left = False
        self._wait_limit = asyncio.get_running_loop().call_later(TAKE_OVER_S, os._exit, 0) if waits else None
        """Timer that ends a process that was prepared; None if it is the host."""
        self._under_way = 0
        """Number of commands in progress."""
        self._used_at: int | None = None
        """Time at which the last command ended, microseconds of the monotonic clock; None if there was none."""
        clock = RealClock()
        self._note = StructuredLogger(str(place), ray_api.own_node(), clock=clock, environment=os.environ)
        self._ports = Ports(clock=clock, note=self._note)
        self._asker = GatewayClient(root)
        self._archive = archive_client_of(root, self._note)
        self._link = HostLink(
            may_fence=right.covers, notify_timers=self._notify_timers, on_idle=self._idle, on_rest=self._archive.rest,
            on_fenced=self._fenced, send_letters=self._send_letters,
        )  # fmt: skip
        self._blocks = ClusterBlockClient(root)
        self._capabilities: tuple[SessionCapabilities, SessionCapabilities] | None = None
        """Newest capabilities of a command, packed and unpacked."""
        self._with_capabilities: set[str] = set()
        """Agents whose callers sent capabilities to this process: those that the supervisor remembers are older."""
        self._changed_timers: dict[str, list[DueTimer]] = {}
        """Timers by agent that the supervisor is told in the next call."""

    def __repr__(self) -> str:
        return f"host of {self._place}"

    async def ready(self) -> int:
        """Open the store, and return the process id; 0 if the agents were unloaded for good, or if this process only
        waits for `take_over`. Raises StoreError.
        """
        if not self._begun:
            self._store = FileStore(store_folder(self._root), self._ports.clock.now, mark=self._mark)
            self._begin()
            self._begun = True
        return 0 if self._left or self._wait_limit is not None else os.getpid()

    async def take_over(self) -> int:
        """Be the host of the partition from now on, and return the process id. The host before must have ended."""
        if self._wait_limit is not None:
            self._wait_limit.cancel()
            self._wait_limit = None
        return await self.ready()

    async def is_used(self) -> bool:
        """Return True if a command is in progress, or ended less than USED_S seconds ago."""
        since = self._used_at
        return self._under_way > 0 or (since is not None and monotonic_us() - since < USED_S * MICROSECONDS)

    def _begin(self) -> None:
        """Create the host or shard that runs agents of the store."""
        raise NotImplementedError

    async def unload(self) -> bool:
        """Unload all agents for good, unless some are at work. Return True if they were unloaded."""
        self._left = self._left or await self._unload_all()
        return self._left

    async def leave(self, grace_s: float) -> bool:
        """Refuse new commands, give running turns `grace_s` seconds to end, and unload all agents for good. Return True
        if some were at work.
        """
        self._left = True
        loop = asyncio.get_running_loop()
        end, was_busy = loop.time() + grace_s, False
        while not await self._unload_all():
            was_busy = True
            if loop.time() >= end:
                await self._end()
                break
            await asyncio.sleep(LEAVE_LOOK_S)
        return was_busy

    async def close(self) -> None:
        """Unload all agents for good, now."""
        self._left = True
        await self._end()

    async def _unload_all(self) -> bool:
        """Unload all agents. Return False if some are at work."""
        raise NotImplementedError

    async def _end(self) -> None:
        """Unload all agents, now."""
        raise NotImplementedError

    async def _idle(self) -> None:
        if await self.unload():
            supervisor = ray_api.find_actor(self._root, "supervisor")
            if supervisor is not None:  # it ends this process, which is not needed any more
                supervisor.left.remote(self._place, ray_api.own_key())

    async def death(self) -> None:
        """Wait for ever. The call fails when this process ends, which is how its caller learns of the death."""
        await asyncio.Event().wait()

    async def modules(self) -> list[str]:
        """Return the names of the modules that this process has imported."""
        return sorted(sys.modules)

    async def node(self) -> str:
        """Return the id of the node that this process runs on."""
        return ray_api.own_node_id()

    async def sight(self) -> StoreIdentity:
        """Return the store as this process sees it."""
        return await asyncio.to_thread(store_identity, store_folder(self._root))

    async def perform(self, agent_id: str, command: Command, seen: int = 0) -> AsyncIterator[WireItem]:
        """Have an agent carry out a command, and yield what follows; an error is yielded as a value."""
        try:
            async for collected in self._perform(agent_id, command, seen):
                yield collected
        except EverlogError as error:
            yield error

    async def perform_many(self, orders: Sequence[BatchCommand]) -> AsyncIterator[bytes]:
        """Carry out many commands. Yield their outcomes in batches as they complete, packed by `pack_outcomes`."""
        async for found in self._outcomes(orders):
            yield pack_outcomes(found)

    def _outcomes(self, orders: Sequence[BatchCommand]) -> AsyncIterator[Sequence[BatchOutcome]]:
        return outcomes(self._perform_and_collect, orders)

    async def _perform(self, agent_id: str, command: Command, seen: int = 0) -> AsyncIterator[StreamItem]:
        with self._open():
            async for collected in self._performed(agent_id, self._unpacked(agent_id, command), seen):
                yield collected

    async def _perform_and_collect(self, agent_id: str, command: Command, collected: list[Record]) -> Any:
        with self._open():
            return await self._collect_for(agent_id, self._unpacked(agent_id, command), collected)

    @contextmanager
    def _open(self) -> Iterator[None]:
        """Hold the block to a host that has its agents. Raises HostLost if they were unloaded for good, if this process
        only waits for `take_over`, or if another process owns the log.
        """
        if self._left:
            raise HostLost(f"the host of {self._place} has unloaded its agents")
        if self._wait_limit is not None:
            raise HostLost(f"this process has not taken over {self._place} yet")
        self._under_way += 1
        try:
            yield
        except Fenced as error:
            self._fenced()
            raise HostLost(f"another process owns the log of {self._place} now, and this one stops") from error
        finally:
            self._under_way -= 1
            self._used_at = monotonic_us()

    def _fenced(self) -> None:
        """End this process soon, because another process owns the log. Callers get their errors before."""
        if not self._left:
            asyncio.get_running_loop().call_later(LOOK_S, os._exit, 1)
        self._left = True

    def _performed(self, agent_id: str, command: Command, seen: int) -> AsyncIterator[StreamItem]:
        raise NotImplementedError

    async def _collect_for(self, agent_id: str, command: Command, collected: list[Record]) -> Any:
        raise NotImplementedError

    def _unpacked(self, agent_id: str, command: Command) -> Command:
        """Return the command with its capabilities unpacked. Raises BadInput if they cannot be loaded here."""
        if command.capabilities is None:
            return command
        if not isinstance(command, (ResumeTurns, FireTimer)):
            self._with_capabilities.add(agent_id)
        # Recovery and timers carry what the supervisor remembers, which is older than what a caller sent here directly.
        elif agent_id in self._with_capabilities:
            return msgspec.structs.replace(command, capabilities=None)
        if self._capabilities is None or self._capabilities[0] != command.capabilities:
            self._capabilities = command.capabilities, unpack(command.capabilities)
        return msgspec.structs.replace(command, capabilities=self._capabilities[1])

    def _notify_timers(self, agent_id: str, timers: Sequence[DueTimer]) -> None:
        """Report the timers of an agent to the supervisor: one call for all agents of one pass of the event loop."""
        if not self._changed_timers:
            asyncio.get_running_loop().call_soon(self._send_timers)
        self._changed_timers[agent_id] = list(timers)

    def _send_timers(self) -> None:
        changed, self._changed_timers = self._changed_timers, {}
        supervisor = ray_api.find_actor(self._root, "supervisor")
        if supervisor is not None:
            supervisor.know_many.remote(changed)

    async def _send_letters(self, letters: Sequence[tuple[str, DeliverLetter]]) -> Sequence[EverlogError | None]:
        """Have the supervisor deliver messages to other agents of the cluster: it knows where they are."""
        supervisor = ray_api.find_actor(self._root, "supervisor")
        if supervisor is not None:
            with suppress(ray_api.RayError):
                found: Sequence[EverlogError | None] = await supervisor.send_letters.remote(letters)
                return found
        return [ClusterError("The cluster's supervisor is gone. The message stays in the log.")] * len(letters)

    def _system(self, capabilities: SessionCapabilities, enter: ActivationFactory | None = None) -> LocalSystem:
        return session_system(
            self._store, capabilities, self._asker.ask, ports=self._ports, enter=enter, archive=self._archive,
            blocks=self._blocks,
        )  # fmt: skip


class DedicatedActor(HostActor):
    """Ray actor of one agent."""

    def _begin(self) -> None:
        self._host = Host(
            self._place.agent_id, self._system, idle_s=self._idle_s, ports=self._ports, link=self._link
        )  # fmt: skip

    def _performed(self, agent_id: str, command: Command, seen: int) -> AsyncIterator[StreamItem]:
        self._raise_if_moved(agent_id)
        return self._host.perform(command, seen)

    async def _collect_for(self, agent_id: str, command: Command, collected: list[Record]) -> Any:
        self._raise_if_moved(agent_id)
        return await self._host.perform_and_collect(command, collected)

    def _raise_if_moved(self, agent_id: str) -> None:
        if self._has_moved():
            raise HostLost(f"{agent_id!r} has moved to another partition")

    def _has_moved(self) -> bool:
        return not self._host.active and self._store.partition_of(self._host.agent_id) != self._place.name

    async def status(self) -> HostStatus:
        """Return the figures of this host."""
        moved = self._has_moved()  # the agent then counts for its new host
        return HostStatus(
            place=self._host.agent_id, placement="dedicated", node=ray_api.own_node(), pid=os.getpid(),
            active=int(self._host.active), passive=int(not self._host.active and not moved), moved=moved,
            turns=int(self._host.busy), memory_bytes=own_memory_bytes(),
        )  # fmt: skip

    async def _unload_all(self) -> bool:
        return await self._host.passivate()

    async def _end(self) -> None:
        await self._host.close()
