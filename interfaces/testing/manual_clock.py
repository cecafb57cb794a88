"""Move time by hand: a clock that stands still until a test moves it, and ids that count up.

Part of `everlog.testing`. Whatever waits on the clock waits for `wake_next`, which `ScriptedSystem.advance` calls in
the event loop; `skip` wakes nothing, and may be called from any thread.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from heapq import heappop, heappush
from typing import Any

from everlog.events import BadInput, uuid7
from everlog.events.times import MICROSECONDS, since_epoch

START = datetime(2026, 1, 1, tzinfo=UTC)
"""Default beginning of a test's time."""


class ManualClock:
    """A clock that stands still until a test moves it. Each reading moves it by `tick_us` microseconds."""

    def __init__(self, start: datetime = START, *, tick_us: int = 0) -> None:
        """Set the clock to `start`, a time with a zone. Raises BadInput without one."""
        if start.tzinfo is None:
            raise BadInput(f"The clock of a test starts at a time with a zone, not at {start}: add tzinfo=UTC.")
        self.at = since_epoch(start)
        """Microseconds since 1970-01-01 UTC, which no reading has moved."""
        self._tick_us = tick_us
        self._sleepers: list[tuple[int, int, asyncio.Future[None]]] = []
        self._slept = 0

    def now(self) -> int:
        """Return microseconds since 1970-01-01 UTC."""
        self.at += self._tick_us
        return self.at

    @property
    def time(self) -> datetime:
        """The time as a datetime in UTC."""
        return datetime.fromtimestamp(self.at // MICROSECONDS, UTC).replace(microsecond=self.at % MICROSECONDS)

    def skip(self, seconds: float) -> None:
        """Move the time, and wake nothing: the next `advance` of a system wakes what is due by then."""
        self.at += round(seconds * MICROSECONDS)

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock was moved by so many seconds."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._slept += 1
        heappush(self._sleepers, (self.at + round(seconds * MICROSECONDS), self._slept, waiting))
        await waiting

    @property
    def next_at(self) -> int | None:
        """Time at which the next sleeper wakes, microseconds UTC; None if none sleeps."""
        while self._sleepers and self._sleepers[0][2].done():  # its task was cancelled
            heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None

    def wake_next(self, at: int) -> None:
        """Move the clock to `at` (never back), and wake all that sleep until then. Call it in the event loop."""
        self.at = max(self.at, at)
        while (first := self.next_at) is not None and first <= self.at:
            heappop(self._sleepers)[2].set_result(None)


class ManualTime:
    """The waits of a gateway on a ManualClock: they take no real time, and move the clock on by their length."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock

    def now(self) -> float:
        return self._clock.at / MICROSECONDS

    async def sleep(self, seconds: float) -> None:
        self._clock.skip(seconds)
        await asyncio.sleep(0)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> asyncio.Handle:
        self._clock.skip(seconds)
        return asyncio.get_running_loop().call_soon(callback)


class CountingIds:
    """A source of UUIDv7 whose random part counts up: the same test gets the same ids in every run."""

    def __init__(self) -> None:
        self.count = 0

    def new(self, at: int) -> str:
        """Return the next id for time `at` (microseconds UTC)."""
        self.count += 1
        return uuid7(at, self.count)


async def in_place(work: Callable[..., Any], /, *arguments: Any) -> Any:
    """Run slow work in the event loop instead of a thread, so that its order is the same in every run."""
    return work(*arguments)
