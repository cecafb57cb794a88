"""Keep the messages between an agent and others that are not over, from record to record. Pure.

The rows are those of the projection `unfinished_messages`, from which the first ones come when an agent is activated; a
law holds the two equal. A query after each commit would take longer than the commit. Used by `EventWriter`.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from everlog.events import (
    INPUTS,
    AgentDeleted,
    AgentForked,
    AgentMessageReceived,
    AgentMessageSent,
    AgentMessageSettled,
    AgentReplyReceived,
    MessageSent,
    Record,
)


class OpenMessages:
    """Messages of an agent that are pending, waiting, working or ready."""

    def __init__(self, rows: Sequence[Mapping[str, Any]] = ()) -> None:
        """`rows`: those of `unfinished_messages` so far."""
        self._rows: dict[int, dict[str, Any]] = {row["seq"]: dict(row) for row in rows}
        """Rows by seq, without the states of received messages: these depend on the open turns."""
        self._input: tuple[int, str | None] = (0, None)
        """Turn and text of the newest input that opened a turn."""
        self._opened: set[int] = set()
        """Turns that messages and answers of others opened; those that have ended may be missing."""

    def add(self, records: Sequence[Record]) -> None:
        """Take the next records of the agent."""
        for record in records:
            match record.type:
                case AgentMessageSent.kind:
                    self._sent(record)
                case AgentMessageReceived.kind:
                    self._received(record)
                case AgentMessageSettled.kind:
                    self._settled(record.seq, msgspec.json.decode(record.payload, type=_Ended).message)
                case AgentReplyReceived.kind:
                    self._opened.add(record.turn)
                    reply = msgspec.json.decode(record.payload, type=_Ended)
                    if (row := self._rows.get(reply.message)) is not None and row["direction"] == "sent":
                        del self._rows[reply.message]
                    if (row := self._rows.get(reply.task)) is not None and row["direction"] == "received":
                        row["turns"] = [*row["turns"], record.turn]
                case MessageSent.kind if record.text is not None:
                    for row in self._rows.values():
                        if record.turn in row["turns"]:
                            row["answer"] = record.text if row["answer"] is None else f"{row['answer']}\n{record.text}"
                case AgentForked.kind | AgentDeleted.kind:
                    self._rows.clear()
                case kind if kind in INPUTS and not record.step and record.turn != self._input[0]:
                    self._input = record.turn, record.text

    def rows(self, open_turns: Collection[int]) -> Sequence[Mapping[str, Any]]:
        """Return the rows of the messages that are not over. `open_turns`: numbers of the unfinished turns."""
        self._opened.intersection_update(open_turns)
        asked = {row["task"] for row in self._rows.values() if row["direction"] == "sent" and row["expires_us"]}
        at_work = set(open_turns)
        found = []
        for row in self._rows.values():
            state = row["state"]
            if row["direction"] == "received":
                state = "ready" if row["seq"] not in asked and at_work.isdisjoint(row["turns"]) else "working"
            found.append({**row, "state": state})  # a copy: the caller may read it after the next record
        return found

    def opened(self, turn: int) -> bool:
        """Return True if a message or an answer of another agent opened an unfinished turn, as far as `add` has met its
        records.
        """
        return turn in self._opened

    def _sent(self, record: Record) -> None:
        sent = msgspec.json.decode(record.payload, type=_Sent)
        self._rows[record.seq] = {
            **_shared(record, sent), "direction": "sent", "other": sent.to, "text": record.text, "task": sent.task,
            "expires_us": sent.expires_at or None, "state": "pending", "sent_id": record.event_id, "message": None,
        }  # fmt: skip

    def _received(self, record: Record) -> None:
        self._opened.add(record.turn)
        got = msgspec.json.decode(record.payload, type=_Received)
        if got.waits:
            text = self._input[1] if self._input[0] == record.turn else None
            self._rows[record.seq] = {
                **_shared(record, got), "direction": "received", "other": got.sender, "text": text, "task": record.seq,
                "expires_us": None, "state": "working", "sent_id": got.sent, "message": got.message,
                "turns": [record.turn],
            }  # fmt: skip

    def _settled(self, seq: int, message: int) -> None:
        row = self._rows.get(message)
        if row is None:
            return
        if row["direction"] == "received" or row["expires_us"] is None:
            del self._rows[message]
        elif row["state"] == "pending":
            row["state"], row["ended_seq"] = "waiting", seq


class _Letter(msgspec.Struct, kw_only=True):
    hops: msgspec.Raw = msgspec.Raw()
    waiting: msgspec.Raw = msgspec.Raw()
    budgets: msgspec.Raw = msgspec.Raw()
    from_seq: int | None = None
    to_seq: int | None = None


class _Sent(_Letter):
    to: str
    task: int = 0
    expires_at: int = 0


class _Received(_Letter):
    sender: str
    sent: str
    waits: bool = False
    message: int | None = None


class _Ended(msgspec.Struct):
    message: int
    task: int = 0


def _shared(record: Record, letter: _Letter) -> dict[str, Any]:
    """Return the columns that a sent and a received message have alike."""
    return {
        "seq": record.seq, "time": record.recorded_at, "turn": record.turn, "turns": [], "ended_seq": None,
        "ended_turn": None, "answer": None, "hops": _json(letter.hops), "waiting": _json(letter.waiting),
        "budgets": _json(letter.budgets), "from_seq": letter.from_seq, "to_seq": letter.to_seq,
    }  # fmt: skip


def _json(value: msgspec.Raw) -> str | None:
    return bytes(value).decode() or None
