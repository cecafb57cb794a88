"""Keeps agents running in places of their own: finds or makes the host of an agent, starts those that died again,
finishes what a stop of everything left unfinished, and sends timed heartbeats.

It owns no state that the logs and the places do not have. Where hosts live is a `Places`: Ray's actors, or a test's.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, Protocol

import msgspec

from actors.commands import Command, Fire, Heard, Means, Resume
from actors.constants import MICROSECONDS, RESENDS_MAX, RESTARTS_MAX, TIMER_RETRY_US
from actors.effects import Clock, Ids
from events import ClusterError, EverlogError, HostLost, PartitionBusy, UnknownAgent

from .timers import Due, Schedule


class Placed(msgspec.Struct, frozen=True):
    """A host that was found or made."""

    key: str
    """Names this one life of it."""
    pid: int
    handle: Any
    """What `Places` calls it by."""


class Standing(msgspec.Struct, frozen=True):
    """What the log of an agent that is not in memory says."""

    agent_id: str
    unfinished: bool
    timers: Sequence[Due]


class Places(Protocol):
    """Where hosts live."""

    async def find(self, agent_id: str) -> Placed | None:
        """The host of the agent that lives and answers; None if there is none."""
        ...

    async def start(self, agent_id: str, means: Means, fence: int) -> Placed:
        """Make a host and wait until it answers. `fence`: pid of the one before, which is dead to everybody but
        perhaps itself: it may be fenced if it still holds the log; 0 for none. Raises ClusterError.
        """
        ...

    async def lives(self, placed: Placed) -> bool:
        """Whether it answers."""
        ...

    async def death(self, placed: Placed) -> None:
        """Wait until it is dead."""
        ...

    def perform(self, placed: Placed, command: Command) -> AsyncIterator[Heard]:
        """Have it carry out a command. Raises HostLost, or what the command raises."""
        ...


class Supervisor:
    """One for each store and cluster."""

    def __init__(
        self,
        places: Places,
        *,
        clock: Clock,
        ids: Ids,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        activations_max: int,
        note: Callable[[str], None],
    ) -> None:
        """`activations_max`: hosts that are started at once; `note` is told what a person might want to know."""
        self._places = places
        self._clock = clock
        self._ids = ids
        self._sleep = sleep
        self._activations = asyncio.Semaphore(activations_max)
        self._note = note
        self._placed: dict[str, Placed] = {}
        self._means: dict[str, Means] = {}
        self._fence: dict[str, int] = {}
        self._deaths: dict[str, int] = {}
        """How often in a row the host of an agent died before it had carried out anything."""
        self._locks: dict[str, asyncio.Lock] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ended = False
        self.schedule = Schedule(self._fire, clock=clock, sleep=sleep)

    async def begin(self, standings: Iterable[Standing]) -> None:
        """Take up what the logs say: timers are kept, and unfinished turns are finished. Timers are kept for ever."""
        self._spawn(self.schedule.run())
        for standing in standings:
            self.schedule.know(standing.agent_id, standing.timers)
            if standing.unfinished:
                self._spawn(self._recover(standing.agent_id))
            await asyncio.sleep(0)

    async def end(self) -> Sequence[Placed]:
        """Stop; the hosts that are left, which go on by themselves."""
        self._ended = True
        hosts = list(self._placed.values())
        self._placed.clear()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return hosts

    def placed(self, agent_id: str) -> Placed | None:
        """The host of the agent, if there is one."""
        return self._placed.get(agent_id)

    async def place(self, agent_id: str, means: Means | None = None, lost: str = "") -> Placed:
        """The host of the agent, made if there is none. `lost` is the key of one that the caller could not reach.

        One that takes the place of a dead one finishes what that left unfinished. Raises ClusterError if it cannot be
        started.
        """
        if means is not None:
            self._means[agent_id] = means
        before = self._placed.get(agent_id)
        placed = await self._place(agent_id, lost)
        if lost and placed is not before and self._deaths.get(agent_id, 0) <= RESTARTS_MAX:
            self._spawn(self._recover(agent_id))
        return placed

    async def _place(self, agent_id: str, lost: str) -> Placed:
        async with self._locks.setdefault(agent_id, asyncio.Lock()):
            placed = self._placed.get(agent_id)
            if placed is not None and (placed.key != lost or await self._places.lives(placed)):
                return placed
            if placed is not None and placed is self._placed.get(agent_id):
                self._forget(agent_id, placed)
            placed = await self._found(agent_id)
            self._placed[agent_id] = placed
            self._spawn(self._watch(agent_id, placed))
            return placed

    async def _found(self, agent_id: str) -> Placed:
        """The host that lives, or a new one. Raises ClusterError."""
        placed = await self._places.find(agent_id)
        async with self._activations:
            if self._ended:
                raise ClusterError(f"The supervisor has stopped, and starts no host for {agent_id!r}. Try again.")
            if placed is None:
                lent, fence = self._means.get(agent_id) or Means(), self._fence.get(agent_id, 0)
                placed = await self._places.start(agent_id, lent, fence)
            self._fence.pop(agent_id, None)
            return placed

    def left(self, agent_id: str, key: str) -> Placed | None:
        """A host has let go of its agent, which was idle: it is of no more use. None if it was another's."""
        placed = self._placed.get(agent_id)
        if placed is None or placed.key != key:
            return None
        self._deaths.pop(agent_id, None)
        return self._placed.pop(agent_id)

    def _forget(self, agent_id: str, placed: Placed) -> None:
        """It is dead."""
        self._fence[agent_id] = placed.pid
        self._deaths[agent_id] = self._deaths.get(agent_id, 0) + 1
        del self._placed[agent_id]

    async def _watch(self, agent_id: str, placed: Placed) -> None:
        """Start the host again when it dies; not for ever, should it be its agent that kills it."""
        await self._places.death(placed)
        if self._placed.get(agent_id) is not placed:
            return
        self._forget(agent_id, placed)
        if self._deaths[agent_id] > RESTARTS_MAX:
            self._note(
                f"the host of {agent_id!r} died {self._deaths[agent_id]} times in a row; it is started again when "
                "somebody asks for the agent"
            )
            return
        self._note(f"the host of {agent_id!r} (process {placed.pid}) died; another goes on from the log")
        await self._recover(agent_id)

    async def _recover(self, agent_id: str) -> None:
        """Activate the agent and finish its turns. Where it cannot be had now, it is tried again later; whatever else
        hinders it is noted, and the log says what is still to be done.
        """
        command = Resume(id=self._ids.new(self._clock.now()))
        for _ in range(1 + RESTARTS_MAX):
            try:
                await self._carry_out(agent_id, command)
                return
            except (ClusterError, PartitionBusy) as error:
                self._note(f"{agent_id!r}: {error}")
            except EverlogError as error:
                self._note(f"{agent_id!r}: {error}")
                return
            await self._sleep(TIMER_RETRY_US / MICROSECONDS)

    async def _fire(self, agent_id: str, command: Fire) -> None:
        try:
            await self._carry_out(agent_id, command)
        except EverlogError as error:  # the schedule tries again, if it is still due
            self._note(f"{agent_id!r}: {error}")

    async def _carry_out(self, agent_id: str, command: Command) -> None:
        """Send a command of our own. Raises EverlogError.

        A host may have let go of its agent meanwhile, or died: the next one is asked, unless they all die of it.
        """
        lost = ""
        for _ in range(1 + RESENDS_MAX):
            placed = await self._place(agent_id, lost)
            try:
                async for _ in self._places.perform(placed, command):
                    pass
                self._deaths.pop(agent_id, None)
                return
            except HostLost:
                lost = placed.key
                if self._deaths.get(agent_id, 0) > RESTARTS_MAX:
                    return
            except UnknownAgent:
                self.schedule.know(agent_id, ())
                return

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        if self._ended:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
