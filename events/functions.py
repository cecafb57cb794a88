"""Events of what the agent did: functions that started and ended, messages that reached the user.

Written by `actors/agent`; read by replay, the calling formats and the SQL of projections. Released shapes never change:
see `upcast`.
"""

from typing import ClassVar, Literal

from everlog.events.base import Event


class FunctionStarted(Event, frozen=True, kw_only=True):
    """A call with an effect outside the log is about to start: this record is durable before the effect happens."""

    kind: ClassVar[str] = "function_started"

    call_id: str
    name: str
    arguments: str = ""
    effect: Literal["read_only", "idempotent", "at_most_once"]
    key: str = ""
    """Idempotency key for the receiver, for the effect class `idempotent`."""


class FunctionResult(Event, frozen=True, kw_only=True):
    """A call ended; `text` is the result that the model gets."""

    kind: ClassVar[str] = "function_result"

    call_id: str
    name: str
    ok: bool = True
    unknown: bool = False
    """The call was interrupted: its effect may or may not have happened."""


class MessageSent(Event, frozen=True, kw_only=True):
    """The agent sent `text` to the user, who sees nothing else."""

    kind: ClassVar[str] = "message_sent"

    call_id: str = ""
    name: str = ""
    """Name of the sender, in an imported conversation."""
    imported: bool = False
    ref: str = ""
