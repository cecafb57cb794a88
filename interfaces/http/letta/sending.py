"""Send messages to agents for clients of Letta: answered at once, streamed, or in the background.

A repeat of a request never sends twice: it is recognized by the client's own id (`otid` or `Idempotency-Key`), or else
as `runs/sdk_repeats.py` says.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from everlog.actors.agent_ref import AgentRef
from everlog.actors.feed.run_lookup import RunRecords, status_of_ended
from everlog.actors.runtime import PreviewCallback, Run
from everlog.events import ApprovalDecided, Event, Record
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
    RunItem,
    begun_items,
    drained,
    ignore_preview,
    input_of_run,
    joined_items,
)
from everlog.interfaces.http.runs.run_reading import finished
from everlog.interfaces.http.runs.sdk_repeats import SdkRepeat, digest_of_input, is_same, repeat_of, repeated_input
from everlog.interfaces.http.runs.sends_in_flight import in_flight, written_by_another

NEWEST_MAX = 5000
"""Records among which a repeated request is looked for."""


StreamLookup = Callable[[], Awaitable[str]]
"""Finds the stream of the agent that a request is for."""


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
    return await answered(call, lambda: agent_stream(call), body, input_of(body), streamed=bool(body.streaming))


async def stream_message(call: HttpCall) -> Any:
    """Send messages to an agent, and stream what follows."""
    body: LettaMessageBody = call.body
    return await answered(call, lambda: agent_stream(call), body, input_of(body), streamed=True)


async def send_in_background(call: HttpCall) -> LettaRun:
    """Send messages to an agent, and return the run as soon as the messages are durable."""
    body: LettaMessageBody = call.body
    check_options(body)
    begun = await _begun(call, lambda: agent_stream(call), body, input_of(body), previews=False)
    found: RunRecords | None = None
    if begun.joined:
        found = await call.service.run_of(begun.stream, begun.input.event_id)
    else:
        call.service.tails.nudge(begun.stream)
        call.service.detach(drained(begun.items))
    found = found or RunRecords(input=begun.input, records=[begun.input], status="running", head=begun.input.seq)
    return run_shape(LettaIds(begun.stream), found, background=True)


async def answered(
    call: HttpCall, to: StreamLookup, body: LettaMessageBody, sent: SentInput, *, streamed: bool
) -> LettaResponse | EventStreamResponse:
    """Send an input, and answer with the whole run or with its stream. `to`: finds the stream of the agent."""
    check_options(body)
    if not streamed:
        check_streaming(body)
    tokens = streamed and bool(body.stream_tokens)
    begun = await _begun(call, to, body, sent, previews=tokens)
    ids = LettaIds(begun.stream)
    run = RunOfReader(
        ids=ids, run_id=ids.run(begun.input.seq), types=body.include_return_message_types or (),
        summaries=bool(body.include_compaction_messages),
    )  # fmt: skip
    if streamed:
        return run_stream(call, run, begun, tokens=tokens, pings=body.include_pings is not False)
    records = (await finished(begun.items)).records
    call.service.tails.nudge(begun.stream)
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


async def _begun(
    call: HttpCall, to: StreamLookup, body: LettaMessageBody, sent: SentInput, *, previews: bool
) -> BegunRun:
    """Send an input, or join the run that another try of the request began."""
    service, repeat = call.service, repeat_of(call.request.headers)
    key = sent.key or call.request.headers.get("idempotency-key", "")
    digest = digest_of_input(f"{call.request.scope['path']} {body.agent_id} {key}", sent.event)
    is_repeat = repeat is not None or bool(key)
    other = await written_by_another(service, digest, is_repeat=is_repeat)
    if other:
        stream = await to()
        return await _joined(call, stream, other, await _found(call, stream, sent.event))
    async with in_flight(service, digest, is_repeat=is_repeat) as written:
        stream = await to()
        said = await _found(call, stream, sent.event)
        if body.max_steps is not None:
            await _check_steps(call, stream, body.max_steps)
        event_id, before = await _id_of(call, stream, said, key, repeat)
        if before:
            written.value = event_id
            return await _joined(call, stream, event_id, said)
        handle = service.system.handle(stream, by=call.caller.key_id)
        run = _run_of(handle, said, event_id, ignore_preview if previews else None)
        items = await begun_items(run)
        written.value = event_id
    return BegunRun(stream, input_of_run(run), items, joined=False)


async def _found(call: HttpCall, stream: str, said: Event) -> Event:
    """Return an input as the log would have it: a decision with the seq of its call. Raises the refusal of a decision
    about a call that did not ask.
    """
    if not isinstance(said, ApprovalDecided):
        return said
    rows = await viewed(call, stream, lambda view: view.rows("approvals"))
    mine = [row for row in rows if row["call_id"] == said.call_id]
    row = max(mine, key=lambda row: (row["decision"] == "waiting", row["seq"]), default=None)
    if row is None:
        raise refused(f"No call {said.call_id[:80]!r} of this agent waits for an approval.")
    arguments = row["arguments"] if said.decision == "approved" else ""
    return msgspec.structs.replace(said, request=row["seq"], name=row["name"], arguments=arguments)


def _run_of(handle: AgentRef, said: Event, event_id: str, preview: PreviewCallback | None) -> Run:
    """Send an input to an agent, and return what follows."""
    if not isinstance(said, ApprovalDecided):
        return handle.send(said, event_id=event_id, preview=preview)
    if said.decision == "approved":
        return handle.approve(said.request, reason=said.text, event_id=event_id, preview=preview)
    return handle.refuse(said.request, said.text, event_id=event_id, preview=preview)


async def _joined(call: HttpCall, stream: str, event_id: str, said: Event) -> BegunRun:
    """Join a run that another request began. Raises the refusal of other words under the same id."""
    found = await call.service.run_of(stream, event_id)
    assert found is not None, "an input that is in the log begins a run"
    if not is_same(found.input, said):
        raise Refusal(422, "duplicate-id", "This id was used for another message. Nothing was sent.")
    return BegunRun(stream, found.input, joined_items(call.service, stream, event_id, found), joined=True)


async def _id_of(call: HttpCall, stream: str, said: Event, key: str, repeat: SdkRepeat | None) -> tuple[str, bool]:
    """Return the id of the input of a request, and True if an earlier try has brought it into the log."""
    service, now = call.service, call.service.ports.clock.now()
    if key:
        ids = ids_of_key(_short(key), stream, now)
        for event_id in filter(None, (ids.earlier, ids.id)):
            if await service.is_known(stream, event_id):
                return event_id, True
        return ids.id, False
    if repeat is not None:

        def looked() -> Record | None:
            reader = service.system.store.reader(stream)
            head = reader.head(stream).seq
            first = max(reader.seq_at(stream, now - repeat.span_us) + 1, head - NEWEST_MAX, 1)
            return repeated_input(reader.read(stream, first, head), said, repeat, now)

        before = await service.ports.aside(looked)
        if before is not None:
            return before.event_id, True
    return service.ports.ids.new(now), False


def _short(key: str) -> str:
    return key if len(key) <= KEY_CHARS_MAX else sha256(key.encode()).hexdigest()


async def _check_steps(call: HttpCall, stream: str, steps: int) -> None:
    most = await viewed(call, stream, lambda view: view.context().config.steps_max)
    if steps < most:
        raise refused(
            f"`max_steps` is {steps}, and the agent may call its model {most} times for a message: one message cannot "
            "have a smaller limit. Change the agent's `steps_max` by PATCH /api/v1/agents/{name}."
        )
