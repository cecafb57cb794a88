"""From a context to the exact bytes of a request: what is hashed as `context_sha256` and is the HTTP body. Pure.

The same context always gives the same bytes, because they hold nothing but the log: no clock, no chance, no order of a
dict that was not made here. When a change of this file changes bytes, raise `constants.RENDERER`: an agent records the
renderer that it was set up with, and `verify` says "renderer gone" for the older ones instead of a false mismatch.
"""

import hashlib
import html
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from events import (
    Call,
    FunctionResult,
    Heartbeat,
    MessageSent,
    ModelReply,
    ReplyRejected,
    SystemAlert,
    UserLogin,
    UserMessage,
)

from . import envelopes
from .context import Block, Context, Message, summary_of

ChatMessage = dict[str, Any]

_json = msgspec.json.Encoder()


class _Function(msgspec.Struct, gc=False):
    name: str
    arguments: str


class _ToolCall(msgspec.Struct, gc=False):
    id: str
    type: str
    function: _Function


class _Said(msgspec.Struct, omit_defaults=True):
    """A chat message of the system, the user or the assistant."""

    role: str
    content: str
    tool_calls: list[_ToolCall] | None = None


class _Returned(msgspec.Struct, gc=False):
    """A chat message with the result of a call."""

    role: str
    tool_call_id: str
    content: str


_Shown = list[tuple[int, _Said | _Returned]]
"""Chat messages, each with the seq of the record that it shows."""

ACCESS = "(use functions to access them)"

TRANSCRIPT_ELLIPSIS = "\n[... the middle of this transcript was left out ...]\n"

SUMMARIZER = (
    "You keep the memory of a conversation between a user and an assistant whose context is full. You are given the "
    "oldest part of it, after the summary of what came before, if there was one. Write one new summary of all of it, "
    "from the assistant's point of view, in the first person. Keep names, dates, numbers, promises and open questions "
    "exactly as they were said. Write at most {words} words of plain text, and nothing else."
)


class Request(msgspec.Struct, frozen=True):
    """A request, and what it was put together from."""

    body: bytes
    system: Sequence[tuple[str, str]]
    """`system_parts`"""
    chat: _Shown
    functions: bytes
    """The end of the body, which names the functions; empty where there are none."""


def request(context: Context, schemas: Mapping[str, str]) -> bytes:
    """The body of the chat-completions request for `context`; `schemas` holds the JSON schema text of each sha256."""
    return composed(context, schemas).body


def composed(context: Context, schemas: Mapping[str, str]) -> Request:
    """What `request` gives, and what it was put together from."""
    system = system_parts(context)
    chat = _shown(context, system)
    body = _json.encode({"model": context.model, "messages": [message for _, message in chat]})
    functions = _functions(tuple([schemas[function.sha256] for function in context.config.functions]))
    return Request(body[:-1] + functions + b"}", system, chat, functions)


@lru_cache(maxsize=256)
def _functions(schemas: tuple[str, ...]) -> bytes:
    """The functions as a request ends with them, one for all agents that have the same."""
    if not schemas:
        return b""
    named = {"tools": [_tool(schema) for schema in schemas], "tool_choice": "auto"}
    return b"," + _json.encode(named)[1:-1]


def _tool(schema: str) -> msgspec.Raw:
    """What the model is told of a function."""
    return msgspec.Raw(_json.encode({"type": "function", "function": msgspec.Raw(schema.encode())}))


def sha256(body: bytes) -> str:
    """The name of a request: the sha256 of its bytes, in hexadecimal."""
    return hashlib.sha256(body).hexdigest()


def messages(context: Context) -> list[ChatMessage]:
    """The chat messages that the model sees."""
    return [message for _, message in numbered(context)]


def numbered(context: Context) -> list[tuple[int, ChatMessage]]:
    """The chat messages, each with the seq of the record that it shows (0 for the system message)."""
    return [(seq, msgspec.to_builtins(message)) for seq, message in _shown(context, system_parts(context))]


