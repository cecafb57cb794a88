"""Run the agents of a shard: one log and one engine for all, and a `Host` for each agent that is in memory.

Used by `LocalRuntime` and by the Ray actor of a shard. An agent that is idle, or that must make room for others, is
unloaded: no state of it stays in memory, and no file is open for it. The log of the shard is opened when the first
agent needs it.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice, takewhile
from typing import Any

from everlog.actors.agent.activation import ActivationFactory
from everlog.actors.agent.commands import Command, CommandResult, MoveAgent, SessionCapabilities, StreamItem
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.hosting.agent_factory import NO_LINK, HostLink
from everlog.actors.hosting.cluster_status import HostStatus
from everlog.actors.hosting.command_batch import BatchCommand, BatchOutcome, outcomes
from everlog.actors.hosting.host import Host
from everlog.actors.hosting.metrics import ProcessMetrics, TickCounts
from everlog.actors.hosting.process_memory import give_back, own_memory_bytes, release_reserves
from everlog.actors.hosting.shard_activation import ShardActivation
from everlog.actors.hosting.shard_journal import ShardJournal
from everlog.actors.hosting.turn_recovery import TurnRecovery
from everlog.actors.ports.agent_constants import (
    BUSY_S,
    IDLE_S,
    SHARD_AGENTS_MAX,
    SHARD_SEAL_BYTES,
    SHARD_TEND_S,
)
from everlog.actors.ports.log_warnings import note_opening
from everlog.actors.ports.ports import Ports
from everlog.actors.ports.real_clock import process_us
from everlog.actors.postbox.admission import Admission
from everlog.actors.sharding.departures import Departures
from everlog.events import Busy, EverlogError, Fenced, HostLost, Moved, PartitionBusy, Record
from everlog.events.times import MICROSECONDS
from everlog.projections import DERIVER
from everlog.store import SEAL_BYTES_MIN, FileLog, FileStore, LogReader, partition_of, seal_if_due, shard_of

LOOKS = 16
"""Number of least recently used agents that are tried when another agent needs room."""

RELEASE_S = 60
"""Minimum seconds between two moments in which a shard at work returns free memory to the system: for each MiB that is
returned, its agents wait up to half a millisecond.
"""

NOTHING = SessionCapabilities()
"""Capabilities of an agent that was given none. One object for all, so that these agents share a system."""


class Shard:
    """Host of the agents of one partition. `perform` may be called from any number of tasks of one event loop."""

    def __init__(
        self,
        partition: str,
        store: FileStore,
        system_of: Callable[[SessionCapabilities, ActivationFactory], LocalSystem],
        *,
        ports: Ports,
        idle_s: float = IDLE_S,
        agents_max: int = SHARD_AGENTS_MAX,
        link: HostLink = NO_LINK,
        meters: ProcessMetrics | None = None,
        capabilities: dict[str, SessionCapabilities] | None = None,
    ) -> None:
        """Create the shard. `agents_max`: agents in memory at once. An agent without a command for `idle_s` seconds is
        unloaded; when no agent is left, `link.on_idle` is called. `capabilities`: those of unloaded agents, for shards
        of one process, between which agents move.
        """
        self.partition = partition
        self.fenced = False
        """True if another process owns the shard: this one refuses all commands."""
        self._store = store
        self._make_system = system_of
        self._ports = ports
        self._clock = ports.clock
        self._idle_us = round(idle_s * MICROSECONDS)
        self._agents_max = agents_max
        self._aside = ports.aside
        self._link, self._may_fence = link, link.may_fence
        self._host_link = HostLink(notify_timers=link.notify_timers, send_letters=link.send_letters)
        self._note = ports.note
        self._meters = meters or ProcessMetrics(None)
        self._hosts: dict[str, Host] = {}
        """Hosts of the agents in memory, least recently used first."""
        self._used_at: dict[str, int] = {}
        """Time of the last command of each agent in memory, microseconds UTC."""
        self._idle_capabilities: dict[str, SessionCapabilities] = {} if capabilities is None else capabilities
        """Capabilities of unloaded agents: a timer may wake the agent, and no caller is there to send them again."""
        self._systems: tuple[SessionCapabilities, LocalSystem] | None = None
        self._ticks: ShardJournal | None = None
        self._opening = asyncio.Lock()
        self._closing: asyncio.Task[None] | None = None
        """Task that closes the log that was lost last."""
        self._making_room: asyncio.Task[None] | None = None
        self._recovery = TurnRecovery(self.perform, lambda agent: store.partition_of(agent) == partition, ports)
        self._maintenance: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._counts = TickCounts()
        self._admission = Admission(partition, ports.clock)
        self._departures = Departures(ports.sleep)

    async def perform(self, agent_id: str, command: Command, seen: int = 0) -> AsyncIterator[StreamItem]:
        """Have an agent carry out a command; see `Host.perform`. Raises Busy if a queue is full."""
        async with self._entered(agent_id, command):
            if isinstance(command, MoveAgent):
                await self._move(agent_id, command)
                yield CommandResult()
                return
            async for collected in self._host(agent_id).perform(command, seen):
                yield collected

    async def perform_and_collect(self, agent_id: str, command: Command, collected: list[Record]) -> Any:
        """Have an agent carry out a command and collect its records; see `Host.perform_and_collect`."""
        async with self._entered(agent_id, command):
            if isinstance(command, MoveAgent):
                return await self._move(agent_id, command)
            return await self._host(agent_id).perform_and_collect(command, collected)

    @asynccontextmanager
    async def _entered(self, agent_id: str, command: Command) -> AsyncIterator[None]:
        async with self._admission.entered(command):
            try:
                if not isinstance(command, MoveAgent):
                    host = self._hosts.get(agent_id)
                    await self._departures.hold(agent_id, command, works=host is not None and host.busy)
                yield
            finally:
                # The last command of an agent may have ended: try to unload the agent if the shard is over its limit.
                if len(self._hosts) > self._agents_max and agent_id in self._hosts:
                    self._spawn(self._unload_if_over_limit(agent_id))

    def perform_many(self, orders: Sequence[BatchCommand]) -> AsyncIterator[Sequence[BatchOutcome]]:
        """Have many agents carry out commands at once. Yield their outcomes in batches as they complete."""
        return outcomes(self.perform_and_collect, orders)

    async def recover(self, agents: Sequence[str], capabilities: Mapping[str, SessionCapabilities]) -> None:
        """Finish the unfinished turns of these agents, in order. `capabilities`: what callers gave them before."""
        await self._recovery.all_of(agents, capabilities)

    def status(self, node: str) -> HostStatus:
        """Return the figures of this shard. `node`: name of its machine."""
        ticks, counts = self._ticks, self._counts
        known = len(ticks.log.agents()) if ticks is not None else 0
        since = next(iter(self._admission.under_way.values()), None)
        return HostStatus(
            place=self.partition,
            placement="shared",
            node=node,
            pid=os.getpid(),
            active=len(self._hosts),
            passive=max(known - len(self._hosts), 0),
            turns=sum(host.busy for host in self._hosts.values()),
            waiting=len(self._admission.under_way),
            lag_us=0 if since is None else max(self._clock.now() - since, 0),
            **counts.figures(),
            cpu_us=process_us(),
            refused=self._admission.errors["Busy"],
            errors=dict(self._admission.errors),
            memory_bytes=own_memory_bytes(),
            unsealed_bytes=ticks.log.unsealed_bytes if ticks is not None else 0,
        )

    async def passivate(self, agent_id: str, *, watched: bool = False) -> bool:
        """Unload an agent; see `Host.passivate`. Return False if the agent is at work."""
        host = self._hosts.get(agent_id)
        if host is None:
            return True
        if not await host.passivate(watched=watched):
            return False
        self._forget(agent_id, host)
        return True

    def _forget(self, agent_id: str, host: Host) -> None:
        if self._hosts.get(agent_id) is host:
            del self._hosts[agent_id]
            del self._used_at[agent_id]
            if host.capabilities is not NOTHING:
                self._idle_capabilities[agent_id] = host.capabilities

    async def unload(self) -> bool:
        """Unload all agents and close the log, for another process. Return False if an agent is at work."""
        for agent_id in list(self._hosts):
            if not await self.passivate(agent_id):
                return False
        return await self._close_log()

    async def close(self) -> None:
        """Unload all agents and close the log. Running turns are interrupted; the log's next owner finishes them."""
        hosts = dict(self._hosts)
        await asyncio.gather(*(host.close() for host in hosts.values()))
        for agent_id, host in hosts.items():
            self._forget(agent_id, host)
        await self._close_log(with_hosts=True)

    async def _close_log(self, *, with_hosts: bool = False) -> bool:
        """Close the log. Return False if commands for agents have arrived meanwhile; the log stays open for them.

        `with_hosts`: close the log all the same; these commands open it again.
        """
        # Under the lock of `ticks`: the log is not opened while it is being closed.
        async with self._opening:
            if self._hosts and not with_hosts:
                return False
            # Sealing and recovery must stop before the log is closed: recovery would open it again.
            tending, self._maintenance = self._maintenance, None
            if tending is not None and tending is not asyncio.current_task():
                tending.cancel()
                await asyncio.wait([tending])
            await self._recovery.stop()
            ticks, self._ticks = self._ticks, None
            if ticks is not None:
                await self.seal(ticks)
                await ticks.close()
        if self._tasks:
            await asyncio.wait(self._tasks)
        return not self._hosts

    def enter(self, agent_id: str, command: str, take_over: bool) -> ShardActivation:
        """Return the activation of an agent in this shard's journal. `command` and `take_over` are ignored."""
        return ShardActivation(agent_id, self.ticks, self.arrived)

    def arrived(self, agent_id: str, log: FileLog) -> LogReader | None:
        """Finish the move of an agent to this shard. Return a reader over all partitions of the agent; None if `log`
        has all.

        Raises HostLost if the agent is in another partition by now, StoreError.
        """
        try:
            self._store.finish_move(log, agent_id)
        except Moved as moved:
            raise HostLost(str(moved)) from moved
        reader = self._store.reader(agent_id, log)
        return None if reader is log else reader

    async def _move(self, agent_id: str, command: MoveAgent) -> None:
        """Move an agent to another partition. Raises Busy if the agent is at work for longer than it may be."""
        unload = partial(self.passivate, agent_id, watched=True)
        async with self._departures.leaving(agent_id, unload, command.patience_s):
            is_open = self._ticks is not None
            log = (await self.ticks()).log
            if not is_open:  # no agent was activated whose caller would be told
                note_opening(self._note, agent_id, log)
            await self._aside(self._begin_move, log, agent_id, command)

    def _begin_move(self, log: FileLog, agent_id: str, command: MoveAgent) -> None:
        own = shard_of(agent_id, self._store.shards) if command.shared else partition_of(agent_id)
        try:
            self._store.begin_move(log, agent_id, command.to or own)
        except Moved as moved:  # the caller's answer of where the agent is was outdated
            raise HostLost(str(moved)) from moved

    async def ticks(self) -> ShardJournal:
        """Return the shard's journal, and open its log if it is closed. Raises PartitionBusy, StoreError, HostLost."""
        async with self._opening:
            if self.fenced:
                raise HostLost(f"another process owns {self.partition} now")
            # A log that was lost holds its partition until it is closed, also against this process.
            if self._closing is not None:
                await asyncio.wait([self._closing])
                self._closing = None
            ticks = self._ticks
            if ticks is None:
                self._recovery.open = True
                if self._maintenance is None:
                    self._maintenance = asyncio.get_running_loop().create_task(self._maintain())
                ticks = self._ticks = ShardJournal(
                    await self._open(), aside=self._aside, on_lost=self._lost, counts=self._counts, meters=self._meters
                )
                # A killed owner left frames unsealed, and its agents come soon, all at once: seal first.
                await self.seal(ticks)
            return ticks

    async def _open(self) -> Any:
        wanted = partial(self._store.open_partition, self.partition, f"everlog host of {self.partition}")
        try:
            return await self._aside(wanted)
        except PartitionBusy as busy:
            # Take the log over only from an earlier host that was declared dead; see `Host._open`.
            if not self._may_fence(busy):
                raise
            return await self._aside(partial(wanted, take_over=True))

    def _lost(self, error: EverlogError) -> None:
        """Discard a log that can no longer be written, and mark the agents in memory as stale."""
        ticks, self._ticks = self._ticks, None
        interrupted = [agent_id for agent_id, host in self._hosts.items() if host.busy]
        for host in self._hosts.values():
            if host.active and ticks is not None:  # an agent that is being activated waits for the next log, or fails
                host.mark_stale()
        # After a fence the agents run elsewhere. After any other failure the log is opened again here.
        if isinstance(error, Fenced):
            self.fenced = True
            self._recovery.open = False
            self._note(f"another process owns {self.partition} now; this one stops: {error}")
            if self._link.on_fenced is not None:
                self._link.on_fenced()
        elif ticks is not None:
            self._note(f"{self.partition} is opened again: {error}")
            self._recovery.later(interrupted)
        if ticks is not None:
            self._closing = self._spawn(ticks.close())

    def _host(self, agent_id: str) -> Host:
        """Return the host of an agent, now the most recently used one. Raises Busy, HostLost if the shard is fenced."""
        host = self._hosts.pop(agent_id, None)
        if host is None:
            host = self._new_host(agent_id)
        self._hosts[agent_id] = host
        self._used_at[agent_id] = self._clock.now()
        return host

    def _new_host(self, agent_id: str) -> Host:
        if self.fenced:
            raise HostLost(f"another process owns {self.partition} now")
        # Agents at work cannot be unloaded at once, so up to twice the limit is accepted while room is made.
        if len(self._hosts) >= self._agents_max and (self._making_room is None or self._making_room.done()):
            self._making_room = self._spawn(self._make_room())
        if len(self._hosts) >= 2 * self._agents_max:
            raise Busy(
                f"{self.partition} has {len(self._hosts)} agents at work, twice its limit, and accepts no more now. "
                f"Nothing of this was kept. Try again in {BUSY_S} seconds.",
                retry_after_s=BUSY_S,
            )
        return Host(
            agent_id, self._system, capabilities=self._idle_capabilities.pop(agent_id, NOTHING), idle_s=None,
            ports=self._ports, link=self._host_link,
        )  # fmt: skip

    def _system(self, capabilities: SessionCapabilities) -> LocalSystem:
        """Return the system for these capabilities; the same one as long as they are the same object."""
        if self._systems is None or self._systems[0] is not capabilities:
            self._systems = capabilities, self._make_system(capabilities, self.enter)
        return self._systems[1]

    async def _make_room(self) -> None:
        """Unload idle agents, least recently used first, until the limit is met; at most LOOKS are tried."""
        for agent_id in list(islice(self._hosts, LOOKS)):
            await self._unload_if_over_limit(agent_id)

    async def _unload_if_over_limit(self, agent_id: str) -> None:
        if len(self._hosts) > self._agents_max:
            await self.passivate(agent_id)

    async def _maintain(self) -> None:
        """Maintain the shard periodically: unload idle agents, seal the log, and return unused memory."""
        rested_at, released_at = 0, self._clock.now()
        while self._maintenance is asyncio.current_task():
            await self._ports.sleep(min(max(self._idle_us / 4 / MICROSECONDS, 1), SHARD_TEND_S))
            await asyncio.sleep(0)  # a test's `sleep` may return at once: let other tasks run
            for agent_id in self._idle():
                if not self._hosts[agent_id].idle_time.derive_rested():  # else it is unloaded the next time
                    await self.passivate(agent_id)
            if not self._hosts and not self._recovery.waiting and self._link.on_idle is not None:
                await self._link.on_idle()
            # Once after each period of work, and only at rest: compacting delays the agents.
            rests = not self._admission.under_way and self._admission.arrived != rested_at
            if rests and self._ticks is not None:  # before the log is sealed, which takes seconds and memory of its own
                rested_at = self._admission.arrived
                self._ticks.projections.rest()
                self._link.on_rest()
            if self._ticks is not None:
                await self.seal(self._ticks, SHARD_SEAL_BYTES if self._admission.under_way else SEAL_BYTES_MIN)
            if rests and not self._admission.under_way:
                give_back()
                released_at = self._clock.now()
            elif self._admission.under_way and self._clock.now() - released_at >= RELEASE_S * MICROSECONDS:
                await self._aside(release_reserves)  # a shard that never rests would keep what was free at its peak
                released_at = self._clock.now()

    def _idle(self) -> list[str]:
        """Return the agents without a command for the idle time, longest idle first."""
        since = self._clock.now() - self._idle_us
        return list(takewhile(lambda agent_id: self._used_at[agent_id] <= since, self._hosts))

    async def seal(self, ticks: ShardJournal, bytes_min: int = SEAL_BYTES_MIN) -> None:
        """Seal frames if `bytes_min` have gathered. A failure is noted, except a fence, which loses the log."""
        try:
            unsealed = await self._aside(seal_if_due, ticks.log, DERIVER, bytes_min)
        except Fenced as error:
            ticks.lose(error)
            return
        if unsealed:
            self._note(f"{self.partition} could not be sealed; nothing is lost by it, and its agents run. {unsealed}")

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
