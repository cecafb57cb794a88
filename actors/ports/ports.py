"""What a process brings along for its agents, as one value: time, chance, threads, and where a person reads notes."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from everlog.actors.ports.effects import Clock, Ids, ThreadRunner
from everlog.actors.ports.real_clock import RealClock, RealIds


def tell_nobody(_: str) -> None:
    """Drop a note."""


class Ports(msgspec.Struct, frozen=True, kw_only=True):
    """The effects that whatever runs agents shares. The defaults are the real ones; a test brings its own."""

    clock: Clock = msgspec.field(default_factory=RealClock)
    ids: Ids = msgspec.field(default_factory=RealIds)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Lets seconds pass."""
    aside: ThreadRunner = asyncio.to_thread
    """Runs what takes long beside the event loop."""
    note: Callable[[str], None] = tell_nobody
    """Is told what a person should know."""
