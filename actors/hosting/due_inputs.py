"""Make the inputs that must still be due when they are appended: heartbeats of timers, and decisions about calls that
wait for an approval. Used by `Host`, which lets one of them be made and appended at a time.
"""

import asyncio
from collections.abc import Sequence

import msgspec

from everlog.actors.agent.activation_state import activation_state_of
from everlog.actors.agent.agent import Agent
from everlog.actors.agent.commands import DecideApproval, FireTimer
from everlog.actors.mail.letters import WAIT
from everlog.actors.ports.timer_schedules import next_due
from everlog.actors.postbox.postbox import wait_end
from everlog.actors.rules.approval_rules import with_rule
from everlog.actors.rules.approvals import decided, expired
from everlog.events import (
    AlreadyDecided,
    ApprovalDecided,
    ApprovalRequested,
    ApprovalRule,
    Event,
    Heartbeat,
    Record,
    TimerSet,
    event_of,
)


async def due_input(agent: Agent, command: FireTimer, now: int) -> tuple[Event, Sequence[Event]] | None:
    """Return the heartbeat of a timer, or the end of a call or a question that waits too long, and the events after
    it; None if it is not due any more: sent, decided, answered, cancelled or paused since. `now`: microseconds UTC.

    The events after it set a timer with a schedule again. They belong to the commit of the heartbeat: between two
    commits a crash would end the schedule.
    """
    if command.timer.startswith(WAIT):
        return await wait_end(agent, command.timer)
    row = next((row for row in await agent.rows("timers") if row["timer"] == command.timer), None)
    if row is None or row["due_us"] != command.due_at:
        return None
    if isinstance(request := event_of(next(agent.records(row["seq"]))), ApprovalRequested):
        return expired(row["seq"], request), ()
    beat = Heartbeat(text=row["text"], reason="timer", timer=command.timer, late=command.late)
    timer = event_of(next(agent.records(row["seq"])))
    if not isinstance(timer, TimerSet) or not timer.cron:
        return beat, ()
    # Times that have passed meanwhile are skipped: a timer that was missed fires once.
    due_at = next_due(timer.cron, timer.zone, max(now, command.due_at))
    again = TimerSet(text=timer.text, timer=timer.timer, due_at=due_at, cron=timer.cron, zone=timer.zone)
    return beat, (again,)


async def decide(agent: Agent, command: DecideApproval, lock: asyncio.Lock) -> Record:
    """Append the decision about a waiting call, and return its record; for a repeated command the one in the log.
    Raises BadInput, AlreadyDecided.

    A decision that holds for all later calls changes the configuration, in the same commit. It waits until no turn
    runs, as every change of the configuration does.
    """
    decision = command.decision

    async def write() -> Record:
        event = decided(agent.agent_id, agent.records(max(decision.request, 1)), decision, agent.tools, agent.now())
        recorded = activation_state_of(await agent.rows("waking")).recorded if event.always else None
        if recorded is None:
            return await agent.receive(event, event_id=command.id)
        rules = with_rule(recorded.approvals, ApprovalRule(event.name, "allow"))
        configured = msgspec.structs.replace(recorded, approvals=rules, schemas={})
        return await agent.receive(event, event_id=command.id, then=[configured])

    async with lock:
        try:
            return await (agent.once(command.id, write, ApprovalDecided) if decision.always else write())
        except AlreadyDecided:
            known = await agent.known(command.id, ApprovalDecided)
            if not known:
                raise
            return known[0]
