"""Functions with which an agent wakes itself: it sets timers, lists them, and cancels them.

A timer is an event of the step that set it, so it is durable with the reply, and a host that starts later sends its
heartbeat. The functions look into the agent's timers as of the request that the model answered, and at the changes by
calls of the same reply, so their results are recorded and not computed again. Limits are lower than a person's: an
agent must not keep itself awake. Signatures and docstrings here are the schemas that the model reads: a changed schema
is a new configuration of every agent.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from everlog.actors.functions.tools import Tool, own_tool
from everlog.actors.memory.core_memory import FunctionMemory
from everlog.actors.ports.timer_schedules import instant_of, next_due
from everlog.actors.prompt import message_format
from everlog.events import BadInput, FunctionError, TimerCancelled, TimerSet
from everlog.events.times import MICROSECONDS

TIMERS_MAX = 50
"""Most timers of an agent that sets one more by itself; a person may set more."""
EVERY_MINUTES_MIN = 5
"""Shortest time between two heartbeats of a schedule that an agent sets, in minutes."""
NAME_CHARS_MAX = 100
TEXT_CHARS_MAX = 1000
MINUTES_MAX = 10 * 366 * 24 * 60
"""Longest time until a timer is due, in minutes: ten years."""
_NOT_ITS_OWN = ("plan-", "approval ")
"""Beginnings of the names of timers that belong to plans, and to calls that wait for an approval."""
_MINUTE_US = 60 * MICROSECONDS


class TimerLine(msgspec.Struct, frozen=True):
    """A timer as the model reads it in a list."""

    name: str
    due: str
    text: str


async def _set_timer(
    desk: FunctionMemory,
    name: str,
    text: str,
    in_minutes: float = 0,
    at: str = "",
    schedule: str = "",
) -> str:
    """Wake yourself later, once or by a schedule.

    Args:
        name: Short name, by which it is replaced or cancelled.
        text: What you read then, such as "Remind the user: buy bread".
        in_minutes: Minutes from now.
        at: Or a time, YYYY-MM-DD HH:MM.
        schedule: Or a crontab's five fields, "0 7 * * 1-5" for 07:00 on weekdays.
    """
    name, text, at, schedule = name.strip(), text.strip(), at.strip(), schedule.strip()
    _check_name(name)
    if not 1 <= len(text) <= TEXT_CHARS_MAX:
        raise FunctionError(f"The text of a timer has 1 to {TEXT_CHARS_MAX} characters, not {len(text)}.")
    due_at = _due(desk, in_minutes, at, schedule)
    timers = await _timers(desk)
    if name not in timers and len(timers) >= TIMERS_MAX:
        raise FunctionError(f"You have {len(timers)} timers, and {TIMERS_MAX} is the most. Cancel one first.")
    zone = desk.zone if schedule else ""
    desk.change_timer(TimerSet(text=text, timer=name, due_at=due_at, cron=schedule, zone=zone))
    known = "Replaced" if name in timers else "Set"
    return f"{known}: the heartbeat comes at {message_format.format_time(due_at, desk.zone)}."


async def _cancel_timer(desk: FunctionMemory, name: str) -> str:
    """Cancel a timer.

    Args:
        name: Its name.
    """
    name = name.strip()
    _check_name(name)
    timers = await _timers(desk)
    if name not in timers:
        there = f"there are {', '.join(map(repr, sorted(timers)))}" if timers else "there are no timers"
        raise FunctionError(f"There is no timer {name!r}; {there}.")
    desk.change_timer(TimerCancelled(timer=name))
    return "Cancelled."


async def _list_timers(desk: FunctionMemory) -> str:
    """List your timers, the next one first."""
    timers = sorted((await _timers(desk)).values(), key=lambda row: (row["due_us"], row["timer"]))
    if not timers:
        return "No timers are set."
    lines = [
        TimerLine(row["timer"], message_format.format_time(row["due_us"], desk.zone), row["text"]) for row in timers
    ]
    return msgspec.json.encode(lines).decode()


def _check_name(name: str) -> None:
    if not 1 <= len(name) <= NAME_CHARS_MAX:
        raise FunctionError(f"The name of a timer has 1 to {NAME_CHARS_MAX} characters, not {len(name)}.")
    if name.startswith(_NOT_ITS_OWN):
        raise FunctionError(f"{name!r} is a name of an item of a plan or of a waiting call. Nothing was changed.")


def _due(desk: FunctionMemory, in_minutes: float, at: str, schedule: str) -> int:
    """Return when a timer is due first, microseconds UTC. Raise FunctionError unless exactly one time is given."""
    if [in_minutes != 0, bool(at), bool(schedule)].count(True) != 1:
        raise FunctionError("Give one of in_minutes, at and schedule. The timer was not set.")
    if schedule:
        return _due_by_schedule(desk, schedule)
    if not at:
        if not 0 < in_minutes <= MINUTES_MAX:
            raise FunctionError(f"A timer is due in more than 0 and at most {MINUTES_MAX} minutes, not {in_minutes}.")
        return desk.now + round(in_minutes * _MINUTE_US)
    due_at = instant(desk, at)
    if due_at < desk.now:
        now = message_format.format_time(desk.now, desk.zone)
        raise FunctionError(f"{at} is in the past: it is {now}. The timer was not set.")
    return due_at


def _due_by_schedule(desk: FunctionMemory, schedule: str) -> int:
    """Return the first time of a schedule. Raise FunctionError for one that is not valid or fires too often."""
    try:
        first = next_due(schedule, desk.zone, desk.now)
        second = next_due(schedule, desk.zone, first)
    except BadInput as error:
        raise FunctionError(str(error)) from error
    if second - first < EVERY_MINUTES_MIN * _MINUTE_US:
        raise FunctionError(f"A timer repeats after {EVERY_MINUTES_MIN} minutes or more. It was not set.")
    return first


def instant(desk: FunctionMemory, written: str) -> int:
    """Return a time that the model wrote, in the agent's zone, as microseconds UTC. Raise FunctionError."""
    try:
        wall = datetime.strptime(written.strip().replace("T", " ")[:16], "%Y-%m-%d %H:%M")  # noqa: DTZ007 - in the agent's zone, below
    except ValueError as error:
        raise FunctionError(f"A time is written as YYYY-MM-DD HH:MM, not {written!r}.") from error
    if not 1970 <= wall.year <= 9998:
        raise FunctionError(f"A time is between the years 1970 and 9998, not {written!r}.")
    return instant_of(wall, desk.zone)


async def _timers(desk: FunctionMemory) -> dict[str, Mapping[str, Any]]:
    """Return the agent's timers by name, after the changes by calls of the same reply. Plans' items are left out, and
    so are calls that wait for an approval.
    """
    found: dict[str, Mapping[str, Any]] = {row["timer"]: row for row in await desk.searcher.rows("timers")}
    for change in desk.timer_changes:
        found.pop(change.timer, None)
        if isinstance(change, TimerSet):
            found[change.timer] = {"timer": change.timer, "due_us": change.due_at, "text": change.text or ""}
    return {name: row for name, row in found.items() if not name.startswith(_NOT_ITS_OWN)}


TIMER_FUNCTIONS: Sequence[Tool] = (
    own_tool(_set_timer, heartbeat=False),
    own_tool(_cancel_timer, heartbeat=False),
    own_tool(_list_timers),
)
"""Functions of an agent's own timers, in the order in which the model sees them."""
