"""Stream the records of all agents as they are committed, from any position."""

from collections.abc import AsyncIterator

from starlette.responses import Response

from everlog.actors.feed.feed_position import FeedPosition
from everlog.actors.feed.store_feed import BYTES_MAX, NOW, RECORDS_MAX, FeedFilter, FeedReader
from everlog.events import EverlogError, Record
from everlog.interfaces.http.core.event_streams import EventStreamResponse, event, last_event_id
from everlog.interfaces.http.core.routes import HttpCall
from everlog.interfaces.http.core.service import HttpService
from everlog.interfaces.http.core.tenant_problems import problem_for
from everlog.interfaces.http.core.tenants import TenantNames
from everlog.interfaces.wire.feed import FeedQuery, FeedRecords, FeedRequest

SCANNED_MAX = 5000
"""Records that are passed over before a reader is told the position."""


async def stream_feed(call: HttpCall) -> Response:
    """Stream the records of all agents, from a position on and then as they are committed, for ever.

    An event has whole commits, and its id is the position after them: a reader that comes back with `Last-Event-ID`,
    after any time and to any server, gets what it missed, each record once. A `problem` tells of a log that cannot be
    read now; it is read on when it is mended.
    """
    query: FeedQuery = call.query
    after = last_event_id(call.request.headers, query.after) or NOW
    return _streamed(call, after, FeedFilter(agents=query.agent, types=query.type))


async def open_feed(call: HttpCall) -> Response:
    """Stream the records of all agents from a position that is too long for an address or a header."""
    body: FeedRequest = call.body
    return _streamed(call, body.after, FeedFilter(agents=body.agents, types=body.types))


def _streamed(call: HttpCall, after: str, wanted: FeedFilter) -> Response:
    position = call.service.feed.parse(after)
    return EventStreamResponse(call.service, call.caller, _events(call.service, call.names, position, wanted))


async def _events(
    service: HttpService, names: TenantNames, position: FeedPosition | None, wanted: FeedFilter
) -> AsyncIterator[bytes]:
    try:
        async with service.feed.reader(position, wanted, names.stream_name) as reader:
            yield event("position", {}, reader.position.token())
            async for sent in _portions(service, names, reader):
                yield sent
    except EverlogError as error:
        yield event("problem", problem_for(error, names))


async def _portions(service: HttpService, names: TenantNames, reader: FeedReader) -> AsyncIterator[bytes]:
    records: list[Record] = []
    size = scanned = 0
    while True:
        portion = await reader.take()
        if portion is not None and portion.error is not None:
            yield event("problem", problem_for(portion.error, names))
            continue
        if portion is not None:
            records += portion.records
            size += sum(len(record.payload) + len(record.text or "") for record in portion.records)
            scanned += portion.scanned
        is_full = len(records) >= RECORDS_MAX or size >= BYTES_MAX or scanned >= SCANNED_MAX
        if (records or scanned) and (portion is None or is_full):
            token = reader.position.token()
            if records:
                service.metrics.counters["everlog_stream_records"] += len(records)
                yield event("records", feed_records(names, records), token)
            else:
                yield event("position", {}, token)
            records, size, scanned = [], 0, 0
        if portion is None:
            await reader.wait()


def feed_records(names: TenantNames, records: list[Record]) -> FeedRecords:
    """Return records for a reader, under the names that it has for their agents."""
    return FeedRecords(records=[names.record(record) for record in records])
