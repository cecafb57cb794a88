"""Send messages to agents, and read, stream, cancel and repeat the runs that follow.

A run is in the log from its first moment: a connection only reads it. Closing a connection cancels nothing.
"""

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import msgspec
from starlette.responses import Response

from everlog.actors.feed.run_lookup import RunRecords
from everlog.actors.formats.reply_preview import Preview
from everlog.actors.reply import Reply
from everlog.actors.runtime import PreviewCallback, Run
from everlog.events import (
    BadInput,
    Event,
    EverlogError,
    Heartbeat,
    Record,
    SystemAlert,
    UserLogin,
    UserMessage,
)
from everlog.interfaces.http.core.event_streams import EventStreamResponse, event, last_event_id
from everlog.interfaces.http.core.moments import moment_of
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import EVENT_STREAM, HttpCall, JsonResponse, check_run_id, not_found
from everlog.interfaces.http.core.tenant_problems import problem_for
from everlog.interfaces.http.runs.run_items import (
    RunEnded,
    RunItem,
    RunLeft,
    begun_items,
    drained,
    ignore_preview,
    joined_items,
)
from everlog.interfaces.wire.approvals import DecisionBody
from everlog.interfaces.wire.records import preview_shape
from everlog.interfaces.wire.runs import (
    CallShape,
    Changed,
    RewriteThoughtBody,
    RunEnd,
    RunOptionsBody,
    RunRecordsShape,
    RunShape,
    SendInputBody,
    SendMessageBody,
    TokenShape,
    TurnNumbers,
    UndoBody,
)


class RunPosition(msgspec.Struct, frozen=True):
    """Parameters of a stream."""

    after: str | None = None
    """Seq after which the stream begins; the header Last-Event-ID counts before it."""


async def send_message(call: HttpCall) -> Any:
    """Send a message. The answer is the run, a stream of events, or with `wait: false` an address to look at.

    The id of the run is the Idempotency-Key if that is a UUIDv7. A repeat of a request with the same key answers what
    the first one did, and never sends twice; the same key with another message is refused with 422.
    """
    body: SendMessageBody = call.body
    return await _answer(call, UserMessage(text=body.text, name=body.speaker, conversation=body.conversation), body)


async def send_input(call: HttpCall) -> Any:
    """Run the agent once, without a message of a user: a heartbeat, a login, or an alert."""
    body: SendInputBody = call.body
    said: Event
    if body.type == "heartbeat":
        said = Heartbeat(text=body.text, reason="manual")
    elif body.type == "user_login":
        said = UserLogin(text=body.text, last_login=body.last_login)
    else:
        said = SystemAlert(text=body.text, source=body.source)
    return await _answer(call, said, body)


async def retry_run(call: HttpCall) -> Any:
    """Exclude the newest message of a user and all that followed from the context, and send the message again."""
    handle = await call.agent()
    return await answer_run(call, handle.retry(preview=ignore_preview), call.body)


async def resume_runs(call: HttpCall) -> Any:
    """Finish the turns that are not finished, and return the last one."""
    handle = await call.agent()
    return await answer_run(call, handle.resume(preview=ignore_preview), call.body)


async def _answer(call: HttpCall, said: Event, options: SendMessageBody | SendInputBody) -> Any:
    handle = await call.agent()
    run = handle.send(said, preview=preview_of(call, options))
    return await answer_run(call, run, options)


def _streams(call: HttpCall, options: Any) -> bool:
    return bool(options.stream) or EVENT_STREAM in call.request.headers.get("accept", "")


def preview_of(call: HttpCall, options: Any) -> PreviewCallback | None:
    """Return the callback for previews of a run; None if its answer is no stream. The stream itself has them."""
    return ignore_preview if _streams(call, options) else None


async def answer_run(
    call: HttpCall, run: Run, options: SendMessageBody | SendInputBody | RunOptionsBody | DecisionBody
) -> Any:
    """Answer with a run: as a stream, whole when it has ended, or as accepted."""
    if _streams(call, options):
        events = _events(call, run.event_id, await begun_items(run))
        return EventStreamResponse(call.service, call.caller, events, {"Location": _address(call, run.event_id)})
    if not options.wait:
        items = await begun_items(run)
        call.service.tails.nudge(run.agent_id)
        call.service.detach(drained(items))
        accepted = RunShape(
            run=run.event_id, agent=call.shown(run.agent_id), status="running", turn=_turn(run), text="", calls=(),
            tokens=TokenShape(input=0, output=0, cached=0), cost=None, stopped="",
            first_seq=run.records[0].seq if run.records else 0, last_seq=run.records[-1].seq if run.records else 0,
        )  # fmt: skip
        return JsonResponse(accepted, 202, {"Location": _address(call, run.event_id)})
    try:
        await run
    except EverlogError as error:
        vars(error)["run"] = run.event_id  # the answer's details: the message may be in the log all the same
        raise
    call.service.tails.nudge(run.agent_id)
    return _shape(call, await run.reply(), "done")


