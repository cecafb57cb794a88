"""Measure and pass the time in which a gateway waits: between tries, for a rate limit, until a breaker closes.

Used by `Gateway`. `everlog.testing` supplies another `GatewayTime`, in which waiting takes no real time; the time of
day, for budgets, is the `Clock`'s.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol


class GatewayTime(Protocol):
    """Source of seconds that never go back, and of waits in them."""

    def now(self) -> float:
        """Return seconds since any fixed moment."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait for a number of seconds."""
        ...

    def call_later(self, seconds: float, callback: Callable[[], None]) -> asyncio.Handle:
        """Call `callback` after a number of seconds, unless the returned handle is cancelled before."""
        ...


class LoopTime:
    """The time of the running event loop."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> asyncio.Handle:
        return asyncio.get_running_loop().call_later(seconds, callback)
