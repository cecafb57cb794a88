"""`everlog cost`: tokens and money by day and model, and the use of an agent's daily budget.

Called by `cli.command_run`.
"""

import os
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from everlog.actors.gateway.gateway_limits import limits_from
from everlog.actors.gateway.store_prices import prices_of
from everlog.actors.reports.fleet_sql import fleet_views
from everlog.interfaces.common import time_text
from everlog.interfaces.common.bootstrap import open_view, root_of, store_of, system_of
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.output import json_shapes
from everlog.interfaces.output.terminal_output import one_line
from everlog.interfaces.show.show_commands import context_at
from everlog.store import name_of

_CALLS = """SELECT day, model, count(*) AS calls, sum(prompt_tokens) AS prompt_tokens,
    sum(cached_tokens) AS cached_tokens, sum(completion_tokens) AS completion_tokens, sum(tokens) AS tokens,
    sum(cost) AS cost, count(*) FILTER (cost IS NULL AND tokens > 0) AS unpriced
FROM model_calls WHERE day > DATE '{today}' - {days} AND tokens > 0
GROUP BY day, model ORDER BY day, cost DESC, model"""

CostRow = dict[str, Any]


def cost(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog cost` and return its exit code."""
    prices = prices_of(root_of(args), limits_from(os.environ))
    today = time_text.iso(world.clock.now())[:10]
    name = None if args.name is None else name_of(args.name)
    budget = _budget(args, world, name) if name is not None else {}
    with fleet_views(store_of(args, world), agent=name, prices=prices) as (views, _):
        rows = views.table(_CALLS.format(today=today, days=args.days)).to_pylist()
    shape = _shape(rows, name, today, prices.currency, budget)
    if args.json:
        print(json_shapes.line(shape))
        return 0
    from everlog.interfaces.output import show_pages

    show_pages.show(_page(shape))
    return 0


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
        "total": _sum(days),
        "spent_today": _sum(now),
        "budget": budget or None,
    }


def _sum(rows: Sequence[CostRow]) -> CostRow:
    """Return the sums over all rows. The cost covers the calls whose price is known; it is None if there is no such
    call.
    """
    known = [row["cost"] for row in rows if row["cost"] is not None]
    counts = ("calls", "tokens", "prompt_tokens", "cached_tokens", "completion_tokens", "unpriced")
    return {**{key: sum(row[key] for row in rows) for key in counts}, "cost": sum(known) if known else None}


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
        table.add_row(row["day"], one_line(row["model"]) or "(not named)", *_figures(row))
    table.add_section()
    table.add_row("all", "", *_figures(shape["total"]))
    return Group(head, Text(""), table, *[Text(line) for line in _notes(shape)])


def _figures(row: CostRow) -> list[str]:
    cost = "?" if row["cost"] is None else f"{row['cost']:,.4f}{'+' if row['unpriced'] else ''}"
    keys = ("calls", "prompt_tokens", "cached_tokens", "completion_tokens")
    return [*(f"{row[key]:,}" for key in keys), cost]


def _notes(shape: json_shapes.JsonObject) -> list[str]:
    notes = []
    budget, today = shape["budget"] or {}, shape["spent_today"]
    if budget.get("tokens"):
        notes.append(f"today: {today['tokens']:,} of the {budget['tokens']:,} tokens allowed per day")
    if budget.get("cost"):
        spent = today["cost"] or 0
        notes.append(f"today: {spent:,.4f} of the {budget['cost']:,.4f} {shape['currency']} allowed per day")
    if shape["total"]["unpriced"]:
        notes.append("?: no known price, so these calls are in no sum; add a price to models.toml")
    return notes
