"""The host of many agents: a shard's log and engine, and a host for each of its agents that is in use.

An agent that nobody uses for a while, or that has to make room for others, is let go of: nothing of it stays in memory,
and no file is open for it. The shard's own log is opened when the first agent needs it.
"""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any

from everlog.actors.agent.activation import ActivationFactory
from everlog.actors.agent.commands import Command, CommandResult, MoveAgent, SessionCapabilities, StreamItem, WatchAgent
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.hosting.agent_factory import NO_LINK, HostLink
from everlog.actors.hosting.cluster_status import HostStatus
from everlog.actors.hosting.command_batch import BatchCommand, BatchOutcome, outcomes
from everlog.actors.hosting.host import Host
from everlog.actors.hosting.metrics import ProcessMetrics
from everlog.actors.hosting.process_memory import give_back, own_memory_bytes
from everlog.actors.hosting.shard_activation import ShardActivation
from everlog.actors.hosting.shard_journal import ShardJournal, TickCounts
from everlog.actors.hosting.turn_recovery import TurnRecovery
from everlog.actors.ports.agent_constants import (
    BUSY_S,
    IDLE_S,
    SHARD_AGENTS_MAX,
    SHARD_COMMANDS_MAX,
    SHARD_SEAL_BYTES,
    SHARD_TEND_S,
)
from everlog.actors.ports.ports import Ports
from everlog.events import Busy, EverlogError, Fenced, HostLost, Moved, PartitionBusy, Record
from everlog.events.times import MICROSECONDS
from everlog.projections import DERIVER
from everlog.store import SEAL_BYTES_MIN, FileLog, FileStore, LogReader, partition_of, seal_if_due, shard_of

LOOKS = 16
"""So many agents are looked at when another one needs room."""

NOTHING = SessionCapabilities()
"""What an agent is lent that was lent nothing: one and the same, so that those agents share a system."""


