"""Read a Letta agent file (`.af`): the memory blocks and the messages of each agent in it.

Used by `read_conversations`. Nothing of the file is run: its tools are program text of others, and are only counted.
The accepted shape is the one with lists `agents` and `blocks`; the flat file of early 2025 is refused.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from everlog.actors.agent.agent_setup import InitialBlock
from everlog.actors.ports.agent_constants import BLOCK_CHARS, SEND_MESSAGE
from everlog.interfaces.imports.past_conversation import (
    JsonMap,
    MessageCollector,
    PastConversation,
    bad,
    field,
    iso_us,
    objects,
)

EVENTS = {"heartbeat", "login", "system_alert"}
"""Values of `type` in a user's message that Letta itself wrote."""


def letta_conversations(value: Any, source: str) -> Sequence[PastConversation]:
    """Return the conversation of each agent of the file, with its memory blocks. Raises BadInput."""
    if not isinstance(value, dict) or not isinstance(value.get("agents"), list):
        raise bad(source, "it has no list `agents`, as a Letta agent file of version 2 has")
    made = field(value, "created_at", str, source)
    blocks = {str(block.get("id")): block for block in objects(value, "blocks", source)}
    tools = len(objects(value, "tools", source))
    return [
        _conversation(agent, blocks, tools, made, f"{source}, agents[{number}]")
        for number, agent in enumerate(objects(value, "agents", source))
    ]


def _conversation(
    agent: JsonMap, blocks: Mapping[str, JsonMap], tools: int, made: str | None, place: str
) -> PastConversation:
    collector = MessageCollector()
    if tools:
        collector.left_out["tools"] = tools
    at = None if made is None else iso_us(made, place)
    for number, message in enumerate(objects(agent, "messages", place)):
        where = f"{place}, messages[{number}]"
        created = field(message, "created_at", str, where)
        at = at if created is None else iso_us(created, where)
        if at is None:
            raise bad(where, "neither it nor the file has created_at")
        try:
            _add(collector, message, at, where)
        except ValueError as error:
            raise bad(where, str(error)) from error
    return PastConversation(
        id=field(agent, "id", str, place, default=""),
        title=field(agent, "name", str, place, default=""),
        messages=collector.messages,
        blocks=_blocks(agent, blocks, place),
        left_out=dict(collector.left_out),
    )


def _blocks(agent: JsonMap, blocks: Mapping[str, JsonMap], place: str) -> list[InitialBlock]:
    """Return the agent's memory blocks: those that it names by id, and those inside of it."""
    named = field(agent, "block_ids", list, place, default=[])
    missing = [str(name) for name in named if str(name) not in blocks]
    if missing:
        raise bad(place, f"it names the block {missing[0][:60]!r}, which the file does not have")
    found = [blocks[str(name)] for name in named] + objects(agent, "memory_blocks", place)
    made = []
    for number, block in enumerate(found):
        where = f"{place}, block {number + 1}"
        value = field(block, "value", str, where, default="")
        made.append(
            InitialBlock(
                label=field(block, "label", str, where, default=""),
                value=value,
                limit=field(block, "limit", int, where, default=max(BLOCK_CHARS, len(value))),
                description=field(block, "description", str, where, default=""),
                read_only=field(block, "read_only", bool, where, default=False),
            )
        )
    return made


def _add(collector: MessageCollector, message: JsonMap, at: int, place: str) -> None:
    role = field(message, "role", str, place, default="")
    if not role:
        raise bad(place, "it has no role")
    ref = field(message, "id", str, place, default="")
    text = _text(message.get("content"), collector, place)
    if role == "user":
        said = _packed(text)
        if said is None:
            collector.left_out["system events"] += 1
        else:
            collector.add("user", said, at, ref=ref, name=field(message, "name", str, place, default=""))
    elif role == "assistant":
        _add_reply(collector, message, text, at, ref, place)
    else:
        collector.left_out[f"{role[:40]} messages"] += 1


def _add_reply(collector: MessageCollector, message: JsonMap, text: str, at: int, ref: str, place: str) -> None:
    """Add what a reply said to the user: its calls of `send_message`, or its text if it calls nothing."""
    calls = objects(message, "tool_calls", place)
    if not calls:
        collector.add("assistant", text, at, ref=ref)
        return
    if text.strip():
        collector.left_out["thoughts"] += 1
    for call in calls:
        function = field(call, "function", dict, place, default={})
        if function.get("name") != SEND_MESSAGE:
            collector.left_out["function calls"] += 1
            continue
        arguments = _object(field(function, "arguments", str, place, default=""))
        said = None if arguments is None else arguments.get("message")
        if not isinstance(said, str):
            raise bad(place, f"its call of {SEND_MESSAGE} has no message")
        collector.add("assistant", said, at, ref=ref)


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
        if part.get("type") == "text":
            texts.append(field(part, "text", str, place, default=""))
        else:
            kind = str(part.get("type"))[:40]
            collector.left_out["images" if kind == "image" else f"parts of the type {kind}"] += 1
    return "\n".join(text for text in texts if text)


def _packed(text: str) -> str | None:
    """Return what a user said: Letta may pack it into JSON. None: Letta itself wrote the message."""
    found = _object(text)
    if found is None or "type" not in found:
        return text
    if found["type"] == "user_message" and isinstance(found.get("message"), str):
        return str(found["message"])
    return None if found["type"] in EVENTS else text


def _object(text: str) -> JsonMap | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
