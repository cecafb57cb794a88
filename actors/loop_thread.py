"""An event loop in a thread of its own: the main thread is where people type, and timers must go off meanwhile."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

ReturnT = TypeVar("ReturnT")
InterruptHandler = Callable[[], Coroutine[Any, Any, bool]]
"""What is done about Ctrl-C; whether that was something."""


class LoopThread:
    """A loop that runs while the block does. What still runs in it at the end is cancelled."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._go_round, name="agents", daemon=True)
        self._over: Future[None] = Future()
        """Done when the thread has ended, or is about to."""

    @property
    def has_ended(self) -> bool:
        """Whether the thread has ended, or is about to."""
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

    def run(self, work: Coroutine[Any, Any, ReturnT], heed: InterruptHandler | None = None) -> ReturnT:
        """Have the loop do the work, and wait for it. Ctrl-C cancels the work, and is raised when it has ended.

        `heed`: what the first Ctrl-C does instead; the work is waited for if that gives True. Whatever the work raises
        is raised here. RuntimeError: the loop itself has failed, and nobody waits for a thread that has ended.
        """
        begun: list[asyncio.Task[ReturnT]] = []
        ended: Future[asyncio.Task[ReturnT]] = Future()

        def begin() -> None:
            begun.append(self._loop.create_task(work))
            begun[0].add_done_callback(ended.set_result)

        def interrupt() -> None:  # it has begun by then: first come, first served
            begun[0].cancel()

        self._loop.call_soon_threadsafe(begin)
        try:
            return self._heeding(ended, heed)
        except KeyboardInterrupt:
            self._loop.call_soon_threadsafe(interrupt)
            self._wait(ended)
            raise
        finally:
            if not begun:
                work.close()

    def _heeding(self, ended: "Future[asyncio.Task[ReturnT]]", heed: InterruptHandler | None) -> ReturnT:
        try:
            return self._wait(ended).result()
        except KeyboardInterrupt:
            if heed is None or not (self.run(heed()) or ended.done()):
                raise
            return self._wait(ended).result()

    def start(self, work: Coroutine[Any, Any, None]) -> "Future[None]":
        """Have the loop do the work, and go on; `cancel` of what is given back interrupts it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    @contextmanager
    def holding(self, context: AbstractAsyncContextManager[ReturnT]) -> Iterator[ReturnT]:
        """An asynchronous context, entered and left in the loop."""
        stack = AsyncExitStack()
        value = self.run(stack.enter_async_context(context))
        try:
            yield value
        finally:
            self.run(stack.aclose())

    def _wait(self, future: "Future[ReturnT]") -> ReturnT:
        """What it comes to, once it is done. Raises RuntimeError if the loop ends before it."""
        either: list[Future[Any]] = [future, self._over]
        wait(either, return_when=FIRST_COMPLETED)
        if not future.done():
            raise RuntimeError("the event loop of the agents has failed; what it raised is on stderr")
        return future.result()

    def _go_round(self) -> None:
        """The thread. A task that raises SystemExit throws the loop out; the task's caller is told, and the loop goes
        on for the others.
        """
        try:
            while not self._has_stopped():
                pass
        finally:
            self._over.set_result(None)

    def _has_stopped(self) -> bool:
        """Whether the loop was stopped; False where it was thrown out."""
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
