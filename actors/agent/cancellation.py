"""The turn that runs, and how it is stopped from outside: the task that runs it goes on, and the turn does not."""

import asyncio
from collections.abc import Container, Iterator
from contextlib import contextmanager

STOPPED = "The turn was cancelled before it had ended."


class CancellableTurn:
    """At most one turn, while it runs."""

    __slots__ = ("_stopped", "_task", "_turn")

    def __init__(self) -> None:
        self._turn, self._stopped = 0, False
        self._task: asyncio.Task[object] | None = None

    @contextmanager
    def turn(self, turn: int) -> Iterator[None]:
        """The block runs that turn; it ends early where the turn is stopped, which is no error."""
        task = asyncio.current_task()
        assert task is not None
        self._turn, self._stopped, self._task = turn, False, task
        others = 0
        try:
            yield
        except asyncio.CancelledError:
            if not self._stopped:
                raise
        finally:
            if self._stopped:
                others = task.uncancel()
            self._turn, self._task = 0, None
        if others:  # whoever runs turns is to stop as well
            raise asyncio.CancelledError

    def stop(self, turns: Container[int]) -> None:
        """Stop the turn that runs, if it is one of these: whatever it waits for is given up."""
        if self._task is not None and self._turn in turns and not self._stopped:
            self._stopped = True
            self._task.cancel()

    def raise_if_stopped(self, turn: int | None, step: int) -> None:
        """Raises CancelledError for a step of a turn that was stopped, and has not noticed."""
        if self._stopped and self._turn and step and turn == self._turn:
            raise asyncio.CancelledError
