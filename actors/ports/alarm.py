"""Let one task sleep until a time, or until something changes before.

Used by `TimerSchedule` and the supervisor's recovery queue. One alarm belongs to one waiting task, because the end of a
wait clears the ring. Only code of the same event loop may ring it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any


class Alarm:
    """Alarm of one task: wakes it when it is rung."""

    def __init__(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._sleep = sleep
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Wake the task. If no task waits, the next wait ends at once."""
        self._rung.set()

    async def wait(self, seconds: float | None) -> None:
        """Wait until the alarm is rung, or for so many seconds; None: without limit."""
        waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._rung.wait())]
        if seconds is not None:
            waits.append(asyncio.ensure_future(self._sleep(seconds)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for waiting in waits:
                waiting.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
            self._rung.clear()
