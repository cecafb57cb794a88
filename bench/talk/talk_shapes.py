"""Define the shape of a conversation with questions, whatever its kind: the common ground of all readers and makers.

Used by the files of this folder and by `bench.retrieval`. A question's evidence names refs of the same conversation.
"""

from collections.abc import Iterator, Sequence

import msgspec

from everlog.events.times import moment


class TalkMessage(msgspec.Struct, frozen=True):
    """One message of a conversation."""

    role: str
    """Either "user" or "assistant"."""
    name: str
    """Name of the speaker; empty if the speaker has none."""
    text: str
    time: int
    """Microseconds UTC."""
    ref: str
    """Name of the message, by which evidence refers to it."""


class TalkQuestion(msgspec.Struct, frozen=True):
    """One question about a conversation."""

    question: str
    category: str
    evidence: Sequence[str]
    """Refs of the messages that hold the answer, in the order of the conversation."""
    answer: str = ""


class Conversation(msgspec.Struct, frozen=True):
    """A conversation, and the questions that it can answer."""

    name: str
    messages: Sequence[TalkMessage]
    questions: Sequence[TalkQuestion]


def lines(talk: Conversation) -> Iterator[bytes]:
    """Yield the messages as JSON lines that `everlog import` reads."""
    for one in talk.messages:
        line = {"role": one.role, "content": one.text, "time": moment(one.time).isoformat(), "ref": one.ref}
        yield msgspec.json.encode({**line, "name": one.name} if one.name else line)
