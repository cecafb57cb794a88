"""The front end of people: words as they are said, on a terminal or a plain stream. Colour only on a terminal."""

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
from everlog.interfaces.common.time_text import clock
from everlog.interfaces.output.streaming_text import StreamingText

PLAIN_WIDTH = 120
"""Columns where the output is no terminal."""
ARGUMENT_CHARS = 60
"""Longest argument of a function shown whole while it happens."""
RESULT_CHARS = 160
"""Longest result of a function shown whole while it happens."""

ANEW = "the reply was cut off, or not taken: it begins anew"
UNSAID = "what stands here last was not said: the reply never became whole"

ERASED = "erased"
"""What stands in the place of what an erased record said."""

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
"""Colours of the types of events; any other type is dim."""

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
    "unknown": "dim",
}
"""The notices that are shown and their colours; the others come with an error, or are of the person's own making."""


class _Out(Console):
    """A console whose reader may go away: the command ends by its own rules then, not by rich's."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


def console() -> Console:
    """Where people read: stdout, in the width of the terminal. Raises BrokenPipeError where nobody reads any more."""
    wide = sys.stdout.isatty() or "COLUMNS" in os.environ
    return _Out(highlight=False, markup=False, emoji=False, width=None if wide else PLAIN_WIDTH)


def one_line(text: str, chars: int | None = None) -> str:
    """`text` on one line, and no longer than `chars`."""
    flat = " ".join(sanitize(text).split())
    return flat if chars is None or len(flat) <= chars else flat[: chars - 1] + "…"


def call_text(name: str, arguments: str, chars: int = ARGUMENT_CHARS) -> str:
    """A call as it would be written: name(key="value"); a heart where it asks for a heartbeat."""
    name = one_line(name)
    try:
        values = msgspec.json.decode(arguments or "{}")
    except msgspec.DecodeError:
        values = None
    if not isinstance(values, dict):
        return f"{name}({one_line(arguments, chars)})"
    heart = " ♥" if values.pop("request_heartbeat", False) else ""
    shown = [f"{one_line(key)}={_value(value, chars)}" for key, value in values.items()]
    return f"{name}({', '.join(shown)}){heart}"


def _value(value: object, chars: int) -> str:
    if isinstance(value, str):
        return f'"{one_line(value, chars)}"'
    return one_line(msgspec.json.encode(value).decode(), chars)


def detail(record: Record) -> str:
    """What an event says, on one line."""
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
        case "function_started":
            return call_text(payload["name"], payload.get("arguments", ""))
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
            return f"{payload.get('summarized')} messages up to seq {payload.get('covers_to')}: {text}"
        case "user_message" | "message_sent" if payload.get("name"):
            return f"{payload['name']}: {text}"
        case _:
            rest = ", ".join(f"{key} {one_line(str(value), 40)}" for key, value in payload.items())
            return text or rest


def hanging(label: Text, words: Text, out: Console, *, wrap: bool) -> Text:
    """Words beside their label, every further line indented below the first."""
    indent = label.cell_len
    width = max(out.width - indent - 1, 20) if wrap else 10**6
    return label + Text(f"\n{' ' * indent}").join(words.wrap(out, width))


def indented(words: Text, out: Console, *, wrap: bool = True) -> Text:
    """Words two columns from the left."""
    return hanging(Text("  "), words, out, wrap=wrap)


class TerminalFrontEnd(FrontEnd):
    """The front end at the prompt: the agent's messages, and with `verbose` its thoughts and functions too."""

    def __init__(self, out: Console, *, verbose: bool = False, labelled: bool | None = None) -> None:
        self._out = out
        self._verbose = verbose
        self._labelled = verbose if labelled is None else labelled
        self._name = ""
        """Whose words are coming."""
        self._streaming = StreamingText(out, self._before, wrap=self._labelled and out.is_terminal)

    def preview(self, preview: Preview, name: str) -> None:
        """Show words as they come; thoughts if wanted."""
        self._name = name
        match preview.kind:
            case "end":
                self._streaming.end()
            case "restart":
                if self._streaming.drop():
                    self._note(ANEW, "yellow")
            case kind if kind == "message" or self._verbose:
                self._streaming.add(kind, preview.text)

    @property
    def coming(self) -> bool:
        """Whether words stand in a line that is not finished."""
        return self._streaming.open

    def drop_unfinished(self) -> None:
        """Nothing more comes: what was shown and is not final was never said."""
        if self._streaming.drop():
            self._note(UNSAID, "yellow")

    def assistant_message(self, text: str, name: str) -> None:
        """Show the words, if they do not stand there already."""
        if not self._streaming.final("message", text):
            self.said(name, text, "bold cyan")

    def inner_monologue(self, text: str) -> None:
        """Show the thought, if wanted."""
        if self._verbose and not self._streaming.final("thought", text):
            self._note(text, "dim italic")

    def function_message(self, call: Call, text: str, *, ok: bool) -> None:
        """Show the call and what came of it on one line, if wanted."""
        if not self._verbose:
            return
        called = call_text(call.name, call.arguments) if call.arguments else one_line(call.name)
        self._streaming.finish()
        line = Text("ƒ ", "cyan") + Text(called, "cyan dim")
        if ok:
            line += Text(" → ok" if not text or text == "None" else f" → {one_line(text, RESULT_CHARS)}", "dim")
        else:
            line += Text(f" → {one_line(text, RESULT_CHARS)}", "red")
        self._out.print(self._labelled_text(Text("  "), line), soft_wrap=True)

    def notice(self, about: Notice, text: str) -> None:
        """Show a turn that was given up; the others if wanted."""
        if about in NOTICES and (self._verbose or about == "turn_abandoned"):
            self._note(text, NOTICES[about])

    def error(self, error: EverlogError) -> None:
        """Show the paragraph, on stderr."""
        self._streaming.finish()
        self._out.file.flush()
        complain(error)

    def said(self, who: str, text: str, style: str) -> None:
        """Words, with who said them before."""
        self._streaming.finish()
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
        self._streaming.finish()
        self._out.print(self._labelled_text(Text("  "), Text(sanitize(text), style)), soft_wrap=True)

    def _labelled_text(self, label: Text, words: Text) -> Text:
        """Wrapped on a terminal only: a program wants a message on one line."""
        return hanging(label, words, self._out, wrap=self._out.is_terminal)


class EventLines:
    """The log for people: one line for each record, no wider than the terminal."""

    def __init__(self, out: Console) -> None:
        self._out = out

    def on_records(self, records: Sequence[Record]) -> None:
        """One line each."""
        for record in records:
            gone = is_erased(record.payload)
            line = Text.assemble(
                (f"{record.seq:>6}  ", "bold"),
                (f"{clock(record.recorded_at)}  ", "dim"),
                (f"{record.turn:>4}.{record.step:<2} ", "dim"),
                (f"{one_line(record.type):<18} ", "dim" if gone else FAMILIES.get(record.type, "dim")),
                (detail(record), "dim italic" if gone else ""),
            )
            line.rstrip()
            self._out.print(line, no_wrap=True, overflow="ellipsis")

    def on_error(self, error: EverlogError) -> None:
        """The paragraph, on stderr."""
        complain(error)
