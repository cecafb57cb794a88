"""Read from a group's log what was said, who was asked, and what became of it. Pure.

Turns are the order: an agent that is asked in a turn has been given all that was said in that turn and before it. The
rows that a request shows play no part, so summaries, restarts and forks change nothing. Used by `rules.py`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast, get_args

import msgspec

from everlog.actors.mail.names import spoken
from everlog.events import (
    AgentForked,
    AgentMessageReceived,
    AgentMessageSent,
    AgentReplyReceived,
    FunctionResult,
    MessageSent,
    UserMessage,
)

Part = Literal["speaks", "works", "decides", "picks", "repicks"]
"""Reason that an agent is asked: to say something to all, to work for the supervisor, to say what holds as the
supervisor, to pick the next speaker, or to pick again after an answer that was no name.
"""
_PARTS = get_args(Part)
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


def talk_of(rows: Sequence[Mapping[str, Any]], turn: int) -> GroupTalk:
    """Return the state in a turn, from the rows of `group_talk`: later turns play no part."""
    reading = _Reading()
    for row in rows:
        if row["turn"] <= turn:
            reading.read(row)
    return reading.talk(turn)


class _Reading:
    """Questions, answers and inputs, read row after row."""

    def __init__(self) -> None:
        self.lines: list[TalkLine] = []
        self.roots: dict[int, int] = {}
        self.inputs: dict[int, TalkLine] = {}
        """Input of each turn, until it is known to be an answer."""
        self.by_seq: dict[int, GroupQuestion] = {}
        self.asked: list[GroupQuestion] = []
        self.said: set[str] = set()
        self.hidden: set[int] = set()

    def read(self, row: Mapping[str, Any]) -> None:
        turn, text = row["turn"], row["text"] or ""
        if row["hidden"]:
            self.hidden.add(turn)
        match row["type"]:
            case AgentMessageSent.kind:
                self._sent(msgspec.json.decode(row["payload"], type=_Sent), row["seq"], turn)
            case AgentReplyReceived.kind:
                self._replied(msgspec.json.decode(row["payload"], type=_Reply), turn)
            case AgentMessageReceived.kind:
                self.roots[turn] = row["seq"]
            case AgentForked.kind:
                for asked in self.asked:
                    asked.outcome = asked.outcome or "cut"
            case MessageSent.kind:
                self.said.add(msgspec.json.decode(row["payload"], type=_Called).call_id)
            case FunctionResult.kind:
                self._refused(msgspec.json.decode(row["payload"], type=_Called).call_id, text, turn)
            case _ if text.strip():
                user = msgspec.json.decode(row["payload"], type=_Said)
                name = spoken(user.agent) if user.agent else user.name
                self.inputs[turn] = TalkLine(turn, name if row["type"] == UserMessage.kind else "", text)
                self.lines.append(self.inputs[turn])

    def _sent(self, sent: "_Sent", seq: int, turn: int) -> None:
        if (place := _place(sent.call_id)) is not None:
            self.by_seq[seq] = GroupQuestion(*place, turn=turn, root=sent.task, to=spoken(sent.to))
            self.asked.append(self.by_seq[seq])

    def _replied(self, reply: "_Reply", turn: int) -> None:
        self.roots[turn] = reply.task
        line = self.inputs.pop(turn, None)
        if line is not None:
            self.lines.remove(line)
        asked = self.by_seq.get(reply.message)
        if asked is None or asked.outcome:
            return
        asked.outcome, asked.text = reply.outcome, line.text if line else ""
        if asked.part in ("speaks", "decides") and line is not None and asked.outcome == "answered":
            self.lines.append(TalkLine(turn, asked.to, line.text, member=True))

    def _refused(self, call_id: str, text: str, turn: int) -> None:
        if (place := _place(call_id)) is not None:
            refused = GroupQuestion(*place, turn=turn, root=self.roots.get(turn, 0), outcome="refused", text=text)
            self.asked.append(refused)

    def talk(self, turn: int) -> GroupTalk:
        """Return the state in a turn."""
        root = self.roots.get(turn, 0)
        for asked in self.asked:
            asked.said = SAID + asked.call_id in self.said
        return GroupTalk(
            turn=turn,
            root=root,
            lines=[one for one in self.lines if self.roots.get(one.turn, 0) == root and one.turn not in self.hidden],
            asked=[asked for asked in self.asked if asked.root == root],
            wanted=max(
                (at for at in self.inputs if self.roots.get(at, 0) == root and at not in self.hidden), default=0
            ),
            ended={asked.round for asked in self.asked if ended_call(asked.round) in self.said},
        )


def ended_call(number: int) -> str:
    """Return the call id with which the group says why a round ended early."""
    return f"{SAID}round{number}-ended"


class _Called(msgspec.Struct):
    call_id: str = ""


class _Sent(msgspec.Struct):
    to: str
    call_id: str
    task: int = 0


class _Reply(msgspec.Struct):
    message: int
    outcome: str
    task: int = 0


class _Said(msgspec.Struct):
    name: str = ""
    agent: str = ""
