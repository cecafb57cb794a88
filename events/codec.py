"""Convert typed events into what the log stores (kind, version, text, JSON payload) and back. Nothing else does.

Used by agents and hosts to write events, and by all code that reads their fields. No kind is ever removed from
`CATALOGUE`: logs contain it.
"""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import compress, repeat, starmap
from operator import call
from typing import Any

import msgspec

from everlog.events import derived, functions, inputs, lifecycle, memory, model, upcast
from everlog.events.base import Draft, Event, Record, UnknownEvent
from everlog.events.errors import BadInput

AnyEvent = Event | UnknownEvent

CATALOGUE: dict[str, type[Event]] = {
    cls.kind: cls
    for cls in (
        lifecycle.AgentCreated,
        lifecycle.AgentConfigured,
        lifecycle.AgentForked,
        lifecycle.AgentMoved,
        lifecycle.AgentDeleted,
        lifecycle.RecordsErased,
        inputs.UserMessage,
        inputs.UserLogin,
        inputs.Heartbeat,
        inputs.SystemAlert,
        inputs.TimerSet,
        inputs.TimerCancelled,
        functions.ApprovalRequested,
        inputs.ApprovalDecided,
        inputs.TurnCancelled,
        inputs.TurnAbandoned,
        inputs.BudgetExceeded,
        model.ModelReply,
        model.ModelSwitched,
        model.ModelFailed,
        model.ReplyRejected,
        functions.FunctionStarted,
        functions.FunctionResult,
        functions.RulesApplied,
        functions.MessageSent,
        memory.MemoryEdited,
        memory.ArchivalInserted,
        memory.ArchivalUpdated,
        memory.BlockRemoved,
        memory.ArchivalDeleted,
        memory.SourceAttached,
        memory.SourceDetached,
        memory.DocumentLoaded,
        memory.DocumentRemoved,
        memory.Summary,
        memory.SummaryExpanded,
        memory.ContextTrimmed,
        memory.TurnsHidden,
        memory.ReplyRethought,
        memory.HeartbeatsPaused,
        derived.MemoriesDerived,
        derived.DerivationReplied,
        derived.GenerationChosen,
        derived.ImportanceRated,
        derived.InsightNoted,
        derived.FactNoted,
        derived.FactEnded,
        derived.EntityNamed,
        derived.PlanMade,
        derived.PlanChanged,
        derived.MemoriesWithdrawn,
        functions.AgentMessageSent,
        functions.AgentMessageReceived,
        functions.AgentReplyReceived,
        functions.AgentMessageSettled,
    )
}
"""All kinds of events by the type in the log. None is ever removed."""

ERASED_PREFIX = '{"erased":true'
"""Beginning of the payload of a tombstone; `digest` follows, in hexadecimal."""

_encoder = msgspec.json.Encoder()
_decoders: dict[str, msgspec.json.Decoder[Any]] = {kind: msgspec.json.Decoder(cls) for kind, cls in CATALOGUE.items()}
_decode_today: dict[tuple[str, int], Callable[[str], Any]] = {
    (kind, cls.version): _decoders[kind].decode for kind, cls in CATALOGUE.items()
}
"""Decoders by kind and version, for the current shapes."""


def draft(
    event: AnyEvent,
    *,
    event_id: str,
    recorded_at: int,
    turn: int,
    step: int,
    cause: str | None = None,
    said_at: int | None = None,
) -> Draft:
    """Put `event` into an envelope, ready for the log to give it a place.

    Raise BadInput for an event that could not be read again: the log keeps for ever what it is given.
    """
    if isinstance(event, UnknownEvent):
        text, payload = event.text, event.payload
    else:
        text, payload = event.text or None, _payload(event)
    return Draft(
        event_id=event_id,
        recorded_at=recorded_at,
        said_at=said_at,
        type=event.kind,
        turn=turn,
        step=step,
        cause=cause,
        version=event.version,
        text=text,
        payload=payload,
    )


def _payload(event: Event) -> str:
    """Encode the fields of an event without its text.
    Raise BadInput if a field's value does not have the field's type.
    """
    try:
        bare = msgspec.structs.replace(event, text="") if event.text else event
        payload = _encoder.encode(bare)
        # msgspec checks types when decoding only, so the payload is decoded once before the log keeps it for ever.
        _decoders[event.kind].decode(payload)
        if not event.text.isascii():
            event.text.encode()
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, AttributeError, KeyError) as error:
        what = "holds half of a character" if isinstance(error, UnicodeEncodeError) else "is not what its type promises"
        raise BadInput(f"A {type(event).__name__} {what}: {error}. Nothing of it was kept.") from error
    return payload.decode()


