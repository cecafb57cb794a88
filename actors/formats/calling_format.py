"""What a way to call functions is: a renderer and a parser, both pure, behind one Protocol."""

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
"""Braces and brackets before an end of thoughts at which an object is looked for that goes beyond it."""
_BRACE = re.compile(r"[{\[]")


class ToolCallFunction(msgspec.Struct):
    """A call as servers send it."""

    name: str
    arguments: Any = None


class ToolCall(msgspec.Struct):
    """A call with its id, which some leave out."""

    function: ToolCallFunction
    id: str | int | None = None


class AssistantMessage(msgspec.Struct):
    """What a model said, as a server sends it, whatever the format of its answer."""

    text: str = ""
    calls: Sequence[ToolCall] = ()
    reasoning: str = ""


class ParsedReply(msgspec.Struct, frozen=True):
    """What was meant: a monologue, calls, and the rungs that it took to read them."""

    text: str
    calls: list[Call]
    repairs: Sequence[str] = ()


class CallingFormat(Protocol):
    """One way to call functions."""

    def shown(self, context: Context, system: str) -> ChatMessages:
        """The messages of a request, the system message first."""

    def described(self, schemas: Sequence[str]) -> str:
        """What the system message says of the functions; empty where something else in the request does."""

    def body(self, context: Context, system: str, schemas: Sequence[str]) -> tuple[ChatMessages, bytes, bytes]:
        """The messages, the body of the request that holds them, and what outside of them tells of the functions."""

    def summary(self, context: Context, instructions: str, transcript: str) -> bytes:
        """The body of a request for a summary."""

    def read(self, said: AssistantMessage) -> ParsedReply:
        """What the model meant."""


def encode_fields(fields: Mapping[str, Any]) -> bytes:
    """Fields as the end of a body, with the comma that joins them."""
    return b"," + _json.encode(fields)[1:-1] if fields else b""


_json = msgspec.json.Encoder()


def options(context: Context) -> bytes:
    """The end of a body: how words are chosen, and whether the reply comes piece by piece."""
    fields: dict[str, Any] = msgspec.to_builtins(context.config.sampling)
    if context.config.stream:
        fields |= {"stream": True, "stream_options": {"include_usage": True}}
    return encode_fields(fields)


def summary_options(context: Context) -> bytes:
    """The same for a summary, which is not heard piece by piece; another model than the agent's own has its own."""
    if context.summarizer != context.model:
        return b""
    return encode_fields(msgspec.to_builtins(context.config.sampling))


def numbered_calls(asked: Sequence[tuple[str | int | None, str, str]]) -> list[Call]:
    """Calls of (id, name, arguments), each with an id of its own: some servers leave ids out or repeat them."""
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
    """What a model thought aloud between tags, the rest, and the rungs. Some templates open the tag themselves."""
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
    """Whether an object begins before `place` and ends behind it: what stands there is in one of its texts."""
    for match in islice(_BRACE.finditer(text, 0, place), _BRACES_MAX):
        try:
            if json_repair.begun(text, match.start()).end > place:
                return True
        except json_repair.UnrepairableJson:
            continue
    return False


def join_texts(*texts: str) -> str:
    """Texts as lines, those that are empty left out."""
    return "\n".join([text for text in texts if text])
