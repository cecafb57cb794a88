"""Describe a record in a replay: lines of a label and words. Text from outside is escaped here.

Used by `console_panes` and `plain_output`.

The console and the plain output use the same entries; only the width differs.
"""

import re
from collections.abc import Sequence

import msgspec
from rich.text import Text

from everlog.actors.ports.agent_constants import SEND_MESSAGE
from everlog.events import (
    AnyEvent,
    ArchivalInserted,
    Call,
    FunctionResult,
    FunctionStarted,
    Heartbeat,
    MessageSent,
    ModelReply,
    Record,
    Summary,
    SystemAlert,
    UnknownEvent,
    UserLogin,
    UserMessage,
    event_of,
    is_erased,
)
from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.common.plural import plural
from everlog.interfaces.output.narrator import notice_of
from everlog.interfaces.output.terminal_output import ERASED, call_text, detail, one_line
from everlog.interfaces.replay_console import word_diff
from everlog.interfaces.replay_console.timeline import ReplayTimeline, WindowGauge
from everlog.interfaces.replay_console.word_diff import DiffSegment

LABEL_CELLS = 9
WORDS_CHARS = 4000
"""Most characters of one record that are shown."""
ARGUMENT_CHARS = 300

STYLES = {"same": "", "removed": "red strike", "added": "bold green underline"}
FAILED = "bold red"
_MARKS = {"same": ("", ""), "removed": ("[-", "-]"), "added": ("{+", "+}")}
"""Signs around changes where there is no colour."""


class EntryLine(msgspec.Struct, frozen=True):
    """Words, and the label of their speaker or kind."""

    label: str
    style: str
    words: Text


def words_of(text: str, style: str = "", chars: int = WORDS_CHARS) -> Text:
    """Return text for the terminal: escaped, and shortened to `chars` characters."""
    shown = sanitize(text[:chars]).replace("\t", "    ").strip("\n")
    return Text(f"{shown} … ({len(text) - chars:,} more characters)" if len(text) > chars else shown, style)


def changes(pieces: Sequence[DiffSegment], *, marked: bool = False) -> Text:
    """Return a difference in colours; with `marked`, in signs."""
    shown = Text()
    for change, text in pieces:
        before, after = _MARKS[change] if marked else ("", "")
        words = sanitize(text).replace("\t", "    ")
        bare = words.strip()
        head, tail = words.split(bare) if bare else (words, "")  # blanks at the ends are not underlined
        shown.append(before + head).append(bare, STYLES[change]).append(tail + after)
    return shown


def entry(record: Record, story: ReplayTimeline, *, marked: bool = False) -> list[EntryLine]:
    """Return the description of a record, at least one line."""
    if is_erased(record.payload):
        return [EntryLine(one_line(record.type, LABEL_CELLS), "dim", Text(ERASED, "dim italic"))]
    if record.seq in story.edits:
        return [_edit_entry(record.seq, story, marked=marked)]
    return _lines(event_of(record), record, story)


def _lines(event: AnyEvent, record: Record, story: ReplayTimeline) -> list[EntryLine]:
    match event:
        case UserMessage():
            return [EntryLine(one_line(event.name or "user", LABEL_CELLS), "bold green", words_of(event.text))]
        case MessageSent():
            return [EntryLine(one_line(event.name or record.agent_id, LABEL_CELLS), "bold cyan", words_of(event.text))]
        case ModelReply():
            return _reply(event, story.gauge(record.seq))
        case FunctionStarted():
            return [EntryLine("starts", "cyan", Text(call_text(event.name, event.arguments, ARGUMENT_CHARS), "dim"))]
        case FunctionResult():
            return [_result(event)]
        case ArchivalInserted():
            return [EntryLine("archives", "bright_magenta", words_of(event.text))]
        case Summary():
            heading = f"{plural(event.summarized, 'message')} up to seq {event.covers_to}: "
            return [EntryLine("summary", "bold yellow", Text.assemble((heading, "yellow"), words_of(event.text)))]
        case _:
            return [_notice_entry(event, record)]


