"""Run an event loop in a thread of its own, so that timers fire while the main thread waits for a person's input.

Used by `sync_api` and by `everlog chat`. Only the methods of `LoopThread` may be called from other threads; everything
that runs in the loop belongs to its thread.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

ReturnT = TypeVar("ReturnT")
InterruptHandler = Callable[[], Coroutine[Any, Any, bool]]
"""Handler of the first Ctrl-C. It returns True if it handled the interrupt, so that the work continues."""

CTRL_C_S = 0.2
"""Longest time in seconds until a Ctrl-C takes effect while the main thread waits for the loop."""


class LoopThread:
    """An event loop in a thread, while a `with` block runs. Tasks that still run at the end are cancelled."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run_loop, name="agents", daemon=True)
        self._over: Future[None] = Future()
        """Done when the thread has ended, or is about to."""

    @property
    def has_ended(self) -> bool:
        """True if the thread has ended, or is about to end."""
        return self._over.done()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.run(self._cancel_all())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def run(self, work: Coroutine[Any, Any, ReturnT], on_interrupt: InterruptHandler | None = None) -> ReturnT:
        """Run the work in the loop, wait for it, and return its result.

        Ctrl-C cancels the work and is raised after its end. `on_interrupt`: handler of the first Ctrl-C instead; if it
        returns True, the work continues and is waited for. An exception of the work is raised here. Raises RuntimeError
        if the loop has failed.
        """
        begun: list[asyncio.Task[ReturnT]] = []
        ended: Future[asyncio.Task[ReturnT]] = Future()

        def begin() -> None:
            if not begun:
                begun.append(self._loop.create_task(work))
                begun[0].add_done_callback(ended.set_result)

        def interrupt() -> None:  # `begin` was queued first, so the task exists
            begun[0].cancel()

        try:
            return self._wait_with_handler(begin, ended, on_interrupt)
        except KeyboardInterrupt:
            self._loop.call_soon_threadsafe(interrupt)
            self._wait(ended)
            raise
        finally:
            if not begun:
                work.close()

    def _wait_with_handler(
        self,
        begin: Callable[[], None],
        ended: "Future[asyncio.Task[ReturnT]]",
        on_interrupt: InterruptHandler | None,
    ) -> ReturnT:
        try:  # the work may be far already when this thread continues, so Ctrl-C may come at any statement
            self._loop.call_soon_threadsafe(begin)
            return self._wait(ended).result()
        except KeyboardInterrupt:
            self._loop.call_soon_threadsafe(begin)  # Ctrl-C may have come before the first call
            if on_interrupt is None or not (self.run(on_interrupt()) or ended.done()):
                raise
            return self._wait(ended).result()

    def start(self, work: Coroutine[Any, Any, None]) -> "Future[None]":
        """Start the work in the loop without waiting. `cancel` of the returned future interrupts the work."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    @contextmanager
    def holding(self, context: AbstractAsyncContextManager[ReturnT]) -> Iterator[ReturnT]:
        """Hold an asynchronous context manager open: enter and exit it in the loop."""
        stack = AsyncExitStack()
        value = self.run(stack.enter_async_context(context))
        try:
            yield value
        finally:
            self.run(stack.aclose())

    def _wait(self, future: "Future[ReturnT]") -> ReturnT:
        """Wait for a future, and return its result. Raises RuntimeError if the loop ends first."""
        either: list[Future[Any]] = [future, self._over]
        # Ctrl-C may be received by another thread, and then does not interrupt this wait: it is handled at its end.
        while not wait(either, CTRL_C_S, return_when=FIRST_COMPLETED).done:
            pass
        if not future.done():
            raise RuntimeError("The event loop of the agents failed; its error is on stderr. Open the system again.")
        return future.result()

    def _run_loop(self) -> None:
        """Run the loop until it is stopped. A task that raises SystemExit ends `run_forever`; the caller of that task
        gets the exception, and the loop runs again for the other tasks.
        """
        try:
            while not self._run_until_stopped():
                pass
        finally:
            self._over.set_result(None)

    def _run_until_stopped(self) -> bool:
        """Run the loop until it returns. Return True if it was stopped, False if an exception of a task ended it."""
        try:
            self._loop.run_forever()
        except (SystemExit, KeyboardInterrupt):
            return False
        return True

    async def _cancel_all(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._loop.shutdown_asyncgens()
