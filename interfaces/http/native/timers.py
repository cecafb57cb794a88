"""Timers of an agent: list them at any moment, set and cancel them."""

from datetime import timedelta
from functools import partial
from typing import Any

from everlog.actors.agent.agent_view import AgentView
from everlog.actors.feed.run_lookup import find_input
from everlog.actors.ports.agent_constants import TIMER_AT_MAX
from everlog.actors.ports.timer_schedules import instant_of, next_due
from everlog.events import BadInput, TimerSet, event_of
from everlog.events.times import MICROSECONDS, moment, since_epoch
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import Call, JsonResponse, not_found
from everlog.interfaces.http.native.memory import read_view
from everlog.interfaces.wire.agents import Done
from everlog.interfaces.wire.timers import SetTimerBody, TimerShape, TimersShape


async def list_timers(call: Call) -> TimersShape:
    """List the timers that will send a heartbeat, as of a moment."""

    def read(view: AgentView) -> TimersShape:
        zone = view.searcher().zone
        rows = sorted(view.rows("timers"), key=lambda row: (row["due_us"], row["timer"]))
        timers = [_shape(row["timer"], row["due_us"], row["every_s"], _set_by(view, row["seq"]), zone) for row in rows]
        return TimersShape(agent=call.shown(view.agent_id), as_of=view.seq, timers=timers)

    found: TimersShape = await read_view(call, read)
    return found


async def set_timer(call: Call) -> Any:
    """Set a timer that sends the agent heartbeats. A timer of the same name is replaced."""
    body: SetTimerBody = call.body
    zone = await _zone(call)
    known = await _known(call)
    if known is not None:  # the same request was carried out before: its times counted from then
        return JsonResponse(_shape(known.timer, known.due_at, known.every_s, known, zone), 201)
    zone, cron, now = body.zone or zone, _schedule(body), call.service.ports.clock.now()
    due = next_due(cron, zone, now) if cron else _due(body, zone, now)
    agent = await call.agent()
    if cron:
        called = await agent.set_timer(body.timer, body.text, cron=cron, zone=zone)
    else:
        every = None if body.every_s is None else timedelta(seconds=body.every_s)
        called = await agent.set_timer(body.timer, body.text, due_at=moment(due), every=every)
    made = TimerSet(timer=called, text=body.text, due_at=due, every_s=body.every_s or 0, cron=cron, zone=zone)
    return JsonResponse(_shape(called, due, made.every_s, made, zone), 201)


async def cancel_timer(call: Call) -> Done:
    """Cancel a timer."""
    name = call.params["timer"]
    if not await (await call.agent()).cancel_timer(name):
        raise not_found(f"timer {name[:80]!r} of the agent {call.params['agent']!r}")
    return Done()


async def _zone(call: Call) -> str:
    """Return the time zone of the agent. Raises UnknownAgent."""
    async with await call.service.system.view(call.stream) as view:
        return str((await view.context()).config.zone)


async def _known(call: Call) -> TimerSet | None:
    """Return the timer that an earlier try of this request set; None if there is none."""
    if "idempotency-key" not in call.request.headers:
        return None
    stream = call.stream
    wanted = await call.command_ids(stream)
    reader = await call.service.ports.aside(call.service.system.store.reader, stream)
    record = await call.service.ports.aside(partial(find_input, reader, stream, wanted.id))
    event = None if record is None else event_of(record)
    return event if isinstance(event, TimerSet) else None


def _schedule(body: SetTimerBody) -> str:
    """Return the schedule of a timer of clock times; empty for another. Raises the refusal of times that exclude each
    other, and of a timer without a time.
    """
    cron = " ".join(body.cron.split())
    if body.daily is not None:
        hour, minute = body.daily.split(":")
        cron = cron or f"{int(minute)} {int(hour)} * * *"
    given = [body.every_s is not None, body.daily is not None, bool(body.cron)]
    first = [body.at is not None, body.after_s is not None]
    if sum(given) > 1 or sum(first) > 1 or (cron and any(first)) or not any((*given, *first)):
        raise Refusal(
            400, "bad-input",
            "A timer has `at` or `after_s`, with or without `every_s`; or `every_s` alone; or `daily`; or `cron`. No "
            "timer was set.",
        )  # fmt: skip
    return cron


def _due(body: SetTimerBody, zone: str, now: int) -> int:
    """Return the time of the first heartbeat, microseconds UTC."""
    if body.at is None:
        return now + (body.after_s if body.after_s is not None else body.every_s or 0) * MICROSECONDS
    try:
        due = since_epoch(body.at) if body.at.tzinfo is not None else instant_of(body.at, zone)
    except OverflowError:
        due = -1
    if not 0 <= due <= TIMER_AT_MAX:
        raise BadInput(f"`at` is a time from 1970 to 9999, not {body.at.isoformat()}. No timer was set.")
    return due


def _set_by(view: AgentView, seq: int) -> TimerSet | None:
    """Return the event that set a timer."""
    event = event_of(next(iter(view.reader.read(view.agent_id, seq, seq))))
    return event if isinstance(event, TimerSet) else None


def _shape(timer: str, due: int, every_s: int, made: TimerSet | None, zone: str) -> TimerShape:
    return TimerShape(
        timer=timer, due=moment(due), every_s=every_s, cron=(made.cron or None) if made else None,
        zone=(made.zone if made else "") or zone, text=(made.text or "") if made else "",
    )  # fmt: skip
