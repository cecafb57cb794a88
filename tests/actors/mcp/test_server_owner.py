"""The owner of a server: one connection for all calls, closed when none comes, and no call twice."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from everlog.actors.mcp.call_outcome import Answer, LostReply
from everlog.actors.mcp.offered_tool import Offer, OfferedTool, ServerHints, offer_of, offered_tool
from everlog.actors.mcp.server_entry import ServerEntry
from everlog.actors.mcp.server_owner import CALLS_MAX, ServerOwner
from everlog.actors.ports.function_call import ProgressListener, ignore_progress
from everlog.events import McpError
from tests.support import virtual_time

TOOL = offered_tool("look", "Look.", {"type": "object"}, ServerHints())
Act = Callable[[ProgressListener], Any]


class StandIn:
    """A server in this task's loop; `act` answers each call, and gets the notice of progress."""

    def __init__(self, act: Act | None = None, *, opens: bool = True) -> None:
        self.opened = self.closed = self.calls = self.running = self.most = 0
        self._act, self._opens = act, opens
        self.on_changed: Callable[[], None] = lambda: None

    @asynccontextmanager
    async def session(self, on_changed: Callable[[], None]) -> AsyncIterator["StandIn"]:
        self.opened += 1
        self.on_changed = on_changed
        if not self._opens:
            await asyncio.Event().wait()
        entered = asyncio.current_task()
        try:
            yield self
        finally:
            assert asyncio.current_task() is entered, "a session is left in the task that entered it"
            self.closed += 1

    async def offer(self) -> Offer:
        return offer_of([TOOL])

    async def call(self, _tool: str, _arguments: Any, on_progress: ProgressListener, _answers: Any) -> Answer:
        self.calls += 1
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(0)
            if self._act is not None:
                await self._act(on_progress)
            return Answer("seen")
        finally:
            self.running -= 1

    def owner(self, **entry: Any) -> ServerOwner:
        return ServerOwner("raw", ServerEntry(command="unused", **entry), self.source, idle_s=0.0)

    def source(self, on_changed: Callable[[], None]) -> AbstractAsyncContextManager[Any]:
        return self.session(on_changed)


async def looked(
    owner: ServerOwner, tool: OfferedTool = TOOL, report: ProgressListener = ignore_progress, *, repeats: bool = False
) -> str:
    return (await owner.call(tool, {}, report, None, repeats=repeats)).text


def test_calls_at_once_share_a_connection_and_only_so_many_run() -> None:
    """A hundred calls open one connection, and CALLS_MAX of them run at a time."""

    async def run() -> None:
        server = StandIn()
        owner = server.owner()
        assert await asyncio.gather(*(looked(owner) for _ in range(100))) == ["seen"] * 100
        assert (server.opened, server.calls, server.most) == (1, 100, CALLS_MAX)
        await owner.close()
        assert server.closed == 1

    virtual_time.run(run)


def test_a_connection_without_calls_is_closed_and_opened_again() -> None:
    """After `idle_s` without a call the session ends, in its own task; the next call opens another."""

    async def run() -> None:
        server = StandIn()
        owner = server.owner()
        await looked(owner)
        assert owner._connection is not None
        await owner._connection.task
        assert (server.opened, server.closed) == (1, 1)
        assert await looked(owner) == "seen"
        assert server.opened == 2
        await owner.close()

    virtual_time.run(run)


def test_calls_that_wait_for_a_server_fail_together() -> None:
    """A server that does not answer is tried once for all calls that wait, and again for the next one."""

    async def run() -> None:
        server = StandIn(opens=False)
        owner = server.owner(connect_s=20)
        for tries in (1, 2):
            failed = await asyncio.gather(*(looked(owner) for _ in range(CALLS_MAX)), return_exceptions=True)
            assert {type(error) for error in failed} == {McpError}
            assert server.opened == tries

    virtual_time.run(run)


def test_progress_gives_a_call_more_time() -> None:
    """A call may take `call_s` after each sign of progress, up to a cap; without one it is lost."""

    async def run() -> None:
        async def slow(on_progress: ProgressListener) -> None:
            for _ in range(4):
                await asyncio.sleep(15)
                on_progress("a bit")

        owner, lines = StandIn(slow).owner(call_s=20), list[str]()
        assert await looked(owner, report=lines.append) == "seen"
        assert lines == ["a bit"] * 4
        await owner.close()

        async def silent(_: Callable[[], None]) -> None:
            await asyncio.Event().wait()

        owner = StandIn(silent).owner(call_s=20)
        with pytest.raises(LostReply, match="no answer within 20 seconds"):
            await looked(owner)
        await owner.close()

        async def endless(on_progress: ProgressListener) -> None:
            while True:
                await asyncio.sleep(15)
                on_progress("")

        owner = StandIn(endless).owner(call_s=20)
        with pytest.raises(LostReply, match="no answer within 600 seconds"):
            await looked(owner)
        await owner.close()

    virtual_time.run(run)


@pytest.mark.parametrize("error", [KeyError("x"), TypeError("y"), RecursionError(), ConnectionResetError()])
def test_whatever_a_server_makes_the_client_raise_is_a_lost_reply(error: Exception) -> None:
    """The connection ends, a call that repeats is made once more, and another is not."""

    async def run() -> None:
        async def failing(_: Callable[[], None]) -> None:
            raise error

        server = StandIn(failing)
        owner = server.owner()
        for repeats, calls in ((False, 1), (True, 3)):
            with pytest.raises(LostReply):
                await looked(owner, repeats=repeats)
            assert (server.calls, server.opened) == (calls, calls)
        await owner.close()

    virtual_time.run(run)
