"""Whose turn it is to have a host started: so many at once, callers first, and nobody waits unnoticed."""

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
    """Who waits for a host; the first go first."""

    CALLER = 0
    RECOVERY = 1
    TIMER = 2


WAITING_MAX = {StartPriority.CALLER: STARTS_WAITING_MAX, StartPriority.TIMER: TIMED_STARTS_WAITING_MAX}
"""How many may wait. Recoveries wait elsewhere, in an order of their own."""


class StartQueueFull(ClusterError):
    """Too many wait already."""


class _WaitingStart(msgspec.Struct):
    """One that waits."""

    urgency: StartPriority
    turn: asyncio.Future[None]


class StartQueue:
    """Gives turns."""

    def __init__(self, at_once_max: int, clock: Clock) -> None:
        self._at_once_max = at_once_max
        self._clock = clock
        self._waiting: dict[HostedPartition, _WaitingStart] = {}
        self._heap: list[tuple[StartPriority, int, _WaitingStart]] = []
        """Those that wait, the next first; one that was hurried twice. Those that wait no more are passed over."""
        self._order = 0
        self._count: Counter[StartPriority] = Counter()
        self._start_us = 0
        """How long the last start took."""
        self.under_way = 0

    def waiting(self, urgency: StartPriority) -> int:
        """How many wait."""
        return self._count[urgency]

    def hurry(self, place: HostedPartition, urgency: StartPriority) -> None:
        """Somebody waits for the host of a place: should its turn have been asked for with less urgency, it is sooner.

        A caller is never refused for that.
        """
        waiting = self._waiting.get(place)
        if waiting is not None and urgency < waiting.urgency:
            self._count[waiting.urgency] -= 1
            self._count[urgency] += 1
            waiting.urgency = urgency
            self._push(waiting)

    @asynccontextmanager
    async def turn(self, place: HostedPartition, urgency: StartPriority) -> AsyncIterator[None]:
        """Start the host of a place in the block. Raises Full where too many wait for that. One turn for each place."""
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
            if not mine.turn.cancelled():  # it was its turn already
                self._give_back()
            raise
        finally:
            self._count[mine.urgency] -= 1
            del self._waiting[place]

    def _push(self, waiting: _WaitingStart) -> None:
        self._order += 1
        heappush(self._heap, (waiting.urgency, self._order, waiting))

    def _give_back(self) -> None:
        """The turn is over: it is the next one's."""
        while self._heap:
            turn = heappop(self._heap)[2].turn
            if not turn.done():
                turn.set_result(None)
                return
        self.under_way -= 1

    def _full(self, place: HostedPartition, waiting: int) -> StartQueueFull:
        seconds = max(1, round(waiting * self._start_us / MICROSECONDS / self._at_once_max))
        return StartQueueFull(
            f"{waiting} hosts wait to be started already, {self._at_once_max} at once, and that of {place} would be "
            f"one too many. Nothing was lost: try again in about {seconds} s, or give the cluster more room."
        )
