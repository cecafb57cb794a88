"""`everlog cost`: tokens and money by day and model, and the use of an agent's daily budget; or a row for each agent.

Called by `cli.command_run`.
"""

import os
from argparse import Namespace
from collections.abc import Mapping, Sequence

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from everlog.actors.gateway.gateway_limits import limits_from
from everlog.actors.gateway.store_prices import prices_of
from everlog.actors.memory.fleet_sql import fleet_views
from everlog.actors.reports.call_costs import CostRow, costs_by_day, summed
from everlog.actors.reports.fleet_listing import FleetListing, list_costs
from everlog.interfaces.common import time_text
from everlog.interfaces.common.bootstrap import open_view, system_of
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import root_of, store_of
from everlog.interfaces.common.server_choice import server_of
from everlog.interfaces.output import fleet_pages, json_shapes
from everlog.interfaces.output.terminal_output import one_line
from everlog.interfaces.show.agents_command import SortKey, chosen_rows, lists_agents, ordered, report_damage
from everlog.interfaces.show.show_commands import context_at
from everlog.store import name_of

SORTS: Mapping[str, tuple[SortKey, bool]] = {
    "agent": (lambda row: row["agent_id"], False),
    "cost": (lambda row: (row["cost"] is not None, row["cost"] or 0), True),
    "tokens": (lambda row: row["tokens"], True),
    "calls": (lambda row: row["calls"], True),
}
"""Columns that --sort takes, with their values; True: the largest comes first. Unknown costs are the smallest."""


def cost(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog cost` and return its exit code."""
    if lists_agents(args, store_of(args, world)):
        return _cost_of_each(args, world)
    name = name_of(args.names[0]) if args.names else None
    shape = _cost_by_day(args, world, name)
    if args.json:
        print(json_shapes.line(shape))
        return 0
    from everlog.interfaces.output import show_pages

    show_pages.show(_page(shape))
    return 0


def _cost_by_day(args: Namespace, world: CommandEnvironment, name: str | None) -> json_shapes.JsonObject:
    """Return the costs by day and model, of one agent with its budget or of all, in JSON."""
    server = server_of(args)
    if server is not None:
        from everlog.interfaces.wire.sql import CostShape

        shape: json_shapes.JsonObject = msgspec.to_builtins(
            server.answer("/cost", CostShape, agent=name, days=args.days)
        )
        return shape
    prices = prices_of(root_of(args), limits_from(os.environ))
    today = time_text.iso(world.clock.now())[:10]
    budget = _budget(args, world, name) if name is not None else {}
    with fleet_views(store_of(args, world), agent=name, prices=lambda: prices) as (views, _):
        rows = costs_by_day(views, today, args.days)
    return _shape(rows, name, today, prices.currency, budget)


def _listed(args: Namespace, world: CommandEnvironment) -> tuple[FleetListing, str, str]:
    """Return the costs of each agent, today, and the currency."""
    server = server_of(args)
    if server is not None:
        from everlog.interfaces.wire.sql import CostOfAgents

        found = server.answer("/cost/agents", CostOfAgents, days=args.days)
        rows = [{**msgspec.structs.asdict(row), "agent_id": row.agent} for row in found.rows]
        return FleetListing(sorted(rows, key=lambda row: row["agent_id"]), []), found.today, found.currency
    store, prices = store_of(args, world), prices_of(root_of(args), limits_from(os.environ))
    today = time_text.iso(world.clock.now())[:10]
    registered = store.register_files.scan().routes
    return list_costs(store, registered, today=today, days=args.days, prices=prices), today, prices.currency


def _cost_of_each(args: Namespace, world: CommandEnvironment) -> int:
    """Show a row for each agent that the patterns match, and the sum of all of them."""
    listing, today, currency = _listed(args, world)
    faults = report_damage(listing.damaged)
    rows = chosen_rows(args, listing)
    shown = ordered(args, rows, SORTS)
    total = summed(rows)
    if args.json:
        shape = {"today": today, "currency": currency, "rows": list(map(json_shapes.cost, shown))}
        print(json_shapes.line({**shape, "total": total}))
        return int(faults)
    from everlog.interfaces.output import show_pages

    show_pages.show(fleet_pages.cost(shown, total, currency, more=len(rows) - len(shown)))
    return int(faults)


def _budget(args: Namespace, world: CommandEnvironment, name: str) -> CostRow:
    """Return the daily limits of an agent's configuration; 0 is no limit. Raises UnknownAgent."""
    with open_view(system_of(args, world), name, notify=False) as view:
        seen = context_at(view)
    return {
        "tokens": seen.config.day_tokens_max if seen else 0,
        "cost": seen.config.day_cost_max if seen else 0.0,
    }


def _shape(
    rows: Sequence[CostRow], name: str | None, today: str, currency: str, budget: CostRow
) -> json_shapes.JsonObject:
    days = [{**row, "day": row["day"].isoformat()} for row in rows]
    now = [row for row in days if row["day"] == today]
    return {
        "agent": name,
        "today": today,
        "currency": currency,
        "rows": days,
        "total": summed(days),
        "spent_today": summed(now),
        "budget": budget or None,
    }


def _page(shape: json_shapes.JsonObject) -> RenderableType:
    """Return the page: a row for each day and model, the sum, and the use of the budget."""
    whose = "all agents" if shape["agent"] is None else one_line(shape["agent"])
    head = Text.assemble((whose, "bold"), (f" · cost of model calls · {shape['today']} UTC", "dim"))
    if not shape["rows"]:
        return Group(head, Text("No model calls with tokens in these days.", "dim italic"))
    table = Table("day", "model", box=None, pad_edge=False)
    for column in ("calls", "prompt", "cached", "completion", shape["currency"]):
        table.add_column(column, justify="right")
    for row in shape["rows"]:
        table.add_row(row["day"], one_line(row["model"]) or "(not named)", *fleet_pages.money(row))
    table.add_section()
    table.add_row("all", "", *fleet_pages.money(shape["total"]))
    return Group(head, Text(""), table, *[Text(line) for line in _notes(shape)])


def _notes(shape: json_shapes.JsonObject) -> list[str]:
    notes = []
    budget, today = shape["budget"] or {}, shape["spent_today"]
    if budget.get("tokens"):
        notes.append(f"today: {today['tokens']:,} of the {budget['tokens']:,} tokens allowed per day")
    if budget.get("cost"):
        spent = today["cost"] or 0
        notes.append(f"today: {spent:,.4f} of the {budget['cost']:,.4f} {shape['currency']} allowed per day")
    return [*notes, *fleet_pages.money_notes(shape["total"])]
