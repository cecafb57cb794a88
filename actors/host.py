"""The host of one agent: carries out commands for any number of callers, and lets go of the agent when it is idle.

It has no state beside the log but who is listening: drop it at any moment, and the next one goes on from the log. The
same class is a Ray actor's content and a part of one process.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any

from events import Heartbeat, PartitionBusy, Record, TimerCancelled, TimerSet, UsageError

from . import commands, hearing
from .agent import Agent, Listener
from .commands import Command, Done, Fire, Heard, Means, Open, Opened
from .constants import IDLE_S
from .hearing import Audience
from .setup import Settings
from .system import System
from .timers import Due, due_of
from .working import Worker

TIMED = frozenset({"timer_set", "timer_cancelled", "heartbeats_paused", "heartbeat", "agent_created", "agent_deleted"})
"""Kinds of records after which the timers of an agent may be others."""

OPENS_A_TURN = (commands.Say, commands.Warn, commands.Retry, commands.Fire)
"""Commands whose turn may be in the log already, when they are sent again."""


class Host:
    """Runs one agent. `perform` from any number of tasks of one event loop."""

    def __init__(
        self,
        agent_id: str,
        system_of: Callable[[Means], System],
        *,
        means: Means | None = None,
        idle_s: float = IDLE_S,
        fence: int = 0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        tell_timers: Callable[[str, Sequence[Due]], None] | None = None,
        on_idle: Callable[[], Awaitable[None]] | None = None,
        note: Callable[[str], None] | None = None,
    ) -> None:
        """`tell_timers` hears what the agent's timers are whenever they change; `on_idle` is called instead of
        `passivate`, when nobody has used the agent for `idle_s` seconds; `note` is told what a person should know.
        `fence`: pid of the host before, which is declared dead: it is fenced should it hold the log; 0 for none.
        """
        self.agent_id = agent_id
        self.means = means or Means()
        self._system_of = system_of
        self._idle_s = idle_s
        self._sleep = sleep
        self._tell_timers = tell_timers
        self._on_idle = on_idle or self.passivate
        self._note = note
        self._fence = fence
        self._agent: Agent | None = None
        self._worker: Worker | None = None
        self._stack = AsyncExitStack()
        self._gate = asyncio.Lock()
        self._audience = Audience()
        self._idle: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        """Commands that are being carried out."""
        self._retimed = False
        self._stale = False
        """What is in memory must not be used again."""

    @property
    def active(self) -> bool:
        """Whether the agent is in memory."""
        return self._agent is not None

    async def perform(self, command: Command, seen: int = 0) -> AsyncIterator[Heard]:
        """Carry a command out. It goes on when the caller stops listening. Raises EverlogError.

        `seen`: the last seq that the caller has heard of this command, when it is sent again.
        """
        with self._audience.joined(command.id, waits=isinstance(command, OPENS_A_TURN)) as listener:
            work = asyncio.get_running_loop().create_task(self._carry_out(command, listener, seen))
            self._tasks.add(work)
            work.add_done_callback(self._tasks.discard)
            work.add_done_callback(lambda _: listener.end())
            while (records := await listener.heard.get()) is not None:
                yield records
        yield Done(await work)

    async def passivate(self) -> bool:
        """Let go of the agent, unless somebody uses it; whether it is let go of."""
        async with self._gate:
            if self._tasks or (self._worker is not None and self._worker.busy):
                return False
            await self._let_go()
            return True

    async def close(self) -> None:
        """Let go of the agent now. A turn that runs is interrupted, and finished when the agent is opened next."""
        if self._idle is not None:
            self._idle.cancel()
        if self._worker is not None:
            await self._worker.stop()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        async with self._gate:
            await self._let_go()

    async def _carry_out(self, command: Command, listener: hearing.Listener, seen: int) -> Any:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        try:
            async with self._gate:
                opened = await self._opened(command)
                agent, worker = self._agent, self._worker
            assert agent is not None
            assert worker is not None
            if isinstance(command, Open):
                return opened
            return await self._do(agent, worker, command, listener, seen)
        finally:
            await self._rest()

    async def _rest(self) -> None:
        """After a command: tell of the timers, and if it was the last one under way, begin to wait for idleness."""
        await self._report_timers()
        others = self._tasks - {asyncio.current_task()}
        if others or self._agent is None:
            return
        if self._is_stale():
            async with self._gate:
                await self._let_go()
        else:
            self._idle = asyncio.get_running_loop().create_task(self._wait_idle())

    def _is_stale(self) -> bool:
        return self._stale or (self._worker is not None and self._worker.broken)

    async def _wait_idle(self) -> None:
        await self._sleep(self._idle_s)
        self._idle = None
        await self._on_idle()

    async def _opened(self, command: Command) -> Opened:
        """Have the agent in memory, with the means that the command brings. Raises EverlogError."""
        other = command.means is not None and command.means.same != self.means.same
        if other and len(self._tasks) > 1:
            raise UsageError(
                f"{self.agent_id!r} is at work for another caller, with other functions or another endpoint. Try again "
                "when it is idle."
            )
        if other or self._is_stale():
            await self._let_go()
        if command.means is not None:
            self.means = command.means
        wanted = command if isinstance(command, Open) else Open(id=command.id, create=False, command="everlog host")
        born = False
        if self._agent is None:
            born = await self._open(wanted)
        elif wanted.settings != Settings():
            await self._agent.configure(wanted.settings)
        return self._told(born=born)

    async def _open(self, wanted: Open) -> bool:
        """Open the agent; whether it was made by that."""
        kinds: set[str] = set()

        def listen(records: Sequence[Record]) -> None:
            kinds.update(record.type for record in records)
            self._retimed |= not kinds.isdisjoint(TIMED)
            self._audience.hear(records)

        try:
            self._agent = await self._enter(wanted, listen, take_over=wanted.take_over)
        except PartitionBusy as busy:
            if not self._fence or busy.pid != self._fence:
                raise
            self._agent = await self._enter(wanted, listen, take_over=True)
        self._worker = Worker(self._agent, self._report_timers)
        self._retimed = True
        return "agent_created" in kinds

    async def _enter(self, wanted: Open, listen: Listener, *, take_over: bool) -> Agent:
        opening = self._system_of(self.means).agent(
            self.agent_id,
            wanted.settings,
            command=wanted.command,
            listen=listen,
            create=wanted.create,
            take_over=take_over,
        )
        return await self._stack.enter_async_context(opening)

    def _told(self, *, born: bool) -> Opened:
        agent = self._agent
        assert agent is not None
        return Opened(
            born=born,
            model=agent.model_name,
            zone=agent.zone,
            head=agent.head,
            turn=agent.turn,
            waiting=agent.waiting,
            warnings=_warnings(agent),
        )

    async def _let_go(self) -> None:
        agent, self._agent, self._worker, self._stale = self._agent, None, None, False
        if self._idle is not None and self._idle is not asyncio.current_task():
            self._idle.cancel()
        stack, self._stack = self._stack, AsyncExitStack()
        await stack.aclose()
        if agent is not None and agent.unsealed and self._note is not None:
            self._note(_not_sealed(agent))

    async def _do(self, agent: Agent, worker: Worker, command: Command, listener: hearing.Listener, seen: int) -> Any:
        """What stands in the command, on an open agent."""

        async def say(receive: Awaitable[Record]) -> Record:
            return await self._say(agent, worker, receive, listener, seen)

        match command:
            case commands.Say(event=event):
                return await say(agent.receive(event, event_id=command.id))
            case commands.Warn():
                return await say(agent.warn(event_id=command.id))
            case commands.Retry():
                return await say(agent.retry(event_id=command.id))
            case commands.Fire():
                beat = await self._due(agent, command)
                if beat is None:
                    await worker.all_end()
                    return False
                await say(agent.receive(beat, event_id=command.id))
                return True
            case commands.Resume():
                return await worker.all_end()
            case commands.Configure(settings=settings):
                await worker.guarded(agent.configure(settings))
                return self._told(born=False)
            case commands.Delete():
                await worker.guarded(agent.delete())
                self._stale = True  # who opens it next begins it anew
                return None
            case _:
                return await worker.guarded(_edit(agent, command))

    async def _say(
        self, agent: Agent, worker: Worker, receive: Awaitable[Record], listener: hearing.Listener, seen: int
    ) -> Record:
        """Make an input durable, and wait until its turn has ended. Raises ModelError if the model failed it."""
        head = agent.head
        record = await worker.guarded(receive)
        listener.turn = record.turn
        if record.seq <= head:  # it was here before: what followed from it is in the log
            reader = self._system_of(self.means).store.reader(self.agent_id)
            records = reader.read(self.agent_id, max(record.seq, seen + 1), agent.head)
            listener.begin([other for other in records if other.turn == record.turn])
        else:
            listener.begin()
        await worker.turn_ends(record.turn)
        return record

    async def _due(self, agent: Agent, command: Fire) -> Heartbeat | None:
        """The heartbeat of a timer that is due as the command says; None if it was sent, cancelled or paused since."""
        timer = next((row for row in await agent.rows("timers") if row["timer"] == command.timer), None)
        if timer is None or timer["due_us"] != command.due_at:
            return None
        return Heartbeat(text=timer["text"], reason="timer", timer=command.timer, late=command.late)

    async def _report_timers(self) -> None:
        if self._retimed and self._tell_timers is not None and self._agent is not None:
            self._retimed = False
            self._tell_timers(self.agent_id, [due_of(row) for row in await self._agent.rows("timers")])


def _not_sealed(agent: Agent) -> str:
    return f"the log of {agent.agent_id!r} could not be sealed; nothing is lost by it. {agent.unsealed}"


def _warnings(agent: Agent) -> list[str]:
    """What a person should know of the log: a damaged tail was cut off, or it could not be sealed."""
    told = [_not_sealed(agent)] if agent.unsealed else []
    if agent.cut is None:
        return told
    cut, stem = agent.cut, f"{agent.cut.path.name}.{agent.cut.offset}"
    copies = [*cut.path.parent.glob(f"{stem}.cut"), *cut.path.parent.glob(f"{stem}.*.cut")]
    kept = max(copies, key=lambda path: path.stat().st_mtime_ns, default=cut.path.with_name(f"{stem}.cut"))
    told_of_cut = (
        f"the log of {agent.agent_id!r} ended in {cut.bytes} damaged bytes, which were cut off. No acknowledged record "
        f"is lost by it, unless a disk lost what it had promised to keep. The bytes are kept in {kept}."
    )
    return [told_of_cut, *told]


async def _edit(agent: Agent, command: Command) -> Any:
    """The commands that start no turn."""
    match command:
        case commands.Summarize():
            return await agent.summarize()
        case commands.Expand():
            return await agent.expand()
        case commands.Hide(turns=turns):
            return await agent.hide(turns, event_id=command.id)
        case commands.Rethink(text=text):
            return await agent.rethink(text, event_id=command.id)
        case commands.TakeIn(said=said):
            return await agent.take_in(said)
        case commands.SetTimer(timer=name, text=text, due_at=due_at, every_s=every_s):
            timer = TimerSet(text=text, timer=name, due_at=due_at, every_s=every_s)
            await agent.commit([timer], turn=agent.turn, step=0, ids=[command.id])
            return None
        case commands.CancelTimer(timer=name):
            known = any(row["timer"] == name for row in await agent.rows("timers"))
            if known:
                await agent.commit([TimerCancelled(timer=name)], turn=agent.turn, step=0, ids=[command.id])
            return known
        case _:
            raise TypeError(f"no host knows the command {type(command).__name__}")
