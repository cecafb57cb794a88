"""Transcript of a conversation: who said what when, as plain text or as Markdown. Pure.

Used by `everlog show`, and by `/save` in a chat. Texts of users and models are quoted in Markdown, so that no text can
begin a heading, look like another speaker, or add HTML to the page.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from everlog.events import AgentCreated, Call, MessageSent, Record, TurnsHidden, UserMessage, is_erased
from everlog.interfaces.common.error_output import escape_line, sanitize
from everlog.interfaces.common.front_end import FrontEnd
from everlog.interfaces.common.plural import plural
from everlog.interfaces.common.time_text import clock, iso
from everlog.interfaces.output.json_shapes import JsonObject
from everlog.interfaces.output.narrator import Narrator
from everlog.interfaces.output.terminal_output import call_text, one_line

SAID = (UserMessage.kind, MessageSent.kind)
"""Types of records that hold a message of the user or of the agent."""
USER = "user"
"""Speaker of messages whose record does not name the user."""
ERASED_TEXT = "(erased)"
CALL_CHARS = 2000
"""Longest argument and longest result of a function call that a transcript has whole."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_CODE_SPAN = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_MARKUP = re.compile(r"([\\`*_\[\]<>#|])")


class TranscriptEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One message, or one function call with its result."""

    seq: int
    at: int
    """Time of writing; of an imported message the time at which it was said. Microseconds UTC."""
    role: str
    """`user`, `assistant` or `function`."""
    who: str
    """Name of the speaker, or the call as code."""
    text: str | None
    """Words of the message, or result of the call; None if they were erased."""
    ok: bool = True
    """False for a function call that failed."""


class _Collector(FrontEnd):
    """Front end that collects entries. `record` is the record that is being narrated."""

    def __init__(self, *, calls: bool) -> None:
        self.entries: list[TranscriptEntry] = []
        self.record: Record | None = None
        self._calls = calls

    def user_message(self, text: str, name: str) -> None:
        self.add("user", name or USER, text)

    def assistant_message(self, text: str, name: str) -> None:
        self.add("assistant", name, text)

    def function_message(self, call: Call, text: str, *, ok: bool) -> None:
        if self._calls:
            self.add("function", call_text(call.name, call.arguments, CALL_CHARS), one_line(text, CALL_CHARS), ok=ok)

    def add(self, role: str, who: str, text: str | None, *, ok: bool = True) -> None:
        record = self.record
        assert record is not None
        at = record.recorded_at if record.said_at is None else record.said_at
        self.entries.append(TranscriptEntry(seq=record.seq, at=at, role=role, who=who, text=text, ok=ok))


def transcript(
    records: Iterable[Record], *, first: int = 1, last: int | None = None, calls: bool = False
) -> list[TranscriptEntry]:
    """Return the messages of an agent with a seq from `first` to `last` (inclusive; None: the newest), oldest first.

    `records` are all records of the agent's stream up to the moment that counts. Messages of undone turns, and those
    from before the agent was created again, are left out. `calls`: function calls too, except for messages.
    """
    collector = _Collector(calls=calls)
    narrator = Narrator(collector)
    hidden: set[int] = set()
    turns: dict[int, int] = {}
    for record in records:
        collector.record = record
        if record.type == AgentCreated.kind:
            collector.entries.clear()
            hidden.clear()
        elif is_erased(record.payload):
            if record.type in SAID:
                collector.add("user" if record.type == UserMessage.kind else "assistant", _speaker(record), None)
        elif record.type == TurnsHidden.kind:
            hidden.update(msgspec.json.decode(record.payload)["turns"])
        else:
            narrator.on_records([record])
        if not is_imported(record):
            turns[record.seq] = record.turn
    return [
        entry
        for entry in collector.entries
        if entry.seq >= first and (last is None or entry.seq <= last) and turns.get(entry.seq) not in hidden
    ]


def _speaker(record: Record) -> str:
    """Return the speaker of an erased message: its name was erased with it."""
    return USER if record.type == UserMessage.kind else record.agent_id


def is_imported(record: Record) -> bool:
    """Return True for a message of an imported conversation, which belongs to no turn that could be undone."""
    return record.type in SAID and not is_erased(record.payload) and bool(
        msgspec.json.decode(record.payload).get("imported")
    )  # fmt: skip


def shape(agent_id: str, as_of: int, zone: str, entries: Sequence[TranscriptEntry]) -> JsonObject:
    """Return the transcript for programs."""
    messages = [
        {"seq": one.seq, "time": iso(one.at), "role": one.role, "name": one.who, "text": one.text, "ok": one.ok}
        for one in entries
    ]
    return {"agent": agent_id, "as_of": as_of, "zone": zone, "messages": messages}


def plain(agent_id: str, entries: Sequence[TranscriptEntry], zone: str) -> str:
    """Return the transcript as plain text, with times in `zone`."""
    lines = [f"Conversation with {escape_line(agent_id)}: {_summary(entries, zone)}"]
    for one in entries:
        text = ERASED_TEXT if one.text is None else sanitize(one.text)
        if one.role == "function":
            lines.append(f"  ƒ {one.who} {'→' if one.ok else 'failed:'} {text}")
            continue
        lines += [
            "",
            f"{one_line(one.who)}, {clock(one.at, zone)}",
            *(f"  {line}".rstrip() for line in text.split("\n")),
        ]
    return "\n".join(lines)


def markdown(agent_id: str, entries: Sequence[TranscriptEntry], zone: str) -> str:
    """Return the transcript as Markdown, with times in `zone`. Function calls are folded."""
    parts = [f"# Conversation with {_escaped(agent_id)}", _summary(entries, zone)]
    for calls, group in _grouped(entries):
        if calls:
            parts.append(_folded(group))
            continue
        for one in group:
            parts += [f"**{_escaped(one.who)}**, {clock(one.at, zone)}", _quoted(one.text)]
    return "\n\n".join(parts)


def _summary(entries: Sequence[TranscriptEntry], zone: str) -> str:
    if not entries:
        return "no messages."
    count = plural(sum(one.role != "function" for one in entries), "message")
    first, last = min(one.at for one in entries), max(one.at for one in entries)
    return f"{count}, {clock(first, zone)} to {clock(last, zone)}."


def _grouped(entries: Sequence[TranscriptEntry]) -> Iterator[tuple[bool, list[TranscriptEntry]]]:
    """Yield runs of function calls (True) and of messages (False), in order."""
    group: list[TranscriptEntry] = []
    for one in entries:
        if group and (group[0].role == "function") != (one.role == "function"):
            yield group[0].role == "function", group
            group = []
        group.append(one)
    if group:
        yield group[0].role == "function", group


def _folded(calls: Sequence[TranscriptEntry]) -> str:
    """Return function calls in a block that a reader unfolds."""
    lines = [f"{one.who} {'→' if one.ok else 'failed:'} {one.text}" for one in calls]
    fence = "`" * (1 + max((len(run) for line in lines for run in re.findall(r"`+", line)), default=2))
    code = "\n".join([fence, *lines, fence])
    return f"<details><summary>{plural(len(calls), 'function call')}</summary>\n\n{code}\n\n</details>"


def _escaped(name: str) -> str:
    return _MARKUP.sub(r"\\\1", escape_line(name))


def _quoted(text: str | None) -> str:
    """Return a text as a quotation, in which its own Markdown works and HTML does not."""
    if text is None:
        return f"> *{ERASED_TEXT}*"
    lines, fence = [], ""
    for line in sanitize(text).split("\n"):
        found = _FENCE.match(line)
        if not fence:
            # Two spaces at the end keep the line break, which Markdown would turn into a space.
            lines.append(line if found or not line.strip() else f"{_without_tags(line.rstrip())}  ")
            fence = found[1] if found else ""
        else:
            lines.append(line)
            if found and found[1].startswith(fence) and not line[found.end() :].strip():
                fence = ""
    lines[-1] = lines[-1].rstrip()
    return "\n".join(f"> {line}" if line else ">" for line in lines)


def _without_tags(line: str) -> str:
    """Return a line in which no HTML begins outside of its code spans."""
    parts, at = [], 0
    for code in _CODE_SPAN.finditer(line):
        parts += [_TAG.sub("&lt;", line[at : code.start()]), code[0]]
        at = code.end()
    return "".join([*parts, _TAG.sub("&lt;", line[at:])])
