"""Render a context into the exact bytes of a request: the HTTP body, hashed as `context_sha256`. Pure.

The same context always gives the same bytes, because they depend on the log alone: no clock, no randomness, no dict
order from elsewhere. If a change of this file changes bytes, raise `agent_constants.RENDERER`: an agent records the
renderer that it was configured with, and `verify` reports "renderer gone" for older ones instead of a false mismatch.
Used by `model_step.py`, by `actors/replay` and reruns, and by commands that show requests.
"""

import hashlib
import html
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from everlog.actors.formats.calling import CALLING_FORMATS
from everlog.actors.formats.calling_format import options, summary_options
from everlog.actors.formats.chat_messages import ChatMessages
from everlog.actors.ports.agent_constants import SEND_MESSAGE
from everlog.actors.prompt import message_format
from everlog.actors.prompt.context import Context, ContextMessage, MemoryBlock, summary_of
from everlog.actors.prompt.function_rules import offered
from everlog.events import FunctionResult, MessageSent, ModelReply, SystemAlert, UserMessage

ChatMessage = dict[str, Any]

ACCESS = "(use functions to access them)"

TRANSCRIPT_ELLIPSIS = "\n[... the middle of this transcript was left out ...]\n"

SUMMARIZER = (
    "You keep the memory of a conversation between a user and an assistant whose context is full. You are given the "
    "oldest part of it, after the summary of what came before, if there was one. Write one new summary of all of it, "
    "from the assistant's point of view, in the first person. Keep names, dates, numbers, promises and open questions "
    "exactly as they were said. Write at most {words} words of plain text, and nothing else."
)


class Request(msgspec.Struct, frozen=True):
    """A request, and its parts."""

    body: bytes
    system: Sequence[tuple[str, str]]
    """Result of `system_parts`."""
    chat: ChatMessages
    functions: bytes
    """Description of the functions in the body; empty if there is none."""
    options: bytes
    """End of the body: sampling settings and streaming; empty by default."""


def request(context: Context, schemas: Mapping[str, str]) -> bytes:
    """Render the body of the request for `context`; `schemas`: JSON schema texts by sha256."""
    return compose(context, schemas).body


def compose(context: Context, schemas: Mapping[str, str]) -> Request:
    """Render the request for `context`, and return it with its parts."""
    calling_format = CALLING_FORMATS[context.config.calling]
    system = system_parts(context)
    known = [schemas[function.sha256] for function in offered(context.config, context.rules)]
    described = calling_format.described(known)
    chat, body, held = calling_format.body(context, _system_message(system, described), known)
    return Request(body, system, chat, described.encode() + held, options(context))


def _system_message(system: Sequence[tuple[str, str]], described: str = "") -> str:
    """Join the system message: the functions come after the prompt, before the parts that change."""
    texts = [text for _, text in system]
    return "\n".join([texts[0], described, *texts[1:]] if described else texts)


def sha256(body: bytes) -> str:
    """Return the name of a request: the SHA-256 of its bytes, in hexadecimal."""
    return hashlib.sha256(body).hexdigest()


def messages(context: Context) -> list[ChatMessage]:
    """Return the chat messages that the model sees."""
    return [message for _, message in numbered_messages(context)]


def numbered_messages(context: Context) -> list[tuple[int, ChatMessage]]:
    """Return the chat messages, each with the seq of the record that it shows (0 for the system message)."""
    chat = CALLING_FORMATS[context.config.calling].shown(context, _system_message(system_parts(context)))
    return [(seq, msgspec.to_builtins(message)) for seq, message in chat]


def system_parts(context: Context) -> list[tuple[str, str]]:
    """Return the parts of the system message: prompt, memory header, then each block with its attributes, in lines."""
    header = [
        "",
        f"### Memory [last modified: {message_format.format_time(context.modified_at, context.config.zone)}]",
        f"{context.recall} previous messages between you and the user are stored in recall memory {ACCESS}",
        f"{context.archival} total memories you created are stored in archival memory {ACCESS}",
        "",
        "Core memory shown below (limited in size, additional information stored in archival / recall memory):",
    ]
    blocks = [(f"block {block.label}", _block(block)) for block in context.blocks]
    return [("prompt", context.config.text), ("header", "\n".join(header)), *blocks]


def _block(block: MemoryBlock) -> str:
    shown = message_format.truncate_text(block.value, block.shown_chars, block.seq)
    said = f' description="{html.escape(block.description)}"' if block.description else ""
    fixed = ' read_only="true"' if block.read_only else ""
    characters = f"{len(block.value)}/{block.limit}"
    return f'<{block.label} characters="{characters}"{said}{fixed}>\n{shown}\n</{block.label}>'


def summary_request(context: Context, covers_to: int, words: int, bytes_max: int) -> bytes:
    """Render the request for a summary of the messages up to `covers_to` (inclusive), in at most `words` words.

    A transcript of more than `bytes_max` bytes keeps its beginning and its end.
    """
    parts = dict(summary_parts(context, covers_to, words, bytes_max))
    return CALLING_FORMATS[context.config.calling].summary(context, parts["instructions"], parts["transcript"])


def summary_parts(context: Context, covers_to: int, words: int, bytes_max: int) -> list[tuple[str, str]]:
    """Return the parts of a summary request by name, in order."""
    covered = [m for m in context.messages if m.seq <= covers_to]
    parts = [
        ("instructions", SUMMARIZER.format(words=words)),
        ("transcript", _shorten(transcript(context, covered), bytes_max)),
    ]
    chosen = summary_options(context).decode()
    return [*parts, ("options", chosen)] if chosen else parts


def transcript(context: Context, covered: Sequence[ContextMessage]) -> str:
    """Render the messages as lines of "time | who: words", after the summary before them."""
    summary = summary_of(context)
    lines = [f"Summary so far: {summary.text}"] if summary else []
    for message in covered:
        lines.extend(_lines(message, message_format.format_time(message.at, context.config.zone)))
    return "\n".join(lines)


def _lines(message: ContextMessage, time: str) -> list[str]:
    match message.event:
        case UserMessage(text=text, name=name):
            return [f"{time} | {name or 'user'}: {text}"]
        case MessageSent(text=text, name=name):
            return [f"{time} | {name or 'assistant'}: {text}"]
        case ModelReply(text=text, calls=calls):
            thought = [f"{time} | assistant (thinking): {text}"] if text else []
            return thought + [f"{time} | assistant called {call.name} {call.arguments}" for call in calls]
        case FunctionResult(text=text, name=name) if text and name != SEND_MESSAGE:
            return [f"{time} | {name} returned: {text}"]
        case SystemAlert(text=text, source="manual" | "user_event"):
            return [f"{time} | system: {text}"]
        case _:
            return []


def _shorten(text: str, bytes_max: int) -> str:
    """Return `text`; if longer than `bytes_max` bytes of UTF-8, its beginning and end of half that size each."""
    data = text.encode()
    if len(data) <= bytes_max:
        return text
    half = max(0, (bytes_max - len(TRANSCRIPT_ELLIPSIS)) // 2)
    return data[:half].decode(errors="ignore") + TRANSCRIPT_ELLIPSIS + data[len(data) - half :].decode(errors="ignore")
