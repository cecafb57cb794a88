"""Turn records into the messages that Letta's clients read. Pure.

A call of `send_message` is an assistant's message, as with `use_assistant_message` in Letta, and its result is not
shown. The messages of one reply share an id and differ in their `otid`.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from everlog.actors.formats.call_arguments import arguments_read
from everlog.actors.ports.agent_constants import SEND_MESSAGE
from everlog.events import (
    ApprovalDecided,
    ApprovalRequested,
    Call,
    FunctionResult,
    Heartbeat,
    MessageSent,
    ModelReply,
    Record,
    Summary,
    SystemAlert,
    UserLogin,
    UserMessage,
    event_of,
    is_erased,
)
from everlog.interfaces.http.letta.translation.letta_ids import LettaIds, otid_of

TOOL_CALL_PART = 1
"""Number of the part of a reply that has the calls; its thought is 0, its messages follow."""
MESSAGE_PART = 2
PROMPTED = "non_reasoner_model"
"""Source of thoughts: the agent's own words, not those of a model that thinks before it writes."""


class LettaMessage(msgspec.Struct, frozen=True, kw_only=True, tag_field="message_type", omit_defaults=True):
    """Fields of all messages."""

    id: str
    date: datetime
    name: str | None = None
    otid: str | None = None
    step_id: str | None = None
    run_id: str | None = None
    seq_id: int | None = None
    """Cursor of a stream."""


class LettaUserMessage(LettaMessage, frozen=True, tag="user_message"):
    """Message of a user."""

    content: str
    conversation_id: str | None = None


class LettaSystemMessage(LettaMessage, frozen=True, tag="system_message"):
    """Input that is no message of a user."""

    content: str


class LettaReasoning(LettaMessage, frozen=True, tag="reasoning_message"):
    """Thought of the agent."""

    reasoning: str
    source: str


class LettaAssistantMessage(LettaMessage, frozen=True, tag="assistant_message"):
    """Message of the agent."""

    content: str


class LettaToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """Call of a function."""

    name: str
    arguments: str
    tool_call_id: str


class LettaToolCallMessage(LettaMessage, frozen=True, tag="tool_call_message"):
    """Functions that the agent calls in one reply."""

    tool_call: LettaToolCall
    """The first of them."""
    tool_calls: Sequence[LettaToolCall]


class LettaApprovalRequest(LettaMessage, frozen=True, tag="approval_request_message"):
    """Call that waits for a person's approval."""

    tool_call: LettaToolCall
    tool_calls: Sequence[LettaToolCall]


class LettaDecidedCall(msgspec.Struct, frozen=True, kw_only=True):
    """Decision about one call."""

    approve: bool
    tool_call_id: str
    reason: str | None
    type: str = "approval"


class LettaApprovalResponse(LettaMessage, frozen=True, tag="approval_response_message"):
    """Decision of a person, or the end of the time for one."""

    approve: bool
    approvals: Sequence[LettaDecidedCall]
    reason: str | None = None


