"""Read from a group's log what was said, who was asked, and what became of it. Pure.

Turns are the order: an agent that is asked in a turn has been given all that was said in that turn and before it. The
rows that a request shows play no part, so summaries, restarts and forks change nothing. Used by `rules.py`.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, cast, get_args

import msgspec

from everlog.actors.mail.names import spoken
from everlog.events import (
    INPUTS,
    AgentForked,
    AgentMessageReceived,
    AgentMessageSent,
    AgentReplyReceived,
    FunctionResult,
    MessageSent,
    Record,
    TurnsHidden,
    UserMessage,
)

Part = Literal["speaks", "works", "decides", "picks", "repicks"]
"""Reason that an agent is asked: to say something to all, to work for the supervisor, to say what holds as the
supervisor, to pick the next speaker, or to pick again after an answer that was no name.
"""
_PARTS = get_args(Part)
ASK = "ask_agent"
"""Function with which a group asks."""
_KINDS = {
    AgentForked.kind, AgentMessageReceived.kind, AgentMessageSent.kind, AgentReplyReceived.kind, MessageSent.kind,
}  # fmt: skip
SAID = "said-"
"""Beginning of the call ids with which the group says what became of a question; the question's own follows."""


class TalkLine(msgspec.Struct, frozen=True):
    """Something that all in the group may hear."""

    turn: int
    name: str
    """Name of the speaker; empty: a person who gave none."""
    text: str
    member: bool = False
    """True: an answer of a member; False: an input from outside, which wants an answer."""


class GroupQuestion(msgspec.Struct):
    """Question of the group to an agent."""

    round: int
    """Number of the turn in which the round began."""
    part: Part
    number: int
    """Place in the round, from 0."""
    turn: int
    root: int
    """Received message that the round answers, by its seq; 0: it answers people."""
    to: str = ""
    """Name of the agent; empty if it could not be asked, so that no message was left."""
    outcome: str = ""
    """`answered`, `silent`, `expired`, `undeliverable`; `refused`: it could not be sent; `cut`: it was open in the
    parent of this fork; empty: an answer is awaited.
    """
    text: str = ""
    """Answer, or the reason that there is none."""
    said: bool = False
    """True if the group has said what became of it."""

    @property
    def call_id(self) -> str:
        """Id of the call that asks."""
        return f"round{self.round}-{self.part}-{self.number}"

    @property
    def arrived(self) -> bool:
        """True if the agent has got, or will get, what the question says."""
        return bool(self.to) and self.outcome != "undeliverable"


class GroupTalk(msgspec.Struct):
    """State of a group in a turn."""

    turn: int
    root: int
    """Received message that the turn answers, by its seq; 0: it answers people. The conversation with people is one;
    each message of another agent begins one of its own, so that its answer is about nothing else.
    """
    lines: list[TalkLine]
    """All that was said in this conversation up to this turn, in order."""
    asked: list[GroupQuestion]
    """All questions of this conversation up to this turn, in order."""
    wanted: int
    """Newest turn whose input wants an answer; 0: none."""
    ended: set[int]
    """Rounds of which the group has said that they ended."""


def _place(call_id: str) -> tuple[int, Part, int] | None:
    """Return the round, part and number in a call id of a group; None for any other id."""
    begin, _, rest = call_id.partition("-")
    part, _, number = rest.partition("-")
    if not (begin.startswith("round") and begin[5:].isdecimal() and part in _PARTS and number.isdecimal()):
        return None
    return int(begin[5:]), cast("Part", part), int(number)


