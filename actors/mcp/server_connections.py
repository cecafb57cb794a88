"""Hold the connections of this process to servers, in an event loop of their own thread.

The loop is not that of the agents: a server that floods, or the time that the SDK takes to load, must not hold up other
agents, and a process may run agents in several loops. Nothing of the SDK is imported before the first call.
"""

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from importlib.util import find_spec
from typing import Any

from everlog.actors.mcp.call_outcome import Answer
from everlog.actors.mcp.offered_tool import Offer, OfferedTool
from everlog.actors.mcp.server_entry import ServerEntry
from everlog.actors.mcp.server_owner import CLOSE_S, IDLE_S, McpSession, ServerOwner
from everlog.actors.ports.function_call import continuation, reporter
from everlog.events import McpError, Question

NEEDED = "The functions of MCP servers need the package mcp: pip install 'everlog[mcp]'."

SessionFactory = Callable[[str, ServerEntry, Callable[[], None]], AbstractAsyncContextManager[McpSession]]
"""Opens a session with a server, by its name and its entry; see `SessionSource`."""


def _real_session(
    name: str, entry: ServerEntry, on_changed: Callable[[], None]
) -> AbstractAsyncContextManager[McpSession]:
    entry.check_variables(name, os.environ)
    if find_spec("mcp") is None:
        raise McpError(NEEDED)
    from everlog.actors.mcp.sdk_session import open_session

    return open_session(name, entry, os.environ, on_changed)


class ServerConnections:
    """Connections to servers. May be used from any thread and any event loop."""

    def __init__(self, opened: SessionFactory = _real_session, idle_s: float = IDLE_S) -> None:
        self._opened, self._idle_s = opened, idle_s
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._owners: dict[tuple[str, str], ServerOwner] = {}
        """By name and entry: an edited entry is another server. Only the loop reads and writes it."""

    async def offer(self, name: str, entry: ServerEntry) -> Offer:
        """Return what a server offers now. Raises McpError."""
        return await self._run(lambda owner: owner.offer(), name, entry)

    async def call(
        self, name: str, entry: ServerEntry, tool: OfferedTool, arguments: Mapping[str, Any], *, repeats: bool
    ) -> Answer | Question:
        """Call a function of a server; see `ServerOwner.call`. A cancelled call is cancelled at the server too. Its
        progress, and the answers that it continues with, are those of the function in whose task this runs.
        """
        report, answers = reporter(), continuation()
        return await self._run(lambda owner: owner.call(tool, arguments, report, answers, repeats=repeats), name, entry)

    async def _run(self, work: Callable[[ServerOwner], Any], name: str, entry: ServerEntry) -> Any:
        async def run() -> Any:
            return await work(self._owner(name, entry))

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(run(), self._begun()))

    def _owner(self, name: str, entry: ServerEntry) -> ServerOwner:
        key = name, repr(entry)
        if key not in self._owners:
            self._owners[key] = ServerOwner(
                name, entry, lambda on_changed: self._opened(name, entry, on_changed), self._idle_s
            )
        return self._owners[key]

    def _begun(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=loop.run_forever, name="everlog mcp", daemon=True)
                self._thread.start()
                atexit.register(self.close)
            return self._loop

    def close(self) -> None:
        """Close all connections, and end the thread. Calls that run get no answer."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None:
            return
        atexit.unregister(self.close)
        ended = asyncio.run_coroutine_threadsafe(self._close_all(), loop)
        try:
            ended.result(CLOSE_S + 5)
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(CLOSE_S)
            if not thread.is_alive():
                loop.close()

    async def _close_all(self) -> None:
        owners, self._owners = list(self._owners.values()), {}
        await asyncio.gather(*(owner.close() for owner in owners), return_exceptions=True)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others, timeout=CLOSE_S)
        await asyncio.get_running_loop().shutdown_default_executor()


_of_process = ServerConnections()


def process_connections() -> ServerConnections:
    """Return the connections of this process."""
    return _of_process
