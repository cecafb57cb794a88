"""Show core memory at a moment, the edits of each block, and blame: the record that put some words there, and why."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from starlette.responses import Response

from everlog.actors.agent.agent_view import AgentView
from everlog.events import Record
from everlog.interfaces.http.console.agent_frame import AgentFrame, MomentParameters, agent_page
from everlog.interfaces.http.console.agent_pages import blocks_at
from everlog.interfaces.http.console.talk_entries import TalkEntry, entries_of
from everlog.interfaces.http.console.tilde_names import name_in, written
from everlog.interfaces.http.core.routes import HttpCall, not_found
from everlog.interfaces.replay_console.blame_command import edit_and_input
from everlog.interfaces.replay_console.word_blame import BlockValue, blamed, values_of
from everlog.interfaces.replay_console.word_diff import DiffSegment, around, difference

RESULT_NEAR = 4
"""Records after an edit that are read for the result of the call that made it."""
EDITS_SHOWN = 50
"""Newest edits of a block that its page lists."""


class BlameParameters(MomentParameters, frozen=True):
    """Parameters of the page of a memory block."""

    by: int = 0
    """Seq of the edit that the page explains; 0: none."""


class ExplainedEdit(msgspec.Struct, frozen=True, kw_only=True):
    """One edit of a block, and what led to it."""

    record: Record
    operation: str
    input: Record | None
    """Input of the turn; None: a person made the edit outside a turn."""
    entries: Sequence[TalkEntry]
    """Everything said, thought and done in the turn until the edit."""
    parts: Sequence[DiffSegment]
    """Difference that the edit made."""


async def show_memory(call: HttpCall) -> Response:
    """Show core memory at a moment."""

    def read(view: AgentView, frame: AgentFrame) -> Mapping[str, Any]:
        return {"blocks": blocks_at(view, frame)}

    return await agent_page(call, "memory", "memory.html", read)


async def show_block(call: HttpCall) -> Response:
    """Show a memory block at a moment: each part of it leads to the edit that put it there."""
    label = name_in(call.params["label"])

    def read(view: AgentView, frame: AgentFrame) -> Mapping[str, Any]:
        values = values_of(view.rows("memory_history"), label)
        if not values:
            raise not_found(f"memory block {label!r} of the agent {frame.agent!r} at that moment")
        parts = blamed((one.seq, one.value) for one in values)
        explained = _explained(view, frame, values, call.query.by) if call.query.by else None
        texts = ["", *(one.value for one in values)]
        newest = [
            (one, around(difference(before, one.value)))
            for before, one in list(zip(texts, values, strict=False))[-EDITS_SHOWN:]
        ]
        ages = {seq: rank for rank, seq in enumerate(sorted({part.seq for part in parts}, reverse=True))}
        return {
            "label": label, "here": f"memory/{written(label)}", "parts_of": parts, "ages": ages, "by": call.query.by,
            "explained": explained, "edits": newest[::-1], "edit_count": len(values),
            "gone": values[-1].operation == "ended",
        }  # fmt: skip

    return await agent_page(call, "memory", "block.html", read)


def _explained(view: AgentView, frame: AgentFrame, values: Sequence[BlockValue], seq: int) -> ExplainedEdit:
    """Return an edit with its turn. Raises the refusal of a seq that is no edit of the block."""
    place = next((place for place, one in enumerate(values) if one.seq == seq), None)
    if place is None:
        raise not_found(f"edit {seq} of that block")
    record, said = edit_and_input(view, seq)
    entries: Sequence[TalkEntry] = []
    if said is not None:
        later = view.reader.read(view.agent_id, said.seq, min(seq + RESULT_NEAR, view.seq))
        entries = [one for one in entries_of(later, frame.agent) if one.seq <= seq]
    before = values[place - 1].value if place else ""
    return ExplainedEdit(
        record=record, operation=values[place].operation, input=said, entries=entries,
        parts=difference(before, values[place].value),
    )  # fmt: skip
