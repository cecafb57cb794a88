"""Runs and steps for clients of Letta: list and read them, and stream a run again from any position."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from everlog.actors.feed.run_lookup import RunRecords
from everlog.events import Record
from everlog.events.times import moment
from everlog.interfaces.http.core.event_streams import EventStreamResponse
from everlog.interfaces.http.core.fleet_queries import over_fleet
from everlog.interfaces.http.core.routes import HttpCall, not_found
from everlog.interfaces.http.letta.letta_calls import (
    LettaPageQuery,
    agent_stream,
    ordered,
    page_of,
    placed_in,
    refused,
)
from everlog.interfaces.http.letta.message_pages import input_of_turn, seq_of_place
from everlog.interfaces.http.letta.sending import BegunRun, run_stream
from everlog.interfaces.http.letta.translation.letta_ids import LettaIds
from everlog.interfaces.http.letta.translation.letta_messages import LettaMessage, messages_of
from everlog.interfaces.http.letta.translation.run_shapes import (
    LettaRun,
    LettaStep,
    run_shape,
    run_status,
    step_of,
    steps_of,
)
from everlog.interfaces.http.letta.translation.run_streams import LettaUsage, RunOfReader, usage_of
from everlog.interfaces.http.letta.translation.stream_cursor import START, cursor_of
from everlog.interfaces.http.runs.run_items import joined_items

_RUNS = """
SELECT t.agent_id, t.opened_seq, epoch_us(t.started_at) AS started, epoch_us(t.ended_at) AS ended, t.status,
    coalesce(TRY(r.payload->>'$.conversation'), '') AS conversation
FROM turns t JOIN agents a ON a.agent_id = t.agent_id AND a.life = t.life AND a.current AND NOT a.deleted
JOIN records r ON r.agent_id = t.agent_id AND r.seq = t.opened_seq"""


class LettaRunQuery(LettaPageQuery, frozen=True, kw_only=True):
    """Selection of runs."""

    agent_id: str | None = None
    agent_ids: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    active: bool = False
    conversation_id: str | None = None
    background: bool | None = None
    stop_reason: str | None = None


class LettaResumeBody(msgspec.Struct, frozen=True, kw_only=True):
    """Position from which a stream continues."""

    starting_after: int | None = None
    include_pings: bool | None = None
    run_id: str | None = None
    otid: str | None = None
    agent_id: str | None = None


async def list_runs(call: HttpCall) -> Sequence[LettaRun]:
    """List the runs of one agent, or of all."""
    query: LettaRunQuery = call.query
    if query.background is not None or query.stop_reason is not None:
        raise refused("Runs cannot be selected by `background` or `stop_reason`.")
    wanted = [*query.agent_ids, *([query.agent_id] if query.agent_id else [])]
    streams = [await agent_stream(call, agent) for agent in wanted]
    agent = call.shown(streams[0]) if len(streams) == 1 else ""
    rows = await over_fleet(call, lambda views, _position, _run: views.table(_RUNS).to_pylist(), agent=agent)
    runs = []
    for row in rows:
        stream = call.names.inner(row["agent_id"])
        status = "running" if row["status"] == "open" else run_status(_RUN_REASONS.get(row["status"], row["status"]))
        chosen = (not streams or stream in streams) and (not query.statuses or status in query.statuses)
        if query.conversation_id is not None and row["conversation"] != query.conversation_id:
            continue
        if chosen and (status == "running" or not query.active):
            runs.append((row, stream))
    page = page_of(
        ordered(runs, query, lambda run: (run[0]["started"], run[0]["opened_seq"])), query,
        lambda run: LettaIds(run[1]).run(run[0]["opened_seq"]),
    )  # fmt: skip
    return [await _listed(call, row, stream) for row, stream in page]


_RUN_REASONS = {"done": "end_turn", "failed": "error", "abandoned": "max_steps"}


async def _listed(call: HttpCall, row: dict[str, Any], stream: str) -> LettaRun:
    """Return a run of a list. One that did not end as it should is read from its log."""
    ids, ended = LettaIds(stream), row["status"] != "open"
    if row["status"] in {"failed", "abandoned"}:
        return run_shape(ids, (await _run_at(call, stream, row["opened_seq"]))[1])
    started, last = row["started"], row["ended"]
    reason = _RUN_REASONS.get(row["status"], row["status"]) if ended else ""
    completed: datetime | None = moment(last) if ended else None
    return LettaRun(
        id=ids.run(row["opened_seq"]), agent_id=ids.agent, status=run_status(reason), stop_reason=reason or None,
        conversation_id=row["conversation"] or None, created_at=moment(started), completed_at=completed,
        total_duration_ns=(last - started) * 1000 if ended else None,
    )  # fmt: skip


async def found_run(call: HttpCall, run_id: str) -> tuple[str, str, RunRecords]:
    """Return the stream of a run's agent, the id of its input, and the run. Raises the refusal of an unknown one."""
    stream, place = await placed_in(call, "run", run_id)
    event_id, found = await _run_at(call, stream, place.seq)
    return stream, event_id, found


