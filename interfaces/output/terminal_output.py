"""Front end for people: messages as they are streamed, on a terminal or a plain stream. Colour on a terminal only.

Used by `everlog chat` and `everlog send`, and by every page that prints in colour.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import msgspec
from rich.console import Console
from rich.text import Text

from everlog.actors.formats.reply_preview import Preview, PreviewKind
from everlog.events import Call, EverlogError, Record, is_erased
from everlog.interfaces.common.error_output import complain, sanitize
from everlog.interfaces.common.front_end import FrontEnd, Notice
from everlog.interfaces.common.plural import plural
from everlog.interfaces.common.time_text import clock
from everlog.interfaces.output.streaming_text import StreamingText

PLAIN_WIDTH = 120
"""Columns if the output is not a terminal."""
ARGUMENT_CHARS = 60
"""Longest function argument that is shown whole while an agent works."""
RESULT_CHARS = 160
"""Longest function result that is shown whole while an agent works."""

RESTARTED = "(reply broke off or was rejected; it starts again)"
DISCARDED = "(the partial reply above was discarded)"
CANCELLED = "(cancelled; the partial reply above was discarded)"

ERASED = "erased"
"""Shown in place of the content of an erased record."""

FAMILIES = {
    "user_message": "bold green",
    "user_login": "green",
    "heartbeat": "magenta",
    "system_alert": "yellow",
    "model_reply": "blue",
    "model_failed": "red",
    "model_switched": "red",
    "reply_rejected": "red",
    "function_started": "cyan",
    "function_result": "cyan",
    "message_sent": "bold cyan",
    "memory_edited": "bright_magenta",
    "archival_inserted": "bright_magenta",
    "summary": "yellow",
    "turns_hidden": "yellow",
    "reply_rethought": "yellow",
    "turn_abandoned": "red",
    "turn_cancelled": "red",
    "agent_deleted": "red",
    "records_erased": "red",
}
"""Colours of event types; any other type is dim."""

NOTICES: Mapping[Notice, str] = {
    "memory_pressure": "yellow",
    "summary": "yellow",
    "summary_expanded": "yellow",
    "context_trimmed": "yellow",
    "reply_rejected": "yellow",
    "model_switched": "yellow",
    "turn_abandoned": "yellow",
    "turn_cancelled": "yellow",
    "heartbeat": "dim",
    "approval_requested": "bold yellow",
    "approval_decided": "yellow",
    "unknown": "dim",
}
"""Colours of the notices that are shown. The others come with an error, or a person caused them."""


class _PipeConsole(Console):
    """Console that raises BrokenPipeError when its reader is gone; rich's own would end the process."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


def console() -> Console:
    """Return a console for stdout in the width of the terminal. It raises BrokenPipeError when its reader is gone."""
    # A COLUMNS of 0, as some terminals and editors set it, would leave no room for one character: nothing was printed.
    wide = sys.stdout.isatty() if os.environ.get("COLUMNS", "0") == "0" else True
    return _PipeConsole(highlight=False, markup=False, emoji=False, width=None if wide else PLAIN_WIDTH)


def one_line(text: str, chars: int | None = None) -> str:
    """Return `text` on one line of at most `chars` characters."""
    flat = " ".join(sanitize(text).split())
    return flat if chars is None or len(flat) <= chars else flat[: chars - 1] + "…"


def call_text(name: str, arguments: str, chars: int = ARGUMENT_CHARS) -> str:
    """Return a call as code: name(key="value"), with a heart if it requests a heartbeat."""
    name = one_line(name)
    try:
        values = msgspec.json.decode(arguments or "{}")
    except msgspec.DecodeError:
        values = None
    if not isinstance(values, dict):
        return f"{name}({one_line(arguments, chars)})"
    heart = " ♥" if values.pop("request_heartbeat", False) is True else ""
    shown = [f"{one_line(key)}={_value(value, chars)}" for key, value in values.items()]
    return f"{name}({', '.join(shown)}){heart}"


def _value(value: object, chars: int) -> str:
    if isinstance(value, str):
        return f'"{one_line(value, chars)}"'
    return one_line(msgspec.json.encode(value).decode(), chars)


def detail(record: Record) -> str:
    """Return the content of an event on one line."""
    if is_erased(record.payload):
        return ERASED
    return one_line(_detail(record))


