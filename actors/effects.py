"""Every effect that an agent may have, as a Protocol: time, chance, the model, search. Nothing else leaves the agent.

Real ones are in `real.py` (clock, ids), `offline.py` and `endpoint.py` (models); tests bring their own.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec


class Clock(Protocol):
    """Where the time comes from."""

    def now(self) -> int:
        """Microseconds since 1970-01-01 UTC."""
        ...


class Ids(Protocol):
    """Where ids come from."""

    def new(self, at: int) -> str:
        """A fresh UUIDv7 for time `at` (microseconds UTC)."""
        ...


class Answer(msgspec.Struct, frozen=True):
    """What came back from a model."""

    raw: str
    """The body, verbatim."""
    latency_us: int
    attempts: int = 1


class Model(Protocol):
    """One chat-completions endpoint."""

    name: str
    """What requests put into `model`."""

    async def ask(self, request: bytes) -> Answer:
        """Send exactly these bytes. Raises ModelError; any other exception is our bug."""
        ...

    async def close(self) -> None:
        """Let go of connections. Idempotent."""
        ...


class Hit(msgspec.Struct, frozen=True):
    """One result of a search."""

    seq: int
    time: int
    """When it was said or kept, microseconds UTC."""
    role: str
    name: str
    text: str
    ref: str
    score: float


class Page(msgspec.Struct, frozen=True):
    """One page of results; page 0 is the first."""

    total: int
    page: int
    pages: int
    results: Sequence[Hit]


class Searcher(Protocol):
    """Search in one agent's memory, as of the moment at which it was asked. Text now, vectors later."""

    def recall(self, query: str, page: int, count: int) -> Page:
        """What was said, best match first."""
        ...

    def recall_between(self, start: str, end: str, page: int, count: int) -> Page:
        """What was said from day `start` to day `end` (YYYY-MM-DD in the agent's zone, both inclusive), in order."""
        ...

    def archival(self, query: str, page: int, count: int) -> Page:
        """What the agent kept, best match first."""
        ...