def decode(kind: str, version: int, text: str | None, payload: str, recorded_at: int = 0) -> AnyEvent:
    """Return the typed event of a stored one. An older shape is upcast;
    an unknown kind or newer version gives UnknownEvent.

    Raise msgspec.ValidationError if the payload of a known shape does not fit: the log never wrote such a payload.
    """
    decoder = _decode_today.get((kind, version))
    if decoder is None or payload.startswith(ERASED_PREFIX):
        return _decode_odd(kind, version, text, payload, recorded_at)
    event: Event = decoder(payload)
    if text:
        # The struct is frozen, but no other code has a reference to this new event yet.
        msgspec.structs.force_setattr(event, "text", text)
    return event


def _decode_odd(kind: str, version: int, text: str | None, payload: str, recorded_at: int) -> AnyEvent:
    """Decode an event that is old, unknown or erased."""
    cls = CATALOGUE.get(kind)
    if cls is None or version > cls.version or is_erased(payload):
        return UnknownEvent(kind=kind, version=version, text=text, payload=payload)
    old = msgspec.json.decode(payload)
    event = msgspec.convert(upcast.upcast(kind, version, cls.version, old, recorded_at), cls)
    if text:
        msgspec.structs.force_setattr(event, "text", text)
    return event


def decode_many(
    kinds: Sequence[str],
    versions: Sequence[int],
    texts: Sequence[str | None],
    payloads: Sequence[str],
    recorded_at: Callable[[int], int],
) -> list[AnyEvent]:
    """Return what `decode` returns for each of many events, but faster.
    `recorded_at` is called by position, for few events.

    The loops run in the interpreter's C code. Only old, unknown or erased events are handled one by one.
    """
    decoders = [*map(_decode_today.get, zip(kinds, versions, strict=True), repeat(_later))]
    odd = {position for position, decoder in enumerate(decoders) if decoder is _later} if _later in decoders else set()
    erased = [*map(str.startswith, payloads, repeat(ERASED_PREFIX))]
    if True in erased:
        odd.update(compress(range(len(erased)), erased))
    for position in odd:
        decoders[position] = _later
    events: list[AnyEvent] = [*map(call, decoders, payloads)]
    for position in odd:
        place = (kinds[position], versions[position], texts[position], payloads[position])
        events[position] = decode(*place, recorded_at(position))
    with_text = zip(compress(events, texts), repeat("text"), filter(None, texts))
    deque(starmap(msgspec.structs.force_setattr, with_text), maxlen=0)
    return events


def _later(payload: str) -> Any:
    """Do nothing: this stands in for the decoder of an event that `decode` handles by itself."""


def event_of(record: Record | Draft) -> AnyEvent:
    """Return the typed event inside `record`."""
    return decode(record.type, record.version, record.text, record.payload, record.recorded_at)


def upcast_record(record: Record) -> Record:
    """Return `record` with its payload in the current shape:
    the same object if it has that shape, or is unknown or erased.
    """
    cls = CATALOGUE.get(record.type)
    if cls is None or record.version >= cls.version or is_erased(record.payload):
        return record
    shape = upcast.upcast(
        record.type, record.version, cls.version, msgspec.json.decode(record.payload), record.recorded_at
    )
    return msgspec.structs.replace(record, version=cls.version, payload=_encoder.encode(shape).decode())


def is_erased(payload: str) -> bool:
    """Return True if `payload` is that of a tombstone:
    the content is gone, the place in the stream and the digest remain.
    """
    return payload.startswith(ERASED_PREFIX)


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of every event, for the committed copy in `events/schema.json`."""
    from inspect import cleandoc

    shapes, components = msgspec.json.schema_components(CATALOGUE.values(), ref_template="#/$defs/{name}")
    kinds = {
        kind: {"version": cls.version, **shape} for (kind, cls), shape in zip(CATALOGUE.items(), shapes, strict=True)
    }
    for shape in components.values():
        if "description" in shape:  # msgspec 0.23 cleans docstrings, earlier versions do not
            shape["description"] = cleandoc(shape["description"])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "kinds": kinds, "$defs": components}
