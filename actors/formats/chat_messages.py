"""Turn the records of a context into chat messages: the part that all calling formats share. Pure.

Used by the calling formats. Raise `agent_constants.RENDERER` if the messages change.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from everlog.actors.prompt import message_format
from everlog.actors.prompt.context import Context, ContextMessage, summary_of
from everlog.events import (
    ApprovalDecided,
    FunctionResult,
    Heartbeat,
    MessageSent,
    ModelReply,
    ReplyRejected,
    SystemAlert,
    UserLogin,
    UserMessage,
)


class RequestFunction(msgspec.Struct, gc=False):
    """Function of a call in a request."""

    name: str
    arguments: str


class RequestToolCall(msgspec.Struct, gc=False):
    """A call in a request."""

    id: str
    type: str
    function: RequestFunction


class RoleMessage(msgspec.Struct, omit_defaults=True):
    """A chat message of the system, the user or the assistant."""

    role: str
    content: str
    tool_calls: list[RequestToolCall] | None = None


class ToolMessage(msgspec.Struct, gc=False):
    """A chat message with the result of a call."""

    role: str
    tool_call_id: str
    content: str


ChatMessages = list[tuple[int, RoleMessage | ToolMessage]]
"""Chat messages, each with the seq of the record that it shows."""

ResultsByCall = Mapping[tuple[int, int, str], ContextMessage]
"""Function results by turn, step and id of their call."""

MessageRenderer = Callable[[ChatMessages, Context, ContextMessage, ResultsByCall], None]
"""Adds the chat messages of a reply, or of an imported answer."""

_INPUTS: Mapping[type, Callable[[Any, int, str, str], str]] = {
    UserMessage: message_format.user_message,
    UserLogin: lambda login, at, zone, _: message_format.login(login, at, zone),
    Heartbeat: lambda beat, at, zone, _: message_format.heartbeat(beat, at, zone),
    SystemAlert: lambda _, at, zone, text: message_format.alert(at, zone, text),
    ApprovalDecided: message_format.approval,
}
"""Renderers by type of input. Arguments: the event, its time, the zone, and its text as far as it is shown."""


def shown(context: Context, system: str, reply: MessageRenderer, imported: MessageRenderer) -> ChatMessages:
    """Return the chat messages that the model sees. A result follows its call, wherever the log has it."""
    zone = context.config.zone
    chat: ChatMessages = [(0, RoleMessage("system", system))]
    summary = summary_of(context)
    if summary is not None and context.summary is not None:
        chat.append(
            (context.summary.seq, RoleMessage("user", message_format.summary(summary, context.summary.at, zone)))
        )
    results = {(m.turn, m.step, m.event.call_id): m for m in context.messages if isinstance(m.event, FunctionResult)}
    for message in context.messages:
        event = message.event
        render_input = _INPUTS.get(type(event))
        if render_input is not None:
            chat.append((message.seq, RoleMessage("user", render_input(event, message.at, zone, words(message)))))
        elif isinstance(event, ModelReply):
            reply(chat, context, message, results)
        elif isinstance(event, MessageSent) and event.imported:
            imported(chat, context, message, results)
        elif isinstance(event, FunctionResult) and event.approval:
            outcome = message_format.approved_result(event, message.at, zone, words(message))
            chat.append((message.seq, RoleMessage("user", outcome)))
    refused = context.refused
    if refused is not None and isinstance(refused.event, ReplyRejected):
        chat.append((refused.seq, RoleMessage("assistant", refused.event.said)))
        chat.append((refused.seq, RoleMessage("user", message_format.alert(refused.at, zone, refused.event.text))))
    return chat


def words(message: ContextMessage) -> str:
    """Return the text of a record, as far as it is shown."""
    return message_format.truncate_text(message.event.text or "", message.shown_chars, message.seq)


def monologue(context: Context, message: ContextMessage) -> str:
    """Return the monologue of a reply, as far as it is shown; the log holds all of it."""
    limit = context.config.monologue_chars_max
    if not limit:
        return words(message)
    shown = message.shown_chars
    return message_format.truncate_text(
        message.event.text or "", limit if shown is None else min(limit, shown), message.seq
    )


def arguments(message: ContextMessage, text: str) -> str | None:
    """Truncate the arguments of a call to what is shown of its reply; None if they are shown whole."""
    shown = message.shown_chars
    return message_format.truncate_text(text, shown, message.seq) if shown is not None and len(text) > shown else None


def results_of(
    message: ContextMessage, reply: ModelReply, results: ResultsByCall
) -> Iterator[tuple[int, str, ContextMessage | None]]:
    """Yield for each call of a reply: the seq to show its result with, the call's id, the result's record or None."""
    for call in reply.calls:
        result = results.get((message.turn, message.step, call.id))
        known = result is not None and isinstance(result.event, FunctionResult)
        yield result.seq if result is not None else message.seq, call.id, result if known else None
