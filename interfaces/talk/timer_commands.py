"""`everlog timer` and `everlog timers`: set, cancel and list the timers that wake an agent.

Called by `cli.command_run`. A wrong name must create neither a store nor an agent.
"""

import asyncio
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from everlog.actors.agent_system import AgentSystem
from everlog.actors.api import place_of
from everlog.actors.cluster.ray_address import running
from everlog.events import BadInput
from everlog.events.times import MICROSECONDS
from everlog.interfaces.common import time_text
from everlog.interfaces.common.bootstrap import (
    agents_of,
    open_view,
    opened_view,
    root_of,
    system_of,
    warn,
    without_take_over,
)
from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.input_text import check_text
from everlog.interfaces.output import json_shapes
from everlog.store import name_of


def timer(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `timer`: set or cancel one timer."""
    if args.cancel and [
        given for given in (args.text, args.every, args.at, args.after, args.timer) if given is not None
    ]:
        args.fail("--cancel cannot be given with TEXT, --every, --at, --after or --timer")
    name, due_at = name_of(args.name), 0 if args.cancel else _due(args, world.clock.now())
    with open_view(system_of(args, world), name, notify=False), without_take_over():  # creates no store and no agent
        return asyncio.run(_cancel(args, world, name) if args.cancel else _set(args, world, name, due_at))


async def _set(args: Namespace, world: CommandEnvironment, name: str, due_at: int) -> int:
    text = check_text(args.text or "")
    async with agents_of(args, world) as system:
        agent = await system.agent(name, create=False, keep_configuration=True, command="everlog timer")
        called = await agent.set_timer(args.timer or "", text, due_at=due_at, every_s=args.every or 0)
    shape = {"agent": name, "timer": called, "due": time_text.iso(due_at), "every_s": args.every or 0}
    if args.json:
        print(json_shapes.line(shape))
        return 0
    often = f", then every {time_text.span(args.every)}" if args.every else ""
    print(sanitize(f"Timer {called} wakes {name} at {time_text.clock(due_at)}{often}."))
    if place_of(args.runtime, root_of(args)) == "local" and not running(root_of(args)):
        print(sanitize(f"It fires only while `everlog chat {name}` is open or a cluster runs (`everlog up`)."))
    return 0


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


def _due(args: Namespace, now: int) -> int:
    """Return the time of the first heartbeat, microseconds UTC. Exit with a usage error if no time is given."""
    if args.at is not None:
        if args.at < now:
            warn(f"{time_text.clock(args.at)} is in the past: the timer fires at once.")
        return int(args.at)
    seconds = args.every if args.after is None else args.after
    if seconds is None:
        args.fail("a time is missing: give --every 30m, --after 10m or --at 2024-01-31T12:00")
    return now + int(seconds) * MICROSECONDS


def _rows(system: AgentSystem, name: str) -> Sequence[dict[str, Any]]:
    with open_view(system, name, notify=False) as view:
        return view.rows("timers")


def timers(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `timers`."""
    with opened_view(args, world) as view:
        rows = sorted(view.rows("timers"), key=lambda row: (row["due_us"], row["timer"]))
    shown = [
        {"timer": row["timer"], "due": time_text.iso(row["due_us"]), "every_s": row["every_s"], "text": row["text"]}
        for row in rows
    ]
    if args.json:
        print(json_shapes.line(shown))
        return 0
    for row in rows:
        often = f"every {time_text.span(row['every_s'])}" if row["every_s"] else "once"
        print(sanitize(f"{row['timer']}  {time_text.clock(row['due_us'])}  {often}  {row['text']}").rstrip())
    if not rows:
        print(sanitize(f"{args.name} has no timers."))
    return 0
