"""Send timed heartbeats when they are due. The schedule has no state outside the logs, and writes nothing.

Used by `LocalRuntime` and by the supervisor of a cluster; hosts report their timers to it through `HostLink`.

A timer is an event in its agent's log, and so is each heartbeat that it caused; the projection `timers` says which are
due. The schedule only sends commands. The id of a command is derived from agent, timer and due time, so that two
schedules of one store cause one heartbeat, and the host drops a heartbeat that is not due any more.

A hundred thousand agents may have timers. Heartbeats that are due together are sent together, up to
HEARTBEATS_IN_FLIGHT_MAX at once; the others are sent late, and none is lost.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

import msgspec

from everlog.actors.agent.commands import FireTimer
from everlog.actors.ports.agent_constants import (
    BEATS_BATCHED_FROM,
    HEARTBEAT_BATCH_S,
    HEARTBEATS_IN_FLIGHT_MAX,
    LATE_US,
    TIMED_AGENTS_MAX,
    TIMER_CHECK_S,
    TIMER_RETRY_US,
)
from everlog.actors.ports.alarm import Alarm
from everlog.actors.ports.effects import Clock
from everlog.actors.ports.loggers import logger_of
from everlog.events import derived_id
from everlog.events.times import MICROSECONDS

TIMED = frozenset({
    "timer_set", "timer_cancelled", "heartbeats_paused", "heartbeat", "agent_created", "agent_deleted",
    "approval_requested", "approval_decided", "turns_hidden", "agent_message_sent", "agent_message_received",
    "agent_reply_received", "agent_message_settled",
})  # fmt: skip
"""Kinds of records after which the timers of an agent may have changed."""


class DueTimer(msgspec.Struct, frozen=True, order=True, gc=False):
    """Next heartbeat of a timer."""

    at: int
    """Microseconds UTC."""
    timer: str
    every_s: int = 0
    set_seq: int = 0
    """Seq of the record that set the timer: a timer that is set again is another one, even with the same due time."""


def due_of(row: Mapping[str, Any]) -> DueTimer:
    """Return the next heartbeat that a row of the projection `timers` describes."""
    return DueTimer(row["due_us"], row["timer"], row["every_s"], row["seq"])


def fire(agent_id: str, due: DueTimer, now: int, began: int) -> FireTimer:
    """Return the command for a timer that is due at `now`. `began`: start of the schedule. Both are microseconds UTC.

    A heartbeat is marked late if no schedule ran when it was due, or if LATE_US have passed. The id of the command
    carries a time, and the log refuses old ids as stale; so the id of a late heartbeat carries `now`. A late heartbeat
    that is sent twice has two ids, and the host drops the second because the timer is not due any more.
    """
    late = due.at < began or now - due.at > LATE_US
    id_time = due.at if now - due.at <= LATE_US else now
    digest = hashlib.sha256(f"{agent_id}\0{due.timer}\0{due.set_seq}\0{due.at}".encode()).digest()
    return FireTimer(id=derived_id(id_time, digest), timer=due.timer, due_at=due.at, late=late)


class TimerReporter:
    """Reports the timers of one agent to the schedule, each time that they are others."""

    def __init__(self, agent_id: str, notify: Callable[[str, Sequence[DueTimer]], None] | None) -> None:
        """`notify` None: nothing is reported."""
        self._agent_id, self._notify = agent_id, notify
        self.changed = False
        """True if the timers may have changed since they were last reported."""
        self._reported: Sequence[DueTimer] | None = None
        """Timers as last reported; None if the schedule must be told in any case."""

    def reset(self) -> None:
        """Have the timers reported next time, even if they are as they were."""
        self.changed, self._reported = True, None

    def to_report(self, *, also: bool) -> bool:
        """Return True if the timers must be read, and count them as read. `also`: they may have changed anyway."""
        read = self._notify is not None and (self.changed or also)
        self.changed = self.changed and not read
        return read

    def report(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Report timers, given as rows of the projection `timers`, unless they are as they were."""
        timers = [due_of(row) for row in rows]
        if timers != self._reported and self._notify is not None:
            self._reported = timers
            self._notify(self._agent_id, timers)


HeartbeatBatch = Sequence[tuple[str, FireTimer]]
"""Commands, each with its agent; one for each agent."""

DeliveryCallback = Callable[[str], None]
"""Called with the name of an agent whose command was carried out, or cannot be carried out now."""

HeartbeatSender = Callable[[HeartbeatBatch, DeliveryCallback], Awaitable[None]]
"""Sends commands to the hosts of their agents. Returns when all are done, or when the rest cannot be carried out
now.
"""


_log = logger_of("timers")

BUSY = -1
"""Stands for a time in `_AgentTimers.wake`: a heartbeat of the agent is in progress."""


class _AgentTimers(msgspec.Struct, gc=False):
    """Pending timers of one agent, at least one."""

    timers: tuple[DueTimer, ...]
    """Sorted by due time."""
    wake: int = BUSY
    """Time to wake the agent, microseconds UTC; or BUSY."""
    not_before: int = 0
    """Earliest time of the next attempt after a failed one, microseconds UTC."""


