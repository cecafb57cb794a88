"""Fixed clock, ids and model of the tour, which make its output the same every time.

Used by `tour_shell` and `slow_process`. Seqs and times in the steps depend on it.
"""

import threading
from collections.abc import Callable

from everlog.actors.models.offline import reply
from everlog.actors.ports.effects import NOTHING, DeltaCallback, ModelResponse, Spent
from everlog.events import uuid7
from everlog.interfaces.common.front_end import CommandEnvironment, LineReader

START = 1_767_603_600_000_000
"""Time of the tour before its first command: 2026-01-05 09:00 UTC, in microseconds."""
STEP_US = 60_000_000
"""Time that passes from one command of the tour to the next."""


class TourClock:
    """A clock that stands still during a command, and is moved by a minute before the next one."""

    def __init__(self, at: int = START) -> None:
        self.at = at

    def now(self) -> int:
        """Return the time of the tour in microseconds since 1970-01-01 UTC."""
        return self.at

    def advance(self) -> None:
        """Move the clock by a minute."""
        self.at += STEP_US


class TourIds:
    """Ids that count up. Commands of the tour call `new` from several threads."""

    def __init__(self, count: int = 0) -> None:
        self.count = count
        self._lock = threading.Lock()

    def new(self, at: int) -> str:
        """Return the next UUIDv7 for time `at` (microseconds UTC)."""
        with self._lock:
            self.count += 1
            return uuid7(at, self.count)


class TourModel:
    """The offline stand-in, with a latency of zero: a measured latency would differ from run to run."""

    name = "offline"

    async def ask(
        self, request: bytes, *, on_delta: DeltaCallback | None = None, spent: Spent = NOTHING
    ) -> ModelResponse:
        """Return the reply of the stand-in."""
        return ModelResponse(reply(request).decode(), 0)

    async def close(self) -> None:
        """Close nothing: the stand-in has no connections."""


def environment(clock: TourClock, ids: TourIds, ask: LineReader = input) -> CommandEnvironment:
    """Return the environment in which commands of the tour run. No endpoint is ever asked."""
    nothing: Callable[..., None] = lambda *_: None  # noqa: E731 - a limit of this process would outlive the command
    return CommandEnvironment(
        clock=clock,
        ids=ids,
        model=lambda _name, _url: TourModel(),
        probe=None,
        ask=ask,
        lower_priority=nothing,
        hold_memory=nothing,
    )