def _shown(context: Context, system: Sequence[tuple[str, str]]) -> _Shown:
    zone = context.config.zone
    chat: _Shown = [(0, _Said("system", "\n".join([text for _, text in system])))]
    summary = summary_of(context)
    if summary is not None and context.summary is not None:
        chat.append((context.summary.seq, _Said("user", envelopes.summary(summary, context.summary.at, zone))))
    results = {(m.turn, m.step, m.event.call_id): m for m in context.messages if isinstance(m.event, FunctionResult)}
    for message in context.messages:
        _show(chat, context, message, results)
    refused = context.refused
    if refused is not None and isinstance(refused.event, ReplyRejected):
        chat.append((refused.seq, _Said("assistant", refused.event.said)))
        chat.append((refused.seq, _Said("user", envelopes.alert(refused.at, zone, refused.event.text))))
    return chat


def system_parts(context: Context) -> list[tuple[str, str]]:
    """The system message: the prompt, the memory header, then each block with what there is to know of it, in lines."""
    header = [
        "",
        f"### Memory [last modified: {envelopes.told(context.modified_at, context.config.zone)}]",
        f"{context.recall} previous messages between you and the user are stored in recall memory {ACCESS}",
        f"{context.archival} total memories you created are stored in archival memory {ACCESS}",
        "",
        "Core memory shown below (limited in size, additional information stored in archival / recall memory):",
    ]
    blocks = [(f"block {block.label}", _block(context, block)) for block in context.blocks]
    return [("prompt", context.config.text), ("header", "\n".join(header)), *blocks]


def _block(context: Context, block: Block) -> str:
    shown = envelopes.cut(block.value, envelopes.shown_chars(context.trims, block.label), block.seq)
    said = f' description="{html.escape(block.description)}"' if block.description else ""
    fixed = ' read_only="true"' if block.read_only else ""
    characters = f"{len(block.value)}/{block.limit}"
    return f'<{block.label} characters="{characters}"{said}{fixed}>\n{shown}\n</{block.label}>'


_INPUTS: Mapping[type, Callable[[Any, int, str, str], str]] = {
    UserMessage: envelopes.user_message,
    UserLogin: lambda login, at, zone, _: envelopes.login(login, at, zone),
    Heartbeat: lambda beat, at, zone, _: envelopes.heartbeat(beat, at, zone),
    SystemAlert: lambda _, at, zone, text: envelopes.alert(at, zone, text),
}
"""How each kind of input reads: the event, when it was, the zone, and its words as far as they are shown."""


def _show(chat: _Shown, context: Context, message: Message, results: Mapping[tuple[int, int, str], Message]) -> None:
    """Add the chat messages of one record. A function result is shown with its call, wherever it stands in the log."""
    event = message.event
    told = _INPUTS.get(type(event))
    if told is not None:
        content = told(event, message.at, context.config.zone, _words(context, message))
        chat.append((message.seq, _Said("user", content)))
    elif isinstance(event, ModelReply):
        _show_reply(chat, context, message, event, results)
    elif isinstance(event, MessageSent) and event.imported:
        _show_imported(chat, context, message)


def _words(context: Context, message: Message) -> str:
    text = message.event.text or ""
    if message.seq not in context.trims:
        return text
    return envelopes.cut(text, envelopes.shown_chars(context.trims, message.seq), message.seq)


def _show_reply(
    chat: _Shown,
    context: Context,
    message: Message,
    reply: ModelReply,
    results: Mapping[tuple[int, int, str], Message],
) -> None:
    calls = [_call(context, message, call) for call in reply.calls] or None
    chat.append((message.seq, _Said("assistant", _words(context, message), calls)))
    for call in reply.calls:
        result = results.get((message.turn, message.step, call.id))
        if result is not None and isinstance(result.event, FunctionResult):
            content = envelopes.function_result(result.event, result.at, context.config.zone, _words(context, result))
        else:
            content = envelopes.no_result(message.at, context.config.zone)
        seq = result.seq if result is not None else message.seq
        chat.append((seq, _Returned("tool", call.id, content)))