class Shard:
    """Runs the agents of one partition. `perform` from any number of tasks of one event loop."""

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
    ) -> None:
        """`agents_max`: agents in memory at once. One that nobody has used for `idle_s` seconds is let go of; when
        there are none left, `link.on_idle` is called.
        """
        self.partition = partition
        self.fenced = False
        """Another process owns the shard: nothing more can be had here."""
        self._store = store
        self._make_system = system_of
        self._ports = ports
        self._clock = ports.clock
        self._idle_us = round(idle_s * MICROSECONDS)
        self._agents_max = agents_max
        self._aside = ports.aside
        self._link, self._fence = link, link.fence
        self._note = ports.note
        self._meters = meters or ProcessMetrics(None)
        self._hosts: dict[str, Host] = {}
        """Least recently used first."""
        self._used_at: dict[str, int] = {}
        self._idle_capabilities: dict[str, SessionCapabilities] = {}
        """What agents that are let go of were lent: a timer may wake them, and nobody brings it again."""
        self._systems: tuple[SessionCapabilities, LocalSystem] | None = None
        self._ticks: ShardJournal | None = None
        self._opening = asyncio.Lock()
        self._closing: asyncio.Task[None] | None = None
        """Gives the log up that was lost last."""
        self._making_room: asyncio.Task[None] | None = None
        self._finishing = TurnRecovery(self.perform, ports)
        self._tending: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._counts = TickCounts()
        self._asked = self._heeded = 0
        """Commands that came, and those that somebody waits for."""
        self._under_way: dict[int, int] = {}
        """Commands that are being carried out, oldest first, and since when: microseconds UTC."""
        self._errors: Counter[str] = Counter()

    async def perform(self, agent_id: str, command: Command, seen: int = 0) -> AsyncIterator[StreamItem]:
        """Have an agent carry out a command; see `Host.perform`. Raises Busy where there is no room for it."""
        with self._counted(agent_id, command):
            if isinstance(command, MoveAgent):
                await self._move(agent_id, shared=command.shared)
                yield CommandResult()
                return
            async for collected in self._host(agent_id).perform(command, seen):
                yield collected

    async def perform_and_collect(self, agent_id: str, command: Command, collected: list[Record]) -> Any:
        """`perform` for who hears everything at the end; see `Host.perform_and_collect`."""
        with self._counted(agent_id, command):
            if isinstance(command, MoveAgent):
                return await self._move(agent_id, shared=command.shared)
            return await self._host(agent_id).perform_and_collect(command, collected)

    @contextmanager
    def _counted(self, agent_id: str, command: Command) -> Iterator[None]:
        """Count a command while somebody waits for it. Raises Busy where too many wait."""
        if self._heeded >= SHARD_COMMANDS_MAX:
            raise Busy(
                f"{self.partition} has {SHARD_COMMANDS_MAX} commands under way and takes no more now. Nothing of this "
                f"was kept. Try again in {BUSY_S} seconds.",
                retry_after_s=BUSY_S,
            )
        self._heeded += 1
        self._asked += 1
        number = self._asked
        if not isinstance(command, WatchAgent):
            self._under_way[number] = self._clock.now()
        try:
            yield
        except EverlogError as error:
            self._errors[type(error).__name__] += 1
            raise
        finally:
            self._heeded -= 1
            if len(self._hosts) > self._agents_max and agent_id in self._hosts:
                self._spawn(self._made_room(agent_id))
            self._under_way.pop(number, None)

    def perform_many(self, orders: Sequence[BatchCommand]) -> AsyncIterator[Sequence[BatchOutcome]]:
        """Have many agents carry out commands, all at once; their outcomes as they come, many together."""
        return outcomes(self.perform_and_collect, orders)

    async def recover(self, agents: Sequence[str], capabilities: Mapping[str, SessionCapabilities]) -> None:
        """Finish what these agents left unfinished, in their order, a few at once. `capabilities`: what they were
        lent.
        """
        await self._finishing.all_of(agents, capabilities)

    def status(self, node: str) -> HostStatus:
        """How it is doing; `node` is where."""
        ticks, counts = self._ticks, self._counts
        known = len(ticks.log.agents()) if ticks is not None else 0
        since = next(iter(self._under_way.values()), None)
        return HostStatus(
            place=self.partition,
            placement="shared",
            node=node,
            pid=os.getpid(),
            active=len(self._hosts),
            passive=max(known - len(self._hosts), 0),
            turns=sum(host.busy for host in self._hosts.values()),
            waiting=len(self._under_way),
            lag_us=0 if since is None else max(self._clock.now() - since, 0),
            messages=counts.inputs,
            model_calls=counts.model_calls,
            commits=counts.commits,
            ticks=counts.ticks,
            refused=self._errors["Busy"],
            errors=dict(self._errors),
            memory_bytes=own_memory_bytes(),
            unsealed_bytes=ticks.log.unsealed_bytes if ticks is not None else 0,
        )

    async def passivate(self, agent_id: str) -> bool:
        """Let go of an agent; False if it is at work."""
        host = self._hosts.get(agent_id)
        if host is None:
            return True
        if not await host.passivate():
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
        """Let go of every agent and of the log, so that another process can have it; False if one is at work."""
        for agent_id in list(self._hosts):
            if not await self.passivate(agent_id):
                return False
        return await self._give_up()

    async def close(self) -> None:
        """Let go of every agent and of the log. Turns that run are interrupted, and finished by whoever comes next."""
        hosts = dict(self._hosts)
        await asyncio.gather(*(host.close() for host in hosts.values()))
        for agent_id, host in hosts.items():
            self._forget(agent_id, host)
        await self._give_up(even_now=True)

    async def _give_up(self, *, even_now: bool = False) -> bool:
        """Let go of the log; False if somebody has come for an agent meanwhile, who opens it anew if `even_now`."""
        async with self._opening:
            if self._hosts and not even_now:
                return False
            tending, self._tending = self._tending, None
            if tending is not None and tending is not asyncio.current_task():
                tending.cancel()
                await asyncio.wait([tending])
            await self._finishing.stop()
            ticks, self._ticks = self._ticks, None
            if ticks is not None:
                await self._seal(ticks)
                await ticks.close()
        if self._tasks:
            await asyncio.wait(self._tasks)
        return not self._hosts

    def enter(self, agent_id: str, command: str, take_over: bool) -> ShardActivation:
        """A seat for an agent; see `seats.Enter`. `command` and `take_over` are about a log of its own."""
        return ShardActivation(agent_id, self.ticks, self.arrived)

    def arrived(self, agent_id: str, log: FileLog) -> LogReader | None:
        """Have an agent that moved here go on here. The way to all of its records; None if all are in `log`.

        Raises HostLost where it is in another partition by now, StoreError.
        """
        try:
            self._store.finish_move(log, agent_id)
        except Moved as moved:
            raise HostLost(str(moved)) from moved
        reader = self._store.reader(agent_id, log)
        return None if reader is log else reader

    async def _move(self, agent_id: str, *, shared: bool) -> None:
        """Let an agent go to another partition. Raises Busy while it is at work."""
        to = shard_of(agent_id, self._store.shards) if shared else partition_of(agent_id)
        if not await self.passivate(agent_id):
            raise Busy(f"{agent_id!r} is at work, and moves when it is idle. Try again.", retry_after_s=1)
        log = (await self.ticks()).log
        await self._aside(self._store.begin_move, log, agent_id, to)

    async def ticks(self) -> ShardJournal:
        """The shard's journal, its log opened if it is not. Raises PartitionBusy, StoreError, HostLost."""
        async with self._opening:
            if self.fenced:
                raise HostLost(f"another process owns {self.partition} now")
            if self._closing is not None:
                await asyncio.wait([self._closing])
                self._closing = None
            ticks = self._ticks
            if ticks is None:
                self._finishing.open = True
                if self._tending is None:
                    self._tending = asyncio.get_running_loop().create_task(self._tend())
                ticks = self._ticks = ShardJournal(
                    await self._open(), aside=self._aside, on_lost=self._lost, counts=self._counts, meters=self._meters
                )
                await self._seal(ticks)  # it was at work when it was killed: its agents come soon, and all at once
            return ticks

    async def _open(self) -> Any:
        wanted = partial(self._store.open_partition, self.partition, f"everlog host of {self.partition}")
        try:
            log = await self._aside(wanted)
        except PartitionBusy as busy:
            if not self._fence or busy.owner != self._fence:
                raise
            log = await self._aside(partial(wanted, take_over=True))
        self._fence = ""
        return log

    def _lost(self, error: EverlogError) -> None:
        """The log can no longer be written: what is in memory is not used again."""
        ticks, self._ticks = self._ticks, None
        interrupted = [agent_id for agent_id, host in self._hosts.items() if host.busy]
        for host in self._hosts.values():
            if host.active and ticks is not None:  # who is on the way in waits for the next log, or fails by itself
                host.spoil()
        if isinstance(error, Fenced):
            self.fenced = True
            self._finishing.open = False
            self._note(f"another process owns {self.partition} now; this one stops: {error}")
            if self._link.on_fenced is not None:
                self._link.on_fenced()
        elif ticks is not None:
            self._note(f"{self.partition} is opened anew: {error}")
            self._finishing.later(interrupted)
        if ticks is not None:
            self._closing = self._spawn(ticks.close())

    def _host(self, agent_id: str) -> Host:
        """The host of an agent, the most recently used one from now on. Raises UsageError where there is no room."""
        host = self._hosts.pop(agent_id, None)
        if host is None:
            host = self._new_host(agent_id)
        self._hosts[agent_id] = host
        self._used_at[agent_id] = self._clock.now()
        return host

    def _new_host(self, agent_id: str) -> Host:
        if self.fenced:
            raise HostLost(f"another process owns {self.partition} now")
        if len(self._hosts) >= self._agents_max and (self._making_room is None or self._making_room.done()):
            self._making_room = self._spawn(self._make_room())
        if len(self._hosts) >= 2 * self._agents_max:
            raise Busy(
                f"{self.partition} has {len(self._hosts)} agents at work, twice as many as it holds, and takes no more "
                f"now. Nothing of this was kept. Try again in {BUSY_S} seconds.",
                retry_after_s=BUSY_S,
            )
        return Host(
            agent_id, self._system, capabilities=self._idle_capabilities.pop(agent_id, NOTHING), idle_s=None,
            ports=self._ports, link=HostLink(notify_timers=self._link.notify_timers),
        )  # fmt: skip

    def _system(self, capabilities: SessionCapabilities) -> LocalSystem:
        """The system for what is lent, the same one as long as that stays the same."""
        if self._systems is None or self._systems[0] is not capabilities:
            self._systems = capabilities, self._make_system(capabilities, self.enter)
        return self._systems[1]

    async def _make_room(self) -> None:
        """Let go of some that are not at work, the one that was used longest ago first, until the others fit."""
        for agent_id in list(islice(self._hosts, LOOKS)):
            await self._made_room(agent_id)

    async def _made_room(self, agent_id: str) -> None:
        if len(self._hosts) > self._agents_max:
            await self.passivate(agent_id)

    async def _tend(self) -> None:
        """Now and then: let go of who is idle, seal what has gathered in the log, give back memory that is not used."""
        rested_at = 0
        while self._tending is asyncio.current_task():
            await self._ports.sleep(min(max(self._idle_us / 4 / MICROSECONDS, 1), SHARD_TEND_S))
            await asyncio.sleep(0)  # whatever `sleep` is, others come in between
            for agent_id in self._idle():
                await self.passivate(agent_id)
            if not self._hosts and not self._finishing.waiting and self._link.on_idle is not None:
                await self._link.on_idle()
            if self._ticks is not None:
                await self._seal(self._ticks, SHARD_SEAL_BYTES if self._under_way else SEAL_BYTES_MIN)
            if self._ticks is not None and not self._under_way and self._asked != rested_at:
                rested_at = self._asked
                self._ticks.projections.compact()
                give_back()

    def _idle(self) -> list[str]:
        """Who was not used for a while, longest ago first."""
        since = self._clock.now() - self._idle_us
        found = []
        for agent_id in self._hosts:
            if self._used_at[agent_id] > since:
                break
            found.append(agent_id)
        return found

    async def _seal(self, ticks: ShardJournal, bytes_min: int = SEAL_BYTES_MIN) -> None:
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
