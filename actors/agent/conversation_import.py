"""Parse past conversations from JSON lines. A file is one commit; a bad line is named, and nothing is stored.

Used by the import commands in `interfaces/manage` and `interfaces/fleet`, and by benchmarks; `Agent` commits the
messages.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Literal

import msgspec

from everlog.events import (
    RANDOM_BITS,
    BadInput,
    Event,
    MessageSent,
    ModelError,
    Record,
    Summary,
    UserMessage,
    time_of,
    uuid7,
)
from everlog.events.times import moment, since_epoch

YEAR_MIN, YEAR_MAX = 1000, 8999
"""Years that every time zone can show, with a margin for calculations with them."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class ImportLine(msgspec.Struct):
    """One line of the file."""

    role: Literal["user", "assistant"]
    content: str
    time: str
    name: str | None = None
    ref: str | int | None = None


class ImportedMessage(msgspec.Struct, frozen=True):
    """A message of a past conversation, and the time at which it was sent."""

    event: Event
    """`UserMessage` or `MessageSent`, with `imported=True`."""
    said_at: datetime
    """With a time zone."""


class ImportReport(msgspec.Struct, frozen=True):
    """Result of an import."""

    records: Sequence[Record]
    delayed: ModelError | None
    """Error that delayed the summaries; None if they are made, or none was needed."""
    summaries: int = 0
    """Number of summaries that were made of it at once."""


def summaries_in(records: Iterable[Record]) -> int:
    """Return the number of summaries among records."""
    return sum(record.type == Summary.kind for record in records)


_decoder = msgspec.json.Decoder(ImportLine)


def conversation(lines: Iterable[bytes], source: str) -> Sequence[ImportedMessage]:
    """Parse messages from `lines` (JSON objects, empty lines ignored). Raise BadInput naming the first bad line."""
    said: list[ImportedMessage] = []
    for number, line in enumerate(lines, start=1):
        if number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if line.strip():
            said.append(_said(line, f"{source}, line {number}"))
    if not said:
        raise BadInput(f"{source} holds no messages. A line is an object with role, content and time.")
    return said


def ids_of_import(event_id: str, count: int) -> Sequence[str]:
    """Return the ids of the messages of an import whose first message has the id `event_id`: the same for the same
    arguments, so that a repeated import is recognized. None without an `event_id`.
    """
    at = time_of(event_id) if event_id else None
    if at is None:
        return ()
    digests = (int.from_bytes(sha256(f"{event_id}#{number}".encode()).digest()) for number in range(1, count))
    return [event_id, *(uuid7(at, digest % 2**RANDOM_BITS) for digest in digests)]


def _said(data: bytes, place: str) -> ImportedMessage:
    try:
        return _message(_decoder.decode(data.decode()))
    except UnicodeDecodeError as error:
        fault = f"it is not UTF-8 (byte {error.start + 1} of the line)"
    except RecursionError:
        fault = "it is nested too deeply"
    except (msgspec.DecodeError, ValueError) as error:
        fault = str(error)
    raise BadInput(
        f"{place}: {fault}. A line is an object with role (user or assistant), content, time (ISO 8601) and, if "
        "you like, name and ref. Nothing of the file was kept."
    )


def _message(line: ImportLine) -> ImportedMessage:
    """Convert a line into a message. Raise ValueError."""
    if not line.content.strip():
        raise ValueError("its content is empty")
    at = _time(line.time)
    name, ref = line.name or "", "" if line.ref is None else str(line.ref)
    for text in (line.content, name, ref):
        # Fails for a lone surrogate, which the log cannot store.
        text.encode()
    if line.role == "user":
        return ImportedMessage(UserMessage(text=line.content, name=name, ref=ref, imported=True), at)
    return ImportedMessage(MessageSent(text=line.content, name=name, ref=ref, imported=True), at)


def _time(text: str) -> datetime:
    """Parse an ISO 8601 time; without a zone it is UTC. Raise ValueError."""
    when = datetime.fromisoformat(text)
    if not YEAR_MIN <= when.year <= YEAR_MAX:
        raise ValueError(f"its time {text} is not in the years {YEAR_MIN} to {YEAR_MAX}")
    return moment(since_epoch(when))
