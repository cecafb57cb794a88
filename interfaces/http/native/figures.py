"""Figures of the fleet: costs, a report, the known models, and the state of the cluster."""

from collections.abc import Mapping
from typing import Any

import msgspec

from everlog.actors.hosting.cluster_status import StatusSource
from everlog.actors.models.prices import PriceList
from everlog.actors.reports.call_costs import costs_by_day, summed
from everlog.actors.reports.fleet_figures import ReportScope, figures
from everlog.actors.reports.fleet_listing import costs_by_agent
from everlog.events import BadInput
from everlog.events.times import iso, microseconds_of
from everlog.interfaces.fleet import status_page
from everlog.interfaces.http.core.fleet_queries import QueryRun, over_fleet, position_of
from everlog.interfaces.http.core.moments import time_of_parameter
from everlog.interfaces.http.core.routes import HttpCall
from everlog.interfaces.manage.models_command import rows_of
from everlog.interfaces.wire.sql import (
    ClusterShape,
    CostAgentsQuery,
    CostOfAgent,
    CostOfAgents,
    CostOfDay,
    CostQuery,
    CostShape,
    CostSums,
    DailyBudget,
    ModelsShape,
    ReportQuery,
    ReportShape,
)
from everlog.projections.fleet_views import FleetViews
from everlog.store import Snapshot


async def show_cost(call: HttpCall) -> CostShape:
    """Sum tokens and money by day and model, of all agents or of one with its daily budget."""
    query: CostQuery = call.query
    prices, today = await prices_of_server(call), today_of(call)
    budget = await _budget(call, query.agent) if query.agent else None
    rows = await over_fleet(
        call, lambda views, _position, _run: costs_by_day(views, today, query.days), agent=query.agent
    )  # fmt: skip
    days = [{**row, "day": row["day"].isoformat()} for row in rows]
    return CostShape(
        agent=query.agent or None, today=today, currency=prices.currency, budget=budget,
        rows=[msgspec.convert(row, CostOfDay) for row in days], total=_sums(summed(days)),
        spent_today=_sums(summed([row for row in days if row["day"] == today])),
    )  # fmt: skip


async def show_cost_of_agents(call: HttpCall) -> CostOfAgents:
    """Sum tokens and money by agent, the most expensive first. Deleted agents are listed too."""
    query: CostAgentsQuery = call.query
    prices, today = await prices_of_server(call), today_of(call)
    rows = await over_fleet(call, lambda views, _position, _run: costs_by_agent(views, today, query.days))
    rows = sorted(rows, key=lambda row: (-(row["cost"] or 0), row["agent_id"]))
    shown = [CostOfAgent(agent=row["agent_id"], **msgspec.structs.asdict(_sums(row))) for row in rows]
    return CostOfAgents(today=today, currency=prices.currency, rows=shown, total=_sums(summed(rows)))


async def show_report(call: HttpCall) -> ReportShape:
    """Return figures of the fleet, each in words and with the numbers behind it."""
    query: ReportQuery = call.query
    first, last = (_time(given, name) for given, name in ((query.since, "since"), (query.until, "until")))
    if first is not None and last is not None and first > last:
        raise BadInput("`since` is after `until`: no time is between them.")
    prices, at = await prices_of_server(call), call.service.ports.clock.now()

    def reported(views: FleetViews, position: Snapshot, _run: QueryRun) -> ReportShape:
        found = figures(views, prices.currency, ReportScope(first, last), query.by)
        told = msgspec.structs.asdict(position_of(call, views, position, at))
        return ReportShape(**told, figures=msgspec.to_builtins(found))

    return await over_fleet(call, reported, as_of=query.as_of, agent=query.agent, skip_damaged=query.skip_damaged)


async def list_models(call: HttpCall) -> ModelsShape:
    """List the known models with their abilities and prices."""
    rows = await call.service.ports.aside(lambda: list(rows_of(call.service.system.store.root)))
    if call.names.tenant:  # where they are served is the operator's business
        rows = [{**row, "url": None, "endpoint": None, "server": None} for row in rows]
    return ModelsShape(models=rows)


async def show_cluster(call: HttpCall) -> ClusterShape:
    """Return the state of the cluster that runs the agents."""
    runtime = call.service.system.runtime
    if not isinstance(runtime, StatusSource):
        return ClusterShape(running=False, status=None)
    now = await runtime.status()
    return ClusterShape(running=True, status=status_page.shape(now, now))


async def prices_of_server(call: HttpCall) -> PriceList:
    """Return the prices of the server. Raises BadInput if they are not usable."""
    found = await call.service.system.prices()
    if isinstance(found, BadInput):
        raise found
    return found


def today_of(call: HttpCall) -> str:
    """Return the day of the server's clock, UTC, as an ISO date."""
    return iso(call.service.ports.clock.now())[:10]


def _time(given: str | None, name: str) -> int | None:
    when = time_of_parameter(given, name)
    return None if when is None else microseconds_of(when, name)


def _sums(row: Mapping[str, Any]) -> CostSums:
    return CostSums(**{name: row[name] for name in CostSums.__struct_fields__})


async def _budget(call: HttpCall, agent: str) -> DailyBudget:
    """Return the limits of an agent for a day. Raises UnknownAgent."""
    stream = call.service.system.store.stream_of(call.names.inner(agent))
    async with await call.service.system.view(stream) as view:
        config = (await view.context()).config
        return DailyBudget(tokens=config.day_tokens_max, cost=config.day_cost_max)