def _reply(reply: ModelReply, gauge: WindowGauge) -> list[EntryLine]:
    lines = [EntryLine("thinks", "blue", words_of(reply.text, "italic"))] if reply.text else []
    lines += [_call_entry(call) for call in reply.calls if call.name != SEND_MESSAGE or not reply.text]
    share = f", {reply.usage.total / gauge.window:.0%}" if gauge.window else ""
    cost = f"  · {reply.usage.total:,} tokens{share}" if reply.usage.total else ""
    if not lines:
        return [EntryLine("model", "blue", Text(f"empty reply{cost}", "dim"))]
    lines[0].words.append(cost, "dim not italic")
    return lines


def repeats_message(record: Record) -> bool:
    """Return True for a successful result of send_message: the message has an entry of its own."""
    event = event_of(record) if record.type == FunctionResult.kind else None
    return isinstance(event, FunctionResult) and event.ok and event.name == SEND_MESSAGE


def _call_entry(call: Call) -> EntryLine:
    if call.name == SEND_MESSAGE:
        return EntryLine("calls", "cyan", Text(call.name, "dim"))
    return EntryLine("calls", "cyan", Text(call_text(call.name, call.arguments, ARGUMENT_CHARS), "cyan"))


def _result(result: FunctionResult) -> EntryLine:
    if not result.ok:
        return EntryLine("failed", FAILED, words_of(f"{one_line(result.name)}: {result.text}", "red"))
    said = "" if result.text in {"", "None"} else f": {result.text}"
    return EntryLine("→ ok", "dim", words_of(f"{one_line(result.name)}{said}", "dim"))


def _edit_entry(seq: int, story: ReplayTimeline, *, marked: bool) -> EntryLine:
    edit = story.edits[seq]
    pieces = word_diff.around(word_diff.difference(edit.before, edit.value))
    heading = Text(f"{one_line(edit.label)} {edit.operation}: ", "bright_magenta")
    flat = [(change, re.sub(r"\s+", " ", text)) for change, text in pieces]
    return EntryLine("memory", "bold bright_magenta", Text.assemble(heading, changes(flat, marked=marked)))


_NOTICED = {
    "memory_pressure": ("pressure", "bold yellow"),
    "heartbeat": ("♥", "magenta"),
    "context_trimmed": ("trimmed", "yellow"),
    "summary_expanded": ("summary", "bold yellow"),
    "turn_cancelled": ("cancelled", "yellow"),
    "approval_requested": ("waits", "bold yellow"),
    "approval_decided": ("decided", "yellow"),
    "unknown": ("unknown", "dim"),
}
"""Labels of notices; any other notice is a failure."""


def _notice_entry(event: AnyEvent, record: Record) -> EntryLine:
    """Describe any other record by its notice, or by its line in `events`."""
    if isinstance(event, Heartbeat | UserLogin | SystemAlert | UnknownEvent):
        return _outside_entry(event, record)
    found = notice_of(event)
    if found is None:
        return EntryLine("·", "dim", Text(f"{one_line(record.type)}  {detail(record)}"[:WORDS_CHARS], "dim"))
    label, style = _NOTICED.get(found[0], ("failed", FAILED))
    return EntryLine(label, style, words_of(found[1], "red" if style == FAILED else "yellow"))


def _outside_entry(event: AnyEvent, record: Record) -> EntryLine:
    match event:
        case Heartbeat():
            return EntryLine(
                "♥", "magenta", Text.assemble((event.reason.replace("_", " "), "magenta"), _after(event.text))
            )
        case UserLogin():
            return EntryLine("login", "green", Text("a user logged in", "dim"))
        case SystemAlert(source="memory_pressure"):
            return EntryLine(
                "pressure", "bold yellow", Text("the agent is warned that its context is filling up", "yellow")
            )
        case SystemAlert():
            return EntryLine("system", "yellow", words_of(event.text, "yellow"))
    return EntryLine("unknown", "dim", Text(f"{one_line(record.type)}, version {record.version}", "dim"))


def _after(text: str) -> Text:
    return Text.assemble("  ", words_of(text, "dim")) if text else Text()
