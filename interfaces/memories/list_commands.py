"""`everlog memories`, `facts` and `plans`: what an agent concluded, what it believes and what it plans, and why.

Called by `cli.command_run`; the server uses the choice and the shapes of rows. They read the projections of one agent
as of one moment, and write nothing.
"""

import asyncio
from argparse import Namespace
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from everlog.actors.agent.agent_view import AgentView
from everlog.actors.memory_views import MemoryMoment, MemoryViews
from everlog.actors.ports.effects import in_place
from everlog.interfaces.common import time_text
from everlog.interfaces.common.bootstrap import opened_view
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.output import json_shapes

DERIVED_KINDS = ("insight", "fact", "plan")
OPEN_ITEMS = ("planned", "postponed", "continued")
"""Status of the items of plans that are still to be done."""
_TIMES = ("time", "at", "noted_at", "said_at", "made_at", "start", "valid_from", "valid_to")

MemoryRow = dict[str, Any]


def memories(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog memories` and return its exit code."""
    if args.because is not None:
        return _because(args, world)
    with opened_view(args, world) as view:
        rows = rows_about(view, view.rows("memories"), args.about)
        found = [row for row in rows if row["kind"] in (args.kinds or DERIVED_KINDS)]
        shown = sorted(found, key=lambda row: (row["time"], row["seq"], row["part"]))
        reasons = _reasons(view)
    if args.json:
        print(json_shapes.line([row_shape(row) for row in shown]))
        return 0
    from everlog.interfaces.output import memory_pages, show_pages

    show_pages.show(memory_pages.memories(view.agent_id, view.seq, shown, reasons, world.clock.now()))
    return 0


def facts(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog facts` and return its exit code."""
    with opened_view(args, world) as view:
        rows = rows_about(view, view.rows("facts"), args.about)
        shown = sorted(
            (row for row in rows if fact_holds(row, args.at, every=args.all)),
            key=lambda row: (row["subject"], row["predicate"], row["valid_from"] or 0, row["seq"]),
        )
        zone = view.searcher().zone
    if args.json:
        print(json_shapes.line([row_shape(row) for row in shown]))
        return 0
    from everlog.interfaces.output import memory_pages, show_pages

    show_pages.show(memory_pages.facts(view.agent_id, view.seq, shown, zone))
    return 0


def plans(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog plans` and return its exit code."""
    with opened_view(args, world) as view:
        rows = [row for row in view.rows("plan_items") if args.all or row["status"] in OPEN_ITEMS]
        shown = sorted(rows, key=lambda row: (row["start"], row["plan"], row["item"]))
        zone = view.searcher().zone
    if args.json:
        print(json_shapes.line([row_shape(row) for row in shown]))
        return 0
    from everlog.interfaces.output import memory_pages, show_pages

    show_pages.show(memory_pages.plans(view.agent_id, view.seq, shown, zone))
    return 0


def _because(args: Namespace, world: CommandEnvironment) -> int:
    with opened_view(args, world) as view:

        @asynccontextmanager
        async def opened(_: object) -> AsyncIterator[MemoryMoment]:
            yield MemoryMoment(view, in_place)

        tree = asyncio.run(MemoryViews(view.agent_id, opened).tree(args.because))
        reasons = _reasons(view)
    if args.json:
        nodes = [row_shape(msgspec.structs.asdict(node)) for _, node in tree.down()]
        print(json_shapes.line({"agent": view.agent_id, "memory": tree.seq, "nodes": nodes}))
        return 0
    from everlog.interfaces.output import memory_pages, show_pages

    show_pages.show(memory_pages.tree(view.agent_id, view.seq, tree, reasons))
    return 0


def rows_about(view: AgentView, rows: Sequence[MemoryRow], name: str | None) -> list[MemoryRow]:
    """Return the rows that mention an entity by any of its names, or that contain the text; all rows without a name."""
    if not name:
        return list(rows)
    low = name.casefold()
    mentioned = {
        row["seq"]
        for row in view.rows("mentions")
        if low in (row["entity"].casefold(), row["name"].casefold())
    }  # fmt: skip
    return [
        row
        for row in rows
        if row["seq"] in mentioned
        or mentioned.intersection(row["sources"])
        or low in (row.get("text") or row.get("sentence") or "").casefold()
    ]


def fact_holds(row: Mapping[str, Any], moment: int | None, *, every: bool) -> bool:
    """Return True if a fact is believed, or holds at a moment (microseconds UTC)."""
    if moment is None:
        return every or row["believed"]
    begun = row["valid_from"] is None or row["valid_from"] <= moment
    return begun and (row["believed"] if row["valid_to"] is None else moment < row["valid_to"])


def _reasons(view: AgentView) -> Mapping[int, Sequence[int]]:
    """Return for each outdated memory the ended facts that it rests on."""
    found: dict[int, list[int]] = defaultdict(list)
    for row in view.rows("outdated"):
        found[row["seq"]].append(row["because"])
    return found


def row_shape(row: Mapping[str, Any]) -> json_shapes.JsonObject:
    """Return a row with its times in ISO 8601, and without the agent and the moment, which the caller knows."""
    return {
        {"at": "time"}.get(name, name): time_text.iso(value) if name in _TIMES and value is not None else value
        for name, value in row.items()
        if name not in ("agent_id", "as_of")
    }
