"""`everlog blame`: the edits that put the words of a memory block there, with the input that led to each; or what an
answer or a summary has its words from.

Called by `cli.command_run`.
"""

from argparse import Namespace
from collections.abc import Mapping, Sequence

from everlog.actors.agent.agent_view import AgentView
from everlog.events import BadInput, MemoryEdited, Record, event_of
from everlog.interfaces.common.bootstrap import opened_view
from everlog.interfaces.common.error_output import escape_line
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.time_text import clock, iso
from everlog.interfaces.output import json_shapes
from everlog.interfaces.replay_console.shared_blame import SharedBlockWords, shared_words
from everlog.interfaces.replay_console.word_blame import BlockValue, blamed, values_of
from everlog.interfaces.replay_console.word_origin import INPUT_RECORDS_MAX, WordOrigin, input_of, origin_of
from everlog.interfaces.replay_console.word_sources import SeenKind, SeenText

SOURCES: Mapping[SeenKind, str] = {
    "memory": "edit of the block",
    "summary": "summary",
    "user": "message",
    "agent": "own words",
    "function": "result of",
    "system": "text of the system",
}
"""Nouns for texts in sight, by kind."""


def blame(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog blame` and return its exit code."""
    with opened_view(args, world) as view:
        if args.label.isdecimal() and args.label.isascii() and not values_of(view.rows("memory_history"), args.label):
            return _blame_record(args, view)
        values = block_values(view, args.label)
        if (shared := shared_words(args, world, view, values)) is not None:
            return _show_shared(args, view, shared)
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
        event = event_of(edit)
        if isinstance(event, MemoryEdited) and event.origin:  # another agent may have written it
            version = f"version {event.origin_version} of the shared block {event.origin}"
            print(escape_line(f"  {version}: `everlog shared history {event.origin}` names its author"))
        print(escape_line(f"  {part.text.strip()}"))
    if not parts:
        print("The block is empty.")
    return 0


def _show_shared(args: Namespace, view: AgentView, parts: Sequence[SharedBlockWords]) -> int:
    """Print the words of a shared block, each with its author and the author's record."""
    if args.json:
        words = [_shared_shape(part) for part in parts]
        print(json_shapes.line({"agent": view.agent_id, "as_of": view.seq, "label": args.label, "words": words}))
        return 0
    print(escape_line(f"{args.label} of {view.agent_id}, as of seq {view.seq}"))
    for part in parts:
        edit, record = part.edit, part.record
        print(f"\nseq {part.seq}, {clock(edit.at)}, {edit.operation}")
        who = edit.author or "a person"
        print(escape_line(f"  version {edit.version} of the shared block {part.block}, by {who}"))
        if record is not None:
            print(escape_line(f"  seq {record.seq} of {edit.author}, turn {record.turn}"))
        if part.input is not None:
            print(escape_line(f"  after: {part.input.type} {part.input.text or ''}".rstrip()))
        print(escape_line(f"  {part.text.strip()}"))
    if not parts:
        print("The block is empty.")
    return 0


def _shared_shape(part: SharedBlockWords) -> json_shapes.JsonObject:
    said, record = part.input, part.record
    return {
        "text": part.text,
        "seq": part.seq,
        "turn": None if record is None else record.turn,
        "recorded_at": iso(part.edit.at),
        "operation": part.edit.operation,
        "input": None if said is None else {"seq": said.seq, "type": said.type, "text": said.text},
        "shared": {
            "block": part.block,
            "version": part.edit.version,
            "author": part.edit.author or None,
            "author_seq": None if record is None else record.seq,
        },
    }


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


def _blame_record(args: Namespace, view: AgentView) -> int:
    """Print where the words of an answer or of a summary were in sight before."""
    seq = int(args.label)
    origin = origin_of(view, seq) if 1 <= seq <= view.seq else None
    if origin is None:
        raise BadInput(
            f"The event {args.label} of {view.agent_id!r} is no answer and no summary, and no block has that label. "
            f"`everlog events {view.agent_id}` lists its events."
        )
    if args.json:
        print(json_shapes.line(_origin_shape(view, origin)))
        return 0
    record, said = origin.record, origin.input
    model = f", by {origin.model}" if origin.model else ""
    print(escape_line(f"{record.type} of {view.agent_id}, seq {seq}, turn {record.turn}{model}"))
    if said is not None:
        print(escape_line(f"after: {said.type} {said.text or ''}".rstrip()))
    for run in origin.runs:
        if run.text.strip():
            print()
            if run.source is not None:
                seen = origin.shared[run.source].seen
                print(escape_line(f"seq {seen.seq}, {clock(seen.at)}, {SOURCES[seen.kind]} {seen.who}".rstrip()))
            print(escape_line(f"  {run.text.strip()}"))
    print("\nWords under a seq stood in what the model saw. Equal words are a trace, and no proof.")
    return 0


def _origin_shape(view: AgentView, origin: WordOrigin) -> json_shapes.JsonObject:
    record, said = origin.record, origin.input
    seen = {number: shared.seen for number, shared in origin.shared.items()}
    return {
        "agent": view.agent_id,
        "as_of": view.seq,
        "seq": record.seq,
        "type": record.type,
        "turn": record.turn,
        "model": origin.model,
        "input": None if said is None else {"seq": said.seq, "type": said.type, "text": said.text},
        "words": [
            {"text": run.text, "from": None if run.source is None else _source_shape(seen[run.source])}
            for run in origin.runs
        ],
    }


def _source_shape(seen: SeenText) -> json_shapes.JsonObject:
    return {"seq": seen.seq, "kind": seen.kind, "who": seen.who, "time": iso(seen.at)}


def _shape(value: BlockValue, edit: Record, said: Record | None) -> json_shapes.JsonObject:
    return {
        "seq": edit.seq,
        "turn": edit.turn,
        "recorded_at": iso(edit.recorded_at),
        "operation": value.operation,
        "input": None if said is None else {"seq": said.seq, "type": said.type, "text": said.text},
    }
