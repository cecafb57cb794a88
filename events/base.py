"""Root class of all events, and the envelope that turns an event into a record.

An event is an immutable fact in the past tense. The event says what happened; the envelope says to which agent, when,
in which turn and why. Human words of an event, if there are any, are always in its field `text`, so that search and
analytics read one column. Times are integers: microseconds since 1970-01-01 UTC.

Used by all events, the store and the agents. Every field of the envelope is part of a record's digest (see `digest`).
"""

from datetime import datetime
from typing import ClassVar

import msgspec

from everlog.events.times import moment


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Fact that has happened. An event is never edited and never deleted.

    `kind` is the type in the log, written by hand and kept for ever. `version` counts the shapes that the kind has had:
    a shape that has been released is never edited; a new one comes with an upcaster in `upcast.py`. A new field must
    have a default, and a default never changes, because fields at their default are not written.
    """

    kind: ClassVar[str]
    version: ClassVar[int] = 1

    text: str = ""
    """The human words of the event; empty if it has none. Stored in the envelope, not in the payload."""
    by: str = ""
    """Id of the key with which the event was asked for over HTTP; empty if it was not, and on all that follows from
    the event.
    """


class UnknownEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Event of a kind or version that this everlog does not know. It is passed on unchanged, and shown as unknown."""

    kind: str
    version: int
    text: str | None
    payload: str


class Draft(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Record before the log gives it a place: everything but agent, seq and commit."""

    event_id: str
    """UUIDv7 in its 36-character form. The log keeps an id once, even if the same id is appended twice."""
    recorded_at: int
    """Time of writing, microseconds UTC."""
    said_at: int | None = None
    """Time at which the words were said, microseconds UTC, if it is known (for imported messages)."""
    type: str
    turn: int
    """Turn that the record belongs to, from 1; 0 before the first turn."""
    step: int
    """Number of the model call inside the turn, from 1; 0 for the input that opened the turn."""
    cause: str | None = None
    """Id of the event that caused this one."""
    version: int
    text: str | None
    payload: str
    """JSON object of the event's remaining fields."""


class Record(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Event at its place in the log: the envelope's columns, in the order of the log's Arrow schema."""

    agent_id: str
    seq: int
    """Position in the agent's stream, from 1, gap-free."""
    commit: int
    """Number of the partition's commit that holds the record, from 1."""
    event_id: str
    recorded_at: int
    said_at: int | None
    type: str
    turn: int
    step: int
    cause: str | None
    version: int
    text: str | None
    payload: str

    @property
    def time(self) -> datetime:
        """Time of the event, UTC: when it was said, for an imported message; else when it was recorded."""
        return moment(self.recorded_at if self.said_at is None else self.said_at)


def place(draft: Draft, agent_id: str, seq: int, commit: int) -> Record:
    """Return `draft` as a record at a place in the log. There is no other way from a draft to a record."""
    return Record(
        agent_id=agent_id,
        seq=seq,
        commit=commit,
        event_id=draft.event_id,
        recorded_at=draft.recorded_at,
        said_at=draft.said_at,
        type=draft.type,
        turn=draft.turn,
        step=draft.step,
        cause=draft.cause,
        version=draft.version,
        text=draft.text,
        payload=draft.payload,
    )
