"""Decide what is due of an agent's messages to others, from the rows of `agent_messages`. Pure.

A message that is not delivered, or an answer that is ready, is due at once; the end of a wait is due at its time. All
of it is in the log, so the schedule of timers wakes the agent for it, in any host and at any time later. Used by hosts.
"""

import hashlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from everlog.actors.mail.names import spoken
from everlog.events import (
    AgentMessageReceived,
    AgentReplyReceived,
    EverlogError,
    InheritedBudget,
    MessageOutcome,
    UnknownAgent,
    Usage,
    UserMessage,
    derived_id,
)

MessageRow = Mapping[str, Any]
"""MessageRow of the projection `agent_messages`."""

OUTBOX = "@outbox"
"""Name of the timer that stands for all that is to be delivered."""
BACKGROUND = "@background"
"""Name of the timer that stands for what the background agent is told next."""
WAIT = "@answer "
"""Beginning of the name of the timer that ends a wait; the seq of the message follows."""
TRIED_US = 24 * 3600 * 1_000_000
"""Time after which a message that could not be delivered is given up."""


class Letter(msgspec.Struct, frozen=True, kw_only=True):
    """Message on its way to another agent."""

    sender: str
    sent: str
    """Event id of the sender's record."""
    message: int
    """Seq of the sender's record."""
    text: str
    waits: bool
    hops: Sequence[str]
    waiting: Sequence[str]
    from_seq: int = 0
    to_seq: int = 0
    """Records of the sender whose words it repeats, both inclusive, because the receiver is its background agent; 0:
    none.
    """
    budgets: Sequence[InheritedBudget] = ()
    """Budgets that the receiver works within."""

    def input(self) -> tuple[UserMessage, AgentMessageReceived]:
        """Return the input of the receiver, and the event behind it."""
        name = spoken(self.sender)
        if self.to_seq:
            note = (
                f"You work in the background of the agent {name}, which shares memory blocks with you. Keep in them "
                f"what it needs to know of this. {name} waits for no answer, and nothing that you say is shown."
            )
        elif self.waits:
            note = f"{name} is another agent and waits for your answer: what you say with send_message goes to {name}."
        else:
            note = f"{name} is another agent and waits for no answer."
        return UserMessage(text=self.text, name=name, agent=self.sender, note=note), AgentMessageReceived(
            sender=self.sender,
            sent=self.sent,
            waits=self.waits,
            message=self.message,
            hops=list(self.hops),
            waiting=list(self.waiting),
            from_seq=self.from_seq,
            to_seq=self.to_seq,
            budgets=list(self.budgets),
        )


class ReplyLetter(msgspec.Struct, frozen=True, kw_only=True):
    """Answer on its way back, or the end of the wait for it."""

    sender: str
    message: int
    """Seq of the receiver's own message that is answered."""
    text: str
    outcome: MessageOutcome
    used: Mapping[str, Usage] = {}
    """Tokens that the answer took, by model; none if the question carried no budgets."""

    def input(self, row: MessageRow) -> tuple[UserMessage, AgentReplyReceived]:
        """Return the input of the agent that waits, and the event behind it. `row`: that of its own message."""
        name = spoken(self.sender)
        note = f"This is what became of your message {self.message} to {name}."
        return UserMessage(text=self.text, name=name, agent=self.sender, note=note), AgentReplyReceived(
            sender=self.sender, message=self.message, outcome=self.outcome, task=row["task"], used=dict(self.used)
        )


class Due(msgspec.Struct, frozen=True):
    """One thing to deliver: to whom, and for which own record."""

    seq: int
    to: str
    letter: Letter | ReplyLetter
    since: int
    """Time of the own record, microseconds UTC."""


def names_in(column: str | None) -> list[str]:
    """Return the names in the column `hops` or `waiting` of a row."""
    return msgspec.json.decode(column, type=list[str]) if column else []


def budgets_in(column: str | None) -> list[InheritedBudget]:
    """Return the budgets in the column `budgets` of a row."""
    return msgspec.json.decode(column, type=list[InheritedBudget]) if column else []


