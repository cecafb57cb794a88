"""`everlog cost`: tokens and money by day and model, and what budgets leave."""

import os
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from everlog.actors.gateway.gateway_limits import limits_from
from everlog.actors.gateway.store_prices import prices_of
from everlog.actors.reports.fleet_sql import fleet_views
from everlog.interfaces.common import time_text
from everlog.interfaces.common.bootstrap import looking, root_of, store_of, system_of
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.output import json_shapes
from everlog.interfaces.show.show_commands import context_at
from everlog.store import name_of

_CALLS = """SELECT day, model, count(*) AS calls, sum(prompt_tokens) AS prompt_tokens,
    sum(cached_tokens) AS cached_tokens, sum(completion_tokens) AS completion_tokens, sum(tokens) AS tokens,
    sum(cost) AS cost, count(*) FILTER (cost IS NULL AND tokens > 0) AS unpriced
FROM model_calls WHERE day > DATE '{today}' - {days} AND tokens > 0
GROUP BY day, model ORDER BY day, cost DESC, model"""

CostRow = dict[str, Any]


def cost(args: Namespace, world: CommandEnvironment) -> int:
    """The command."""
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
    from everlog.interfaces.show import cost_page

    show_pages.show(cost_page.page(shape))
    return 0


def _budget(args: Namespace, world: CommandEnvironment, name: str) -> CostRow:
    """What the configuration of an agent lets it use up on a day. Raises UnknownAgent."""
    with looking(system_of(args, world), name, tell=False) as view:
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
    """Of all rows; the cost is that of calls with a price, and null where none has one."""
    known = [row["cost"] for row in rows if row["cost"] is not None]
    counts = ("calls", "tokens", "prompt_tokens", "cached_tokens", "completion_tokens", "unpriced")
    return {**{key: sum(row[key] for row in rows) for key in counts}, "cost": sum(known) if known else None}
