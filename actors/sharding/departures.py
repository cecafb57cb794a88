"""Hold the commands of an agent that leaves its shard, until it has left.

Otherwise an agent with a message always waiting would never be idle, and could not move. Used by `Shard`.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from everlog.actors.agent.commands import CancelTurn, Command
from everlog.actors.ports.agent_constants import BUSY_S
from everlog.events import Busy

LOOK_S = 0.02
"""Seconds between two attempts to unload an agent that is at work."""


class Departures:
    """Agents of one shard that are leaving it."""

    def __init__(self, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._sleep = sleep
        self._leaving: dict[str, asyncio.Event] = {}
        """Event that is set when the agent has left, or stays."""

    async def hold(self, agent_id: str, command: Command, *, works: bool) -> None:
        """Wait while the agent is leaving. A turn that the agent still `works` on can be cancelled meanwhile."""
        while (left := self._leaving.get(agent_id)) is not None and not (works and isinstance(command, CancelTurn)):
            await left.wait()

    @asynccontextmanager
    async def leaving(
        self, agent_id: str, unload: Callable[[], Awaitable[bool]], patience_s: float
    ) -> AsyncIterator[None]:
        """Run the block when the agent is unloaded, while its commands wait. `unload` returns False if it is at work.

        Raises Busy if it is still at work after `patience_s` seconds, or if it is leaving already.
        """
        if agent_id in self._leaving:
            raise Busy(f"{agent_id!r} is moving already. Try again.", retry_after_s=BUSY_S)
        left = self._leaving[agent_id] = asyncio.Event()
        try:
            for _ in range(round(patience_s / LOOK_S)):
                if await unload():
                    break
                await self._sleep(LOOK_S)
                await asyncio.sleep(0)  # a test's `sleep` may return at once: let the agent work
            else:
                if not await unload():
                    raise Busy(f"{agent_id!r} is at work, and moves when it is idle. Try again.", retry_after_s=BUSY_S)
            yield
        finally:
            del self._leaving[agent_id]
            left.set()
