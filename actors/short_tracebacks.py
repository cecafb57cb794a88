"""Shorten the traceback of an EverlogError where it leaves the public API.

Used by all public classes that a program calls. The error that a script prints says what to do; the frames of this
package and of the libraries under it would push that line off the screen. Nothing is lost: the exception that led to an
error is its `__context__`, with all frames, and with EVERLOG_LOG=debug in the environment nothing is shortened. Only
errors that everlog raises on purpose are shortened: every other exception is a fault to be found.
"""

import functools
import inspect
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, ParamSpec, TypeVar

from everlog.events import EverlogError

ClassT = TypeVar("ClassT", bound=type)
P = ParamSpec("P")
T = TypeVar("T")


def shorten(error: EverlogError) -> None:
    """Drop the frames of an error, and hide what led to it, unless EVERLOG_LOG is `debug`. A bare `raise` follows."""
    if os.environ.get("EVERLOG_LOG", "").lower() == "debug":
        return
    if error.__cause__ is not None:
        error.__context__, error.__cause__ = error.__cause__, None
    error.__suppress_context__ = True
    error.__traceback__ = None


def short_tracebacks(kind: ClassT) -> ClassT:
    """Shorten the errors of every public coroutine and asynchronous iterator of a class. Return the class."""
    for name, method in list(vars(kind).items()):
        if name.startswith("_"):
            continue
        if inspect.iscoroutinefunction(method):
            setattr(kind, name, _coroutine(method))
        elif inspect.isasyncgenfunction(method):
            setattr(kind, name, _iterator(method))
    return kind


def _coroutine(method: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    @functools.wraps(method)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await method(*args, **kwargs)
        except EverlogError as error:
            shorten(error)
            raise

    return call


def _iterator(method: Callable[P, AsyncIterator[T]]) -> Callable[P, AsyncIterator[T]]:
    @functools.wraps(method)
    async def call(*args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        items: Any = method(*args, **kwargs)
        try:
            async for item in items:
                yield item
        except EverlogError as error:
            shorten(error)
            raise
        finally:  # a caller that stops early closes this iterator, and with it the one below
            await items.aclose()

    return call
