"""`everlog timer` and `everlog timers`: set, cancel and list the timers that wake an agent.

Called by `cli.command_run`. A wrong name must create neither a store nor an agent.
"""

import asyncio
from argparse import Namespace
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from everlog.actors.agent.agent_view import AgentView
from everlog.actors.agent_system import AgentSystem
from everlog.actors.api import place_of
from everlog.actors.cluster.ray_address import running
from everlog.actors.ports.timer_schedules import instant_of, next_due
from everlog.events import BadInput, TimerSet, event_of
from everlog.events.times import MICROSECONDS
from everlog.interfaces.common import time_text
from everlog.interfaces.common.bootstrap import agents_of, open_view, opened_view, system_of
from everlog.interfaces.common.error_output import escape_line, sanitize
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.input_text import check_text
from everlog.interfaces.common.open_store import root_of, warn, without_take_over
from everlog.interfaces.common.server_choice import server_of
from everlog.interfaces.output import json_shapes
from everlog.store import name_of, typed


def timer(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `timer`: set or cancel one timer."""
    times = (args.every, args.daily, args.cron, args.at, args.after)
    if args.cancel and [given for given in (args.text, *times, args.timer) if given is not None]:
        args.fail("--cancel cannot be given with TEXT, a time or --timer")
    if sum(given is not None for given in (args.every, args.daily, args.cron)) > 1:
        args.fail("give one of --every, --daily and --cron")
    if (args.daily or args.cron) and (args.at is not None or args.after is not None):
        args.fail("--daily and --cron say when the timer fires: --at and --after cannot be given with them")
    if not args.cancel and not [given for given in times if given is not None]:
        args.fail('a time is missing: give --every 30m, --daily 07:00, --cron "0 7 * * 1-5", --after 10m or '
                  "--at 2024-01-31T12:00")  # fmt: skip
    name = name_of(args.name)
    with open_view(system_of(args, world), name, notify=False) as view:  # creates no store and no agent
        zone = view.searcher().zone
    with without_take_over():
        return asyncio.run(_cancel(args, world, name) if args.cancel else _set(args, world, name, zone))


async def _set(args: Namespace, world: CommandEnvironment, name: str, zone: str) -> int:
    text, cron = check_text(args.text or ""), args.daily or args.cron or ""
    due_at = _due(args, world.clock.now(), zone, cron)
    async with agents_of(args, world) as system:
        agent = await system.agent(name, create=False, keep_configuration=True, command="everlog timer")
        if cron:
            called = await agent.set_timer(args.timer or "", text, cron=cron, zone=zone)
        else:
            every = timedelta(seconds=args.every or 0)
            called = await agent.set_timer(args.timer or "", text, due_at=time_text.moment(due_at), every=every)
    shape = {
        "agent": name, "timer": called, "due": time_text.iso(due_at), "every_s": args.every or 0, "cron": cron or None,
        "zone": zone,
    }  # fmt: skip
    if args.json:
        print(json_shapes.line(shape))
        return 0
    often = f", then every {time_text.span(args.every)}" if args.every else f", then {_often(cron)}" if cron else ""
    print(escape_line(f"Timer {called} wakes {name} at {time_text.clock(due_at, zone)}{often}."))
    if server_of(args) is None and place_of(args.runtime, root_of(args)) == "local" and not running(root_of(args)):
        print(
            escape_line(f"It fires only while `everlog chat {typed(name)}` is open or a cluster runs (`everlog up`).")
        )
    return 0


def _often(cron: str) -> str:
    """Return a schedule for people: "daily at 07:00" where it is that."""
    minute, hour, *rest = cron.split()
    if rest == ["*", "*", "*"] and minute.isdecimal() and hour.isdecimal():
        return f"daily at {int(hour):02}:{int(minute):02}"
    return f"at the times of {cron}"


async def _cancel(args: Namespace, world: CommandEnvironment, name: str) -> int:
    async with agents_of(args, world) as system:
        agent = await system.agent(name, create=False, keep_configuration=True, command="everlog timer")
        if not await agent.cancel_timer(args.cancel):
            known = ", ".join(row["timer"] for row in _rows(system, name)) or "none"
            raise BadInput(f"{name!r} has no timer {args.cancel!r}; its timers: {known}.")
    print(
        json_shapes.line({"agent": name, "cancelled": args.cancel})
        if args.json
        else sanitize(f"Cancelled {args.cancel}.")
    )
    return 0


def _due(args: Namespace, now: int, zone: str, cron: str) -> int:
    """Return the time of the first heartbeat, microseconds UTC. A warning says if it is in the past."""
    if cron:
        return next_due(cron, zone, now)
    if args.at is not None:
        at = time_text.since_epoch(args.at) if args.at.tzinfo is not None else instant_of(args.at, zone)
        if at < now:
            warn(f"{time_text.clock(at, zone)} is in the past: the timer fires at once.")
        return at
    return now + int(args.every if args.after is None else args.after) * MICROSECONDS


def _rows(system: AgentSystem, name: str) -> Sequence[dict[str, Any]]:
    with open_view(system, name, notify=False) as view:
        return view.rows("timers")


def timers(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `timers`."""
    with opened_view(args, world) as view:
        rows = sorted(view.rows("timers"), key=lambda row: (row["due_us"], row["timer"]))
        zone = view.searcher().zone
        schedules = [_schedule(view, row["seq"]) for row in rows]
    shown = [
        {
            "timer": row["timer"], "due": time_text.iso(row["due_us"]), "every_s": row["every_s"], "cron": cron or None,
            "zone": where or zone, "text": row["text"],
        }
        for row, (cron, where) in zip(rows, schedules, strict=True)
    ]  # fmt: skip
    if args.json:
        print(json_shapes.line(shown))
        return 0
    for row, (cron, where) in zip(rows, schedules, strict=True):
        often = f"every {time_text.span(row['every_s'])}" if row["every_s"] else _often(cron) if cron else "once"
        due = time_text.clock(row["due_us"], where or zone)
        print(sanitize(f"{row['timer']}  {due}  {often}  {row['text']}").rstrip())
    if not rows:
        print(escape_line(f"{args.name} has no timers."))
    return 0


def _schedule(view: AgentView, seq: int) -> tuple[str, str]:
    """Return the schedule of a timer and its zone, from the record that set it; empty texts for a timer without one."""
    event = event_of(next(iter(view.reader.read(view.agent_id, seq, seq))))
    return (event.cron, event.zone) if isinstance(event, TimerSet) else ("", "")
