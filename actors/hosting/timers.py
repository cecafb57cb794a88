"""Timed heartbeats: when the next one of every agent is due. Owns no state beside the logs, and writes nothing.

A timer is an event in its agent's log, and so is each heartbeat that it left; what is due is the projection `timers`.
The schedule only sends commands. Their id follows from agent, timer and due time, so that two schedules of one store
make one heartbeat, and the host drops what is not due any more.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

import msgspec

from actors.commands import Fire
from actors.constants import LATE_US, MICROSECONDS, TIMER_LOOK_S, TIMER_RETRY_US
from actors.effects import Clock
from events import RANDOM_BITS, uuid7


class Due(msgspec.Struct, frozen=True, order=True):
    """When a timer's next heartbeat is due."""

    at: int
    """Microseconds UTC."""
    timer: str
    every_s: int = 0
    set_seq: int = 0
    """Seq of the record that set it: a timer that is set again is another one, though it be due at the same time."""


def due_of(row: Mapping[str, Any]) -> Due:
    """What a row of the projection `timers` says."""
    return Due(row["due_us"], row["timer"], row["every_s"], row["seq"])


def fire(agent_id: str, due: Due, now: int, began: int) -> Fire:
    """The command for a timer that is due at `now`; `began` is since when the schedule has been kept.

    The heartbeat is late where nobody looked when it was due. An id of long ago would be refused as stale by the log,
    so that of an older heartbeat is new: the host tells that it is not due any more, should it come twice.
    """
    late = due.at < began or now - due.at > LATE_US
    told = due.at if now - due.at <= LATE_US else now
    digest = hashlib.sha256(f"{agent_id}\0{due.timer}\0{due.set_seq}\0{due.at}".encode()).digest()
    chance = int.from_bytes(digest, "big") & ((1 << RANDOM_BITS) - 1)
    return Fire(id=uuid7(told, chance), timer=due.timer, due_at=due.at, late=late)


class Schedule:
    """The timers of many agents, and the one task that waits for the next."""

    def __init__(
        self,
        send: Callable[[str, Fire], Awaitable[None]],
        *,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`send` gives a command to an agent's host, and returns when it was carried out or cannot be now."""
        self._send = send
        self._clock = clock
        self._sleep = sleep
        self._began = clock.now()
        self._timers: dict[str, tuple[Due, ...]] = {}
        self._changed = asyncio.Event()
        self._firing: dict[str, asyncio.Task[None]] = {}
        self._not_before: dict[str, int] = {}
        """Agents that could not be woken: when it is tried again, microseconds UTC."""
        self._wake: dict[str, int] = {}
        """When each agent that is not busy with a heartbeat is to be woken next, microseconds UTC."""
        self._heap: list[tuple[int, str]] = []
        """The same by time. An entry that is not what `_wake` says is of before, and passed over."""

    def know(self, agent_id: str, timers: Sequence[Due]) -> None:
        """These are the agent's timers now, all of them. The same as before are no news."""
        now = tuple(sorted(timers))
        if now == self._timers.get(agent_id, ()):
            return
        if now:
            self._timers[agent_id] = now
        else:
            del self._timers[agent_id]
        self._not_before.pop(agent_id, None)
        self._plan(agent_id)
        self._changed.set()

    @property
    def next_at(self) -> int | None:
        """When the next agent is to be woken, microseconds UTC; None where there are no timers."""
        while self._heap and self._wake.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    async def run(self) -> None:
        """Send every heartbeat when it is due, for ever. Cancelling it loses nothing."""
        try:
            while True:
                now = self._clock.now()
                while (at := self.next_at) is not None and at <= now:
                    self._begin(self._heap[0][1], now)
                await self._wait()
        finally:
            firing = list(self._firing.values())
            for task in firing:
                task.cancel()
            await asyncio.gather(*firing, return_exceptions=True)

    def _plan(self, agent_id: str) -> None:
        """Note when the agent is to be woken; one that is busy with a heartbeat is planned when that is over."""
        timers = self._timers.get(agent_id)
        if not timers or agent_id in self._firing:
            self._wake.pop(agent_id, None)
            return
        at = max(timers[0].at, self._not_before.get(agent_id, 0))
        if self._wake.get(agent_id) != at:
            self._wake[agent_id] = at
            heappush(self._heap, (at, agent_id))
        if len(self._heap) > 2 * len(self._wake) + 64:
            self._heap = [(at, agent) for agent, at in self._wake.items()]
            heapify(self._heap)

    def _begin(self, agent_id: str, now: int) -> None:
        """Send the heartbeat that is due, in a task of its own."""
        timers = self._timers[agent_id]
        command = fire(agent_id, timers[0], now, self._began)
        self._firing[agent_id] = asyncio.get_running_loop().create_task(self._fire(agent_id, command, timers))
        self._plan(agent_id)

    async def _wait(self) -> None:
        """Until the next one is due, or something changes."""
        self._changed.clear()
        at = self.next_at
        changed = asyncio.get_running_loop().create_task(self._changed.wait())
        waits: list[asyncio.Task[Any]] = [changed]
        if at is not None:
            seconds = min(max(at - self._clock.now(), 0) / MICROSECONDS, TIMER_LOOK_S)
            waits.append(asyncio.ensure_future(self._sleep(seconds)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for waiting in waits:
                waiting.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def _fire(self, agent_id: str, command: Fire, before: tuple[Due, ...]) -> None:
        """One heartbeat of one agent; its host tells what its timers are afterwards, or it is tried again later."""
        try:
            await self._send(agent_id, command)
        finally:
            del self._firing[agent_id]
            if self._timers.get(agent_id) == before:
                self._not_before[agent_id] = self._clock.now() + TIMER_RETRY_US
            self._plan(agent_id)
            self._changed.set()
