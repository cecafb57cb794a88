"""Rules of plans: check items, set and cancel their timers, change an item with all that it was divided into, and cut
an item into parts. Pure.

An item that is due is a timer of the agent, in the same commit as the plan or the change: an edit must keep that,
because between two commits a crash would leave an item without its reminder. Used by the commands, by the
functions of the agent and by the division in `actors/deriving`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, get_args

import msgspec

from everlog.events import BadInput, Event, PlanChanged, PlanItem, PlanMade, TimerCancelled, TimerSet
from everlog.events.times import MICROSECONDS, iso

PlanLevel = Literal["day", "hours", "minutes"]
PlanChange = Literal["continued", "postponed", "cancelled", "done", "failed"]
"""Changes that a person or the agent asks for."""

ITEMS_MAX = 50
"""Most items of one plan."""
TEXT_CHARS_MAX = 200
"""Most characters of a plan's title, of an item, its place and its end, and of a reason."""
ITEM_MINUTES_MAX = 24 * 60
"""Longest item."""
PART_MINUTES = 30
"""Length of the parts into which the rules cut an item."""
AHEAD_US = 2 * 3600 * MICROSECONDS
"""Time before its start at which an item is divided."""
BELOW: Mapping[str, PlanLevel] = {"day": "hours", "hours": "minutes"}
"""Level of the plan that divides an item of a plan of this level."""
OPEN = ("planned", "continued", "postponed")
"""States of an item that has not ended."""
_MINUTE_US = 60 * MICROSECONDS


def made(
    text: str, items: Sequence[PlanItem], *, now: int, level: str = "day", sources: Sequence[int] = (),
    deriver: str = "person", generation: int = 0, parent: int = 0, parent_item: int = 0,
) -> PlanMade:  # fmt: skip
    """Return the event of a new plan, its items in the order of their starts. Raise BadInput for an unusable one."""
    if level not in get_args(PlanLevel):
        raise BadInput(f"The level of a plan is {', '.join(get_args(PlanLevel))}, not {level!r}. Nothing was kept.")
    _check_text("title of a plan", text)
    if not 1 <= len(items) <= ITEMS_MAX:
        raise BadInput(f"A plan has 1 to {ITEMS_MAX} items, not {len(items)}. Nothing was kept.")
    for item in items:
        _check_item(item, now)
    ordered = sorted(items, key=lambda item: item.start)
    for before, after in pairwise(ordered):
        if after.start < end_of(before.start, before.minutes):
            raise BadInput(
                f"The items {before.text!r} and {after.text!r} overlap: the first ends at "
                f"{iso(end_of(before.start, before.minutes))}, the second starts at {iso(after.start)}. Nothing was "
                "kept."
            )
    return PlanMade(
        text=text.strip(), level=msgspec.convert(level, PlanLevel), items=ordered, sources=sorted(set(sources)),
        deriver=deriver, generation=generation, parent=parent, parent_item=parent_item,
    )  # fmt: skip


def _check_item(item: PlanItem, now: int) -> None:
    _check_text("text of an item", item.text)
    for name in ("place", "until"):
        if value := getattr(item, name):
            _check_text(f"{name} of an item", value)
    if not 1 <= item.minutes <= ITEM_MINUTES_MAX:
        raise BadInput(
            f"An item takes 1 to {ITEM_MINUTES_MAX} minutes, and {item.text!r} takes {item.minutes}. Nothing was kept."
        )
    _check_start(item.text, item.start, now)


def _check_start(text: str, start: int, now: int) -> None:
    if start < now:
        raise BadInput(f"{text!r} starts in the past, at {iso(start)}; it is {iso(now)} now. Nothing was kept.")
    if start > _START_MAX:
        raise BadInput(f"{text!r} starts after the year 9998. Nothing was kept.")


_START_MAX = 253_370_764_800 * MICROSECONDS


def _check_text(what: str, text: str) -> None:
    if not text.strip() or len(text) > TEXT_CHARS_MAX:
        raise BadInput(f"The {what} has 1 to {TEXT_CHARS_MAX} characters, not {len(text.strip())}. Nothing was kept.")


def end_of(start: int, minutes: int) -> int:
    """Return the end of an item, microseconds UTC, exclusive."""
    return start + minutes * _MINUTE_US


def timer_name(plan: int, item: int) -> str:
    """Return the name of an item's timer. `plan`: seq of the plan."""
    return f"plan-{plan}-{item}"


def with_timers(plan: PlanMade, seq: int) -> list[Event]:
    """Return the plan and a timer for each of its items. `seq`: that of the plan."""
    timers = (
        _timer(seq, number, plan.text or "", item.text, item.start, item.minutes, item.place)
        for number, item in enumerate(plan.items)
    )
    return [plan, *timers]


UNPLACED = 0
"""Stands for the seq of a plan that is not committed yet; `placed` puts the seq in."""


def placed(events: Sequence[Event]) -> Sequence[Event] | Callable[[int], Sequence[Event]]:
    """Return events whose plans have timers that are named after them as soon as the seq of the first event is known:
    the events themselves if there is no new plan, else a function of that seq.
    """
    if not any(isinstance(event, PlanMade) for event in events):
        return events

    def made_at(first_seq: int) -> list[Event]:
        found = list(events)
        for number, event in enumerate(events):
            if isinstance(event, PlanMade):
                timers = with_timers(event, first_seq + number)
                found[number : number + len(timers)] = timers
        return found

    return made_at


def _timer(seq: int, item: int, title: str, text: str, start: int, minutes: int, place: str) -> TimerSet:
    where = f", {place}" if place else ""
    told = f"Your plan {title!r} (plan {seq}, item {item}) says now: {text} ({minutes} minutes{where})."
    return TimerSet(text=told, timer=timer_name(seq, item), due_at=start)


