"""Run one agent: carry out commands for any number of callers, and unload the agent when it is idle. Used by `Shard`,
by `LocalRuntime` and by the Ray actor of a dedicated agent. A host has no state outside the log except its subscribers.
It can be dropped at any time: the next host continues.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import msgspec

from everlog.actors.agent import commands
from everlog.actors.agent.agent import Agent
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.commands import (
    Command,
    CommandResult,
    FireTimer,
    OpenAgent,
    OpenReport,
    SessionCapabilities,
    StreamItem,
)
from everlog.actors.agent.event_writer import CommitListener
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.deriving.idle_time import IdleTime
from everlog.actors.hosting.agent_factory import NO_LINK, HostLink
from everlog.actors.hosting.due_inputs import decide, due_input
from everlog.actors.hosting.edit_commands import edit, is_plain
from everlog.actors.hosting.open_report import open_report
from everlog.actors.hosting.subscribers import WITH_PAST, Collector, Subscriber, Subscribers, role_of, wants_previews
from everlog.actors.hosting.timer_schedule import TIMED, TimerReporter
from everlog.actors.hosting.turn_worker import TurnWorker
from everlog.actors.mail.letters import BACKGROUND, OUTBOX
from everlog.actors.ports import log_warnings
from everlog.actors.ports.agent_constants import BUSY_S, IDLE_S, WATCH_S
from everlog.actors.ports.ports import Ports
from everlog.actors.postbox.postbox import Postbox
from everlog.events import Busy, EverlogError, HostLost, ModelError, PartitionBusy, Record, UsageError

_UNATTENDED = (commands.ResumeTurns, commands.DecideApproval, commands.DeliverLetter, FireTimer)
"""Commands whose sender does not bring the functions that the agent may need."""


class Host:
    """Host of one agent. `perform` may be called from any number of tasks of one event loop."""

    def __init__(
        self,
        agent_id: str,
        system_of: Callable[[SessionCapabilities], LocalSystem],
        *,
        capabilities: SessionCapabilities | None = None,
        idle_s: float | None = IDLE_S,
        ports: Ports | None = None,
        link: HostLink = NO_LINK,
    ) -> None:
        """Create the host. It unloads the agent after `idle_s` seconds without a command; None: never by itself."""
        self.agent_id = agent_id
        self.capabilities = capabilities or SessionCapabilities()
        self._system_of = system_of
        ports = ports or Ports()
        self._sleep, self._clock = ports.sleep, ports.clock
        self._note = ports.note
        self._may_fence = link.may_fence
        self._agent: Agent | None = None
        self._worker: TurnWorker | None = None
        self._seat: AbstractAsyncContextManager[Agent] | None = None
        """Context that keeps the agent open."""
        self._gate = asyncio.Lock()
        self._subscribers = Subscribers()
        self.idle_time = IdleTime(
            self._gate, idle_s=idle_s, sleep=ports.sleep, on_idle=link.on_idle or self.passivate, note=ports.note
        )
        self._tasks: set[asyncio.Task[Any]] = set()
        """Commands in progress."""
        self._watches: set[asyncio.Task[Any]] = set()
        """Subset of `_tasks`: `WatchAgent` commands, which do not keep the agent busy."""
        self._postbox = Postbox(link.send_letters, ports.clock, ports.note)
        self._input_lock = asyncio.Lock()
        """Held from the check that a heartbeat is due, or that a call waits, until the input is in the log."""
        self._timers = TimerReporter(agent_id, link.notify_timers)
        self._stale = False
        """True if the agent in memory must be unloaded before it is used again."""
        self._bare = False
        """True if the agent was opened without configuring it; it is configured before its first turn."""

    @property
    def active(self) -> bool:
        """True if the agent is in memory."""
        return self._agent is not None

    @property
    def busy(self) -> bool:
        """True if a turn runs."""
        return self._worker is not None and self._worker.busy

    async def perform(self, command: Command, seen: int = 0) -> AsyncIterator[StreamItem]:
        """Carry out a command. Yield the records that follow, previews, and at last a `CommandResult`.

        The command continues if the caller stops iterating. `seen`: last seq that the caller has, if the command is
        repeated. Raises EverlogError; HostLost if the agent is unloaded before the command is done.
        """
        held, previews = isinstance(command, WITH_PAST), wants_previews(command)
        with self._subscribers.joined(command.id, role_of(command), held=held, previews=previews) as listener:
            work = self._begun(command, listener, seen)
            try:
                while (collected := await listener.next()) is not None:
                    yield collected
            finally:
                if listener.role == "watcher":
                    work.cancel()
        yield CommandResult(self._value(work))

    async def perform_and_collect(self, command: Command, collected: list[Record]) -> Any:
        """Carry out a command like `perform`, but append all records to `collected`. Return the command's value."""
        gatherer = Collector(command.id, role_of(command), held=isinstance(command, WITH_PAST), collected=collected)
        self._subscribers.join(gatherer)
        work = self._begun(command, gatherer, 0)
        try:
            await gatherer.ended
        finally:
            self._subscribers.leave(gatherer)
            if gatherer.role == "watcher":
                work.cancel()
        return self._value(work)

    def _begun(self, command: Command, caller: Subscriber, seen: int) -> "asyncio.Task[Any]":
        work = asyncio.get_running_loop().create_task(self._execute(command, caller, seen))
        self._tasks.add(work)
        if caller.role == "watcher":
            self._watches.add(work)
        work.add_done_callback(partial(self._ended, caller))
        return work

    def _value(self, work: "asyncio.Task[Any]") -> Any:
        if work.cancelled():
            lost = f"{self.agent_id!r} was unloaded before the command finished. Acknowledged events are in the log"
            raise HostLost(f"{lost}; send the command again.")
        return work.result()

    def _ended(self, caller: Subscriber, work: asyncio.Task[Any]) -> None:
        """Remove a finished command, and end the delivery to its caller."""
        self._tasks.discard(work)
        self._watches.discard(work)
        if not work.cancelled():
            # Mark the exception as retrieved: a caller that has gone never reads it, and asyncio would complain.
            work.exception()
        caller.end()

    async def passivate(self, *, watched: bool = False) -> bool:
        """Unload the agent if it is idle. Return True if it was unloaded and no command has arrived since.

        `watched`: unload it also if it is watched; its watches end with HostLost.
        """
        self.idle_time.stop()
        used = self._busy if watched else self._used
        async with self._gate:
            if used() or self.busy:
                return False
            await self._unload_agent()
            for watch in self._watches:
                watch.cancel()
            return not used()

    def mark_stale(self) -> None:
        """Mark the agent in memory as unusable, because its log can no longer be written."""
        self._stale = True

    async def close(self) -> None:
        """Unload the agent now. A running turn is interrupted, and finished when the agent is opened next."""
        self.idle_time.stop()
        if self._worker is not None:
            await self._worker.stop()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        async with self._gate:
            await self._unload_agent()

    async def _execute(self, command: Command, caller: Subscriber, seen: int) -> Any:
        self.idle_time.stop()
        try:
            if isinstance(command, commands.MoveAgent):
                return await self._move(shared=command.shared)
            # The lock is for opening and unloading only; commands themselves run outside, several at once.
            async with self._gate:
                opened = await self._opened(command)
                agent, worker = self._agent, self._worker
            assert agent is not None
            assert worker is not None
            if isinstance(command, OpenAgent) and (opened is not None or command.settings == Settings()):
                return opened or open_report(agent, born=False)
            with agent.signing(command.id, command.by):
                return await self._do(agent, worker, command, caller, seen)
        finally:
            await self._rest()

    async def _move(self, *, shared: bool) -> None:
        """Move the agent to another partition. Raises Busy while the agent is at work."""
        if self.busy or self._busy():
            raise Busy(f"{self.agent_id!r} is at work, and moves when it is idle. Try again.", retry_after_s=BUSY_S)
        async with self._gate:
            await self._unload_agent()
            self._system_of(self.capabilities).move(self.agent_id, shared=shared)

    def _used(self) -> bool:
        """Return True if commands other than that of the current task are being carried out."""
        return any(not task.done() for task in self._tasks - {asyncio.current_task()})

    def _busy(self) -> bool:
        """Return True if commands other than that of the current task and watches are being carried out."""
        return any(not task.done() for task in self._tasks - self._watches - {asyncio.current_task()})

    async def _rest(self) -> None:
        """Report timers after a command, and start the idle timeout if it was the last command in progress."""
        await self._report_timers()
        if not self._used() and self._is_stale():
            async with self._gate:
                if self._is_stale():  # another command may have reopened the agent while this one waited for the gate
                    await self._unload_agent()
        if not self._used():
            self.idle_time.begin()

    def _is_stale(self) -> bool:
        return self._stale or bool(self._worker and self._worker.broken)

    async def _opened(self, command: Command) -> OpenReport | None:
        """Bring the agent into memory with the command's capabilities. Return None if it was in memory. Raises
        EverlogError.
        """
        other = command.capabilities is not None and command.capabilities.same != self.capabilities.same
        if other and self._agent is not None and self._busy():
            raise UsageError(
                f"{self.agent_id!r} is at work for another caller, with other functions or another endpoint. Try again "
                "when it is idle."
            )
        # Capabilities are part of an open agent (its functions, its models), so other ones need a new activation.
        if other or self._is_stale():
            await self._unload_agent()
        if command.capabilities is not None:
            self.capabilities = command.capabilities
        unattended = isinstance(command, _UNATTENDED) and not self.capabilities.tools
        if self._agent is not None:
            if self._bare and not is_plain(command):
                await self._agent.set_up(unattended=unattended)
                self._bare = False
            return None
        wanted = command
        if not isinstance(wanted, OpenAgent):
            wanted = OpenAgent(
                id=command.id, create=False, command="everlog host", keep_configuration=is_plain(command)
            )
        report = await self._open(wanted, unattended=unattended)
        if wanted is not command:  # a timer or a recovery opened the agent: no caller reads the report
            for warning in report.warnings:
                self._note(warning)
        return report

    async def _open(self, wanted: OpenAgent, *, unattended: bool) -> OpenReport:
        """Open the agent, and report it. `unattended`: no caller is there to supply functions."""
        kinds: set[str] = set()

        def on_commit(records: Sequence[Record]) -> None:
            kinds.update(record.type for record in records)
            self._timers.changed |= any(record.type in TIMED for record in records)
            self._subscribers.on_commit(records)

        try:
            self._agent = await self._enter(wanted, on_commit, take_over=wanted.take_over, unattended=unattended)
        except PartitionBusy as busy:
            # Only an earlier host that was declared dead is fenced: it may still hang in the middle of a write.
            if not self._may_fence(busy):
                raise
            self._agent = await self._enter(wanted, on_commit, take_over=True, unattended=unattended)
        self._bare = wanted.keep_configuration
        self._agent.previews = self._subscribers.previews()
        self._worker = TurnWorker(self._agent, self._report_timers)
        self.idle_time.opened(self._agent, self._worker, self._report_timers)
        self._timers.reset()
        self._postbox.begin()
        return open_report(self._agent, born="agent_created" in kinds)

    async def _enter(self, wanted: OpenAgent, on_commit: CommitListener, *, take_over: bool, unattended: bool) -> Agent:
        opening = self._system_of(self.capabilities).agent(
            self.agent_id, wanted.settings, command=wanted.command, on_commit=on_commit, create=wanted.create,
            take_over=take_over, unattended=unattended, keep_configuration=wanted.keep_configuration, by=wanted.by,
        )  # fmt: skip
        agent = await opening.__aenter__()
        self._seat = opening
        return agent

    async def _unload_agent(self) -> None:
        agent, self._agent, self._worker, self._stale = self._agent, None, None, False
        self.idle_time.closed()
        seat, self._seat = self._seat, None
        try:
            if seat is not None:
                await seat.__aexit__(None, None, None)
        except EverlogError as error:  # the agent is unloaded all the same
            self._note(f"the log of {self.agent_id!r} was not closed cleanly; no acknowledged record is lost. {error}")
        if agent is not None and agent.unsealed:
            self._note(log_warnings.unsealed_warning(agent.agent_id, agent.unsealed))

    async def _do(self, agent: Agent, worker: TurnWorker, command: Command, caller: Subscriber, seen: int) -> Any:
        async def say(receive: Awaitable[Record]) -> Record:
            return await self._say(agent, worker, receive, caller, seen)

        match command:
            case commands.SendInput(event=event):
                return await say(agent.receive(event, event_id=command.id))
            case commands.RetryTurn():
                return await say(agent.retry(event_id=command.id))
            case commands.FireTimer():
                return await self._fire_heartbeat(agent, worker, command, caller, seen)
            case commands.DeliverLetter():
                return self._begin(worker, await worker.guarded(self._postbox.take(agent, command, self._input_lock)))
            case commands.DecideApproval():
                return await say(decide(agent, command, self._input_lock))
            case commands.WatchAgent():
                caller.attach_turn(past=self._subscribers.without_caller(agent.records(seen + 1)) if seen else ())
                await self._sleep(WATCH_S)
                return caller.missed - 1 if caller.missed else agent.head
            case commands.ResumeTurns():
                return await worker.all_end()
            case OpenAgent(settings=settings) | commands.ConfigureAgent(settings=settings):
                await worker.guarded(agent.configure(settings, command.id))
                return open_report(agent, born=False)
            case commands.DeleteAgent():
                await worker.guarded(agent.delete())
                self._stale = self._timers.changed = True  # the next opening creates the agent again, from scratch
                await worker.stop()
                return None
            case _:
                return await worker.guarded(edit(agent, command))

    async def _say(
        self, agent: Agent, worker: TurnWorker, receive: Awaitable[Record], caller: Subscriber, seen: int
    ) -> Record:
        """Append an input, and wait until its turn has ended. Raises ModelError if the turn failed by the model."""
        record, failed = await self._received(agent, worker, receive, caller, seen)
        if failed is not None:
            raise failed
        await worker.turn_ends(record.turn)
        return record

    async def _received(
        self, agent: Agent, worker: TurnWorker, receive: Awaitable[Record], caller: Subscriber, seen: int
    ) -> tuple[Record, ModelError | None]:
        """Append an input. Return its record; and the ModelError of its turn, if it was appended before and failed."""
        head = agent.head
        record = await worker.guarded(receive)
        past: list[Record] = []
        if record.seq <= head:  # a repeated command: the records that followed are in the log already
            past = [other for other in agent.records(record.seq) if other.turn == record.turn]
        caller.attach_turn(record.turn, [other for other in past if other.seq > seen])
        failed = next((other for other in past if other.type in ("model_failed", "budget_exceeded")), None)
        if failed is None:
            return record, None
        return record, ModelError(failed.text or "", kind=msgspec.json.decode(failed.payload).get("failure", "budget"))

    async def _fire_heartbeat(
        self, agent: Agent, worker: TurnWorker, command: FireTimer, caller: Subscriber, seen: int
    ) -> bool:
        """Append one heartbeat for a due timer, however many schedulers report it. Return True if one was appended."""
        if command.timer in (OUTBOX, BACKGROUND):
            self._timers.reset()
            return self._begin(worker, await worker.guarded(self._postbox.deliver(agent)))
        async with self._input_lock:
            due = await due_input(agent, command, self._clock.now())
            # Not before the due time, whatever the clock says: otherwise the timer would be due again.
            if due is not None:
                beat, then = due
                receive = agent.receive(beat, event_id=command.id, not_before=command.due_at, then=then)
                record, _ = await self._received(agent, worker, receive, caller, seen)
        if due is None:
            # The sender's timers are outdated: report the current ones, even if they are as they were.
            self._timers.reset()
            await worker.all_end()
            return False
        await worker.turn_ends(record.turn)
        return True

    @staticmethod
    def _begin(worker: TurnWorker, record: Record | None) -> bool:
        """Begin the turn that a record opened. Return True, also if there is none."""
        if record is not None:
            worker.begin(record.turn)
        return True

    async def _report_timers(self) -> None:
        """Report the agent's timers to the schedule, if they have changed. A stale agent has none to report."""
        agent = self._agent
        if agent is not None and self._timers.to_report(also=self._postbox.may_be_due(agent)):
            self._timers.report([] if self._stale else [*await agent.timers(), *await self._postbox.timers(agent)])
