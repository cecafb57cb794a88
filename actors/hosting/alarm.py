"""A task that sleeps until its time has come, or until something changes before."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any


class Alarm:
    """Wakes the one task that waits for it."""

    def __init__(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._sleep = sleep
        self._repair_name = asyncio.Event()

    def ring(self) -> None:
        """Something has changed. Rung while nobody waits, it ends the next wait at once."""
        self._repair_name.set()

    async def wait(self, seconds: float | None) -> None:
        """Until it is rung, or for so long; None: however long that takes."""
        waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._repair_name.wait())]
        if seconds is not None:
            waits.append(asyncio.ensure_future(self._sleep(seconds)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for waiting in waits:
                waiting.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
            self._repair_name.clear()
