"""An event loop in a thread of its own: the main thread is where people type, and timers must go off meanwhile."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

Value = TypeVar("Value")


class Looping:
    """A loop that runs while the block does. What still runs in it at the end is cancelled."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="agents", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.run(self._cancel_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, Value]) -> Value:
        """Have the loop do the work, and wait for it. Ctrl-C cancels the work, and is raised when it has ended."""
        ended = threading.Event()
        future = asyncio.run_coroutine_threadsafe(_telling(work, ended), self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            ended.wait()
            raise

    def start(self, work: Coroutine[Any, Any, None]) -> "Future[None]":
        """Have the loop do the work, and go on; `cancel` of what is given back interrupts it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    @contextmanager
    def holding(self, context: AbstractAsyncContextManager[Value]) -> Iterator[Value]:
        """An asynchronous context, entered and left in the loop."""
        stack = AsyncExitStack()
        value = self.run(stack.enter_async_context(context))
        try:
            yield value
        finally:
            self.run(stack.aclose())

    async def _cancel_all(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._loop.shutdown_asyncgens()


async def _telling(work: Coroutine[Any, Any, Value], ended: threading.Event) -> Value:
    try:
        return await work
    finally:
        ended.set()
