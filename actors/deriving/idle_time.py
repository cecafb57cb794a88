"""Use the time between the commands for an agent: derive what is due, and unload the agent after a long rest.

Used by the host of an agent, whose gate is held while something is derived: so a command that arrives, and cancels the
derivation, begins as soon as a commit in progress has ended.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from everlog.actors.agent.agent import Agent
from everlog.actors.deriving.idle_derivation import IdleDerivation
from everlog.events import EverlogError


class IdleWorker(Protocol):
    """Interface of the worker that runs the agent's turns."""

    @property
    def busy(self) -> bool: ...

    async def guarded(self, work: Awaitable[str]) -> str: ...


class IdleTime:
    """One task that runs while no command does; there is none in between."""

    __slots__ = (
        "_derivation",
        "_gate",
        "_idle_s",
        "_note",
        "_on_idle",
        "_rested",
        "_sleep",
        "_task",
        "_then",
        "_worker",
    )

    def __init__(
        self, gate: asyncio.Lock, *, idle_s: float | None, sleep: Callable[[float], Awaitable[None]],
        on_idle: Callable[[], Awaitable[Any]], note: Callable[[str], None],
    ) -> None:  # fmt: skip
        """`on_idle` is called after `idle_s` seconds without a command; None: never."""
        self._gate, self._idle_s, self._sleep, self._on_idle, self._note = gate, idle_s, sleep, on_idle, note
        self._task: asyncio.Task[None] | None = None
        self._rested = False
        """True if everything was derived after a long rest, and no command came since."""
        self._derivation: IdleDerivation | None = None
        self._worker: IdleWorker | None = None
        self._then: Callable[[], Awaitable[None]] | None = None

    @property
    def derives(self) -> bool:
        """True if an agent is in memory whose settings want memories to be derived while it is idle."""
        return self._derivation is not None and self._derivation.wanted

    def opened(self, agent: Agent, worker: IdleWorker, then: Callable[[], Awaitable[None]]) -> None:
        """Use the time of this agent from now on. `then` is called after something was derived."""
        self._derivation, self._worker, self._then = IdleDerivation(agent), worker, then

    def closed(self) -> None:
        """Forget the agent, which is being unloaded."""
        self.stop()
        self._derivation = self._worker = self._then = None

    def begin(self) -> None:
        """Begin the idle time after the last command in progress."""
        self.stop()
        self._rested = False
        if self._idle_s is not None or self.derives:
            self._task = asyncio.get_running_loop().create_task(self._wait())

    def stop(self) -> None:
        """End the idle time, because a command arrived. A task that unloads the agent itself continues."""
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
            self._task = None

    def derive_rested(self) -> bool:
        """Begin to derive what is due of an agent that has been idle for long, once for each idle time. Return False if
        nothing is left to do.
        """
        if not self.derives or self._rested:
            return False
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._derive(rested=True))
        return True

    async def _wait(self) -> None:
        await self._derive(rested=False)
        if self._idle_s is not None:
            await self._sleep(self._idle_s)
            await self._derive(rested=True)
            self._task = None
            await self._on_idle()

    async def _derive(self, *, rested: bool) -> None:
        if not self.derives:
            return
        async with self._gate:
            if self._derivation is None or self._worker is None or self._worker.busy:
                return
            self._rested = rested  # also after a failure: the next idle time tries again
            try:
                if fault := await self._worker.guarded(self._derivation.run(rested=rested)):
                    self._note(fault)
            except EverlogError as error:
                self._note(f"Memories could not be derived; no acknowledged record is lost. {error}")
            if self._then is not None:
                await self._then()
