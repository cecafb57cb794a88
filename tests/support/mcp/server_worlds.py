"""Agents that have functions of servers: of programs made by hand, of real ones, and of servers in this process."""

import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from everlog.actors.functions.tools import Tool
from everlog.actors.mcp.mcp_functions import functions_of
from everlog.actors.mcp.server_connections import ServerConnections
from everlog.actors.mcp.server_entry import ServerEntry
from everlog.events import FunctionResult

RAW_SERVER = Path(__file__).parent / "raw_server.py"


def raw_entry(mode: str, file: Path | None = None, **more: Any) -> ServerEntry:
    """Return the entry of a server made by hand; see `raw_server.py`."""
    args = (str(RAW_SERVER), mode, *([str(file)] if file else []))
    return ServerEntry(command=sys.executable, args=args, **more)


def module_entry(module: str, *args: str) -> ServerEntry:
    """Return the entry of a published server, which is a Python module."""
    env = tuple(name for name in ("PYTHONPATH",) if name in os.environ)
    return ServerEntry(command=sys.executable, args=("-m", module, *args), env=env)


@contextmanager
def connections() -> Iterator[ServerConnections]:
    """Yield connections that are closed at the end."""
    made = ServerConnections()
    try:
        yield made
    finally:
        made.close()


@contextmanager
def connections_to(server: Any) -> Iterator[ServerConnections]:
    """Yield connections to a server in this process, whatever an entry says."""
    from everlog.actors.mcp.sdk_session import session_over

    def opened(_name: str, _entry: ServerEntry, on_changed: Callable[[], None]) -> Any:
        return session_over(server, on_changed)

    made = ServerConnections(opened)
    try:
        yield made
    finally:
        made.close()


def functions(entry: ServerEntry, made: ServerConnections, name: str = "raw") -> dict[str, Tool]:
    """Return what the server offers now as functions of agents, by the server's own names."""
    offer = asyncio.run(made.offer(name, entry))
    tools: Sequence[Tool] = list(functions_of(name, entry, offer.tools, lambda: made))
    return {own.name: tool for own, tool in zip(offer.tools, tools, strict=True)}


def wait_for(file: Path) -> None:
    """Wait until a server has acted for the first time."""
    while not file.exists():
        os.sched_yield()


def called(tool: Tool, **arguments: Any) -> FunctionResult | str:
    """Call a function of a server."""
    return asyncio.run(tool.function(**arguments))