def _call(context: Context, message: Message, call: Call) -> _ToolCall:
    arguments = call.arguments
    if message.seq not in context.trims:
        return _tool_call(call.id, call.name, arguments)
    shown = envelopes.shown_chars(context.trims, message.seq)
    if shown is not None and len(arguments) > shown:
        arguments = _json.encode({"shown": envelopes.cut(arguments, shown, message.seq)}).decode()
    return _tool_call(call.id, call.name, arguments)


def _tool_call(call_id: str, name: str, arguments: str) -> _ToolCall:
    return _ToolCall(call_id, "function", _Function(name, arguments))


def _show_imported(chat: _Shown, context: Context, message: Message) -> None:
    """An imported answer, as if it had been sent with `send_message`: the one way in which an agent speaks."""
    call_id = f"import_{message.seq}"
    arguments = _json.encode({"message": _words(context, message)}).decode()
    time = envelopes.told(message.at, context.config.zone)
    calls = [_tool_call(call_id, "send_message", arguments)]
    chat.append((message.seq, _Said("assistant", "", calls)))
    chat.append((message.seq, _Returned("tool", call_id, envelopes.plain_ok(time))))


def summary_request(context: Context, covers_to: int, words: int, bytes_max: int) -> bytes:
    """The body of the request for a summary of the messages up to `covers_to` (inclusive), in at most `words` words.

    A transcript of more than `bytes_max` bytes keeps its beginning and its end.
    """
    parts = dict(summary_parts(context, covers_to, words, bytes_max))
    return _json.encode(
        {
            "model": context.summarizer,
            "messages": [
                {"role": "system", "content": parts["instructions"]},
                {"role": "user", "content": parts["transcript"]},
            ],
        }
    )


def summary_parts(context: Context, covers_to: int, words: int, bytes_max: int) -> list[tuple[str, str]]:
    """The parts of that request by name, in their order."""
    covered = [m for m in context.messages if m.seq <= covers_to]
    return [
        ("instructions", SUMMARIZER.format(words=words)),
        ("transcript", _squeezed(transcript(context, covered), bytes_max)),
    ]


def transcript(context: Context, covered: Sequence[Message]) -> str:
    """The messages as lines of "time | who: words", after the summary that stood before them."""
    summary = summary_of(context)
    lines = [f"Summary so far: {summary.text}"] if summary else []
    for message in covered:
        lines.extend(_lines(message, envelopes.told(message.at, context.config.zone)))
    return "\n".join(lines)


def _lines(message: Message, time: str) -> list[str]:
    match message.event:
        case UserMessage(text=text, name=name):
            return [f"{time} | {name or 'user'}: {text}"]
        case MessageSent(text=text, name=name):
            return [f"{time} | {name or 'assistant'}: {text}"]
        case ModelReply(text=text, calls=calls):
            thought = [f"{time} | assistant (thinking): {text}"] if text else []
            return thought + [f"{time} | assistant called {call.name} {call.arguments}" for call in calls]
        case FunctionResult(text=text, name=name) if text and name != "send_message":
            return [f"{time} | {name} returned: {text}"]
        case SystemAlert(text=text, source="manual" | "user_event"):
            return [f"{time} | system: {text}"]
        case _:
            return []


def _squeezed(text: str, bytes_max: int) -> str:
    """`text`, or its first and last half of `bytes_max` where it is longer than `bytes_max` bytes of UTF-8."""
    data = text.encode()
    if len(data) <= bytes_max:
        return text
    half = max(0, (bytes_max - len(TRANSCRIPT_ELLIPSIS)) // 2)
    return data[:half].decode(errors="ignore") + TRANSCRIPT_ELLIPSIS + data[len(data) - half :].decode(errors="ignore")
