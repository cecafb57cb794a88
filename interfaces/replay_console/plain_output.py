"""Print a replay without a console: lines for people, or a JSON object for each record.

Used by `replay_command`, without a terminal or with `--json`. docs/reference/cli.md promises the keys of the JSON.
"""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from everlog.events import FunctionResult, ModelReply, event_of
from everlog.interfaces.common import time_text
from everlog.interfaces.output.json_shapes import JsonObject
from everlog.interfaces.output.terminal_output import hanging_indent
from everlog.interfaces.replay_console import record_entries, word_diff
from everlog.interfaces.replay_console.timeline import ReplayTimeline


def print_records(story: ReplayTimeline, seqs: Sequence[int], out: Console) -> None:
    """Print records, without wrapping if the output is not a terminal."""
    for seq in seqs:
        record = story.record(seq)
        if story.opens_turn(seq):
            out.print(Text(f"── turn {record.turn} · {time_text.clock(record.recorded_at)}", "dim"), soft_wrap=True)
        for number, line in enumerate(record_entries.entry(record, story, marked=not out.is_terminal)):
            label = Text("" if number else str(seq), "dim")
            label.align("right", 6)
            label_text = Text(line.label, line.style)
            label_text.align("left", record_entries.LABEL_CELLS)
            shown = hanging_indent(Text.assemble(label, "  ", label_text, " "), line.words, out, wrap=out.is_terminal)
            shown.rstrip()
            out.print(shown, soft_wrap=True)


def shape(story: ReplayTimeline, seq: int) -> JsonObject:
    """Return one record and the state that it changed."""
    record = story.record(seq)
    return {
        "agent": story.agent_id,
        "seq": seq,
        "time": time_text.iso(record.recorded_at),
        "turn": record.turn,
        "step": record.step,
        "type": record.type,
        "text": record.text,
        "changed": _changed_state(story, seq),
    }


def _changed_state(story: ReplayTimeline, seq: int) -> JsonObject:
    """Return the values that differ from those at the record before."""
    changed: JsonObject = {}
    now = story.gauge(seq)
    if seq == 1 or now != story.gauge(seq - 1):
        names = ("model", "tokens", "window", "fraction", "warned", "summary_seq", "hidden", "total")
        changed["context"] = {name: getattr(now, name) for name in names}
    if (edit := story.edits.get(seq)) is not None:
        changed["memory"] = {
            "label": edit.label,
            "operation": edit.operation,
            "limit": edit.limit,
            "before": edit.before,
            "value": edit.value,
            "difference": word_diff.difference(edit.before, edit.value),
        }
    match event_of(story.record(seq)):
        case ModelReply() as reply:
            changed["calls"] = [{"id": c.id, "name": c.name, "arguments": c.arguments} for c in reply.calls]
        case FunctionResult() as result:
            changed["result"] = {"call_id": result.call_id, "name": result.name, "ok": result.ok}
    return changed
