"""Show an agent at a moment: its talk beside its memory; what the model saw; and a chat with it."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
from starlette.responses import Response

from everlog.actors.agent.agent_view import AgentView
from everlog.events import AgentCreated, BadInput, BlockRemoved, MemoryEdited, is_erased
from everlog.interfaces.http.console.agent_frame import AgentFrame, MomentParameters, agent_page
from everlog.interfaces.http.console.talk_entries import ENTRIES_MAX, RECORDS_READ, entries_of, turns_of
from everlog.interfaces.http.core.routes import HttpCall
from everlog.interfaces.replay_console.word_diff import DiffSegment, difference
from everlog.interfaces.show import show_commands

CONTEXT_MESSAGES = 200
"""Newest messages of the context that a page shows, beside the system message and the one after it."""
_EDITS = (MemoryEdited.kind, BlockRemoved.kind)
CONTEXT_CHARS = 20_000
"""Characters of a message of the context that a page shows; the rest is counted."""


class TalkParameters(MomentParameters, frozen=True):
    """Parameters of a page with a conversation."""

    before: int = 0
    """Seq before which the page ends; 0: it ends at the moment."""


class ShownBlock(msgspec.Struct, frozen=True, kw_only=True):
    """Memory block as a page shows it."""

    label: str
    description: str
    read_only: bool
    origin: str
    limit: int
    chars: int
    seq: int
    changed: bool
    """True: this turn changed it."""
    parts: Sequence[DiffSegment]
    """Its words; if this turn changed it, with the words that are gone."""


async def show_overview(call: HttpCall) -> Response:
    """Show an agent at a moment: what was said up to then, and core memory with what this turn changed."""

    def read(view: AgentView, frame: AgentFrame) -> Mapping[str, Any]:
        return {**talk_at(view, frame, call.query.before), "blocks": blocks_at(view, frame)}

    return await agent_page(call, "", "overview.html", read)


async def show_chat(call: HttpCall) -> Response:
    """Show a chat with the agent. It is always of the present: a message cannot reach the past."""

    def read(view: AgentView, frame: AgentFrame) -> Mapping[str, Any]:
        open_turns = [row["turn"] for row in view.rows("open_turns")]
        return {**talk_at(view, frame, call.query.before), "open_turns": open_turns}

    return await agent_page(call, "chat", "chat.html", read)


async def show_context(call: HttpCall) -> Response:
    """Show exactly what the model would see at a moment, message by message."""

    def read(view: AgentView, _: AgentFrame) -> Mapping[str, Any]:
        try:
            seen = show_commands.context_shape(view)
        except BadInput as error:  # it was not configured yet at that moment
            return {"reason": str(error), "messages": [], "tokens": 0, "window": 0, "first": 0, "count": 0, "left": 0}
        whole = seen["messages"]
        left = max(0, len(whole) - CONTEXT_MESSAGES - 2)
        shown = [*whole[:2], *whole[2 + left :]]
        return {
            "reason": "", "messages": [_message(message) for message in shown], "tokens": seen["tokens"],
            "window": seen["window"], "first": min((one["seq"] for one in whole if one["seq"]), default=0),
            "count": len(whole), "left": left,
        }  # fmt: skip

    return await agent_page(call, "context", "context.html", read)


def talk_at(view: AgentView, frame: AgentFrame, before: int) -> Mapping[str, Any]:
    """Return the conversation up to the moment of a view, or up to a seq before it: the newest entries of it."""
    last = min(view.seq, before - 1) if before > 0 else view.seq
    first = max(1, last - RECORDS_READ + 1)
    known = last == view.seq and first >= frame.near[0].seq
    read = frame.near[first - last - 1 :] if known else view.reader.read(view.agent_id, first, last)
    entries = entries_of(iter(read), frame.agent) if last > 0 else []
    shown = entries[-ENTRIES_MAX:]
    asked = {entry.seq: entry for entry in shown if entry.role == "waits"}
    for row in view.rows("approvals", since=min(asked)) if asked else ():
        if row["seq"] in asked:
            asked[row["seq"]].decision = row["decision"]
    earlier = shown[0].seq if shown and (len(shown) < len(entries) or first > 1) else first if first > 1 else 0
    return {"turns": turns_of(shown), "earlier": earlier, "ends_at": last}


def blocks_at(view: AgentView, frame: AgentFrame) -> list[ShownBlock]:
    """Return core memory: first the blocks that the turn of the moment changed, with what it changed."""
    rows = show_commands.block_rows(view)
    changed = {row["label"] for row in rows if frame.turn and row["seq"] >= frame.turn_began}
    values = values_before(view, frame, changed) if changed else {}
    shown = []
    for row in rows:
        parts: Sequence[DiffSegment] = [("same", row["value"])]
        if row["label"] in changed:
            parts = difference(values.get(row["label"], ""), row["value"])
        shown.append(
            ShownBlock(
                label=row["label"], description=row["description"], read_only=row["read_only"], origin=row["origin"],
                limit=row["limit"], chars=len(row["value"]), seq=row["seq"], changed=row["label"] in changed,
                parts=parts,
            )
        )  # fmt: skip
    return sorted(shown, key=lambda block: not block.changed)


def values_before(view: AgentView, frame: AgentFrame, labels: Collection[str]) -> Mapping[str, str]:
    """Return the value of each of these blocks before the turn of the moment; a block without one has no key.

    Usually each was edited not long before, in the records that the frame has: another view takes longer than the rest
    of a page.
    """
    found: dict[str, str] = {}
    left = set(labels)
    for record in reversed(frame.near):
        if not left or record.type == AgentCreated.kind:
            return found
        if record.type not in _EDITS or record.seq >= frame.turn_began or is_erased(record.payload):
            continue
        label = msgspec.json.decode(record.payload)["label"]
        if label in left and record.type == MemoryEdited.kind:
            found[label] = record.text or ""
        left.discard(label)
    if frame.near[0].seq == 1:
        return found
    rows = view.rows("core_memory", frame.turn_began - 1)
    return {row["label"]: row["value"] for row in rows if row["label"] in labels}


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message of the context for a page: its role, its words, and its calls."""
    content = message.get("content") or ""
    if not isinstance(content, str):
        content = msgspec.json.encode(content).decode()
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    return {
        "seq": message["seq"], "role": message.get("role", ""), "text": content[:CONTEXT_CHARS],
        "more": max(0, len(content) - CONTEXT_CHARS), "calls": calls, "chars": len(content),
    }  # fmt: skip
