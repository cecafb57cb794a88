"""Send messages to agents for clients of Letta: answered at once, streamed, or in the background.

A repeat of a request never sends twice: it is recognized by the client's own id (`otid` or `Idempotency-Key`), or else
as `runs/sdk_repeats.py` says.
"""

from collections.abc import AsyncIterator
from hashlib import sha256
from typing import Any, NamedTuple

from everlog.actors.feed.run_lookup import RunRecords, status_of_ended
from everlog.actors.formats.reply_preview import Preview
from everlog.events import Record
from everlog.events.times import moment
from everlog.interfaces.http.core.event_streams import EventStreamResponse
from everlog.interfaces.http.core.idempotency import KEY_CHARS_MAX, ids_of_key
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import HttpCall
from everlog.interfaces.http.letta.letta_calls import agent_stream, refused, viewed
from everlog.interfaces.http.letta.translation.letta_ids import LettaIds
from everlog.interfaces.http.letta.translation.message_input import (
    LettaMessageBody,
    SentInput,
    check_options,
    check_streaming,
    input_of,
)
from everlog.interfaces.http.letta.translation.run_shapes import LettaRun, run_shape
from everlog.interfaces.http.letta.translation.run_streams import (
    LettaResponse,
    LettaRunStream,
    RunOfReader,
    letta_style,
    ping,
    response_of,
    stop_reason_of,
)
from everlog.interfaces.http.letta.translation.stream_cursor import START, StreamCursor
from everlog.interfaces.http.runs.run_items import (
    RunEnded,
    RunItem,
    RunLeft,
    ignore_preview,
    items_of,
    joined_items,
)
from everlog.interfaces.http.runs.sdk_repeats import digest_of_input, is_same, repeat_of, repeated_input

NEWEST_MAX = 5000
"""Records among which a repeated request is looked for."""


class BegunRun(NamedTuple):
    """A run whose input is in the log."""

    stream: str
    input: Record
    items: AsyncIterator[RunItem]
    """Items from the beginning of the run."""
    joined: bool
    """True: an earlier request began it."""


async def send_message(call: HttpCall) -> Any:
    """Send messages to an agent, and return what follows from them, or stream it."""
    body: LettaMessageBody = call.body
    return await answered(call, await agent_stream(call), body, input_of(body), streamed=bool(body.streaming))


async def stream_message(call: HttpCall) -> Any:
    """Send messages to an agent, and stream what follows."""
    body: LettaMessageBody = call.body
    return await answered(call, await agent_stream(call), body, input_of(body), streamed=True)


async def send_in_background(call: HttpCall) -> LettaRun:
    """Send messages to an agent, and return the run as soon as the messages are durable."""
    body: LettaMessageBody = call.body
    check_options(body)
    begun = await _begun(call, await agent_stream(call), body, input_of(body), previews=False)
    if not begun.joined:
        call.service.tails.nudge(begun.stream)
        call.service.detach(_drained(begun.items))
    found = RunRecords(input=begun.input, records=[begun.input], status="running", head=begun.input.seq)
    return run_shape(LettaIds(begun.stream), found, background=True)


async def answered(
    call: HttpCall, stream: str, body: LettaMessageBody, sent: SentInput, *, streamed: bool
) -> LettaResponse | EventStreamResponse:
    """Send an input, and answer with the whole run or with its stream."""
    check_options(body)
    if not streamed:
        check_streaming(body)
    tokens = streamed and bool(body.stream_tokens)
    begun = await _begun(call, stream, body, sent, previews=tokens)
    ids = LettaIds(stream)
    run = RunOfReader(
        ids=ids, run_id=ids.run(begun.input.seq), types=body.include_return_message_types or (),
        summaries=bool(body.include_compaction_messages),
    )  # fmt: skip
    if streamed:
        return run_stream(call, run, begun, tokens=tokens, pings=body.include_pings is not False)
    records = [record async for record in _records(begun.items)]
    call.service.tails.nudge(stream)
    return response_of(run, records, stop_reason_of(status_of_ended(records), records))


