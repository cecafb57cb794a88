"""Schedule host recovery after crashes: order, concurrency, back-off.

Used by the supervisor. All state belongs to one event loop.

A host is started again only to finish unfinished turns; without any, it is started when a caller asks or a timer is
due. The partitions that were used last are recovered first. A recovery that fails repeatedly is retried with growing
waits.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from heapq import heappop, heappush

import msgspec

from everlog.actors.cluster.placement import HostedPartition
from everlog.actors.ports.agent_constants import RECOVERIES_MAX, REREAD_LOG_S
from everlog.actors.ports.alarm import Alarm
from everlog.actors.ports.effects import Clock
from everlog.events.times import MICROSECONDS

HostRecovery = Callable[[HostedPartition, Callable[[], None]], Awaitable[float | None]]
"""Starts a host and finishes the unfinished turns of its partition. Returns None when that is done, or the seconds
until the next try. Calls the callback when the host has been started. Raises nothing.
"""

UnfinishedLookup = Callable[[Sequence[str]], Awaitable[Collection[str]]]
"""Returns those of the agents that have unfinished turns, according to their logs."""

LOOKS = 2
"""Number of times that a log is read before nothing is to be done: a host that was presumed dead, but was only cut off,
may have written since.
"""


NAMES_MAX = 3
"""Hosts that a note names; it counts the others."""


class _RecoveryState(msgspec.Struct):
    """State of a partition that may need recovery."""

    used: int
    """Time of the last use, microseconds UTC."""
    sure: bool
    """True if turns are unfinished for certain; False if the log must be read first."""
    looks: int = 0
    running: bool = False
    again_s: float | None = None
    """Seconds until another try, if the host died during the recovery."""


class RecoveryQueue:
    """Partitions that may need recovery, at most one entry for each."""

    def __init__(
        self,
        recover: HostRecovery,
        unfinished: UnfinishedLookup | None,
        *,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        starts_max: int,
    ) -> None:
        """Create the queue. `starts_max`: hosts that start at once. Without `unfinished`, every dead host is
        recovered.
        """
        self._recover = recover
        self._unfinished = unfinished
        self._clock = clock
        self._starting_max = 2 * starts_max
        """Twice `starts_max`: as many recoveries wait as are started, so that a timer's start never overtakes a
        recovery.
        """
        self._recovery_states: dict[HostedPartition, _RecoveryState] = {}
        self._later: list[tuple[int, int, HostedPartition]] = []
        self._ready: list[tuple[int, int, HostedPartition]] = []
        self._to_read: list[HostedPartition] = []
        self._order = 0
        self._starting = 0
        self._looking: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._bell = Alarm(sleep)

    @property
    def running(self) -> int:
        """Number of recoveries in progress."""
        return len(self._tasks)

    @property
    def waiting(self) -> int:
        """Number of partitions that wait: for their turn, for their logs to be read, or for the next try."""
        return len(self._recovery_states) - len(self._tasks)

    def __contains__(self, place: HostedPartition) -> bool:
        return place in self._recovery_states

    def add(self, place: HostedPartition, *, sure: bool, used: int = 0, after_s: float = 0) -> None:
        """Recover a partition in `after_s` seconds or later. `sure`: turns are unfinished for certain.

        `used`: time of the last use, microseconds UTC.
        """
        sure = sure or self._unfinished is None or not place.agent_id
        hurt = self._recovery_states.get(place)
        if hurt is None:
            hurt = self._recovery_states[place] = _RecoveryState(used, sure)
            self._put_off(place, after_s)
        else:
            # The host died again: its log is read from scratch, and a recovery in progress is repeated after its end.
            hurt.looks = 0
            hurt.again_s = after_s if hurt.running else None
        hurt.sure, hurt.used = hurt.sure or sure, max(hurt.used, used)

    def _put_off(self, place: HostedPartition, seconds: float) -> None:
        self._order += 1
        heappush(self._later, (self._clock.now() + round(seconds * MICROSECONDS), self._order, place))
        self._bell.ring()

    async def run(self) -> None:
        """Recover the partitions that are added, for ever."""
        try:
            while True:
                self._promote_due()
                self._look()
                while self._ready and self._starting < self._starting_max and self.running < RECOVERIES_MAX:
                    self._begin(heappop(self._ready)[2])
                now = self._clock.now()
                await self._bell.wait(max(self._later[0][0] - now, 0) / MICROSECONDS if self._later else None)
        finally:
            tasks = [*self._tasks, *([self._looking] if self._looking else [])]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _promote_due(self) -> None:
        """Move the partitions whose time has come to the ready ones, or to those whose logs must be read."""
        now = self._clock.now()
        while self._later and self._later[0][0] <= now:
            place = heappop(self._later)[2]
            hurt = self._recovery_states[place]
            if hurt.sure:
                self._order += 1
                heappush(self._ready, (-hurt.used, self._order, place))
            else:
                self._to_read.append(place)

    def _look(self) -> None:
        """Read the logs of the unsure partitions, all together; partitions that come meanwhile are in the next
        round.
        """
        if self._to_read and self._looking is None:
            places, self._to_read = self._to_read, []
            self._looking = asyncio.get_running_loop().create_task(self._look_at(places))

    async def _look_at(self, places: Sequence[HostedPartition]) -> None:
        assert self._unfinished is not None
        try:
            found = await self._unfinished([place.agent_id for place in places])
        finally:
            self._looking = None
            self._bell.ring()
        for place in places:
            hurt = self._recovery_states[place]
            hurt.sure = hurt.sure or place.agent_id in found
            hurt.looks += 1
            if hurt.sure:
                self._put_off(place, 0)
            elif hurt.looks < LOOKS:
                # No unfinished turn, but a host that was only cut off may still be writing: read the log once more,
                # later.
                self._put_off(place, REREAD_LOG_S)
            else:
                del self._recovery_states[place]

    def _begin(self, place: HostedPartition) -> None:
        hurt = self._recovery_states[place]
        hurt.running, hurt.sure = True, False
        self._starting += 1
        task = asyncio.get_running_loop().create_task(self._one(place))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _one(self, place: HostedPartition) -> None:
        starting = True

        def started() -> None:
            nonlocal starting
            self._starting -= starting
            starting = False
            self._bell.ring()

        try:
            again_s = await self._recover(place, started)
        finally:
            started()
        hurt = self._recovery_states.pop(place)
        if again_s is not None:
            self.add(place, sure=True, used=hurt.used, after_s=again_s)
        elif hurt.again_s is not None:
            self.add(place, sure=hurt.sure, used=hurt.used, after_s=hurt.again_s)


class DeathReporter:
    """Notes the deaths of hosts; deaths in the same moment, as of a whole node, are one note."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._dead: list[str] = []

    def add(self, who: str) -> None:
        """Report that a host died just now."""
        if not self._dead:
            asyncio.get_running_loop().call_soon(self._report_deaths)
        self._dead.append(who)

    def _report_deaths(self) -> None:
        dead, self._dead = self._dead, []
        others = f" and of {len(dead) - NAMES_MAX} others" if len(dead) > NAMES_MAX else ""
        self._note(f"the host of {', '.join(dead[:NAMES_MAX])}{others} died; unfinished turns continue from the log")
