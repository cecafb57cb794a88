"""Read the `conversations.json` of a ChatGPT export: for each conversation, the branch that was last shown.

Used by `read_conversations`. A conversation is a tree of nodes, because a message that was edited or answered again
leaves a branch; the path from `current_node` to the root is the conversation. The path is followed with a guard against
cycles, because the file is not trusted.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from everlog.interfaces.imports.past_conversation import (
    JsonMap,
    MessageCollector,
    PastConversation,
    bad,
    epoch_us,
    field,
)

TEXTS = ("text", "multimodal_text")
"""Content types whose parts are texts, and media between them."""


def chatgpt_conversations(value: Any, source: str) -> Sequence[PastConversation]:
    """Return the conversations of an export, in its order. Raises BadInput that names the conversation and node."""
    found = value if isinstance(value, list) else [value]
    read = []
    for number, one in enumerate(found):
        place = f"{source}, conversation {number + 1}"
        if not isinstance(one, dict) or "mapping" not in one:
            raise bad(place, "it is no object with `mapping` and `current_node`, as a ChatGPT export has")
        read.append(_conversation(one, place))
    return read


def _conversation(one: JsonMap, place: str) -> PastConversation:
    title = field(one, "title", str, place, default="")
    ids = [field(one, name, str, place) for name in ("conversation_id", "id")]
    start = field(one, "create_time", (int, float), place)
    collector = MessageCollector()
    at = None if start is None else epoch_us(start, place)
    nodes = field(one, "mapping", dict, place, default={})
    for node_id in _path(nodes, field(one, "current_node", str, place, default=""), place):
        at = _add(collector, nodes[node_id], at, node_id, f"{place}, node {node_id[:60]!r}")
    return PastConversation(
        id=next(filter(None, ids), ""), title=title, messages=collector.messages, left_out=dict(collector.left_out)
    )


def _path(nodes: Mapping[str, Any], current: str, place: str) -> list[str]:
    """Return the ids of the nodes from the root to `current`. Raises BadInput for a cycle or a missing node."""
    if not nodes:
        return []
    path: list[str] = []
    seen: set[str] = set()
    at: str | None = current
    while at:
        if at in seen:
            raise bad(place, f"its nodes form a cycle through {at[:60]!r}")
        if not isinstance(nodes.get(at), dict):
            raise bad(place, f"its mapping has no node {at[:60]!r}")
        seen.add(at)
        path.append(at)
        at = field(nodes[at], "parent", str, f"{place}, node {at[:60]!r}")
    if not path:
        raise bad(place, "it has no `current_node`, so its branch is unknown")
    return path[::-1]


def _add(collector: MessageCollector, node: JsonMap, before: int | None, node_id: str, place: str) -> int | None:
    """Add the message of a node, if it has one. Return its time, else the time before."""
    message = field(node, "message", dict, place)
    if message is None:
        return before
    author = field(message, "author", dict, place, default={})
    role = field(author, "role", str, place, default="")
    content = field(message, "content", dict, place, default={})
    kind = field(content, "content_type", str, place, default="text")
    hidden = field(message, "metadata", dict, place, default={}).get("is_visually_hidden_from_conversation") is True
    if role not in ("user", "assistant") or hidden:
        collector.left_out["hidden messages" if hidden else f"{role[:40] or 'unknown'} messages"] += 1
        return before
    if role == "assistant" and field(message, "recipient", str, place, default="all") != "all":
        collector.left_out["function calls"] += 1
        return before
    if kind not in TEXTS:
        collector.left_out[f"parts of the type {kind[:40]}"] += 1
        return before
    seconds = field(message, "create_time", (int, float), place)
    at = before if seconds is None else epoch_us(seconds, place)
    if at is None:
        raise bad(place, "neither its message nor its conversation has a create_time")
    text = _text(field(content, "parts", list, place, default=[]), collector, place)
    try:
        collector.add(role, text, at, ref=field(message, "id", str, place, default=node_id))
    except ValueError as error:
        raise bad(place, str(error)) from error
    return at


def _text(parts: Sequence[Any], collector: MessageCollector, place: str) -> str:
    """Return the texts of the parts; media are counted as left out."""
    texts = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and part.get("content_type") == "audio_transcription":
            texts.append(field(part, "text", str, place, default=""))
        elif isinstance(part, dict):
            kind = str(part.get("content_type"))[:40]
            collector.left_out["images" if "image" in kind else f"parts of the type {kind}"] += 1
        else:
            raise bad(place, f"a part of its content is of the type {type(part).__name__}")
    return "\n".join(text for text in texts if text)
