"""Run uvicorn so that it says when it answers, and stops as soon as it is told to and its connections are closed.

Used by `server`. uvicorn's own server looks ten times a second if it should stop, and again if its connections are
closed: 0.2 s of each stop, and ten wake-ups a second of a server at rest.
"""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import uvicorn

TICK_S = 1.0
"""Seconds between two dates that answers have."""
LOOK_S = 0.005
"""Seconds between two looks if all connections are closed, while the server stops."""


class StoppableServer(uvicorn.Server):
    """Server that belongs to one event loop, and leaves signals to the program around it."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.begun = asyncio.Event()
        """Set when the server answers."""
        self._told = asyncio.Event()

    def stop(self) -> None:
        """Stop soon. Idempotent."""
        self.should_exit = True
        self._told.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone while the block runs."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to answer."""
        await super().startup(sockets)
        self.begun.set()

    async def main_loop(self) -> None:
        """Wait for `stop`, and renew the date of answers each second."""
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK_S):
                    await self._told.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more connections, and wait until the open ones have ended; cancel what is left after the time that
        the configuration gives them.
        """
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        try:
            async with asyncio.timeout(self.config.timeout_graceful_shutdown):
                while (self.server_state.connections or self.server_state.tasks) and not self.force_exit:  # noqa: ASYNC110 - uvicorn sets no event
                    await asyncio.sleep(LOOK_S)
                for server in self.servers:
                    await server.wait_closed()
        except TimeoutError:
            for task in self.server_state.tasks:
                task.cancel("the time in which requests may finish has ended")