async def _run_at(call: HttpCall, stream: str, seq: int) -> tuple[str, RunRecords]:
    def looked() -> Record | None:
        reader = call.service.system.store.reader(stream)
        within = 1 <= seq <= reader.head(stream).seq
        return next(iter(reader.read(stream, seq, seq)), None) if within else None

    record = await call.service.ports.aside(looked)
    found = None if record is None else await call.service.run_of(stream, record.event_id)
    if record is None or found is None:
        raise not_found("such run")
    return record.event_id, found


async def show_run(call: HttpCall) -> LettaRun:
    """Return a run."""
    stream, _, found = await found_run(call, call.params["run_id"])
    return run_shape(LettaIds(stream), found)


async def list_run_messages(call: HttpCall) -> Sequence[LettaMessage]:
    """List the messages of a run."""
    query: LettaPageQuery = call.query
    stream, _, found = await found_run(call, call.params["run_id"])
    ids = LettaIds(stream)
    groups = [messages_of(record, ids, ids.run(found.input.seq)) for record in found.records]
    groups = [group for group in groups if group]
    if query.order == "desc":
        groups = [group[::-1] for group in reversed(groups)]
    page = page_of(groups, query, lambda group: group[0].id, default=100)
    return [message for group in page for message in group]


async def list_run_steps(call: HttpCall) -> Sequence[LettaStep]:
    """List the steps of a run."""
    query: LettaPageQuery = call.query
    stream, _, found = await found_run(call, call.params["run_id"])
    ids = LettaIds(stream)
    steps = steps_of(ids, ids.run(found.input.seq), found.records)
    return page_of(list(steps) if query.order == "asc" else steps[::-1], query, lambda step: step.id, default=100)


async def show_usage(call: HttpCall) -> LettaUsage:
    """Return the tokens of a run."""
    _, _, found = await found_run(call, call.params["run_id"])
    return usage_of(found.records, call.params["run_id"])


async def stream_run(call: HttpCall) -> EventStreamResponse:
    """Stream a run from its beginning, or from a position that a reader had, whatever server it read from."""
    return await resumed(call, call.params["run_id"], call.body)


async def resumed(call: HttpCall, run_id: str, body: LettaResumeBody) -> EventStreamResponse:
    """Return the rest of a run's stream."""
    if body.starting_after is not None and not 0 <= body.starting_after < 1 << 63:
        raise refused("`starting_after` is the `seq_id` of a message of the stream.")
    cursor = cursor_of(body.starting_after) if body.starting_after else START
    stream, event_id, found = await found_run(call, run_id)
    begun = BegunRun(stream, found.input, joined_items(call.service, stream, event_id, found), joined=True)
    run = RunOfReader(ids=LettaIds(stream), run_id=run_id)
    return run_stream(call, run, begun, cursor, tokens=cursor.tokens, pings=body.include_pings is not False)


async def show_step(call: HttpCall) -> LettaStep:
    """Return a step."""
    stream, place = await placed_in(call, "step", call.params["step_id"])

    def looked() -> tuple[Record, int] | None:
        reader = call.service.system.store.reader(stream)
        seq = seq_of_place(reader, stream, place) if place.step != (0, 0) else 0
        record = next(iter(reader.read(stream, seq, seq)), None) if seq else None
        return None if record is None else (record, input_of_turn(reader, stream, record.seq, record.turn))

    found = await call.service.ports.aside(looked)
    step = None
    if found is not None:
        ids = LettaIds(stream)
        step = step_of(ids, ids.run(found[1]), found[0])
    if step is None:
        raise not_found(f"step {call.params['step_id'][:80]!r}")
    return step
