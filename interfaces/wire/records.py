"""Records and previews as they go over HTTP, in both directions.

Times are ISO 8601 in UTC. The server writes thousands of records a second: a payload is passed on as the JSON text that
the log holds, without being parsed.
"""

from datetime import datetime

import msgspec

from everlog.actors.formats.reply_preview import Preview, PreviewKind
from everlog.events import Call, Record
from everlog.events.times import moment, since_epoch


class HttpRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One record: an event at its place in the log."""

    agent: str
    """Name of the agent in its log."""
    seq: int
    """Position in the agent's log, from 1."""
    commit: int
    """Commit of the partition that holds the record."""
    event_id: str
    recorded_at: datetime
    said_at: datetime | None
    """Time at which the words were said, if it is known."""
    type: str
    turn: int
    """Turn that the record belongs to; 0 before the first."""
    step: int
    """Model call inside the turn; 0 for the input."""
    cause: str | None
    """Id of the event that caused this one."""
    version: int
    """Shape of the payload, counted for each type."""
    text: str | None
    """Human words of the event."""
    payload: msgspec.Raw
    """Remaining fields of the event, as an object."""


class PreviewShape(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Some words of a reply that is still written. They are not durable: the record that follows has the final text."""

    turn: int
    step: int
    kind: PreviewKind
    """`restart`: everything previewed of this step is void."""
    text: str = ""
    call: Call | None = None


def shape_of(record: Record, agent: str | None = None) -> HttpRecord:
    """Return a record for HTTP. `agent`: name to show for the agent; None: the name in the log."""
    said = record.said_at
    return HttpRecord(
        agent=record.agent_id if agent is None else agent,
        seq=record.seq,
        commit=record.commit,
        event_id=record.event_id,
        recorded_at=moment(record.recorded_at),
        said_at=None if said is None else moment(said),
        type=record.type,
        turn=record.turn,
        step=record.step,
        cause=record.cause,
        version=record.version,
        text=record.text,
        payload=msgspec.Raw(record.payload.encode()),
    )


def record_of(shape: HttpRecord) -> Record:
    """Return the record that a server sent."""
    return Record(
        agent_id=shape.agent,
        seq=shape.seq,
        commit=shape.commit,
        event_id=shape.event_id,
        recorded_at=since_epoch(shape.recorded_at),
        said_at=None if shape.said_at is None else since_epoch(shape.said_at),
        type=shape.type,
        turn=shape.turn,
        step=shape.step,
        cause=shape.cause,
        version=shape.version,
        text=shape.text,
        payload=bytes(shape.payload).decode(),
    )


def preview_shape(preview: Preview) -> PreviewShape:
    """Return a preview for HTTP."""
    return PreviewShape(turn=preview.turn, step=preview.step, kind=preview.kind, text=preview.text, call=preview.call)


def preview_of(shape: PreviewShape) -> Preview:
    """Return the preview that a server sent."""
    return Preview(shape.turn, shape.step, shape.kind, shape.text, shape.call)