def _detail(record: Record) -> str:
    payload: Mapping[str, Any] = msgspec.json.decode(record.payload)
    text = one_line(record.text or "")
    match record.type:
        case "model_reply":
            calls = ", ".join(call["name"] for call in payload.get("calls", []))
            return f"{text} → {calls}" if calls else text
        case "function_result":
            state = "ok" if payload.get("ok", True) else "failed"
            return f"{payload.get('name')}: {state}" + (f", {text}" if text else "")
        case "function_started" | "approval_requested":
            return call_text(payload["name"], payload.get("arguments", ""))
        case "approval_decided":
            return f"{payload['name']} {payload['decision']}" + (f": {text}" if text else "")
        case "memory_edited":
            return f"{payload.get('label')} {payload.get('operation')}: {text}"
        case "document_loaded" | "document_removed":
            return f"{payload.get('document')}: {text}" if text else str(payload.get("document"))
        case "agent_configured":
            return f"{payload.get('model')}, {payload.get('window')} tokens, {payload.get('zone', 'UTC')}"
        case "records_erased":
            return f"seq {payload.get('from_seq')} to {payload.get('to_seq')}"
        case "turns_hidden":
            return f"turns {', '.join(map(str, payload.get('turns', ())))}"
        case "reply_rethought":
            return f"seq {payload.get('target_seq')}: {text}"
        case "summary":
            summarized = plural(payload.get("summarized", 0), "message")
            return f"{summarized} up to seq {payload.get('covers_to')}: {text}"
        case "user_message" | "message_sent" if payload.get("name"):
            return f"{payload['name']}: {text}"
        case _:
            rest = ", ".join(f"{key} {one_line(str(value), 40)}" for key, value in payload.items())
            return text or rest


def hanging_indent(label: Text, words: Text, out: Console, *, wrap: bool) -> Text:
    """Return a label with words beside it; further lines are indented to the first word."""
    indent = label.cell_len
    width = max(out.width - indent - 1, 20) if wrap else 10**6
    return label + Text(f"\n{' ' * indent}").join(words.wrap(out, width))


def indented(words: Text, out: Console, *, wrap: bool = True) -> Text:
    """Return words that are indented by two columns."""
    return hanging_indent(Text("  "), words, out, wrap=wrap)


def _called(call: Call) -> Text:
    """Return a call as people see it; only its name if the arguments are unknown."""
    called = call_text(call.name, call.arguments) if call.arguments else one_line(call.name)
    return Text("ƒ ", "cyan") + Text(called, "cyan dim")


