"""Timed heartbeats: when the next one of every agent is due. Owns no state beside the logs, and writes nothing.

A timer is an event in its agent's log, and so is each heartbeat that it left; what is due is the projection `timers`.
The schedule only sends commands. Their id follows from agent, timer and due time, so that two schedules of one store
make one heartbeat, and the host drops what is not due any more.

A hundred thousand agents may have timers: what is due together is sent together, so many at once and no more; what has
to wait is late, and not lost.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

import msgspec

from everlog.actors.agent.commands import FireTimer
from everlog.actors.hosting.alarm import Alarm
from everlog.actors.ports.agent_constants import (
    BEATS_GATHERED,
    BEATS_MAX,
    LATE_US,
    TIMED_AGENTS_MAX,
    TIMER_LOOK_S,
    TIMER_RETRY_US,
    TIMER_TICK_S,
)
from everlog.actors.ports.effects import Clock
from everlog.events import RANDOM_BITS, uuid7
from everlog.events.times import MICROSECONDS


class DueTimer(msgspec.Struct, frozen=True, order=True, gc=False):
    """When a timer's next heartbeat is due."""

    at: int
    """Microseconds UTC."""
    timer: str
    every_s: int = 0
    set_seq: int = 0
    """Seq of the record that set it: a timer that is set again is another one, though it be due at the same time."""


def due_of(row: Mapping[str, Any]) -> DueTimer:
    """What a row of the projection `timers` says."""
    return DueTimer(row["due_us"], row["timer"], row["every_s"], row["seq"])


def fire(agent_id: str, due: DueTimer, now: int, began: int) -> FireTimer:
    """The command for a timer that is due at `now`; `began` is since when the schedule has been kept.

    The heartbeat is late where nobody looked when it was due. An id of long ago would be refused as stale by the log,
    so that of an older heartbeat is new: the host tells that it is not due any more, should it come twice.
    """
    late = due.at < began or now - due.at > LATE_US
    told = due.at if now - due.at <= LATE_US else now
    digest = hashlib.sha256(f"{agent_id}\0{due.timer}\0{due.set_seq}\0{due.at}".encode()).digest()
    chance = int.from_bytes(digest, "big") & ((1 << RANDOM_BITS) - 1)
    return FireTimer(id=uuid7(told, chance), timer=due.timer, due_at=due.at, late=late)


HeartbeatBatch = Sequence[tuple[str, FireTimer]]
"""Commands for agents, one each."""

DeliveryCallback = Callable[[str], None]
"""Called with an agent whose command was carried out, or cannot be now."""

HeartbeatSender = Callable[[HeartbeatBatch, DeliveryCallback], Awaitable[None]]
"""Gives commands to the hosts of their agents. It returns when all are over, or those that are not cannot be now."""


BUSY = -1
"""Instead of a time: the agent is busy with a heartbeat."""


class _AgentTimers(msgspec.Struct, gc=False):
    """The timers of an agent, none of them over."""

    timers: tuple[DueTimer, ...]
    """By time."""
    wake: int = BUSY
    """When the agent is to be woken, microseconds UTC; or BUSY."""
    not_before: int = 0
    """When it is tried again, should it not have been possible to wake it, microseconds UTC."""