def run_stream(
    call: HttpCall, run: RunOfReader, begun: BegunRun, cursor: StreamCursor = START, *, tokens: bool, pings: bool
) -> EventStreamResponse:
    """Return the stream of a run for a reader. `pings`: it begins with one, which says the id of the run."""
    encoder = LettaRunStream(run, cursor, tokens=tokens, joined=begun.joined)
    at = moment(call.service.ports.clock.now())

    async def events() -> AsyncIterator[bytes]:
        if pings:
            yield ping(run.run_id, at)
        async for part in encoder.events(begun.items):
            yield part

    return EventStreamResponse(
        call.service, call.caller, events(), {"X-Run-Id": run.run_id}, letta_style(run.run_id, at, pings=pings)
    )


async def _begun(call: HttpCall, stream: str, body: LettaMessageBody, sent: SentInput, *, previews: bool) -> BegunRun:
    """Send an input, or join the run that an earlier try of the request began."""
    if body.max_steps is not None:
        await _check_steps(call, stream, body.max_steps)
    service, said = call.service, sent.event
    digest = digest_of_input(stream, said)
    found, event_id = await _sent_before(call, stream, sent, digest)
    if found is not None:
        if not is_same(found.input, said):
            raise Refusal(422, "duplicate-id", "This id was used for another message. Nothing was sent.")
        return BegunRun(stream, found.input, joined_items(service, stream, event_id, found), joined=True)
    handle = service.system.handle(stream, by=call.caller.key_id)
    joined = service.sending.get(digest) == event_id
    if not joined:
        service.sending.setdefault(digest, event_id)
    try:
        run = handle.send(said, event_id=event_id, preview=ignore_preview if previews else None)
        items = run.items()
        first = await anext(items, None)  # an error of the beginning has a status of its own
    finally:
        if not joined and service.sending.get(digest) == event_id:
            del service.sending[digest]
    record = next((record for record in run.records if record.event_id == event_id), None)
    assert record is not None, "the first records of a run have its input"
    return BegunRun(stream, record, items_of(run, items, first), joined=joined)


async def _sent_before(call: HttpCall, stream: str, sent: SentInput, digest: str) -> tuple[RunRecords | None, str]:
    """Return the run that an earlier try of a request began, if there is one, and the id of the input."""
    service, now = call.service, call.service.ports.clock.now()
    key = sent.key or call.request.headers.get("idempotency-key", "")
    repeat = repeat_of(call.request.headers)
    if key:
        ids = ids_of_key(_short(key), stream, now)
        for event_id in filter(None, (ids.earlier, ids.id)):
            found = await service.run_of(stream, event_id)
            if found is not None:
                return found, event_id
        return None, ids.id
    if repeat is not None:
        if digest in service.sending:
            return None, service.sending[digest]

        def looked() -> Record | None:
            reader = service.system.store.reader(stream)
            head = reader.head(stream).seq
            first = max(reader.seq_at(stream, now - repeat.span_us) + 1, head - NEWEST_MAX, 1)
            return repeated_input(reader.read(stream, first, head), sent.event, repeat, now)

        before = await service.ports.aside(looked)
        if before is not None:
            return await service.run_of(stream, before.event_id), before.event_id
    return None, service.ports.ids.new(now)


def _short(key: str) -> str:
    return key if len(key) <= KEY_CHARS_MAX else sha256(key.encode()).hexdigest()


async def _check_steps(call: HttpCall, stream: str, steps: int) -> None:
    most = await viewed(call, stream, lambda view: view.context().config.steps_max)
    if steps < most:
        raise refused(
            f"`max_steps` is {steps}, and the agent may call its model {most} times for a message: one message cannot "
            "have a smaller limit. Change the agent's `steps_max` by PATCH /api/v1/agents/{name}."
        )


async def _records(items: AsyncIterator[RunItem]) -> AsyncIterator[Record]:
    """Yield the records of a run until it has ended. Raises its failure."""
    said = "The run failed."
    async for item in items:
        if isinstance(item, RunLeft):
            raise item.error
        if isinstance(item, RunEnded):
            if item.status == "failed":
                raise item.error or Refusal(502, "model-error", said)
        elif not isinstance(item, Preview):
            for record in item:
                said = record.text or said
                yield record


async def _drained(items: AsyncIterator[RunItem]) -> None:
    """Receive the rest of a run whose caller does not wait. A failure is in the log."""
    async for _ in items:
        pass
