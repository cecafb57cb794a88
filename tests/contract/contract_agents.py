"""Helpers of the contract of agents: functions that wait for the test, an endpoint that follows a script, and readers
of the result.
"""

import asyncio
import functools
import importlib.util
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent_ref import AgentRef
from everlog.actors.agent_system import AgentSystem
from everlog.actors.functions.tools import Tool, tool
from everlog.actors.ports.function_call import progress
from everlog.actors.prompt.context import Context
from everlog.actors.replay.rebuild_check import rebuild, verify
from everlog.events import Record
from tests.support.agent_world import completion, say
from tests.support.models.loopback_server import Loopback, Reply, serving

SCRIPTED = Settings(model="scripted", window=8192)
"""Settings of an agent whose model is a loopback endpoint."""

TEST_S = 60
"""Time limit of a test of agents, in seconds: a test that hangs fails and does not block the suite."""


def alive(scenario: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Return a coroutine function as a test with a time limit."""

    @functools.wraps(scenario)
    def test(*args: Any, **kwargs: Any) -> None:
        asyncio.run(asyncio.wait_for(scenario(*args, **kwargs), TEST_S))

    return test


class Gate:
    """A place where a function of an agent, in any process, waits until the test releases it."""

    def __init__(self) -> None:
        self.port = 0
        self._arrived: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()

    def knock(self, effect: Any = "at_most_once", says: str = "") -> Tool:
        """Return a function that waits at this gate, for an agent. `says`: its line of progress before it waits."""
        port = self.port

        @tool(effect=effect)
        async def knock() -> str:
            """Wait at the gate."""
            if says:
                progress(says)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                return (await reader.readline()).decode().strip() or "nobody answered"
            finally:
                writer.close()

        return knock

    def block(self) -> Tool:
        """Return a plain function that blocks its thread at this gate, for an agent."""
        port = self.port

        @tool
        def block() -> str:
            """Block at the gate."""
            with socket.create_connection(("127.0.0.1", port)) as gate:
                return gate.makefile().readline().strip()

        return block

    async def reached(self) -> "Visitor":
        """Wait until an agent's function waits at the gate."""
        return Visitor(*await self._arrived.get())

    async def _arrive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._arrived.put((reader, writer))


class Visitor:
    """A function that waits at the gate, in the middle of its turn."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def enters(self, word: str = "enter") -> None:
        """Release the function; `word` is its result."""
        self._writer.write(f"{word}\n".encode())
        await self._writer.drain()
        await self.gone()

    async def gone(self) -> None:
        """Wait until the function has left the gate: it continued, or its process died."""
        try:
            await self._reader.read()
        except ConnectionError:
            pass
        self._writer.close()


@asynccontextmanager
async def gate() -> AsyncIterator[Gate]:
    """Open a gate on 127.0.0.1 while the block runs."""
    made = Gate()
    server = await asyncio.start_server(made._arrive, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()


def calls(name: str, arguments: dict[str, Any] | None = None) -> Reply:
    """Return the endpoint's answer that calls a function and continues after it."""
    return 200, completion(calls=[(name, {"request_heartbeat": True, **(arguments or {})})])


def says(text: str) -> Reply:
    """Return the endpoint's answer that sends a message and ends the turn."""
    return 200, say(text)


KNOCKS = (calls("knock"), says("Done."))
"""A turn that waits at a gate and then sends a message."""


@asynccontextmanager
async def scripted(
    opens: Any, *replies: tuple[int, str], **options: Any
) -> AsyncIterator[tuple[AgentSystem, AgentRef]]:
    """Open a system with an agent whose endpoint gives these replies, the last one repeatedly."""
    with serving(*replies) as endpoint:
        async with opens(base_url=endpoint.url, **options) as system:
            yield system, await system.agent("sam", SCRIPTED)


async def asked(endpoint: Loopback, requests: int) -> None:
    """Wait until the endpoint has received `requests` requests in total."""
    await asyncio.to_thread(endpoint.wait_for, requests)


def log(system: AgentSystem, name: str = "sam") -> list[Record]:
    """Return every record of the agent."""
    view = system._reading.view(name)
    try:
        return list(view.reader.read(view.agent_id))
    finally:
        view.close()


def context(system: AgentSystem, name: str = "sam") -> Context:
    """Return the context that the agent's model would see."""
    view = system._reading.view(name)
    try:
        return view.context()
    finally:
        view.close()


def texts(records: Sequence[Record], kind: str) -> list[str | None]:
    """Return the content of the records of that kind."""
    return [record.text for record in records if record.type == kind]


def module_from(path: Path, source: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Load a module from a file that is on no search path, as `--tools FILE.py` does."""
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(f"own_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def assert_sound(system: AgentSystem, name: str = "sam") -> None:
    """Check that the agent verifies and rebuilds, and that every turn has ended."""
    view = system._reading.view(name)
    assert (verify(view, system._reading.tools).faults, rebuild(view).faults) == ([], [])
    assert {turn["status"] for turn in view.rows("turns")} <= {"done"}
    view.close()