PlanRow = Mapping[str, Any]
"""Row of the projection `plan_items`."""


def item_row(rows: Sequence[PlanRow], plan: int, item: int) -> PlanRow:
    """Return the row of an item that has not ended. Raise BadInput if there is none."""
    mine = [row for row in rows if row["plan"] == plan]
    if not mine:
        known = sorted({row["plan"] for row in rows})
        there = f"there are {', '.join(map(str, known[-10:]))}" if known else "there are no plans"
        raise BadInput(f"There is no plan {plan}; {there}. Nothing was changed.")
    found = next((row for row in mine if row["item"] == item), None)
    if found is None:
        raise BadInput(f"The plan {plan} has the items 0 to {len(mine) - 1}, and no item {item}. Nothing was changed.")
    if found["status"] not in OPEN:
        raise BadInput(f"{found['text']!r} is {found['status']} already. Nothing was changed.")
    return found


def changed(
    rows: Sequence[PlanRow], plan: int, item: int, change: str, reason: str, *, now: int, timers: Collection[str],
    start: int | None = None, sources: Sequence[int] = (), deriver: str = "person",
) -> list[Event]:  # fmt: skip
    """Return the events of a change of an item: the change, its timer, and the end of all that it was divided into.

    `timers`: names of the timers that are set. Raise BadInput for a change that is not possible.
    """
    if change not in get_args(PlanChange):
        raise BadInput(
            f"An item is {', '.join(get_args(PlanChange)[:-1])} or failed, not {change!r}. Nothing was changed."
        )
    _check_text("reason of a change", reason)
    row = item_row(rows, plan, item)
    if (change == "postponed") is (start is None):
        raise BadInput("A postponed item has a new start, and no other change has one. Nothing was changed.")
    if start is not None:
        _check_start(row["text"], start, now)
    rests = sorted({plan, *sources})
    first = PlanChanged(
        text=reason.strip(), plan=plan, item=item, change=_change(change), start=start, sources=rests, deriver=deriver
    )
    events: list[Event] = [first]
    name = timer_name(plan, item)
    if start is not None:
        events.append(_timer(plan, item, row["title"], row["text"], start, row["minutes"], row["place"]))
    elif change != "continued" and name in timers:
        events.append(TimerCancelled(timer=name))
    if change != "continued":
        follows = "cancelled" if change == "postponed" else change
        for part in _parts_of(rows, plan, item):
            told = PlanChanged(
                text=reason.strip(), plan=part["plan"], item=part["item"], change=_change(follows),
                sources=[part["plan"]], deriver=deriver,
            )  # fmt: skip
            events.append(told)
            if (part_timer := timer_name(part["plan"], part["item"])) in timers:
                events.append(TimerCancelled(timer=part_timer))
    return events


def _change(change: str) -> PlanChange:
    return msgspec.convert(change, PlanChange)


def _parts_of(rows: Sequence[PlanRow], plan: int, item: int) -> list[PlanRow]:
    """Return the open items of plans that divide an item, and of those that divide these."""
    found: list[PlanRow] = []
    for row in rows:
        if (row["parent"], row["parent_item"]) == (plan, item):
            if row["status"] in OPEN:
                found.append(row)
            found += _parts_of(rows, row["plan"], row["item"])
    return found


def to_divide(rows: Sequence[PlanRow], now: int) -> list[PlanRow]:
    """Return the items that should be divided now, by start: those that begin within AHEAD_US or have begun and have
    not ended, that are longer than a part, and that no plan divides whose parts were not cancelled.
    """
    divided = {(row["parent"], row["parent_item"]) for row in rows if row["parent"] and row["status"] != "cancelled"}
    found = [
        row
        for row in rows
        if row["level"] in BELOW
        and row["status"] in OPEN
        and row["start"] - AHEAD_US <= now < end_of(row["start"], row["minutes"]) - _MINUTE_US * PART_MINUTES
        and row["minutes"] > PART_MINUTES
        and (row["plan"], row["item"]) not in divided
    ]
    return sorted(found, key=lambda row: (row["start"], row["plan"], row["item"]))


def room(row: PlanRow, now: int) -> tuple[int, int]:
    """Return the start and the minutes of what is left of an item: it may have begun."""
    start = max(row["start"], -(-now // _MINUTE_US) * _MINUTE_US)
    return start, (end_of(row["start"], row["minutes"]) - start) // _MINUTE_US


def parts(row: PlanRow, now: int) -> list[PlanItem]:
    """Cut what is left of an item into parts of PART_MINUTES; the last one may be shorter."""
    start, minutes = room(row, now)
    count = -(-minutes // PART_MINUTES)
    return [
        PlanItem(
            text=f"{row['text'][: TEXT_CHARS_MAX - 20]} (part {number + 1} of {count})",
            start=end_of(start, number * PART_MINUTES), minutes=min(PART_MINUTES, minutes - number * PART_MINUTES),
            place=row["place"],
        )
        for number in range(count)
    ]  # fmt: skip


def division_title(row: PlanRow, *, by_rules: bool) -> str:
    """Return the title of a plan that divides an item. A division by rules says so."""
    how = f"cut by rules into parts of {PART_MINUTES} minutes" if by_rules else "divided"
    return f"{row['text'][: TEXT_CHARS_MAX - 50]} ({how})"


def divided(row: PlanRow, plan: PlanMade, seq: int, timers: Collection[str]) -> list[Event]:
    """Return the events of a division: the plan with its timers, which replace the timer of the item."""
    events = with_timers(plan, seq)
    name = timer_name(row["plan"], row["item"])
    if name in timers:
        events.append(TimerCancelled(timer=name))
    return events