class TerminalFrontEnd(FrontEnd):
    """Front end of the prompt: the agent's messages and, with `verbose`, its thoughts and functions."""

    def __init__(self, out: Console, *, verbose: bool = False, labelled: bool | None = None) -> None:
        self._out = out
        self._verbose = verbose
        self._labelled = verbose if labelled is None else labelled
        self._name = ""
        """Name of the agent whose text is being streamed."""
        self._streaming = StreamingText(out, self._before, wrap=self._labelled and out.is_terminal)
        self._begun = ""
        """Id of the call that the last printed line shows; its result goes below it."""

    def preview(self, preview: Preview, name: str) -> None:
        """Show streamed text, and a call before its function runs; thoughts, calls and progress only if `verbose`."""
        self._name = name
        match preview.kind:
            case "call":
                self._begin_call(preview.call)
            case "progress":
                self._show_progress(preview.text)
            case "end":
                self._streaming.end()
            case "restart":
                if self._streaming.drop():
                    self._note(RESTARTED, "yellow")
            case kind if kind == "message" or self._verbose:
                self._begun = ""
                self._streaming.add(kind, preview.text)

    def _begin_call(self, call: Call | None) -> None:
        """Show a call whose function is about to run."""
        if call is not None and self._verbose:
            self._finish_line()
            self._out.print(self._labelled_text(Text("  "), _called(call)), soft_wrap=True)
            self._begun = call.id

    def _show_progress(self, line: str) -> None:
        """Show a line of progress below its call, where the result follows."""
        if self._verbose:
            self._out.print(self._labelled_text(Text("    "), Text(one_line(line), "dim")), soft_wrap=True)

    def _finish_line(self) -> None:
        """Finish the current line, because other output follows."""
        self._streaming.finish()
        self._begun = ""

    @property
    def coming(self) -> bool:
        """True if streamed text stands in a line that is not finished."""
        return self._streaming.open

    def drop_unfinished(self) -> None:
        """Finish the streamed text, because no more follows. Text that is not durable by now never will be."""
        if self._streaming.drop():
            self._note(DISCARDED, "yellow")

    def assistant_message(self, text: str, name: str) -> None:
        """Show the message, unless it was streamed already."""
        if not self._streaming.final("message", text):
            self.said(name, text, "bold cyan")

    def inner_monologue(self, text: str) -> None:
        """Show the thought if `verbose`, unless it was streamed already."""
        if self._verbose and not self._streaming.final("thought", text):
            self._note(text, "dim italic")

    def function_message(self, call: Call, text: str, *, ok: bool) -> None:
        """Show the result if `verbose`: below its call if that is the line above, else on one line with the call."""
        if not self._verbose:
            return
        below = bool(call.id) and self._begun == call.id
        self._finish_line()
        line = Text("") if below else _called(call) + Text(" ")
        if ok:
            line += Text("→ ok" if not text or text == "None" else f"→ {one_line(text, RESULT_CHARS)}", "dim")
        else:
            line += Text(f"→ {one_line(text, RESULT_CHARS)}", "red")
        self._out.print(self._labelled_text(Text("    " if below else "  "), line), soft_wrap=True)

    def notice(self, about: Notice, text: str) -> None:
        """Show a turn that was given up and a call that waits for a person; other notices only if `verbose`."""
        if about not in NOTICES or not (self._verbose or about in {"turn_abandoned", "approval_requested"}):
            return
        cancelled = about == "turn_cancelled" and self._streaming.drop()
        self._note(CANCELLED if cancelled else text, NOTICES[about])

    def error(self, error: EverlogError) -> None:
        """Print the error to stderr."""
        self.settle()
        complain(error)

    def settle(self) -> None:
        """Finish the line of streamed text, because output on stderr follows."""
        self._finish_line()
        self._out.file.flush()

    def said(self, who: str, text: str, style: str) -> None:
        """Show a message after the name of its speaker."""
        self._finish_line()
        words = Text(sanitize(text))
        if not self._labelled:
            self._out.print(words, soft_wrap=True)
            return
        self._out.print(self._labelled_text(Text(f"{one_line(who)}  ", style), words), soft_wrap=True)

    def _before(self, kind: PreviewKind) -> tuple[Text, str]:
        if kind == "thought":
            return Text("  "), "dim italic"
        return Text(f"{one_line(self._name)}  " if self._labelled else "", "bold cyan"), ""

    def _note(self, text: str, style: str) -> None:
        self._finish_line()
        self._out.print(self._labelled_text(Text("  "), Text(sanitize(text), style)), soft_wrap=True)

    def _labelled_text(self, label: Text, words: Text) -> Text:
        """Wrap on a terminal only: programs expect a message on one line."""
        return hanging_indent(label, words, self._out, wrap=self._out.is_terminal)


class EventLines:
    """Interface that prints the log for people: one line for each record, no wider than the terminal, below one line
    with the names of the columns.
    """

    def __init__(self, out: Console) -> None:
        self._out = out
        self._named = False

    def on_records(self, records: Sequence[Record]) -> None:
        """Print a line for each record."""
        if records and not self._named:
            self._named = True
            heading = f"{'seq':>6}  {'recorded':<23}  {'turn':>4} {'step':>4}  {'type':<18} content"
            self._out.print(Text(heading, "dim"), no_wrap=True, overflow="ellipsis")
        for record in records:
            gone = is_erased(record.payload)
            line = Text.assemble(
                (f"{record.seq:>6}  ", "bold"),
                (f"{clock(record.recorded_at)}  ", "dim"),
                (f"{record.turn:>4} {record.step:>4}  ", "dim"),
                (f"{one_line(record.type):<18} ", "dim" if gone else FAMILIES.get(record.type, "dim")),
                (detail(record), "dim italic" if gone else ""),
            )
            line.rstrip()
            self._out.print(line, no_wrap=True, overflow="ellipsis")

    def on_error(self, error: EverlogError) -> None:
        """Print the error to stderr."""
        complain(error)
