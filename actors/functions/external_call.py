"""Describe a call that its caller must run: it reaches outside the log, waits for a search, or is a user's. Pure.

Made by `actors/agent/decide.py`; run by `turn_runner.py`, and by replays from its recorded result.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from everlog.actors.functions.tools import Effect, Tool
from everlog.actors.memory.core_memory import PendingEdit
from everlog.actors.ports.function_call import Continuation
from everlog.events import Call, Event

KEY_CHARS = 16
"""Number of hexadecimal digits of the SHA-256 in an idempotency key."""


def idempotency_key(place: str, asked: str) -> str:
    """Return the key of a call. Its place (agent, turn, step, call id) repeats after the agent is deleted and created
    again; `asked`, the request's hash and time, does not.
    """
    return f"{place}/{sha256(asked.encode()).hexdigest()[:KEY_CHARS]}"


class TentativeResult(msgspec.Struct, frozen=True):
    """Outcome of a pure function that edits shared blocks, valid if those edits are applied."""

    pending_edits: Sequence[PendingEdit]
    events: Sequence[Event]
    """Events of the agent's own memory."""
    result: Any


class ExternalCall(msgspec.Struct, frozen=True):
    """A call that the caller must run: its function reaches outside the log, waits for a search of the log, or is a
    user's.
    """

    call: Call
    tool: Tool
    arguments: Mapping[str, Any]
    key: str
    """Idempotency key: the same whenever this call is run, and never used by another call in any incarnation."""
    tried: TentativeResult | None = None
    """Set for a function that edits shared blocks: the caller applies the edits."""

    continuation: Continuation | None = None
    """Set for a call that continues after a person has answered its question."""

    @property
    def edits(self) -> bool:
        """True for a user's function of memory that has not run yet."""
        return self.tried is None and self.tool.effect == "pure" and not self.tool.searches

    @property
    def effect(self) -> Effect:
        """Effect class of the function. A repeated edit of a shared block has no effect, so such edits are
        idempotent.
        """
        return "idempotent" if self.tried else self.tool.effect

    @property
    def intended(self) -> bool:
        """True if the intent must be durable before the call is run."""
        return self.effect in ("idempotent", "at_most_once")
