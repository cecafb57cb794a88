"""Commands that read one agent: events, context, memory, pressure. They write nothing.

Called by `cli.command_run`; `cost`, `diff` and `chat` use its functions.
"""

import asyncio
import difflib
import sys
from argparse import Namespace
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from everlog.actors.agent.local_system import AgentView
from everlog.actors.formats import render_request
from everlog.actors.prompt import context_fit
from everlog.actors.prompt.context import Context, context_of, is_configured
from everlog.actors.reports.fleet_listing import FleetListing, list_pressure, pressure_query
from everlog.events import CATALOGUE, AgentConfigured, BadInput, Record, is_erased
from everlog.interfaces.common import time_text
from everlog.interfaces.common.as_of import time_of_option
from everlog.interfaces.common.bootstrap import opened_view
from everlog.interfaces.common.error_output import complain
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import refresh_copy, store_of
from everlog.interfaces.common.server_choice import server_of
from everlog.interfaces.output import json_shapes
from everlog.interfaces.show.agents_command import SortKey, chosen_rows, lists_agents, ordered, report_damage
from everlog.store import LogReader, name_of

POLL_S = 0.5
"""Seconds between two reads of the log by `events --follow`."""


def memory(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog memory` and return its exit code."""
    with opened_view(args, world) as view:
        rows = block_rows(view)
    if args.json:
        print(json_shapes.line(json_shapes.memory(view.agent_id, view.seq, rows)))
        return 0
    from everlog.interfaces.output import show_pages

    show_pages.show(show_pages.memory(view.agent_id, view.seq, rows, world.clock.now()))
    return 0


def block_rows(view: AgentView) -> list[dict[str, Any]]:
    """Return core memory: persona, human, then the other blocks by label."""
    first = {"persona": 0, "human": 1}
    return sorted(view.rows("core_memory"), key=lambda row: (first.get(row["label"], 2), row["label"]))


def context(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog context` and return its exit code."""
    with opened_view(args, world) as view:
        shape = context_shape(view)
    if args.json:
        print(json_shapes.line(shape))
        return 0
    from everlog.interfaces.output import show_pages

    show_pages.show(show_pages.context(shape, full=args.full))
    return 0


def context_shape(view: AgentView) -> json_shapes.JsonObject:
    """Return the messages that the model would see. Records after the view's moment have no influence."""
    seen = context_at(view)
    if seen is None:
        return json_shapes.context(view.agent_id, view.seq, 0, 0, [])
    tokens = context_fit.tokens_of(len(_request(view, seen)), seen)
    return json_shapes.context(
        view.agent_id, view.seq, tokens, seen.config.window, render_request.numbered_messages(seen)
    )


def context_at(view: AgentView) -> Context | None:
    """Return the context; None if its configuration was erased. Raises BadInput if the agent was not configured yet."""
    rows = view.rows("context_window")
    if is_configured(rows):
        return context_of(view.agent_id, view.seq, rows)
    records = view.reader.read(view.agent_id, 1, view.seq)
    if any(is_erased(record.payload) for record in records if record.type == AgentConfigured.kind):
        return None
    return view.context()


def _request(view: AgentView, seen: Context) -> bytes:
    """Return the request of a context, without functions whose schemas were erased."""
    schemas = view.schemas(seen.config.functions)
    functions = [function for function in seen.config.functions if function.sha256 in schemas]
    replace = msgspec.structs.replace
    return render_request.request(replace(seen, config=replace(seen.config, functions=functions)), schemas)


def pressure(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog pressure` and return its exit code."""
    if not args.names or lists_agents(args, store_of(args, world)):
        return _pressure_of_each(args, world)
    args.name = args.names[0]
    with opened_view(args, world) as view:
        shape = pressure_shape(view)
    if args.json:
        print(json_shapes.line(shape))
        return 0
    from everlog.interfaces.output import show_pages

    show_pages.show(show_pages.pressure(shape))
    return 0


PRESSURE_SORTS: Mapping[str, tuple[SortKey, bool]] = {
    "agent": (lambda row: row["agent_id"], False),
    "used": (lambda row: row["used"] or 0, True),
    "tokens": (lambda row: row["tokens"], True),
    "window": (lambda row: row["window"] or 0, True),
    "summaries": (lambda row: row["summaries"], True),
}
"""Columns that --sort takes, with their values; True: the largest comes first."""


def _pressure_of_each(args: Namespace, world: CommandEnvironment) -> int:
    """Show a row for each agent that the patterns match, without the next request, which no column has."""
    listing = _pressures(args, world)
    faults = report_damage(listing.damaged)
    rows = chosen_rows(args, listing)
    shown = ordered(args, rows, PRESSURE_SORTS)
    if args.json:
        print(json_shapes.line([json_shapes.pressure_row(row) for row in shown]))
        return int(faults)
    from everlog.interfaces.output import fleet_pages, show_pages

    show_pages.show(fleet_pages.pressure(shown, more=len(rows) - len(shown)))
    return int(faults)


def _pressures(args: Namespace, world: CommandEnvironment) -> FleetListing:
    until, server = time_of_option(args, world), server_of(args)
    if server is None:
        store = store_of(args, world)
        return list_pressure(store, store.register_files.scan().routes, until=until)
    as_of = None if until is None else time_text.iso(until)
    rows, _ = server.query(pressure_query(), as_of=as_of)
    return FleetListing([row for row in rows.to_pylist() if not row["deleted"]], [])


def pressure_shape(view: AgentView) -> json_shapes.JsonObject:
    """Return the tokens of the last and of the next call, and the size of the context window."""
    return pressure_of(view, context_at(view), summaries=True)


def pressure_of(view: AgentView, seen: Context | None, *, summaries: bool = False) -> json_shapes.JsonObject:
    """Return the pressure of a known context (None: there is none). With `summaries`, the history is read to count
    them.
    """
    estimate = context_fit.tokens_of(len(_request(view, seen)), seen) if seen is not None else 0
    row = next(iter(view.rows("memory_pressure")), {})
    count = sum(row["type"] == "summary" for row in view.rows("summaries")) if summaries else 0
    return json_shapes.pressure(view.agent_id, view.seq, row, estimate, count)


def events(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog events` and return its exit code."""
    if args.follow and args.as_of is not None:
        args.fail("--follow and --as-of exclude each other: --follow waits for new records")
    with opened_view(args, world) as view:
        _check_kinds(args.kinds, view)
        reader, seq = view.reader, view.seq
    out = json_shapes.JsonLines(sys.stdout) if args.json else _event_lines()
    if args.follow:
        asyncio.run(_follow(args, world, reader, out))
        return 0
    last = args.last if args.as_of is None else min(seq, args.last or seq)
    if args.first > seq:
        complain(f"--from {args.first} is beyond the last record: {view.agent_id!r} has records 1 to {seq}.")
    elif args.last is not None and args.first > args.last:
        complain(f"--from {args.first} comes after --to {args.last}, so there are no records to show.")
    for record in _wanted_records(args, reader.read(name_of(args.name), args.first, last)):
        out.on_records([record])
    return 0


def _event_lines() -> Any:
    from everlog.interfaces.output.terminal_output import EventLines, console

    return EventLines(console())


def _wanted_records(args: Namespace, records: Iterator[Record]) -> Iterator[Record]:
    return (record for record in records if not args.kinds or record.type in args.kinds)


def _check_kinds(kinds: Sequence[str], view: AgentView) -> None:
    known = {*CATALOGUE, *(record.type for record in _all(view))} if kinds else set()
    for kind in kinds:
        if kind not in known:
            near = difflib.get_close_matches(kind, known) or sorted({record.type for record in _all(view)})
            raise BadInput(f"--type {kind}: there is no such event type. Try {', '.join(near)}.")


def _all(view: AgentView) -> Iterator[Record]:
    return view.reader.read(view.agent_id)


async def _follow(args: Namespace, world: CommandEnvironment, reader: LogReader, out: Any) -> None:
    """Print the records of the log and then new ones, until Ctrl-C, or until --to is reached."""
    async for records in _batches(args, world, reader):
        out.on_records(list(_wanted_records(args, iter(records))))


async def _batches(args: Namespace, world: CommandEnvironment, reader: LogReader) -> AsyncIterator[list[Record]]:
    first = args.first
    while args.last is None or first <= args.last:
        records = list(reader.read(name_of(args.name), first, args.last))
        if records:
            first = records[-1].seq + 1
            yield records
        else:
            await world.sleep(POLL_S)
            refresh_copy(args, name_of(args.name))
