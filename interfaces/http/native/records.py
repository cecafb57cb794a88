"""Read the records of an agent, and stream them as they are written."""

from collections.abc import AsyncIterator, Sequence

from starlette.responses import Response

from everlog.actors.ports.moments import seq_of
from everlog.events import Record
from everlog.interfaces.http.core.event_streams import EventStreamResponse, event, last_event_id
from everlog.interfaces.http.core.moments import moment_of
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import HttpCall, not_found
from everlog.interfaces.wire.memory import RecordPage, RecordQuery, StreamQuery
from everlog.interfaces.wire.records import HttpRecord

LIMIT_MAX = 1000


async def list_records(call: HttpCall) -> RecordPage:
    """Return records of an agent in order, page by page."""
    query: RecordQuery = call.query
    if not 1 <= query.limit <= LIMIT_MAX or query.after < 0:
        raise Refusal(400, "bad-input", f"`limit` is from 1 to {LIMIT_MAX}, and `after` a seq.")
    stream, moment = call.stream, moment_of(query.as_of)

    def read() -> tuple[int, Sequence[Record]]:
        reader, head = call.opened(stream)
        as_of = head if moment is None else seq_of(reader, stream, moment)
        last = min(as_of, query.after + query.limit)
        return as_of, list(reader.read(stream, query.after + 1, last)) if last > query.after else []

    as_of, records = await call.service.ports.aside(read)
    read_to = records[-1].seq if records else query.after
    wanted = [record for record in records if not query.type or record.type in query.type]
    return RecordPage(
        agent=call.shown(stream), as_of=as_of, records=[call.names.record(record) for record in wanted],
        next=read_to if records and read_to < as_of else None,
    )  # fmt: skip


async def show_record(call: HttpCall) -> HttpRecord:
    """Return one record."""
    given = call.params["seq"]
    seq = moment_of(given) if given.isdecimal() else 0
    stream = call.stream

    def read() -> Record | None:
        reader, head = call.opened(stream)
        within = isinstance(seq, int) and 1 <= seq <= head
        return next(iter(reader.read(stream, seq, seq)), None) if within and isinstance(seq, int) else None

    found = await call.service.ports.aside(read)
    if found is None:
        raise not_found(f"record {given[:20]!r} of the agent {call.params['agent']!r}")
    return call.names.record(found)


async def stream_records(call: HttpCall) -> Response:
    """Stream all records of an agent: those after a seq, then new ones as they are written, for ever.

    The id of each event is the seq of its record: a reader that comes back with `Last-Event-ID`, after any time and to
    any server, gets what it missed, each record once.
    """
    stream = call.stream
    head = await call.service.tails.head(stream)
    if not head:
        _, head = await call.service.ports.aside(call.opened, stream)
    position = last_event_id(call.request.headers, call.query.after)
    after = moment_of(position) if position else head
    if not isinstance(after, int) or after > head:
        raise Refusal(400, "bad-input", f"The stream goes on after a seq from 0 to {head}, not {position[:80]!r}.")
    query: StreamQuery = call.query
    return EventStreamResponse(call.service, call.caller, _events(call, stream, after, query.type))


async def _events(call: HttpCall, stream: str, after: int, types: Sequence[str]) -> AsyncIterator[bytes]:
    async for records in call.service.tails.follow(stream, after):
        wanted = [record for record in records if not types or record.type in types]
        call.service.metrics.counters["everlog_stream_records"] += len(wanted)
        if wanted:
            yield b"".join(event("record", call.names.record(record), record.seq) for record in wanted)
