"""`everlog blame`: the edits that put the words of a memory block there, with the input that led to each.

Called by `cli.command_run`.
"""

from argparse import Namespace
from collections.abc import Iterable

from everlog.actors.agent.agent_view import AgentView
from everlog.events import INPUTS, BadInput, Record
from everlog.interfaces.common.bootstrap import opened_view
from everlog.interfaces.common.error_output import escape_line
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.time_text import clock, iso
from everlog.interfaces.output import json_shapes
from everlog.interfaces.replay_console.word_blame import BlockValue, blamed, values_of

INPUT_RECORDS_MAX = 2000
"""Records before an edit among which the input of its turn is looked for."""


def blame(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog blame` and return its exit code."""
    with opened_view(args, world) as view:
        values = block_values(view, args.label)
        edits = {one.seq: one for one in values}
        parts = blamed((one.seq, one.value) for one in values)
        causes = {seq: edit_and_input(view, seq) for seq in {part.seq for part in parts}}
    if args.json:
        words = [
            {"text": part.text, **_shape(edits[part.seq], *causes[part.seq])} for part in parts
        ]  # fmt: skip
        print(json_shapes.line({"agent": view.agent_id, "as_of": view.seq, "label": args.label, "words": words}))
        return 0
    print(escape_line(f"{args.label} of {view.agent_id}, as of seq {view.seq}"))
    for part in parts:
        edit, said = causes[part.seq]
        print(f"\nseq {part.seq}, turn {edit.turn}, {clock(edit.recorded_at)}, {edits[part.seq].operation}")
        if said is not None:
            print(escape_line(f"  after: {said.type} {said.text or ''}".rstrip()))
        print(escape_line(f"  {part.text.strip()}"))
    if not parts:
        print("The block is empty.")
    return 0


def block_values(view: AgentView, label: str) -> list[BlockValue]:
    """Return all values of a memory block up to the moment of a view, oldest first. Raises BadInput for a label that
    no block had.
    """
    rows = view.rows("memory_history")
    values = values_of(rows, label)
    if not values:
        known = ", ".join(sorted({row["label"] for row in rows})) or "none"
        raise BadInput(f"{view.agent_id!r} had no memory block {label!r} as of seq {view.seq}. Its blocks: {known}.")
    return values


def edit_and_input(view: AgentView, seq: int) -> tuple[Record, Record | None]:
    """Return the record of an edit, and the input of its turn; None if a person made the edit outside a turn."""
    records = list(view.reader.read(view.agent_id, max(1, seq - INPUT_RECORDS_MAX), seq))
    return records[-1], input_of(records)


def input_of(records: Iterable[Record]) -> Record | None:
    """Return the input of the turn of the last of some records, which are next to each other; None if it has none."""
    found = list(records)
    turn = found[-1].turn
    own = (record for record in found if record.turn == turn and record.type in INPUTS)
    return next(own, None) if turn else None


def _shape(value: BlockValue, edit: Record, said: Record | None) -> json_shapes.JsonObject:
    return {
        "seq": edit.seq,
        "turn": edit.turn,
        "recorded_at": iso(edit.recorded_at),
        "operation": value.operation,
        "input": None if said is None else {"seq": said.seq, "type": said.type, "text": said.text},
    }
