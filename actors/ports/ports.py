"""Bundle the effects that a process supplies to its agents: time, ids, threads, and notes for a person.

Used by `AgentSystem`, by hosts, and by the cluster's actors.
"""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from everlog.actors.ports.effects import Clock, FunctionRunner, Ids, ThreadRunner
from everlog.actors.ports.function_threads import PROCESS_THREADS
from everlog.actors.ports.real_clock import RealClock, RealIds


def discard_note(_: str) -> None:
    """Discard a note."""


class Ports(msgspec.Struct, frozen=True, kw_only=True):
    """Effects that all agents of a process share. The defaults are the real ones; a test supplies its own."""

    clock: Clock = msgspec.field(default_factory=RealClock)
    ids: Ids = msgspec.field(default_factory=RealIds)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Wait for a number of seconds."""
    aside: ThreadRunner = asyncio.to_thread
    """Run slow work outside of the event loop."""
    functions: FunctionRunner = PROCESS_THREADS
    """Run users' functions outside of the event loop. The real one is the same for all systems of a process, because
    its limits are those of the process.
    """
    note: Callable[[str], None] = discard_note
    """Called with each note that a person should read."""
