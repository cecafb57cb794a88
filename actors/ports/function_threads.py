"""Run users' plain functions in threads, so that a slow function holds up no other agent.

Each call has a thread of its own, and at most FUNCTION_THREADS_MAX count at a time; further calls wait in the order in
which they came. The order is fair to agents, because an agent makes one call at a time. A thread cannot be stopped.
Therefore a call stops counting when its agent stops waiting for it, or after FUNCTION_PLACE_S, and another call starts:
functions that hang cannot keep all others from running.

Used through `Ports.functions`, by all systems of a process. Two rules hold here. The threads are daemons: the end of
the process must not wait for a function. And whatever the function raises becomes an outcome: an exception of a user
must reach its agent, not the thread's end.
"""

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Literal

from everlog.actors.ports.agent_constants import (
    FUNCTION_PLACE_S,
    FUNCTION_THREADS_MAX,
    FUNCTION_THREADS_OVERDUE_MAX,
    FUNCTION_WAIT_S,
)
from everlog.actors.ports.effects import FunctionOutcome

THREAD_NAME = "everlog function"

ANY_ERROR = (BaseException,)
"""Exceptions of a user's function: whatever it raises is its outcome."""


class _Call:
    """One call. Its futures belong to the event loop of its caller; all else is guarded by the lock of the threads."""

    __slots__ = ("context", "ended", "loop", "on_late", "place", "started", "waited_for", "work")

    def __init__(self, work: Callable[[], Any], on_late: Callable[[FunctionOutcome], None]) -> None:
        self.work = work
        self.on_late = on_late
        self.context = contextvars.copy_context()
        self.loop = asyncio.get_running_loop()
        self.started: asyncio.Future[None] = self.loop.create_future()
        self.ended: asyncio.Future[FunctionOutcome] = self.loop.create_future()
        self.waited_for = True
        """False after the caller has left. Only the caller's loop reads and writes it."""
        self.place: Literal["queue", "counted", "overdue", "none"] = "queue"
        """`counted`: it runs and counts against the maximum. `overdue`: it runs and no longer counts."""

    def tell(self, what: Callable[..., None], *arguments: Any) -> None:
        """Call `what` in the caller's loop, from any thread."""
        try:
            self.loop.call_soon_threadsafe(what, *arguments)
        except RuntimeError:  # the loop is closed, and its callers are gone
            return

    def on_start(self) -> None:
        """Report the start to the caller."""
        if not self.started.done():
            self.started.set_result(None)

    def on_end(self, outcome: FunctionOutcome) -> None:
        """Report the outcome to the caller; to `on_late` if the caller has left."""
        if not self.waited_for:
            self.on_late(outcome)
        elif not self.ended.done():
            self.ended.set_result(outcome)


class FunctionThreads:
    """Threads for functions; a `FunctionRunner`. May be used from any number of event loops at once."""

    def __init__(
        self,
        *,
        threads_max: int = FUNCTION_THREADS_MAX,
        overdue_max: int = FUNCTION_THREADS_OVERDUE_MAX,
        place_s: float = FUNCTION_PLACE_S,
        wait_s: float = FUNCTION_WAIT_S,
    ) -> None:
        self._threads_max, self._overdue_max = threads_max, overdue_max
        self._place_s, self._wait_s = place_s, wait_s
        self._lock = threading.Lock()
        self._counted = self._overdue = 0
        self._queue: deque[_Call] = deque()

    async def run(
        self, work: Callable[[], Any], limit_s: float | None, on_late: Callable[[FunctionOutcome], None]
    ) -> FunctionOutcome:
        """Run `work` in a thread, with a copy of the caller's context variables; see `FunctionRunner`."""
        call = _Call(work, on_late)
        overdue: asyncio.TimerHandle | None = None
        self._enter(call)
        try:
            if not await _done(call.started, self._wait_s):
                return FunctionOutcome("not_started")
            overdue = call.loop.call_later(self._place_s, self._yield_place, call)
            if not await _done(call.ended, limit_s):
                return FunctionOutcome("limit")
            return call.ended.result()
        finally:
            call.waited_for = False
            if overdue is not None:
                overdue.cancel()
            self._leave(call)

    def _enter(self, call: _Call) -> None:
        with self._lock:
            self._queue.append(call)
            self._start_next()

    def _leave(self, call: _Call) -> None:
        """Withdraw a call that has not started. Let one that still runs give its place to another."""
        with self._lock:
            if call.place == "queue":
                call.place = "none"
                self._queue.remove(call)
        self._yield_place(call)

    def _yield_place(self, call: _Call) -> None:
        """Stop counting a call that still runs, unless too many such calls run already."""
        with self._lock:
            if call.place == "counted" and self._overdue < self._overdue_max:
                call.place = "overdue"
                self._counted -= 1
                self._overdue += 1
                self._start_next()

    def _start_next(self) -> None:
        """Start calls from the queue while there are places. The caller holds the lock."""
        while self._queue and self._counted < self._threads_max:
            call = self._queue.popleft()
            call.place = "counted"
            self._counted += 1
            thread = threading.Thread(target=self._run, args=(call,), name=THREAD_NAME, daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the machine has no room for a thread: the call is reported as not run
                call.place = "none"
                self._counted -= 1
                call.tell(call.on_end, FunctionOutcome("not_started"))
            call.tell(call.on_start)

    def _run(self, call: _Call) -> None:
        """Run a call; the body of its thread."""
        try:
            outcome = FunctionOutcome("returned", call.context.run(call.work))
        except ANY_ERROR as error:
            outcome = FunctionOutcome("raised", error=error)
        with self._lock:
            if call.place == "counted":
                self._counted -= 1
            else:
                self._overdue -= 1
            call.place = "none"
            self._start_next()
        call.tell(call.on_end, outcome)
        del outcome  # an exception refers to this frame, and the frame must not keep it alive in turn


PROCESS_THREADS = FunctionThreads()
"""Threads of this process. No thread is started before the first call."""


async def _done(future: "asyncio.Future[Any]", limit_s: float | None) -> bool:
    """Wait for a future. Return True if it is done, False if `limit_s` seconds passed first."""
    if not future.done():
        await asyncio.wait((future,), timeout=limit_s)
    return future.done()
