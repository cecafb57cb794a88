"""Run users' plain functions in the event loop of a test, so that their order is the same in every run.

Part of `everlog.testing`; used through `Ports.functions`. A function ends before anything else continues. Therefore its
time limit can only be checked after its end, and only on the clock of the test: no real time may decide an outcome.
"""

from collections.abc import Callable
from typing import Any

from everlog.actors.ports.effects import FunctionOutcome
from everlog.actors.ports.function_threads import ANY_ERROR
from everlog.events.times import MICROSECONDS
from everlog.interfaces.testing.manual_clock import ManualClock


class InPlaceFunctions:
    """A `FunctionRunner` without threads. A function takes as long as it moves the clock."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock

    async def run(
        self, work: Callable[[], Any], limit_s: float | None, on_late: Callable[[FunctionOutcome], None]
    ) -> FunctionOutcome:
        """Run `work` at once. Its outcome goes to `on_late` if it moved the clock by more than `limit_s` seconds."""
        begin = self._clock.at
        try:
            outcome = FunctionOutcome("returned", work())
        except ANY_ERROR as error:
            outcome = FunctionOutcome("raised", error=error)
        if limit_s is None or self._clock.at - begin <= limit_s * MICROSECONDS:
            return outcome
        on_late(outcome)
        return FunctionOutcome("limit")