class TimerSchedule:
    """The timers of many agents, and the one task that waits for the next."""

    def __init__(
        self,
        send: HeartbeatSender,
        *,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        agents_max: int = TIMED_AGENTS_MAX,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`agents_max`: how many agents may have timers here; `note` is told when there are more."""
        self._send = send
        self._clock = clock
        self._sleep = sleep
        self._agents_max = agents_max
        self._note = note
        self._began = clock.now()
        self._kept: dict[str, _AgentTimers] = {}
        self._heap: list[tuple[int, str]] = []
        """When agents are to be woken. An entry that is not what `_kept` says is of before, and passed over."""
        self._firing: dict[str, tuple[DueTimer, ...]] = {}
        """Agents that are busy with a heartbeat, and what their timers were."""
        self._sends: set[asyncio.Task[None]] = set()
        self._bell = Alarm(sleep)
        self._told: set[str] | None = set()
        """Whose timers a host has told, while they are still taken up from the logs; None from then on."""
        self.left_out = 0
        """How often timers could not be kept because there were too many."""

    def know(self, agent_id: str, timers: Sequence[DueTimer]) -> None:
        """These are the agent's timers now, all of them. The same as before are no news."""
        if self._told is not None:
            self._told.add(agent_id)
        self._keep(agent_id, timers)

    def take_up(self, agent_id: str, timers: Sequence[DueTimer]) -> None:
        """The agent's timers as its log was read a while ago: no news where its host has told since."""
        if self._told is None or agent_id not in self._told:
            self._keep(agent_id, timers)

    def taken_up(self) -> None:
        """Everything was taken up: what comes from now on is told by hosts."""
        self._told = None

    def _keep(self, agent_id: str, timers: Sequence[DueTimer]) -> None:
        now = tuple(sorted(timers))
        kept = self._kept.get(agent_id)
        if now == (kept.timers if kept is not None else ()):
            return
        if not now:
            del self._kept[agent_id]
        elif kept is not None:
            kept.timers, kept.not_before = now, 0
        elif len(self._kept) < self._agents_max:
            kept = self._kept[agent_id] = _AgentTimers(now)
        else:
            self._leave_out(agent_id)
            return
        if now and kept is not None:
            self._plan(agent_id, kept)
        self._bell.ring()

    def _leave_out(self, agent_id: str) -> None:
        self.left_out += 1
        if self.left_out == 1:
            self._note(
                f"timers of {self._agents_max} agents are kept, and those of {agent_id!r} would be too many: they are "
                "in its log, and go off when they are told again. Cancel timers, or divide the agents among stores."
            )

    def __len__(self) -> int:
        """How many agents have timers here."""
        return len(self._kept)

    @property
    def firing(self) -> int:
        """How many heartbeats are under way."""
        return len(self._firing)

    @property
    def next_at(self) -> int | None:
        """When the next agent is to be woken, microseconds UTC; None where nobody waits to be."""
        while self._heap and self._is_old(*self._heap[0]):
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def _is_old(self, at: int, agent_id: str) -> bool:
        kept = self._kept.get(agent_id)
        return kept is None or kept.wake != at

    async def run(self) -> None:
        """Send every heartbeat when it is due, for ever. Cancelling it loses nothing."""
        try:
            while True:
                beats = self._due(self._clock.now())
                if beats:
                    task = asyncio.get_running_loop().create_task(self._sent(beats))
                    self._sends.add(task)
                    task.add_done_callback(self._sends.discard)
                if len(self._firing) >= BEATS_GATHERED:  # many are under way: the next ones go together
                    await self._sleep(TIMER_TICK_S)
                await self._wait()
        finally:
            sends = list(self._sends)
            for task in sends:
                task.cancel()
            await asyncio.gather(*sends, return_exceptions=True)

    def _due(self, now: int) -> HeartbeatBatch:
        """What is due, as far as there is room for it: the longest due first."""
        beats: list[tuple[str, FireTimer]] = []
        while len(self._firing) < BEATS_MAX and (at := self.next_at) is not None and at <= now:
            agent_id = heappop(self._heap)[1]
            kept = self._kept[agent_id]
            kept.wake = BUSY
            self._firing[agent_id] = kept.timers
            beats.append((agent_id, fire(agent_id, kept.timers[0], now, self._began)))
        return beats

    async def _sent(self, beats: HeartbeatBatch) -> None:
        """Heartbeats of some agents; their hosts tell what their timers are afterwards, or they are tried again."""
        left = {agent_id for agent_id, _ in beats}

        def over(agent_id: str) -> None:
            if agent_id in left:
                left.remove(agent_id)
                self._over(agent_id)

        try:
            await self._send(beats, over)
        finally:
            for agent_id in sorted(left):
                over(agent_id)

    def _over(self, agent_id: str) -> None:
        """An agent is no longer busy with its heartbeat."""
        before = self._firing.pop(agent_id)
        kept = self._kept.get(agent_id)
        if kept is not None:
            if kept.timers == before:
                kept.not_before = self._clock.now() + TIMER_RETRY_US
            self._plan(agent_id, kept)
        self._bell.ring()

    def _plan(self, agent_id: str, kept: _AgentTimers) -> None:
        """Note when the agent is to be woken; one that is busy with a heartbeat is planned when that is over."""
        if agent_id in self._firing:
            return
        at = max(kept.timers[0].at, kept.not_before)
        if kept.wake != at:
            kept.wake = at
            heappush(self._heap, (at, agent_id))
        if len(self._heap) > 2 * len(self._kept) + 64:
            self._heap = [(kept.wake, agent) for agent, kept in self._kept.items() if kept.wake != BUSY]
            heapify(self._heap)

    async def _wait(self) -> None:
        """Until the next one is due and there is room for it, or something changes."""
        at = self.next_at
        if at is None or len(self._firing) >= BEATS_MAX:
            await self._bell.wait(None)
        else:
            await self._bell.wait(min(max(at - self._clock.now(), 0) / MICROSECONDS, TIMER_LOOK_S))
