"""Interface of a calling format (a renderer and a parser, both pure), and helpers that the formats share.

Used by the formats and by `render_request.py` and `parse_reply.py`. The helpers that render (`encode_fields`, the
options) decide on the bytes of requests: see `agent_constants.RENDERER`. For those that parse see `parse_reply.READER`.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Protocol

import msgspec

from everlog.actors.formats import json_repair
from everlog.actors.formats.chat_messages import ChatMessages
from everlog.actors.prompt.context import Context
from everlog.events import Call

CALL_ID_CHARS_MAX = 40

_OPEN, _CLOSE = "<think>", "</think>"
_BRACES_MAX = 20
"""Most braces and brackets before `</think>` that are tried as the beginning of an object that contains the tag."""
_BRACE = re.compile(r"[{\[]")


class ToolCallFunction(msgspec.Struct):
    """Function of a call, as servers send it."""

    name: str
    arguments: Any = None


class ToolCall(msgspec.Struct):
    """A call with its id, which some servers leave out."""

    function: ToolCallFunction
    id: str | int | None = None


class AssistantMessage(msgspec.Struct):
    """Message of a model as a server sends it, in any response format."""

    text: str = ""
    calls: Sequence[ToolCall] = ()
    reasoning: str = ""


class ParsedReply(msgspec.Struct, frozen=True):
    """Parsed reply: monologue, calls, and the repair steps that were needed."""

    text: str
    calls: list[Call]
    repairs: Sequence[str] = ()


class CallingFormat(Protocol):
    """One calling format."""

    def shown(self, context: Context, system: str) -> ChatMessages:
        """Return the messages of a request, the system message first."""

    def described(self, schemas: Sequence[str]) -> str:
        """Describe the functions for the system message; empty if another part of the request does."""

    def body(self, context: Context, system: str, schemas: Sequence[str]) -> tuple[ChatMessages, bytes, bytes]:
        """Return the messages, the body that holds them, and the part of the body that describes the functions."""

    def summary(self, context: Context, instructions: str, transcript: str) -> bytes:
        """Return the body of a request for a summary."""

    def read(self, said: AssistantMessage) -> ParsedReply:
        """Parse a model's message."""


def encode_fields(fields: Mapping[str, Any]) -> bytes:
    """Encode fields as the end of a body, with the comma that joins them."""
    return b"," + _json.encode(fields)[1:-1] if fields else b""


_json = msgspec.json.Encoder()


def options(context: Context) -> bytes:
    """Encode the end of a body: sampling settings and streaming."""
    fields: dict[str, Any] = msgspec.to_builtins(context.config.sampling)
    if context.config.stream:
        fields |= {"stream": True, "stream_options": {"include_usage": True}}
    return encode_fields(fields)


def summary_options(context: Context) -> bytes:
    """Encode the end of a summary request: not streamed, and without the agent's sampling for another model."""
    if context.summarizer != context.model:
        return b""
    return encode_fields(msgspec.to_builtins(context.config.sampling))


def numbered_calls(asked: Sequence[tuple[str | int | None, str, str]]) -> list[Call]:
    """Make calls of (id, name, arguments), each with a unique id: some servers leave ids out or repeat them."""
    calls: list[Call] = []
    seen: set[str] = set()
    for number, (given, name, arguments) in enumerate(asked, start=1):
        call_id = "" if given is None else str(given)[:CALL_ID_CHARS_MAX]
        while not call_id or call_id in seen:
            call_id, number = f"call_{number}", number + 1
        seen.add(call_id)
        calls.append(Call(call_id, name, arguments))
    return calls


def split_thoughts(text: str) -> tuple[str, str, list[str]]:
    """Split a text into thoughts between tags, the rest, and the repair steps. Some templates open the tag."""
    begin, end = text.find(_OPEN), text.find(_CLOSE)
    if end < 0:
        opened = text.lstrip()
        return (opened[len(_OPEN) :].strip(), "", ["think", "cut"]) if opened.startswith(_OPEN) else ("", text, [])
    if begin > end:
        return "", text, []
    before = text[:begin] if begin >= 0 else ""
    if before.strip() or (begin < 0 and _is_within(text, end)):
        return "", text, []
    thought = text[begin + len(_OPEN) if begin >= 0 else 0 : end]
    return thought.strip(), text[end + len(_CLOSE) :].strip(), ["think"]


def _is_within(text: str, place: int) -> bool:
    """Return True if an object begins before `place` and ends after it: then `place` is inside one of its texts."""
    for match in islice(_BRACE.finditer(text, 0, place), _BRACES_MAX):
        try:
            if json_repair.begun(text, match.start()).end > place:
                return True
        except json_repair.UnrepairableJson:
            continue
    return False


def join_texts(*texts: str) -> str:
    """Join texts as lines, without the empty ones."""
    return "\n".join([text for text in texts if text])
