"""Past conversations: from lines of JSON to records. A file is one commit; a bad line is named and nothing is kept."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Literal

import msgspec

from events import BadInput, Event, MessageSent, UserMessage


class Line(msgspec.Struct):
    """One line of the file."""

    role: Literal["user", "assistant"]
    content: str
    time: str
    name: str = ""
    ref: str = ""


class Said(msgspec.Struct, frozen=True):
    """One message of a past conversation, and when it was said."""

    event: Event
    said_at: int


_decoder = msgspec.json.Decoder(Line)


def conversation(lines: Iterable[bytes], source: str) -> Sequence[Said]:
    """The messages in `lines` (JSON objects, empty lines ignored). Raises BadInput naming the first bad line."""
    said: list[Said] = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            said.append(_said(line, f"{source}, line {number}"))
    if not said:
        raise BadInput(f"{source} holds no messages. A line is an object with role, content and time.")
    return said


def _said(data: bytes, place: str) -> Said:
    try:
        line = _decoder.decode(data)
        at = _microseconds(line.time)
    except (msgspec.DecodeError, ValueError) as error:
        raise BadInput(
            f"{place}: {error}. A line is an object with role (user or assistant), content, time (ISO 8601) and, if "
            "you like, name and ref. Nothing of the file was kept."
        ) from error
    if line.role == "user":
        return Said(UserMessage(text=line.content, name=line.name, ref=line.ref, imported=True), at)
    return Said(MessageSent(text=line.content, name=line.name, ref=line.ref, imported=True), at)


def _microseconds(text: str) -> int:
    """An ISO 8601 time; without a zone it is UTC."""
    when = datetime.fromisoformat(text)
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return round((when - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1_000_000)
