"""Read the messages of Letta and of MemGPT: what users and agents said, and when.

Used by the readers of agent files. Both programs write messages as OpenAI's API has them. Letta gives each a time; in
MemGPT's messages the times are inside of the text, as programs of that time packed it. What an agent says is a call of
`send_message`; its time is that of the call's return, because only then the user had it.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from everlog.actors.ports.agent_constants import SEND_MESSAGE
from everlog.interfaces.imports.past_conversation import JsonMap, MessageCollector, bad, field, iso_us, objects

EVENTS = {"heartbeat", "login", "system_alert"}
"""Values of `type` in a user's message that Letta or MemGPT itself wrote."""
RETURNS = ("tool", "function")
"""Roles of messages that hold results of calls; MemGPT had `function` before there were ids of calls."""

_MEMGPT_TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [AP]M)(?: [A-Za-z]*)?([+-]\d{4})?")


class CallReturn(msgspec.Struct, frozen=True):
    """Result of a function call."""

    at: int | None
    """Time, microseconds UTC; None: unknown."""
    ok: bool


Returns = Mapping[str, CallReturn]
"""Results of the calls of one message, by id of the call; by name of the function if calls have no ids."""


def add_messages(collector: MessageCollector, messages: Sequence[JsonMap], start: int | None, place: str) -> None:
    """Add what was said in the messages of one agent, and count the rest as left out.

    A message without a time has that of the one before it, the first one the time `start` (microseconds UTC; None:
    that of the next message that has one). Raises BadInput that names the message.
    """
    places = [f"{place}, messages[{number}]" for number in range(len(messages))]
    own = [_own_time(message, where) for message, where in zip(messages, places, strict=True)]
    at = next((time for time in own if time is not None), None) if start is None else start
    for number, message in enumerate(messages):
        at = own[number] if own[number] is not None else at
        if at is None:
            raise bad(places[number], "no message has a time, and the file has no created_at")
        try:
            _add(collector, message, number, at, _returns(messages, own, number, place), places[number])
        except ValueError as error:
            raise bad(places[number], str(error)) from error


def unpacked(text: str) -> JsonMap | None:
    """Return what Letta packed into the JSON of a user's message, with its `type`; None if the text is not packed."""
    found = _object(text)
    if found is None:
        return None
    is_said = found.get("type") == "user_message" and isinstance(found.get("message"), str)
    return found if is_said or found.get("type") in EVENTS else None


def _own_time(message: JsonMap, place: str) -> int | None:
    """Return the time that a message itself has, in a field or in its packed text; None if it has none."""
    created = field(message, "created_at", str, place)
    if created is not None:
        return iso_us(created, place)
    packed = _object(_first_text(message)) if message.get("role") in ("user", *RETURNS) else None
    written = packed.get("time") if packed is not None else None
    found = _MEMGPT_TIME.fullmatch(written.strip()) if isinstance(written, str) else None
    if found is None:
        return None
    try:
        when = datetime.strptime(f"{found[1]} {found[2] or '+0000'}", "%Y-%m-%d %I:%M:%S %p %z")
    except ValueError as error:
        raise bad(place, f"its time {found[0]!r} is none") from error
    return iso_us(when.isoformat(), place)


def _returns(messages: Sequence[JsonMap], own: Sequence[int | None], number: int, place: str) -> Returns:
    """Return the results of a message's calls: those in the messages directly after it."""
    found: dict[str, CallReturn] = {}
    for after in range(number + 1, len(messages)):
        message, where = messages[after], f"{place}, messages[{after}]"
        if message.get("role") not in RETURNS:
            break
        failed = _is_failed(_first_text(message))
        for one in [*objects(message, "tool_returns", where), message]:
            ok = not failed and one.get("status") != "error"
            key = str(one.get("tool_call_id") or one.get("name") or "")
            found.setdefault(key, CallReturn(own[after], ok))
    return found


def _is_failed(text: str) -> bool:
    packed = _object(text)
    return packed is not None and packed.get("status") == "Failed"


def _first_text(message: JsonMap) -> str:
    """Return the first text of a message's content; empty if it has none."""
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return next((text for text in texts if isinstance(text, str)), "")


def _add(collector: MessageCollector, message: JsonMap, number: int, at: int, returns: Returns, place: str) -> None:
    role = field(message, "role", str, place, default="")
    if not role:
        raise bad(place, "it has no role")
    ref = field(message, "id", str, place, default="") or f"message-{number}"
    name = field(message, "name", str, place, default="")
    text = _text(message.get("content"), collector, place)
    if role == "user":
        packed = unpacked(text)
        if packed is None:
            collector.add("user", text, at, ref=ref, name=name)
        elif packed["type"] == "user_message":
            said_by = packed.get("name")
            collector.add(
                "user", packed["message"], at, ref=ref, name=name or (said_by if isinstance(said_by, str) else "")
            )
        else:
            collector.left_out["system events"] += 1
    elif role == "assistant":
        _add_reply(collector, message, text, at, ref, name, returns, place)
    else:
        collector.left_out[f"{role[:40]} messages"] += 1


def _add_reply(
    collector: MessageCollector, message: JsonMap, text: str, at: int, ref: str, name: str, returns: Returns, place: str
) -> None:
    """Add what a reply said to the user: its calls of `send_message`, or its text if it calls nothing."""
    calls = list(_calls(message, place))
    if not calls:
        if text.strip() or not _has_thought(message):
            collector.add("assistant", text, at, ref=ref, name=name)
        return
    if text.strip():
        collector.left_out["thoughts"] += 1
    for call_id, function in calls:
        if function.get("name") != SEND_MESSAGE:
            collector.left_out["function calls"] += 1
            continue
        result = returns.get(call_id) or returns.get(SEND_MESSAGE) or CallReturn(None, ok=True)
        if not result.ok:
            collector.left_out["failed calls"] += 1
            continue
        arguments = _object(field(function, "arguments", str, place, default=""))
        said = None if arguments is None else arguments.get("message")
        if not isinstance(said, str):
            raise bad(place, f"its call of {SEND_MESSAGE} has no message")
        collector.add("assistant", said, at if result.at is None else result.at, ref=ref)


def _calls(message: JsonMap, place: str) -> Iterator[tuple[str, JsonMap]]:
    """Yield the calls of a reply: id, and object with name and arguments. MemGPT's first ones had one and no id."""
    for call in objects(message, "tool_calls", place):
        yield field(call, "id", str, place, default=""), field(call, "function", dict, place, default={})
    single = field(message, "function_call", dict, place)
    if single is not None:
        yield "", single


def _has_thought(message: JsonMap) -> bool:
    """Return True if a message has a part that holds reasoning, which was counted when its text was read."""
    content = message.get("content")
    return isinstance(content, list) and any(part.get("type") in _REASONING for part in content)


_REASONING = {"reasoning", "redacted_reasoning", "omitted_reasoning"}


def _text(content: Any, collector: MessageCollector, place: str) -> str:
    """Return the text of a message's content; parts of other types are counted as left out."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise bad(place, f"its content is of the type {type(content).__name__}")
    texts = []
    for part in content:
        if not isinstance(part, dict):
            raise bad(place, f"a part of its content is of the type {type(part).__name__}")
        kind = str(part.get("type"))[:40]
        if kind == "text":
            texts.append(field(part, "text", str, place, default=""))
        elif kind in _REASONING:
            collector.left_out["thoughts"] += 1
        else:
            collector.left_out["images" if kind == "image" else f"parts of the type {kind}"] += 1
    return "\n".join(text for text in texts if text)


def _object(text: str) -> JsonMap | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
