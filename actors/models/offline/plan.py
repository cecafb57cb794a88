"""What the offline stand-in sees of a request (`Turn`) and what it wants to do (`Plan`)."""

from collections.abc import Callable
from typing import Any

import msgspec


class Event(msgspec.Struct):
    """One of the small JSON objects that wait at the end of a request."""

    type: str = ""
    message: str | None = None
    name: str | None = None
    time: str = ""
    reason: str = ""
    last_login: str = ""


class Outcome(msgspec.Struct):
    """A call of the last reply, and what came of it."""

    name: str
    arguments: dict[str, Any]
    ok: bool
    message: str


class Turn(msgspec.Struct):
    """Everything that the rules look at."""

    human: list[str] | None
    """The lines of the block `human`; None where there is no such block."""
    first: bool
    """Whether we have never replied, as far as we see."""
    steps: int
    """Replies since the last input of a user."""
    events: list[Event]
    """What waits, in order."""
    outcomes: list[Outcome]
    """The calls of the last reply."""
    asked: list[str]
    """What users asked last: a search finds the question too, which is no answer."""
    statements: Callable[[], list[str]]
    """What users said that is in view, in order."""


class Plan(msgspec.Struct):
    """One reply in the making."""

    thought: str = ""
    calls: list[tuple[str, dict[str, Any]]] = []
    says: list[str] = []

    def call(self, function: str, /, *, heartbeat: bool = False, **arguments: Any) -> None:
        """Call a function, once."""
        call = (function, {**arguments, "request_heartbeat": heartbeat})
        if call not in self.calls:
            self.calls.append(call)

    def say(self, text: str) -> None:
        """Say a sentence to the user, once."""
        if text not in self.says:
            self.says.append(text)

    def think(self, text: str) -> None:
        """The monologue, unless there is one already."""
        self.thought = self.thought or text