def timer_rows(rows: Sequence[MessageRow]) -> list[dict[str, Any]]:
    """Return what is due as rows of the projection `timers`."""
    due = [row for row in rows if row["state"] in ("pending", "ready")]
    found = [
        {"timer": f"{WAIT}{row['seq']}", "due_us": row["expires_us"], "every_s": 0, "seq": row["seq"]}
        for row in rows
        if row["expires_us"] is not None and row["state"] in ("pending", "waiting")
    ]
    if due:
        # A sum: one more message is another timer, which is due although an earlier message could not be delivered.
        found.append(
            {
                "timer": OUTBOX,
                "due_us": min(row["time"] for row in due),
                "every_s": 0,
                "seq": sum(r["seq"] for r in due),
            }
        )
    return found


def background_timers(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what is due of rows of `background`, as rows of the projection `timers`."""
    return [
        {"timer": BACKGROUND, "due_us": row["due_us"], "every_s": 0, "seq": row["cursor"]}
        for row in rows
        if row["due_us"] is not None
    ]


def open_question(rows: Sequence[MessageRow], seq: int) -> MessageRow | None:
    """Return the row of the agent's own message of that seq, if it is not delivered or its answer is waited for."""
    found = (row for row in rows if row["direction"] == "sent" and row["seq"] == seq)
    row = next(found, None)
    return row if row is not None and row["state"] in ("pending", "waiting") else None


def to_deliver(
    agent_id: str, rows: Sequence[MessageRow], used: Mapping[int, Mapping[str, Usage]] = MappingProxyType({})
) -> list[Due]:
    """Return what is to be delivered, in the order of the log. `used`: tokens that answers took which are ready, by the
    seq of the question and by model, where questions carried budgets.
    """
    found = []
    for row in rows:
        if row["state"] == "pending":
            letter = Letter(
                sender=agent_id, sent=row["sent_id"], message=row["seq"], text=row["text"] or "",
                waits=row["expires_us"] is not None, hops=names_in(row["hops"]),
                waiting=names_in(row["waiting"]), from_seq=row["from_seq"] or 0, to_seq=row["to_seq"] or 0,
                budgets=budgets_in(row["budgets"]),
            )  # fmt: skip
            found.append(Due(row["seq"], row["other"], letter, row["time"]))
        elif row["state"] == "ready":
            said = row["answer"] or ""
            reply = ReplyLetter(
                sender=agent_id, message=row["message"], text=said or f"{spoken(agent_id)} ended without an answer.",
                outcome="answered" if said else "silent", used=used.get(row["seq"], {}),
            )  # fmt: skip
            found.append(Due(row["seq"], row["other"], reply, row["time"]))
    return found


def expired(row: MessageRow) -> ReplyLetter:
    """Return the end of a wait whose time is over."""
    text = f"{spoken(row['other'])} has not answered in time."
    return ReplyLetter(sender=row["other"], message=row["seq"], text=text, outcome="expired")


def undeliverable(due: Due, error: EverlogError) -> ReplyLetter:
    """Return the end of a message that cannot be delivered."""
    text = f"Your message was not delivered: {why_undeliverable(due, error)}"
    return ReplyLetter(sender=due.to, message=due.seq, text=text, outcome="undeliverable")


def why_undeliverable(due: Due, error: EverlogError) -> str:
    """Return why a letter never arrives, in words for the sender and its users: names as the tenant says them, and
    nothing of hosts and commands, which the error names for the operator.
    """
    if isinstance(error, UnknownAgent):
        return f"there is no agent {spoken(due.to)!r} any more."
    return f"{spoken(due.to)} could not be reached for {TRIED_US // (3600 * 1_000_000)} hours."


def letter_id(agent_id: str, due: Due, now: int, late_us: int) -> str:
    """Return the id of the command that delivers: the same for each attempt, until the message is late.

    A log refuses old ids as stale, so a late one carries `now`; the receiver knows the message by `sent` all the same.
    """
    at = due.since if now - due.since <= late_us else now
    digest = hashlib.sha256(f"{agent_id}\0{due.seq}\0{due.to}\0{due.since}".encode()).digest()
    return derived_id(at, digest)