class LettaToolReturn(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a call."""

    tool_return: str
    status: str
    tool_call_id: str
    type: str = "tool"


class LettaToolReturnMessage(LettaMessage, frozen=True, tag="tool_return_message"):
    """Result of a function."""

    tool_return: str
    status: str
    tool_call_id: str
    tool_returns: Sequence[LettaToolReturn]


class LettaSummaryMessage(LettaMessage, frozen=True, tag="summary_message"):
    """Summary that replaced a part of the context."""

    summary: str


def messages_of(record: Record, ids: LettaIds, run_id: str | None = None) -> Sequence[LettaMessage]:
    """Return the messages of a record in their order; a record that says nothing to a client has none.

    Of a reply the texts come first, then its calls. `run_id`: the run that the record belongs to, if it is known.
    """
    if is_erased(record.payload) or record.type not in _SHOWN:
        return ()
    event: Any = event_of(record)
    message_id = ids.message(record)
    common: dict[str, Any] = {
        "id": message_id, "date": record.time, "run_id": run_id, "otid": otid_of(message_id, 0),
        "step_id": ids.step(record.turn, record.step) if record.step else None,
    }  # fmt: skip
    if isinstance(event, ModelReply):
        return _reply(event, common)
    if isinstance(event, UserMessage):
        common |= {"otid": event.ref or common["otid"], "name": event.name or None}
        return (LettaUserMessage(content=event.text, conversation_id=event.conversation or None, **common),)
    if isinstance(event, FunctionResult):
        return _result(event, common)
    if isinstance(event, ApprovalRequested):
        call = LettaToolCall(name=event.name, arguments=event.arguments, tool_call_id=event.call_id)
        return (LettaApprovalRequest(tool_call=call, tool_calls=[call], **common),)
    if isinstance(event, ApprovalDecided):
        approve, reason = event.decision == "approved", event.text or None
        decided = LettaDecidedCall(approve=approve, tool_call_id=event.call_id, reason=reason)
        return (LettaApprovalResponse(approve=approve, reason=reason, approvals=[decided], **common),)
    if isinstance(event, MessageSent):  # one that belongs to a call is shown with the reply that called
        imported = not event.call_id
        return (LettaAssistantMessage(content=event.text, **common | {"name": event.name or None}),) if imported else ()
    if isinstance(event, Summary):
        return (LettaSummaryMessage(summary=event.text, **common),)
    return (LettaSystemMessage(content=event.text or _UNSAID[event.kind], **common),)


def request_of(row: Mapping[str, Any], ids: LettaIds) -> LettaApprovalRequest:
    """Return the message of a call that waits, from its row of `approvals`."""
    message_id = ids.message_of(ApprovalRequested.kind, row["seq"], row["turn"], row["step"])
    call = LettaToolCall(name=row["name"], arguments=row["arguments"], tool_call_id=row["call_id"])
    return LettaApprovalRequest(
        id=message_id, date=row["asked_at"], run_id=None, otid=otid_of(message_id, 0),
        step_id=ids.step(row["turn"], row["step"]), tool_call=call, tool_calls=[call],
    )  # fmt: skip


_UNSAID = {
    UserLogin.kind: "A user logged in.",
    Heartbeat.kind: "The agent was asked to run again.",
    SystemAlert.kind: "An alert without words.",
}
"""Words for inputs that have none."""


_SHOWN = frozenset(
    kind.kind
    for kind in (
        ModelReply, UserMessage, FunctionResult, MessageSent, Summary, SystemAlert, Heartbeat, UserLogin,
        ApprovalRequested, ApprovalDecided,
    )
)  # fmt: skip
"""Kinds of records that have messages."""


def text_of(message: LettaMessage) -> str | None:
    """Return the text of a message of a reply that can be streamed; None: it cannot."""
    if isinstance(message, LettaReasoning):
        return message.reasoning
    return message.content if isinstance(message, LettaAssistantMessage) else None


def with_text(message: LettaMessage, text: str) -> LettaMessage:
    """Return a message that has a text with another one."""
    field = "reasoning" if isinstance(message, LettaReasoning) else "content"
    return msgspec.structs.replace(message, **{field: text})


def _reply(reply: ModelReply, common: dict[str, Any]) -> Sequence[LettaMessage]:
    found: list[LettaMessage] = []
    if reply.text:
        found.append(LettaReasoning(reasoning=reply.text, source=PROMPTED, **common))
    called = []
    for call in reply.calls:
        said = _said(call)
        if said is None:
            called.append(LettaToolCall(name=call.name, arguments=call.arguments, tool_call_id=call.id))
        else:
            common["otid"] = otid_of(common["id"], MESSAGE_PART + len(found) - bool(reply.text))
            found.append(LettaAssistantMessage(content=said, **common))
    if called:
        common["otid"] = otid_of(common["id"], TOOL_CALL_PART)
        found.append(LettaToolCallMessage(tool_call=called[0], tool_calls=called, **common))
    return found


def _said(call: Call) -> str | None:
    """Return the text that a call sends to the user; None: it is another call."""
    if call.name != SEND_MESSAGE:
        return None
    read = arguments_read(call.arguments)
    text = None if read is None else read.value.get("message")
    return text if isinstance(text, str) and text else None


def _result(result: FunctionResult, common: dict[str, Any]) -> Sequence[LettaMessage]:
    if result.name == SEND_MESSAGE and result.ok:
        return ()
    status = "success" if result.ok else "error"
    one = LettaToolReturn(tool_return=result.text, status=status, tool_call_id=result.call_id)
    return (
        LettaToolReturnMessage(
            tool_return=result.text, status=status, tool_call_id=result.call_id, tool_returns=[one],
            **common | {"name": result.name},
        ),
    )  # fmt: skip
