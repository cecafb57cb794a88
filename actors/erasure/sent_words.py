"""Find where the words of erased records went in messages between agents: to the receivers, and back in answers. Pure.

A message is copied by value, so that each log explains itself: the receiver's copy is a record of its own, and names
the sender's record by its id; an answer names the question by its seq. Used by `erasure_plan.py`. A tombstone counts as
taken: after an interruption a part of the records is gone already.
"""

from collections.abc import Container, Iterable, Mapping

import msgspec

from everlog.actors.erasure.record_words import payload_of
from everlog.actors.erasure.stream_scan import Marked
from everlog.actors.mail.names import spoken
from everlog.events import (
    AgentMessageReceived,
    AgentMessageSent,
    AgentReplyReceived,
    MessageSent,
    Record,
    UserMessage,
    is_erased,
)

MAIL = frozenset({AgentMessageSent.kind, AgentMessageReceived.kind})
"""Kinds of records of which an agent has some if it wrote to others, or others to it."""


class SentWords(msgspec.Struct):
    """Messages and answers in which an agent sent words that are erased."""

    messages: dict[str, tuple[str, int]] = {}
    """Receiver and seq of each message by its event id. The receiver is empty if the record has no content any more."""
    answers: dict[tuple[str, int], int] = {}
    """Seq of what was answered, by the agent that asked and the seq of its question."""

    def receivers(self, known: Iterable[str]) -> list[str]:
        """Return the agents whose logs may have a copy; all of `known` if a receiver is not known. Sorted."""
        found = {to for to, _ in self.messages.values()} | {to for to, _ in self.answers}
        return sorted((found | set(known)) - {""} if "" in found else found)


def sent_words(records: Iterable[Record], marked: Container[int]) -> SentWords:
    """Return what an agent sent of the records with the `marked` seqs. `records`: all of its log, in order."""
    found = SentWords()
    asked: dict[int, tuple[str, int]] = {}
    """Agent that waits, and the seq of its question, by the seq of the message that it sent."""
    turns: dict[int, tuple[str, int]] = {}
    """The same by the turns that work on the answer."""
    for record in records:
        erased = is_erased(record.payload)
        payload: Mapping[str, object] = {} if erased else payload_of(record)
        if record.type == AgentMessageReceived.kind and payload.get("waits"):
            asked[record.seq] = turns[record.turn] = str(payload["sender"]), int(str(payload["message"]))
        elif record.type == AgentReplyReceived.kind and payload.get("task") in asked:
            turns[record.turn] = asked[int(str(payload["task"]))]
        elif not erased and record.seq not in marked:
            continue
        elif record.type == AgentMessageSent.kind:
            found.messages[record.event_id] = str(payload.get("to", "")), record.seq
        elif record.type == MessageSent.kind and record.turn in turns:
            found.answers[turns[record.turn]] = record.seq
    return found


def received_words(records: Iterable[Record], receiver: str, sender: str, sent: SentWords) -> dict[int, Marked]:
    """Return the inputs of an agent that repeat what another one sent, with the reason, by seq."""
    found: dict[int, Marked] = {}
    before: Record | None = None
    for record in records:
        seq = 0
        if not is_erased(record.payload):
            if record.type == AgentMessageReceived.kind:
                seq = sent.messages.get(payload_of(record)["sent"], ("", 0))[1]
            elif record.type == AgentReplyReceived.kind and payload_of(record)["sender"] == sender:
                seq = sent.answers.get((receiver, payload_of(record)["message"]), 0)
        # The input stands before the record that says where it is from, in the same commit.
        if seq and before is not None and before.type == UserMessage.kind and not is_erased(before.payload):
            found[before.seq] = Marked(f"caused by {spoken(sender)} {seq}", derived=True)
        before = record
    return found
