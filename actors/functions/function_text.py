"""Render what a function returned or raised, as text for the model. Pure.

Used by `decide.py` and `run_function.py`, and by reruns for refused calls. The texts become recorded function results,
and `verify` compares them with those of today: the same value must always give the same text.
"""

import inspect
import traceback
from asyncio import CancelledError
from typing import Any

import msgspec

from everlog.actors.ports.agent_constants import RESULT_CHARS_MAX
from everlog.events import FunctionError

THREAD_FAULTS = (CancelledError, KeyboardInterrupt, GeneratorExit)
"""Exceptions that are a plain function's own failure: Ctrl-C, a cancellation and the end of a generator never reach its
thread from outside.
"""


def returned(result: Any, *, whole: bool) -> str:
    """Render a return value for the model: None is "None", structures are JSON, long text is truncated.

    A value that JSON cannot encode is shown as the name of its type, and half a character (a lone surrogate) as "?".
    """
    text = result if isinstance(result, str) else "None" if result is None else _json(result)
    text = text.encode(errors="replace").decode()
    if whole or len(text) <= RESULT_CHARS_MAX:
        return text
    return (
        f"{text[:RESULT_CHARS_MAX]}... [NOTE: function output was truncated since it exceeded the character limit "
        f"({len(text)} > {RESULT_CHARS_MAX})]"
    )


def failure(name: str, error: BaseException) -> str:
    """Render an exception for the model, truncated and cleaned like a return value."""
    return returned(f"Error calling function {name}: {said(error)}", whole=False)


def _json(result: Any) -> str:
    try:
        return msgspec.json.encode(result, enc_hook=_named).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        return _named(result)


def _named(value: Any) -> str:
    """Name the type of a value that JSON cannot encode: its `repr` may hold an address, or fail."""
    return f"<{type(value).__name__}>"


def said(error: BaseException) -> str:
    """Render an exception for the model: the text of a FunctionError, the type and text of any other."""
    if isinstance(error, FunctionError):
        return str(error)
    return traceback.format_exception_only(error)[-1].strip()


def unusable(value: Any) -> FunctionError | None:
    """Return the error of a function that returned work instead of doing it; None for any other value."""
    if inspect.iscoroutine(value):
        value.close()
    elif not (inspect.isgenerator(value) or inspect.isasyncgen(value) or inspect.isawaitable(value)):
        return None
    kind = type(value).__name__
    return FunctionError(f"the function returned a {kind}, of which nothing was run. It must return a value.")
