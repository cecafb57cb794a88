"""Tell records as a conversation for a page: who said what, what the agent thought, which functions it called. Pure."""

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from everlog.events import ApprovalRequested, Call, Record, UserMessage, event_of, is_erased
from everlog.interfaces.common.front_end import FrontEnd, Notice
from everlog.interfaces.output.narrator import Narrator
from everlog.interfaces.show.transcript import SAID

ENTRIES_MAX = 80
"""Entries of a page."""
RECORDS_READ = 500
"""Records before a moment that are read for them."""

EntryRole = Literal["user", "agent", "thought", "call", "notice", "erased", "waits"]
"""`waits`: a call that asked for the approval of a person."""


class TalkEntry(msgspec.Struct, kw_only=True):
    """One thing that was said, thought or done."""

    seq: int
    turn: int
    at: int
    """Time of writing, microseconds UTC."""
    role: EntryRole
    who: str = ""
    text: str = ""
    result: str | None = None
    """Result of a call; None: it has none yet."""
    ok: bool = True
    question: str = ""
    """Question that a call asks a person; empty: it waits for an approval."""
    decision: str = ""
    """Decision about a call that asked for an approval, as the view `approvals` says it; `waiting`: none yet."""


class TalkTurn(msgspec.Struct, kw_only=True):
    """Entries of one turn."""

    turn: int
    at: int
    entries: list[TalkEntry]


class _Teller(FrontEnd):
    """Front end that collects entries of the record that is being told."""

    def __init__(self, agent: str) -> None:
        self.agent = agent
        self.entries: list[TalkEntry] = []
        self.calls: dict[str, TalkEntry] = {}
        self.record: Record | None = None

    def user_message(self, text: str, name: str) -> None:
        self.add("user", text, name or "user")

    def inner_monologue(self, text: str) -> None:
        self.add("thought", text)

    def assistant_message(self, text: str, name: str) -> None:
        assert self.record is not None
        self.add("agent", text, self.agent if name == self.record.agent_id else name)

    def function_call(self, call: Call) -> None:
        self.calls[call.id] = self.add("call", call.arguments, call.name)

    def function_message(self, call: Call, text: str, *, ok: bool) -> None:
        entry = self.calls.pop(call.id, None) or self.add("call", call.arguments, call.name)
        entry.result, entry.ok = text, ok

    def notice(self, about: Notice, text: str) -> None:
        request = event_of(self.record) if self.record is not None else None
        if isinstance(request, ApprovalRequested):
            entry = self.add("waits", indented(request.arguments), request.name)
            entry.question = request.question.text if request.question is not None else ""
            return
        self.add("notice", text, about.replace("_", " "))

    def add(self, role: EntryRole, text: str, who: str = "") -> TalkEntry:
        record = self.record
        assert record is not None
        at = record.recorded_at if record.said_at is None else record.said_at
        entry = TalkEntry(seq=record.seq, turn=record.turn, at=at, role=role, who=who, text=text)
        self.entries.append(entry)
        return entry


def indented(text: str) -> str:
    """Return JSON text with one member a line; any other text as it is."""
    try:
        return msgspec.json.format(text.encode("utf-8", "surrogatepass"), indent=2).decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return text


def entries_of(records: Iterable[Record], agent: str) -> list[TalkEntry]:
    """Return the entries that records tell, in order. A call whose reply is not among the records has no arguments.

    `agent`: name of the agent as the reader of the page says it.
    """
    teller = _Teller(agent)
    narrator = Narrator(teller)
    for record in records:
        teller.record = record
        if not is_erased(record.payload):
            narrator.on_records([record])
        elif record.type in SAID:
            teller.add("erased", "", "user" if record.type == UserMessage.kind else agent)
    return teller.entries


def turns_of(entries: Sequence[TalkEntry]) -> list[TalkTurn]:
    """Return entries by turn, in order."""
    turns: list[TalkTurn] = []
    for entry in entries:
        if not turns or turns[-1].turn != entry.turn:
            turns.append(TalkTurn(turn=entry.turn, at=entry.at, entries=[]))
        turns[-1].entries.append(entry)
    return turns