class TimerSchedule:
    """Timers of many agents, and the task that waits for the next one."""

    def __init__(
        self,
        send: HeartbeatSender,
        *,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        agents_max: int = TIMED_AGENTS_MAX,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Create the schedule. `agents_max`: number of agents that may have timers here; `note` is called once when
        there are more.
        """
        self._send = send
        self._clock = clock
        self._sleep = sleep
        self._agents_max = agents_max
        self._note = note
        self._began = clock.now()
        self._kept: dict[str, _AgentTimers] = {}
        self._heap: list[tuple[int, str]] = []
        """Times to wake agents. An entry whose time is not that in `_kept` is outdated and skipped."""
        self._firing: dict[str, tuple[DueTimer, ...]] = {}
        """Agents with a heartbeat in progress, and their timers when it was sent."""
        self._sends: set[asyncio.Task[None]] = set()
        self._bell = Alarm(sleep)
        self._notified: set[str] | None = set()
        """Agents whose hosts have reported timers while the logs are still being read; None after that."""
        self.left_out = 0
        """Number of times that timers were left out because of `agents_max`."""

    def know(self, agent_id: str, timers: Sequence[DueTimer]) -> None:
        """Replace the agent's timers by those that its host reports. Equal timers change nothing."""
        if self._notified is not None:
            self._notified.add(agent_id)
        self._keep(agent_id, timers)

    def load_timers(self, agent_id: str, timers: Sequence[DueTimer]) -> None:
        """Set the agent's timers as read from its log a while ago, unless its host has reported newer ones."""
        if self._notified is None or agent_id not in self._notified:
            self._keep(agent_id, timers)

    def finish_loading(self) -> None:
        """End the reading of timers from logs: from now on only hosts report timers."""
        self._notified = None

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
                f"the schedule holds the timers of {self._agents_max} agents, its limit, and leaves out those of "
                f"{agent_id!r}: they stay in its log, and fire after its host reports them again. Cancel timers, or "
                "divide the agents among several stores."
            )

    def __len__(self) -> int:
        """Return the number of agents that have timers here."""
        return len(self._kept)

    @property
    def firing(self) -> int:
        """Number of heartbeats in progress."""
        return len(self._firing)

    @property
    def next_at(self) -> int | None:
        """Time of the next agent to wake, microseconds UTC; None if there is none."""
        while self._heap and self._is_old(*self._heap[0]):
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def _is_old(self, at: int, agent_id: str) -> bool:
        kept = self._kept.get(agent_id)
        return kept is None or kept.wake != at

    async def run(self) -> None:
        """Send every heartbeat when it is due, for ever. Cancelling loses no heartbeat: the timers are in the logs."""
        try:
            while True:
                beats = self._due(self._clock.now())
                if beats:
                    task = asyncio.get_running_loop().create_task(self._sent(beats))
                    self._sends.add(task)
                    task.add_done_callback(self._sends.discard)
                if len(self._firing) >= BEATS_BATCHED_FROM:  # many are under way: the next ones go together
                    await self._sleep(HEARTBEAT_BATCH_S)
                await self._wait()
        finally:
            sends = list(self._sends)
            for task in sends:
                task.cancel()
            await asyncio.gather(*sends, return_exceptions=True)

    def _due(self, now: int) -> HeartbeatBatch:
        """Return the due heartbeats for which there is room, longest due first, and mark their agents as busy."""
        beats: list[tuple[str, FireTimer]] = []
        while len(self._firing) < HEARTBEATS_IN_FLIGHT_MAX and (at := self.next_at) is not None and at <= now:
            agent_id = heappop(self._heap)[1]
            kept = self._kept[agent_id]
            kept.wake = BUSY
            self._firing[agent_id] = kept.timers
            _log.info("the timer %r of %r is due", kept.timers[0].timer, agent_id)
            beats.append((agent_id, fire(agent_id, kept.timers[0], now, self._began)))
        return beats

    async def _sent(self, beats: HeartbeatBatch) -> None:
        """Send heartbeats to their agents, and plan the next ones."""
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
        """End the heartbeat of an agent, and plan its next one."""
        before = self._firing.pop(agent_id)
        kept = self._kept.get(agent_id)
        if kept is not None:
            # A host reports other timers after it has appended a heartbeat. Equal timers mean that it could not: try
            # later.
            if kept.timers == before:
                kept.not_before = self._clock.now() + TIMER_RETRY_US
            self._plan(agent_id, kept)
        self._bell.ring()

    def _plan(self, agent_id: str, kept: _AgentTimers) -> None:
        """Plan the next wake-up of an agent, unless a heartbeat of the agent is in progress: `_over` plans it then."""
        if agent_id in self._firing:
            return
        at = max(kept.timers[0].at, kept.not_before)
        if kept.wake != at:
            kept.wake = at
            heappush(self._heap, (at, agent_id))
        # Replaced entries stay in the heap. Rebuild it before they outnumber the agents.
        if len(self._heap) > 2 * len(self._kept) + 64:
            self._heap = [(kept.wake, agent) for agent, kept in self._kept.items() if kept.wake != BUSY]
            heapify(self._heap)

    async def _wait(self) -> None:
        """Wait until the next timer is due and there is room for its heartbeat, or until something changes."""
        at = self.next_at
        if at is None or len(self._firing) >= HEARTBEATS_IN_FLIGHT_MAX:
            await self._bell.wait(None)
        else:
            # Never longer than TIMER_CHECK_S: the clock may be set, or the machine may sleep.
            await self._bell.wait(min(max(at - self._clock.now(), 0) / MICROSECONDS, TIMER_CHECK_S))
