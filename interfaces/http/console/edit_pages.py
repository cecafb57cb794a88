"""Edit a memory block with a form. An edit carries the seq of the record whose text it was made from.

If the block has changed since, nothing is saved: the page shows the text that the edit was made from, the text that is
there now, and the text of the edit, and lets the person merge them. The agent's single writer decides, not this page.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from starlette.responses import Response

from everlog.actors.agent.agent_view import AgentView
from everlog.events import BadInput, EditConflict
from everlog.interfaces.http.console.agent_frame import AgentFrame, framed, page_of_agent
from everlog.interfaces.http.console.form_body import read_form
from everlog.interfaces.http.console.page_response import redirect
from everlog.interfaces.http.console.tilde_names import name_in, written
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import BODY_BYTES_MAX, HttpCall, not_found
from everlog.interfaces.replay_console.blame_command import edit_and_input
from everlog.interfaces.replay_console.word_blame import values_of
from everlog.interfaces.replay_console.word_diff import DiffSegment, difference
from everlog.interfaces.show import show_commands


class ConflictingTexts(msgspec.Struct, frozen=True, kw_only=True):
    """Three texts of an edit that came too late."""

    base: int
    """Seq of the text that the edit was made from."""
    theirs_seq: int
    theirs_at: int
    theirs_turn: int
    theirs_input: str
    """Words of the input that led to the newer text; empty: a person made it outside a turn."""
    base_text: str
    theirs_text: str
    theirs: Sequence[DiffSegment]
    """Difference of the newer text from the base."""
    yours: Sequence[DiffSegment]
    """Difference of the edit from the base."""


async def show_edit(call: HttpCall) -> Response:
    """Show the form to edit a memory block, with the text that it has now."""
    values = await _values(call)
    block = values["block"]
    return page_of_agent(call, "memory", "edit.html", {**values, "text": block["value"], "base": block["seq"]})


async def save_edit(call: HttpCall) -> Response:
    """Save the text of the form. If the block has changed since, answer 412 and show the three texts."""
    fields = await read_form(call, BODY_BYTES_MAX)
    wanted, base = fields.get("value"), fields.get("base", "")
    if wanted is None or not (base.isascii() and base.isdigit() and len(base) < 19):
        await _values(call)  # an agent of others does not exist here, whatever the form says
        raise Refusal(400, "bad-input", "The form has no text, or does not say which text it was made from.")
    agent, label = name_in(call.params["agent"]), name_in(call.params["label"])
    place = f"/console/a/{written(agent)}/memory/{written(label)}"
    writer = HttpCall(call.service, call.caller, call.request, params={**call.params, "agent": agent})
    try:
        await (await writer.agent()).update_block(label, wanted, base=int(base))
    except EditConflict as conflict:
        if conflict.current == wanted:  # the same form was sent twice, or another person wrote the same
            return redirect(place)
        values = await _values(call, conflict=(int(base), wanted))
        shown = {**values, "text": wanted, "base": values["block"]["seq"]}
        return page_of_agent(call, "memory", "edit.html", shown, status=412)
    except BadInput as error:
        values = await _values(call)
        shown = {**values, "text": wanted, "base": int(base), "fault": str(error)}
        return page_of_agent(call, "memory", "edit.html", shown, status=400)
    return redirect(place)


async def _values(call: HttpCall, conflict: tuple[int, str] | None = None) -> dict[str, Any]:
    """Return the block as it is now; with `conflict`, base and text of an edit, also the three texts."""
    label = name_in(call.params["label"])

    def read(view: AgentView, frame: AgentFrame) -> Mapping[str, Any]:
        block = next((row for row in show_commands.block_rows(view) if row["label"] == label), None)
        if block is None:
            raise not_found(f"memory block {label!r} of the agent {frame.agent!r}")
        texts = None if conflict is None else _texts(view, block, *conflict)
        return {
            "label": label, "here": f"memory/{written(label)}", "block": block, "texts": texts, "fault": "",
            "alters": any(sign in block["value"] for sign in "\r\0"),
        }  # fmt: skip

    return await framed(call, read)


def _texts(view: AgentView, block: Mapping[str, Any], base: int, wanted: str) -> ConflictingTexts:
    values = values_of(view.rows("memory_history"), block["label"])
    before = next((one.value for one in values if one.seq == base), "")
    record, said = edit_and_input(view, block["seq"])
    return ConflictingTexts(
        base=base, theirs_seq=block["seq"], theirs_at=record.recorded_at, theirs_turn=record.turn,
        theirs_input="" if said is None else said.text or "", base_text=before, theirs_text=block["value"],
        theirs=difference(before, block["value"]), yours=difference(before, wanted),
    )  # fmt: skip
