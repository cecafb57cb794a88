"""Limit how many hosts start at once: callers first, and a queue with a limit for each kind of waiter.

Used by the supervisor. Every granted turn must be given back, also after an error or a cancellation: otherwise fewer
hosts start at once from then on.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import IntEnum
from heapq import heappop, heappush

import msgspec

from everlog.actors.cluster.placement import HostedPartition
from everlog.actors.ports.agent_constants import STARTS_WAITING_MAX, TIMED_STARTS_WAITING_MAX
from everlog.actors.ports.effects import Clock
from everlog.events import ClusterError
from everlog.events.times import MICROSECONDS


class StartPriority(IntEnum):
    """Priority of a start; lower values start first."""

    CALLER = 0
    RECOVERY = 1
    TIMER = 2


WAITING_MAX = {StartPriority.CALLER: STARTS_WAITING_MAX, StartPriority.TIMER: TIMED_STARTS_WAITING_MAX}
"""Limits of the queue. Recoveries have none here: `RecoveryQueue` holds them back in an order of its own."""


class StartQueueFull(ClusterError):
    """A start was refused because too many wait."""


class _WaitingStart(msgspec.Struct):
    """One waiting start."""

    urgency: StartPriority
    turn: asyncio.Future[None]


class StartQueue:
    """Queue of starts, of which `at_once_max` are in progress at once."""

    def __init__(self, at_once_max: int, clock: Clock) -> None:
        self._at_once_max = at_once_max
        self._clock = clock
        self._waiting: dict[HostedPartition, _WaitingStart] = {}
        self._heap: list[tuple[StartPriority, int, _WaitingStart]] = []
        """Waiting starts, next first. A start that was hurried has two entries; the entry of a finished one is
        skipped.
        """
        self._order = 0
        self._count: Counter[StartPriority] = Counter()
        self._start_us = 0
        """Duration of the last start, microseconds."""
        self.under_way = 0

    def waiting(self, urgency: StartPriority) -> int:
        """Return the number of waiting starts of a priority."""
        return self._count[urgency]

    def hurry(self, place: HostedPartition, urgency: StartPriority) -> None:
        """Raise the priority of a waiting start, if this caller is more urgent. The limits of the queue do not apply
        here.
        """
        waiting = self._waiting.get(place)
        if waiting is not None and urgency < waiting.urgency:
            self._count[waiting.urgency] -= 1
            self._count[urgency] += 1
            waiting.urgency = urgency
            self._push(waiting)

    @asynccontextmanager
    async def turn(self, place: HostedPartition, urgency: StartPriority) -> AsyncIterator[None]:
        """Hold one of the `at_once_max` starts while the block runs. Raises StartQueueFull. A partition must not wait
        twice: the second entry would replace the first.
        """
        if self.under_way < self._at_once_max:
            self.under_way += 1
        else:
            await self._wait(place, urgency)
        began = self._clock.now()
        try:
            yield
        finally:
            self._start_us = max(self._clock.now() - began, 0)
            self._give_back()

    async def _wait(self, place: HostedPartition, urgency: StartPriority) -> None:
        if self._count[urgency] >= WAITING_MAX.get(urgency, self._count[urgency] + 1):
            raise self._full(place, self._count[urgency])
        mine = self._waiting[place] = _WaitingStart(urgency, asyncio.get_running_loop().create_future())
        self._count[urgency] += 1
        self._push(mine)
        try:
            await mine.turn
        except asyncio.CancelledError:
            if not mine.turn.cancelled():  # granted in the same moment: pass the turn on, or it would be lost
                self._give_back()
            raise
        finally:
            self._count[mine.urgency] -= 1
            del self._waiting[place]

    def _push(self, waiting: _WaitingStart) -> None:
        self._order += 1
        heappush(self._heap, (waiting.urgency, self._order, waiting))

    def _give_back(self) -> None:
        """Pass the turn to the next waiting start, or free it."""
        while self._heap:
            turn = heappop(self._heap)[2].turn
            if not turn.done():
                turn.set_result(None)
                return
        self.under_way -= 1

    def _full(self, place: HostedPartition, waiting: int) -> StartQueueFull:
        seconds = max(1, round(waiting * self._start_us / MICROSECONDS / self._at_once_max))
        return StartQueueFull(
            f"{waiting} hosts wait to be started already, {self._at_once_max} at once, so the host of {place} is "
            f"refused. Nothing was lost: try again in about {seconds} s, or give the cluster more room."
        )