def _turn(run: Run) -> int:
    return run.records[0].turn if run.records else 0


async def _events(call: HttpCall, run_id: str, items: AsyncIterator[RunItem]) -> AsyncIterator[bytes]:
    """Yield the events of a run, in the native format."""
    async for item in items:
        if isinstance(item, Preview):
            yield event("preview", preview_shape(item))
        elif isinstance(item, RunLeft):
            yield event("close", problem_for(item.error, call.names))
        elif isinstance(item, RunEnded):
            failure = event("error", problem_for(item.error, call.names)) if item.error else b""
            yield failure + event("end", RunEnd(run=run_id, status=item.status, last_seq=item.last_seq))
        else:
            yield b"".join(_record_event(call, record) for record in item)
            call.service.metrics.counters["everlog_stream_records"] += len(item)


def _record_event(call: HttpCall, record: Record) -> bytes:
    return event("record", call.names.record(record), record.seq)


def _address(call: HttpCall, run: str) -> str:
    base = call.request.url.path.partition("/agents/")[0]
    return f"{base}/agents/{quote(call.params['agent'], safe='')}/runs/{run}"


async def show_run(call: HttpCall) -> RunShape:
    """Return a run: its status, and the answer so far."""
    found = await _found(call)
    prices = await call.service.system.prices()
    reply = Reply(found.input.agent_id, call.params["run"], found.records, found.input, prices)
    return _shape(call, reply, found.status)


async def run_records(call: HttpCall) -> RunRecordsShape:
    """Return the records of a run."""
    found = await _found(call)
    records = [call.names.record(record) for record in found.records]
    return RunRecordsShape(run=call.params["run"], status=found.status, records=records)


async def stream_run(call: HttpCall) -> Response:
    """Stream a run: its records so far, then those to come, and previews of replies that are streamed.

    The id of each event is the seq of its record. A reader that comes back with `Last-Event-ID`, or with `after`, gets
    what follows, each record once, from any server. If the host of the run has died, the run continues.
    """
    found, run = await _found(call), call.params["run"]
    items = joined_items(call.service, call.stream, run, found, _after(call))
    return EventStreamResponse(call.service, call.caller, _events(call, run, items))


def _after(call: HttpCall) -> int:
    position = last_event_id(call.request.headers, call.query.after)
    seq = moment_of(position or "0")
    if not isinstance(seq, int):
        raise Refusal(400, "bad-input", f"A stream of records goes on after a seq, not after {position[:80]!r}.")
    return seq


async def _found(call: HttpCall) -> RunRecords:
    check_run_id(call.params["run"])
    found = await call.service.run_of(call.stream, call.params["run"])
    if found is None:
        raise not_found(f"run {call.params['run']!r} of the agent {call.params['agent']!r}")
    return found


async def cancel_runs(call: HttpCall) -> TurnNumbers:
    """Cancel the run that is at work, or all that are not finished. What they have committed stays."""
    handle = await call.agent()
    return TurnNumbers(turns=await handle.cancel(all_turns=call.body.all))


async def cancel_run(call: HttpCall) -> TurnNumbers:
    """Cancel a run that is at work, or waits. A run that has ended stays as it is."""
    found = await _found(call)
    if found.status != "running":
        return TurnNumbers(turns=[])
    return TurnNumbers(turns=await (await call.agent()).cancel(turn=found.input.turn))


async def undo_turns(call: HttpCall) -> TurnNumbers:
    """Exclude the newest turns from the context. Nothing is deleted."""
    body: UndoBody = call.body
    return TurnNumbers(turns=await (await call.agent()).undo_turns(body.turns))


async def rewrite_thought(call: HttpCall) -> Changed:
    """Replace the agent's newest thought in the context."""
    body: RewriteThoughtBody = call.body
    await (await call.agent()).edit_last_thought(body.text)
    return Changed(changed=True)


async def summarize(call: HttpCall) -> Changed:
    """Summarize the oldest part of the context now."""
    return Changed(changed=await (await call.agent()).summarize())


async def undo_summary(call: HttpCall) -> Changed:
    """Undo the newest summary."""
    return Changed(changed=await (await call.agent()).undo_summary())


def _shape(call: HttpCall, reply: Reply, status: Any) -> RunShape:
    tokens = reply.tokens
    stopped = reply.stopped
    return RunShape(
        run=reply.event_id,
        agent=call.shown(reply.agent_id),
        status="cancelled" if stopped and status == "done" else status,
        turn=reply.turn,
        text=reply.text,
        calls=[CallShape(name=m.name, arguments=m.arguments, result=m.result, ok=m.ok) for m in reply.calls],
        tokens=TokenShape(input=tokens.input, output=tokens.output, cached=tokens.cached),
        cost=_cost(reply),
        stopped=stopped,
        first_seq=reply.records[0].seq if reply.records else 0,
        last_seq=reply.records[-1].seq if reply.records else 0,
    )


def _cost(reply: Reply) -> float | None:
    try:
        return reply.cost
    except BadInput:  # the file of prices cannot be read, which changes nothing about the answer
        return None
