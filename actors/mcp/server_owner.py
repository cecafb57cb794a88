"""Own the connection to one server: open it when a call needs it, keep it while calls come, close it when none does.

One task opens a connection, holds it and closes it: the SDK's scopes belong to the task that entered them. Calls are
other tasks of the same loop. A call that may have been carried out is repeated only if its effect class allows that.
Used by `server_connections.py`.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from everlog.actors.mcp.call_outcome import Answer, LostReply, RefusedRequest, UnreadableReply
from everlog.actors.mcp.offered_tool import Offer, OfferedTool
from everlog.actors.mcp.server_entry import CALL_CAP_S, LIST_S, ServerEntry
from everlog.actors.ports.function_call import Continuation, ProgressListener
from everlog.events import McpError, Question

IDLE_S = 300.0
"""Seconds without a call after which a connection is closed, and the program of the server ends."""
CLOSE_S = 15.0
"""Seconds that a connection has to close. Then it is left behind."""
CALLS_MAX = 16
"""Calls of one server that run at once; others wait."""
ANY_FAULT = (Exception,)
"""Faults of the SDK and of a transport: whatever a server makes them raise ends its connection, and nothing else."""


class McpSession(Protocol):
    """A session with one server."""

    async def offer(self) -> Offer:
        """Return all that the server offers. Raises LostReply, RefusedRequest, UnreadableReply."""

    async def call(
        self, tool: str, arguments: Mapping[str, Any], on_progress: ProgressListener, answers: Continuation | None
    ) -> Answer | Question:
        """Call a function, or continue a call with answers. Raises LostReply, RefusedRequest, UnreadableReply."""


SessionSource = Callable[[Callable[[], None]], AbstractAsyncContextManager[McpSession]]
"""Opens a session; the argument is called when the server says that its functions have changed."""


class _Connection:
    """One session, held by one task from its beginning to its end."""

    def __init__(self, name: str, source: SessionSource) -> None:
        self._name, self._source = name, source
        loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        self.session: asyncio.Future[McpSession] = loop.create_future()
        # Its error is for the calls that wait, and there may be none: it is no bug then.
        self.session.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        self.offer: Offer | None = None
        """Offer of the server; None: it is not known, or has changed."""
        self.listing = asyncio.Lock()
        self.task = loop.create_task(self._hold())

    @property
    def is_open(self) -> bool:
        """True until the connection ends."""
        return not self.task.done() and not self._over.is_set()

    def end(self) -> None:
        """Let the task close the session."""
        self._over.set()

    async def close(self) -> None:
        """Close the session, and wait for its end as long as CLOSE_S."""
        self.end()
        if not self.session.done():
            self.task.cancel()
        await asyncio.wait((self.task,), timeout=CLOSE_S)

    def _changed(self) -> None:
        self.offer = None

    async def _hold(self) -> None:
        try:
            async with self._source(self._changed) as session:
                self.session.set_result(session)
                await self._over.wait()
        except asyncio.CancelledError:
            self.session.cancel()
            raise
        except McpError as error:
            self._failed(error)
        except ANY_FAULT as error:
            self._failed(McpError(f"The MCP server {self._name!r} cannot be used: {_words(error)}"))
        finally:
            self._over.set()

    def _failed(self, error: McpError) -> None:
        if not self.session.done():
            self.session.set_exception(error)


class ServerOwner:
    """Owner of one server, in one event loop."""

    def __init__(self, name: str, entry: ServerEntry, source: SessionSource, idle_s: float = IDLE_S) -> None:
        self._name, self._entry, self._source, self._idle_s = name, entry, source, idle_s
        self._connection: _Connection | None = None
        self._places = asyncio.Semaphore(CALLS_MAX)
        self._calls = 0
        self._idle: asyncio.TimerHandle | None = None

    async def offer(self) -> Offer:
        """Return what the server offers now. Raises McpError."""
        connection = await self._connected()
        connection.offer = None
        return await self._offer(connection)

    async def call(
        self, tool: OfferedTool, arguments: Mapping[str, Any], report: ProgressListener, answers: Continuation | None,
        *, repeats: bool,
    ) -> Answer | Question:  # fmt: skip
        """Call a function as it was accepted. Return its answer, or its question to a person. `report` gets lines of
        its progress; an empty one is only a sign of life. `answers`: what a person answered to its last question.
        `repeats`: it is called once more if its reply was lost.

        Raises LostReply if it may have been carried out, UnreadableReply if it was and its answer cannot be read,
        RefusedRequest if nothing was done, McpError if the server cannot be reached: then nothing was done either.
        """
        self._calls += 1
        try:
            async with self._places:
                try:
                    return await self._call(tool, arguments, report, answers)
                except LostReply:
                    if not repeats:
                        raise
                    return await self._call(tool, arguments, report, answers)
        finally:
            self._calls -= 1
            self._rest()

    async def close(self) -> None:
        """Close the connection."""
        if self._idle is not None:
            self._idle.cancel()
        if self._connection is not None:
            await self._connection.close()

    async def _call(
        self, tool: OfferedTool, arguments: Mapping[str, Any], report: ProgressListener, answers: Continuation | None
    ) -> Answer | Question:
        connection = await self._connected()
        self._check(tool, await self._offer(connection))
        session = connection.session.result()
        loop, began = asyncio.get_running_loop(), asyncio.get_running_loop().time()
        timer = asyncio.timeout(self._entry.call_s)

        def on_progress(line: str) -> None:
            report(line)
            timer.reschedule(min(loop.time() + self._entry.call_s, began + max(CALL_CAP_S, self._entry.call_s)))

        try:
            async with timer:
                return await session.call(tool.name, arguments, on_progress, answers)
        except TimeoutError as error:
            raise LostReply(f"there was no answer within {loop.time() - began:.0f} seconds") from error
        except LostReply:
            connection.end()
            raise
        except (RefusedRequest, UnreadableReply):
            raise
        except ANY_FAULT as error:
            connection.end()
            raise LostReply(_words(error)) from error

    def _check(self, tool: OfferedTool, offer: Offer) -> None:
        """Raise RefusedRequest unless the server offers the function as it was accepted."""
        now = offer.by_name.get(tool.name)
        if now is not None and now.sha256 == tool.sha256:
            return
        what = "no longer offers this function" if now is None else "describes this function in another way now"
        raise RefusedRequest(
            f"the server {self._name} {what}, and the operator has not accepted that "
            f"(everlog mcp refresh {self._name}). It was not called"
        )

    async def _connected(self) -> _Connection:
        """Return the open connection; open one if there is none. All calls wait for the same one. Raises McpError."""
        connection = self._connection
        if connection is None or not connection.is_open:
            self._connection = connection = _Connection(self._name, self._source)
        await asyncio.wait((connection.session,), timeout=self._entry.connect_s)
        if not connection.session.done():
            await connection.close()
        if not connection.session.done() or connection.session.cancelled():
            raise McpError(
                f"The MCP server {self._name!r} did not answer within {self._entry.connect_s:g} seconds "
                f"({self._entry.place()[:200]})."
            )
        connection.session.result()
        return connection

    async def _offer(self, connection: _Connection) -> Offer:
        async with connection.listing:
            if connection.offer is not None:
                return connection.offer
            try:
                async with asyncio.timeout(LIST_S):
                    connection.offer = offer = await connection.session.result().offer()
            except TimeoutError as error:
                words = f"it did not list its functions within {LIST_S:g} seconds"
                raise self._unlisted(connection, words) from error
            except ANY_FAULT as error:
                raise self._unlisted(connection, _words(error)) from error
            return offer

    def _unlisted(self, connection: _Connection, words: str) -> McpError:
        connection.end()
        return McpError(f"The MCP server {self._name!r} cannot be used: {words}.")

    def _rest(self) -> None:
        """Close the connection after a while without calls."""
        if self._idle is not None:
            self._idle.cancel()
        if self._connection is not None:
            self._idle = asyncio.get_running_loop().call_later(self._idle_s, self._end_if_idle)

    def _end_if_idle(self) -> None:
        if self._connection is not None and not self._calls:
            self._connection.end()


def _words(error: BaseException) -> str:
    """Return an error in words; of a group of errors the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"[:500] if str(error) else type(error).__name__
