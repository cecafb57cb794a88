"""Report the progress of the call of a function, and whether its agent still waits for it.

`run_function.py` makes a `RunningCall` for each call of a user's function; the function uses `progress` and `cancelled`
of the package. Imports nothing of everlog, because a function in a process of its own loads this file there.
"""

import asyncio
import contextlib
import contextvars
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

PROGRESS_S = 0.1
"""Seconds between two lines of progress of a call. Of the lines that come faster the newest is reported."""
PROGRESS_CHARS_MAX = 200
"""Characters of a line of progress; the rest is cut off."""
PROGRESS_FILE = "_EVERLOG_PROGRESS_FILE"
"""Variable that names the file for the newest line, in the process of a function; set for each call, by no user."""

ProgressListener = Callable[[str], None]
"""Gets a line of progress, without line breaks."""


def ignore_progress(_line: str) -> None:
    """Ignore a line of progress."""


class Continuation(NamedTuple):
    """Answers of a person to the question with which a call ended, for the call that continues it."""

    answers: Mapping[str, Mapping[str, Any]]
    """Fields that were filled in, by the names of the forms."""
    state: str
    """State that the function gave with its question."""


class RunningCall:
    """A call in progress. `report` may be called from any thread; lines are delivered in the loop of its creation."""

    def __init__(self, on_progress: ProgressListener, continuation: Continuation | None = None) -> None:
        """Begin a call. `continuation`: set if it continues one that had asked a question."""
        self.continuation = continuation
        self.over = threading.Event()
        """Set when the agent stops waiting for the call."""
        self._on_progress = on_progress
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._line = ""
        """Newest line that is not delivered."""
        self._scheduled = False
        """True while a delivery is scheduled."""

    def report(self, text: str) -> None:
        """Deliver a text as one line, if the call is not over: at once, or PROGRESS_S seconds after the last one."""
        line = _line(text)
        if not line or self.over.is_set():
            return
        with self._lock:
            self._line = line
            scheduled, self._scheduled = self._scheduled, True
        if not scheduled:
            self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        with self._lock:
            line, self._line = self._line, ""
            self._scheduled = bool(line)
        if line and not self.over.is_set():
            self._on_progress(line)
            self._loop.call_later(PROGRESS_S, self._deliver)


CURRENT: contextvars.ContextVar[RunningCall | None] = contextvars.ContextVar("everlog_call", default=None)
"""Call in progress, inside a function that an agent called."""


def cancelled() -> bool:
    """Return True, inside a function that an agent called, if the agent no longer waits for its result: its time limit
    is over, or its turn was cancelled.

    A thread cannot be stopped from outside, so a long function asks this from time to time, and returns. Returns False
    outside of such a function, and in threads that the function starts by itself.
    """
    call = CURRENT.get()
    return call is not None and call.over.is_set()


def progress(text: str) -> None:
    """Show a line of progress, inside a function that an agent called, to those who wait for the answer.

    It is not recorded, and the model does not see it. At most ten lines a second are shown, and 200 characters of each;
    the newest line counts. Does nothing outside of such a function, and in threads that the function starts by itself.
    """
    call = CURRENT.get()
    if call is not None:
        call.report(text)
    elif (path := os.environ.get(PROGRESS_FILE)) is not None:
        with contextlib.suppress(OSError):  # nothing depends on the line
            Path(path).write_text(f"{_line(text)}\n", encoding="utf-8")


def reporter() -> ProgressListener:
    """Return the function that reports progress of the call in progress, for code that runs outside of its task."""
    call = CURRENT.get()
    return ignore_progress if call is None else call.report


def continuation() -> Continuation | None:
    """Return the answers with which the call in progress continues; None if it asked nothing before."""
    call = CURRENT.get()
    return None if call is None else call.continuation


def newest_line(file: Path) -> str:
    """Return the line in the file of a process; empty if there is none yet, or if it is being written."""
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            text = opened.read(PROGRESS_CHARS_MAX + 1)
    except OSError:
        return ""
    return text[:-1] if text.endswith("\n") else ""


def _line(text: str) -> str:
    return " ".join(str(text).split())[:PROGRESS_CHARS_MAX]
