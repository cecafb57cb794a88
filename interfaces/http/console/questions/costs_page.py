"""Show which agents cost most, since when and why: the sums of `everlog cost`, by agent, day and model."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

import msgspec
from starlette.responses import Response

from everlog.actors.reports.call_costs import CostRow, costs_by_day_and_dearest, summed
from everlog.interfaces.http.console.page_response import page
from everlog.interfaces.http.core.fleet_queries import over_fleet
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import HttpCall
from everlog.interfaces.http.native.figures import prices_of_server, today_of

AGENTS_SHOWN = 25
DAYS_MAX = 366
SPANS = (1, 7, 30, 90)
"""Numbers of days that the page offers."""


class CostsParameters(msgspec.Struct, frozen=True):
    """Parameters of the page."""

    days: int = 7
    """Number of days up to today (UTC)."""


class AgentCosts(msgspec.Struct, frozen=True, kw_only=True):
    """Sums of an agent, and what they are made of."""

    agent: str
    sums: CostRow
    share: float
    """Part of the sum of all agents, from 0 to 1."""
    days: Sequence[float]
    """Money of each day, or tokens if no price is known, oldest first."""
    since: str
    """First of the days with a call, ISO date."""
    model: str
    """Model with the largest part; empty: the endpoint did not name it."""
    model_share: float
    peak: str
    """Day with the largest part, ISO date."""
    peak_share: float


async def show_costs(call: HttpCall) -> Response:
    """Show the sums of some days: the agents that cost most, each with its days and its model; and all days."""
    days = call.query.days
    if not 1 <= days <= DAYS_MAX:
        raise Refusal(400, "bad-input", f"`days` is from 1 to {DAYS_MAX}, not {days}.")
    prices, today = await prices_of_server(call), today_of(call)
    by_day, rows = await over_fleet(
        call,
        lambda views, _position, _run: costs_by_day_and_dearest(views, today, days, AGENTS_SHOWN),
    )
    span = [date.fromisoformat(today) - timedelta(days=back) for back in range(days)][::-1]
    total = summed(by_day)
    values = {
        "days": days, "spans": SPANS, "today": today, "currency": prices.currency, "total": total,
        "agents": dearest(rows, span, total), "by_day": by_day[::-1], "span": span, "most": AGENTS_SHOWN,
        "bars_of_days": spent_of_days(by_day, span, total),
    }  # fmt: skip
    return page(call.request, "costs.html", values)


def dearest(rows: Sequence[CostRow], span: Sequence[date], total: CostRow) -> list[AgentCosts]:
    """Return the sums of each agent, the most expensive first, from its rows by day and model."""
    own: dict[str, list[CostRow]] = defaultdict(list)
    for row in rows:
        own[row["agent_id"]].append(row)
    found = [_costs_of(agent, its, span, total) for agent, its in own.items()]
    return sorted(found, key=lambda one: (-one.share, -one.sums["tokens"], one.agent))


def spent_of_days(rows: Sequence[CostRow], span: Sequence[date], total: CostRow) -> list[float]:
    """Return the measure of each day of a span."""
    days: dict[date, float] = defaultdict(float)
    for row in rows:
        days[row["day"]] += measure(row, total)
    return [days[day] for day in span]


def measure(row: Mapping[str, Any], total: Mapping[str, Any]) -> float:
    """Return what a row weighs: its money; its tokens if no price is known for any call."""
    return float((row["cost"] or 0.0) if total["cost"] else row["tokens"])


def _costs_of(agent: str, rows: Sequence[CostRow], span: Sequence[date], total: CostRow) -> AgentCosts:
    whole, mine = measure(total, total), sum(measure(row, total) for row in rows)
    models: dict[str, float] = defaultdict(float)
    for row in rows:
        models[row["model"] or ""] += measure(row, total)
    model = max(sorted(models), key=models.__getitem__)
    days = spent_of_days(rows, span, total)
    peak = max(range(len(days)), key=days.__getitem__)
    return AgentCosts(
        agent=agent, sums=summed(rows), share=mine / whole if whole else 0.0, days=days,
        since=min(row["day"] for row in rows).isoformat(), model=model,
        model_share=models[model] / mine if mine else 0.0, peak=span[peak].isoformat(),
        peak_share=days[peak] / mine if mine else 0.0,
    )  # fmt: skip
