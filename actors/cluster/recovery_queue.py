"""What is to be had again after hosts died or everything stopped: in which order, how many at once, how soon.

A place is started again for what is unfinished there, and for nothing else: a host without is started when somebody
asks for it, or a timer is due. Those that were used last go first. One that fails again and again is tried ever more
seldom.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from heapq import heappop, heappush

import msgspec

from everlog.actors.cluster.placement import HostedPartition
from everlog.actors.hosting.alarm import Alarm
from everlog.actors.ports.agent_constants import LOOK_AGAIN_S, RECOVERIES_MAX
from everlog.actors.ports.effects import Clock
from everlog.events.times import MICROSECONDS

HostRecovery = Callable[[HostedPartition, Callable[[], None]], Awaitable[float | None]]
"""Start a place and finish what is unfinished there: None when that is done, or the seconds until the next try. Calls
back when the host has been started. Raises nothing.
"""

UnfinishedLookup = Callable[[Sequence[str]], Awaitable[Collection[str]]]
"""Which of some agents have unfinished turns, as their logs say."""

LOOKS = 2
"""How often a log is read before nothing is to be done: whose host was lost, and not dead, may have written since."""


NAMES_MAX = 3
"""Hosts that a note names; of the others it says how many."""


class _RecoveryState(msgspec.Struct):
    """A place that is to be recovered, perhaps."""

    used: int
    """When it was used last, microseconds UTC."""
    sure: bool
    """Whether something is unfinished there for sure, or may be."""
    looks: int = 0
    running: bool = False
    again_s: float | None = None
    """It died while it was being recovered, and is to be tried again in so many seconds."""


class RecoveryQueue:
    """The places that are to be recovered. There are never more of them than places that lived, or were unfinished."""

    def __init__(
        self,
        recover: HostRecovery,
        unfinished: UnfinishedLookup | None,
        *,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        starts_max: int,
    ) -> None:
        """`starts_max`: how many are started at once. Without `unfinished` something is, wherever a host died."""
        self._recover = recover
        self._unfinished = unfinished
        self._clock = clock
        self._starting_max = 2 * starts_max
        """As many as are started wait beside them, so that their turn is never a timer's."""
        self._hurt: dict[HostedPartition, _RecoveryState] = {}
        self._later: list[tuple[int, int, HostedPartition]] = []
        self._ready: list[tuple[int, int, HostedPartition]] = []
        self._unsure: list[HostedPartition] = []
        self._order = 0
        self._starting = 0
        self._looking: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._bell = Alarm(sleep)

    @property
    def running(self) -> int:
        """How many are under way."""
        return len(self._tasks)

    @property
    def waiting(self) -> int:
        """How many wait: for their turn, for a look at their logs, or until they are tried again."""
        return len(self._hurt) - len(self._tasks)

    def __contains__(self, place: HostedPartition) -> bool:
        return place in self._hurt

    def add(self, place: HostedPartition, *, sure: bool, used: int = 0, after_s: float = 0) -> None:
        """Recover a place, in so many seconds or later. `sure`: something is unfinished there."""
        sure = sure or self._unfinished is None or not place.agent_id
        hurt = self._hurt.get(place)
        if hurt is None:
            hurt = self._hurt[place] = _RecoveryState(used, sure)
            self._put_off(place, after_s)
        else:
            hurt.looks = 0
            hurt.again_s = after_s if hurt.running else None
        hurt.sure, hurt.used = hurt.sure or sure, max(hurt.used, used)

    def _put_off(self, place: HostedPartition, seconds: float) -> None:
        self._order += 1
        heappush(self._later, (self._clock.now() + round(seconds * MICROSECONDS), self._order, place))
        self._bell.ring()

    async def run(self) -> None:
        """Recover what is added, for ever."""
        try:
            while True:
                self._sort_out()
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

    def _sort_out(self) -> None:
        """Those whose time has come are ready, or to be looked at."""
        now = self._clock.now()
        while self._later and self._later[0][0] <= now:
            place = heappop(self._later)[2]
            hurt = self._hurt[place]
            if hurt.sure:
                self._order += 1
                heappush(self._ready, (-hurt.used, self._order, place))
            else:
                self._unsure.append(place)

    def _look(self) -> None:
        """Read the logs of those that are not sure, all together; those that come meanwhile are the next."""
        if self._unsure and self._looking is None:
            places, self._unsure = self._unsure, []
            self._looking = asyncio.get_running_loop().create_task(self._look_at(places))

    async def _look_at(self, places: Sequence[HostedPartition]) -> None:
        assert self._unfinished is not None
        try:
            found = await self._unfinished([place.agent_id for place in places])
        finally:
            self._looking = None
            self._bell.ring()
        for place in places:
            hurt = self._hurt[place]
            hurt.sure = hurt.sure or place.agent_id in found
            hurt.looks += 1
            if hurt.sure:
                self._put_off(place, 0)
            elif hurt.looks < LOOKS:
                self._put_off(place, LOOK_AGAIN_S)
            else:
                del self._hurt[place]

    def _begin(self, place: HostedPartition) -> None:
        hurt = self._hurt[place]
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
        hurt = self._hurt.pop(place)
        if again_s is not None:
            self.add(place, sure=True, used=hurt.used, after_s=again_s)
        elif hurt.again_s is not None:
            self.add(place, sure=hurt.sure, used=hurt.used, after_s=hurt.again_s)


class DeathReporter:
    """Notes which hosts died; those that die in one moment together, as a node's do."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._dead: list[str] = []

    def add(self, who: str) -> None:
        """This host died just now."""
        if not self._dead:
            asyncio.get_running_loop().call_soon(self._report_deaths)
        self._dead.append(who)

    def _report_deaths(self) -> None:
        dead, self._dead = self._dead, []
        others = f" and of {len(dead) - NAMES_MAX} others" if len(dead) > NAMES_MAX else ""
        self._note(f"the host of {', '.join(dead[:NAMES_MAX])}{others} died; what is unfinished goes on from the log")
