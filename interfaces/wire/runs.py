"""Messages to an agent, and what follows from them, as they go over HTTP."""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from everlog.interfaces.wire.records import HttpRecord

RunStatusName = Literal["running", "done", "failed", "cancelled", "abandoned"]


class SendMessageBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Message of a user."""

    text: str
    speaker: str = ""
    """Name of the user, if the agent has several."""
    conversation: Annotated[str, msgspec.Meta(max_length=255)] = ""
    """Id of the conversation that the client keeps, such as a thread, if it has several with the agent."""
    stream: bool = False
    """True: the answer is a stream of events, as with `Accept: text/event-stream`."""
    wait: bool = True
    """False: the answer comes as soon as the message is durable, with status 202."""


class SendInputBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Input that is no message: the agent runs once."""

    type: Literal["heartbeat", "user_login", "system_alert"] = "heartbeat"
    text: str = ""
    """Words that go to the model."""
    source: Literal["memory_pressure", "user_event", "manual"] = "manual"
    """Source of a `system_alert`."""
    last_login: int | None = None
    """Login before a `user_login`, microseconds UTC."""
    stream: bool = False
    wait: bool = True


class RunOptionsBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Form of the answer."""

    stream: bool = False
    wait: bool = True


class CallShape(msgspec.Struct, frozen=True, kw_only=True):
    """Function that the agent called, with its result."""

    name: str
    arguments: str
    """JSON text as the model wrote it."""
    result: str
    ok: bool


class TokenShape(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of model calls, as the endpoint counted them."""

    input: int
    output: int
    cached: int


class RunShape(msgspec.Struct, frozen=True, kw_only=True):
    """A run: what one input brought. Its id is the event id of the input."""

    run: str
    agent: str
    status: RunStatusName
    turn: int
    text: str
    """Messages that the agent sent, one per line."""
    calls: Sequence[CallShape]
    """Functions that the agent called, without those that send messages."""
    tokens: TokenShape
    cost: float | None
    """Price in USD; null if a price is not known."""
    stopped: str
    """Reason for which the turn ended before the agent was done; empty: it was done."""
    first_seq: int
    last_seq: int
    """Last record of the run so far."""


class RunRecordsShape(msgspec.Struct, frozen=True, kw_only=True):
    """Records of a run."""

    run: str
    status: RunStatusName
    records: Sequence[HttpRecord]


class CancelBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Selection of the runs to cancel."""

    all: bool = False
    """True: the waiting ones too, not only the one that runs."""


class UndoBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Number of the newest turns to exclude from the context."""

    turns: int = 1


class TurnNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of turns that a request has changed, rising."""

    turns: Sequence[int]


class RewriteThoughtBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Text that replaces the agent's newest thought in the context."""

    text: str


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of a request that may find nothing to do."""

    changed: bool


class RunEnd(msgspec.Struct, frozen=True, kw_only=True):
    """Last event of the stream of a run."""

    run: str
    status: RunStatusName
    last_seq: int
