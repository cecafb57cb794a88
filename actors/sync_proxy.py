"""Make blocking methods of asynchronous ones: run each in the loop of a thread, and wait for it.

Used by `sync_api` alone, which lists the methods. In a thread that runs an event loop a blocking call would stop that
loop, so each call checks for one before anything is sent.
"""

import asyncio
import functools
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, Concatenate, ParamSpec, TypeVar

from everlog.actors.loop_thread import LoopThread
from everlog.actors.short_tracebacks import shorten
from everlog.events import EverlogError, UsageError

P = ParamSpec("P")
T = TypeVar("T")
ProxyT = TypeVar("ProxyT", bound="SyncProxy")


class SyncProxy:
    """Wrapper of an asynchronous object, with the thread whose loop runs the object's methods."""

    def __init__(self, wrapped: Any, loop: LoopThread) -> None:
        self._wrapped = wrapped
        self._loop = loop

    def _check_usable(self, name: str) -> None:
        """Raise UsageError if the call `name` would block a running event loop, or if the system was closed."""
        check_no_loop(name)
        if self._loop.has_ended:
            raise UsageError(f"`{name}` was called after its system was closed: open it again. Nothing was sent.")

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the work in the loop, and return its result. Its error has a short traceback."""
        try:
            return self._loop.run(work)
        except EverlogError as error:
            shorten(error)
            raise

    def _items(self, items: AsyncIterator[T]) -> Iterator[T]:
        """Yield the items one by one, and close the asynchronous iterator when the caller stops iterating."""
        try:
            while found := self._wait(next_of(items)):
                yield found[0]
        finally:
            self._loop.run(_close(items))

    def __repr__(self) -> str:
        kind = type(self._wrapped).__name__
        return repr(self._wrapped).replace(kind, type(self).__name__, 1)


def blocking(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SyncProxy, P], T]:
    """Make a method that runs the coroutine of `method`, and waits for its result."""

    @functools.wraps(method)
    def call(self: SyncProxy, /, *args: P.args, **kwargs: P.kwargs) -> T:
        self._check_usable(method.__name__)
        return self._wait(getattr(self._wrapped, method.__name__)(*args, **kwargs))

    return call


def wrapped_in(
    kind: type[ProxyT], method: Callable[Concatenate[Any, P], Coroutine[Any, Any, Any]]
) -> Callable[Concatenate[SyncProxy, P], ProxyT]:
    """Make a method that runs the coroutine of `method`, and wraps its result."""

    @functools.wraps(method)
    def call(self: SyncProxy, /, *args: P.args, **kwargs: P.kwargs) -> ProxyT:
        self._check_usable(method.__name__)
        return kind(self._wait(getattr(self._wrapped, method.__name__)(*args, **kwargs)), self._loop)

    return call


def iterated(
    method: Callable[Concatenate[Any, P], AsyncIterator[T]],
) -> Callable[Concatenate[SyncProxy, P], Iterator[T]]:
    """Make a method that returns a blocking iterator over the items of an asynchronous one."""

    @functools.wraps(method)
    def call(self: SyncProxy, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        self._check_usable(method.__name__)
        return self._items(getattr(self._wrapped, method.__name__)(*args, **kwargs))

    return call


async def next_of(items: AsyncIterator[T]) -> list[T]:
    """Return the next item in a list; an empty list at the end."""
    try:
        return [await anext(items)]
    except StopAsyncIteration:
        return []


async def _close(items: AsyncIterator[Any]) -> None:
    if isinstance(items, AsyncGenerator):
        await items.aclose()


def check_no_loop(name: str) -> None:
    """Raise UsageError if an event loop runs in this thread: the blocking call `name` would stop that loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    if not in_notebook():
        raise UsageError(
            f"`{name}` blocks, and an event loop runs here: use `async with everlog.open_system(...)` and `await` its "
            "methods instead. Nothing was sent."
        )


def in_notebook() -> bool:
    """Return True in a notebook's kernel, whose event loop runs while a cell runs."""
    kernel = sys.modules.get("ipykernel.kernelapp")
    return kernel is not None and bool(kernel.IPKernelApp.initialized())