class GroupReading:
    """Sayings, questions and answers of a group, read from record to record."""

    def __init__(self, rows: Iterable[Mapping[str, Any]] = ()) -> None:
        """`rows`: those of the projection `group_talk` so far."""
        self._unread: list[Mapping[str, Any]] = []
        """Rows of turns that were not asked for yet."""
        self._lines: list[TalkLine] = []
        self._roots: dict[int, int] = {}
        self._inputs: dict[int, TalkLine] = {}
        """Input of each turn, until it is known to be an answer."""
        self._by_seq: dict[int, GroupQuestion] = {}
        self._asked: list[GroupQuestion] = []
        self._said: set[str] = set()
        self._hidden: set[int] = set()
        for row in rows:
            self._unread.append(row)
            if row["hidden"]:
                self._hidden.add(row["turn"])

    def add(self, records: Iterable[Record]) -> None:
        """Take the next records of the group. A test holds the rows that are made of them equal to the projection's."""
        for record in records:
            if record.type == TurnsHidden.kind:
                self._hidden.update(msgspec.json.decode(record.payload, type=_Hidden).turns)
            elif _counts(record):
                row = {"seq": record.seq, "turn": record.turn, "type": record.type, "text": record.text}
                self._unread.append({**row, "payload": record.payload})

    def talk(self, turn: int) -> GroupTalk:
        """Return the state in a turn, which is that of the last call or a later one: later turns play no part."""
        # Turns are run in the order of their inputs, so rows that are left for later say nothing of this turn.
        later = []
        for row in self._unread:
            if row["turn"] <= turn:
                self._read(row)
            else:
                later.append(row)
        self._unread = later
        return self._talk(turn)

    def _read(self, row: Mapping[str, Any]) -> None:
        turn, text = row["turn"], row["text"] or ""
        match row["type"]:
            case AgentMessageSent.kind:
                self._sent(msgspec.json.decode(row["payload"], type=_Sent), row["seq"], turn)
            case AgentReplyReceived.kind:
                self._replied(msgspec.json.decode(row["payload"], type=_Reply), turn)
            case AgentMessageReceived.kind:
                self._roots[turn] = row["seq"]
            case AgentForked.kind:
                for asked in self._asked:
                    asked.outcome = asked.outcome or "cut"
            case MessageSent.kind:
                self._said.add(msgspec.json.decode(row["payload"], type=_Called).call_id)
            case FunctionResult.kind:
                self._refused(msgspec.json.decode(row["payload"], type=_Called).call_id, text, turn)
            case _ if text.strip():
                user = msgspec.json.decode(row["payload"], type=_Said)
                name = spoken(user.agent) if user.agent else user.name
                self._inputs[turn] = TalkLine(turn, name if row["type"] == UserMessage.kind else "", text)
                self._lines.append(self._inputs[turn])

    def _sent(self, sent: "_Sent", seq: int, turn: int) -> None:
        if (place := _place(sent.call_id)) is not None:
            self._by_seq[seq] = GroupQuestion(*place, turn=turn, root=sent.task, to=spoken(sent.to))
            self._asked.append(self._by_seq[seq])

    def _replied(self, reply: "_Reply", turn: int) -> None:
        self._roots[turn] = reply.task
        line = self._inputs.pop(turn, None)
        if line is not None:
            self._lines.remove(line)
        asked = self._by_seq.get(reply.message)
        if asked is None or asked.outcome:
            return
        asked.outcome, asked.text = reply.outcome, line.text if line else ""
        if asked.part in ("speaks", "decides") and line is not None and asked.outcome == "answered":
            self._lines.append(TalkLine(turn, asked.to, line.text, member=True))

    def _refused(self, call_id: str, text: str, turn: int) -> None:
        if (place := _place(call_id)) is not None:
            refused = GroupQuestion(*place, turn=turn, root=self._roots.get(turn, 0), outcome="refused", text=text)
            self._asked.append(refused)

    def _talk(self, turn: int) -> GroupTalk:
        root = self._roots.get(turn, 0)
        for asked in self._asked:
            asked.said = SAID + asked.call_id in self._said
        return GroupTalk(
            turn=turn,
            root=root,
            lines=[one for one in self._lines if self._roots.get(one.turn, 0) == root and one.turn not in self._hidden],
            asked=[asked for asked in self._asked if asked.root == root],
            wanted=max(
                (at for at in self._inputs if self._roots.get(at, 0) == root and at not in self._hidden), default=0
            ),
            ended={asked.round for asked in self._asked if ended_call(asked.round) in self._said},
        )


def ended_call(number: int) -> str:
    """Return the call id with which the group says why a round ended early."""
    return f"{SAID}round{number}-ended"


def _counts(record: Record) -> bool:
    """Return True if the projection `group_talk` has a row of a record that was just written."""
    if record.type == FunctionResult.kind:
        return '"ok":false' in record.payload and msgspec.json.decode(record.payload, type=_Called).name == ASK
    return record.type in _KINDS or (record.type in INPUTS and not record.step and record.turn > 0)


class _Called(msgspec.Struct):
    call_id: str = ""
    name: str = ""


class _Sent(msgspec.Struct):
    to: str
    call_id: str
    task: int = 0


class _Reply(msgspec.Struct):
    message: int
    outcome: str
    task: int = 0


class _Hidden(msgspec.Struct):
    turns: list[int]


class _Said(msgspec.Struct):
    name: str = ""
    agent: str = ""
