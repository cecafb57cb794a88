"""Stop a running turn from outside: the task that runs turns continues, the turn does not.

Used by `event_writer.py` alone. The end of the turn must be committed before `stop` is called.
"""

import asyncio
from collections.abc import Container, Iterator
from contextlib import contextmanager

STOPPED = "The turn was cancelled before it had ended."


class CancellableTurn:
    """The running turn, if any."""

    __slots__ = ("_stopped", "_task", "_turn")

    def __init__(self) -> None:
        self._turn, self._stopped = 0, False
        self._task: asyncio.Task[object] | None = None

    @contextmanager
    def turn(self, turn: int) -> Iterator[None]:
        """Hold a turn as the running one for the block. A stopped turn ends the block early, without an error."""
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
                # Withdraw the cancellation that `stop` requested. A count above 0 means that the task was cancelled as
                # well.
                others = task.uncancel()
            self._turn, self._task = 0, None
        if others:  # the task itself was cancelled too
            raise asyncio.CancelledError

    def stop(self, turns: Container[int]) -> None:
        """Stop the running turn if its number is in `turns`; whatever the turn waits for is abandoned."""
        if self._task is not None and self._turn in turns and not self._stopped:
            self._stopped = True
            self._task.cancel()

    def raise_if_stopped(self, turn: int | None, step: int) -> None:
        """Raise CancelledError for a step of a turn that was stopped but has not noticed yet."""
        if self._stopped and self._turn and step and turn == self._turn:
            raise asyncio.CancelledError
