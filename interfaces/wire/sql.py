"""Queries over all agents, and figures of the fleet, as they go over HTTP."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec

from everlog.store import FleetPosition

POSITION_KEY = b"everlog"
"""Key in the metadata of the schema of an answer in Arrow: the `FleetPosition`, as JSON."""


class SqlBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One SELECT over the views of all agents; docs/reference/sql.md has the views."""

    query: str
    format: Literal["json", "csv", "arrow"] = "json"
    """`arrow`: a stream of Arrow IPC."""
    as_of: str | None = None
    """Time with a zone: only records up to then."""
    agent: str = ""
    """Only records of this agent; empty: of all."""
    params: dict[str, str] = {}
    """Texts in place of each `$name` of the query."""
    skip_damaged: bool = False
    """True: leave damaged logs out of the answer, and say which. For the operator only."""
    check: bool = False
    """True: read the register of agents, and say what is missing. A tenant is told nothing of it."""


class SqlColumn(msgspec.Struct, frozen=True, kw_only=True):
    """Column of an answer."""

    name: str
    type: str


class SqlAnswer(FleetPosition, frozen=True, kw_only=True):
    """Answer of a query. In Arrow the metadata of the schema has the position."""

    columns: Sequence[SqlColumn]
    rows: Sequence[Sequence[Any]]


class CostQuery(msgspec.Struct, frozen=True):
    """Choice of costs."""

    agent: str = ""
    """Only this agent; empty: all."""
    days: Annotated[int, msgspec.Meta(ge=1, le=36_500)] = 7
    """Number of days up to today (UTC)."""


class CostAgentsQuery(msgspec.Struct, frozen=True):
    """Over which days to sum."""

    days: Annotated[int, msgspec.Meta(ge=1, le=36_500)] = 7
    """Number of days up to today (UTC)."""


class CostSums(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over model calls."""

    calls: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    tokens: int
    cost: float | None
    """Of the calls whose price is known; null if there is none."""
    unpriced: int
    """Calls without a known price."""
    estimated: int
    """Calls whose endpoint reported no tokens."""


class CostOfDay(CostSums, frozen=True, kw_only=True):
    """Sums of one day and model."""

    day: str
    model: str


class CostOfAgent(CostSums, frozen=True, kw_only=True):
    """Sums of one agent."""

    agent: str


class DailyBudget(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of an agent for a day; 0: no limit."""

    tokens: int
    cost: float


class CostShape(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens and money by day and model."""

    agent: str | None
    today: str
    currency: str
    rows: Sequence[CostOfDay]
    total: CostSums
    spent_today: CostSums
    budget: DailyBudget | None
    """Of the agent; null for all agents."""


class CostOfAgents(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens and money by agent."""

    today: str
    currency: str
    rows: Sequence[CostOfAgent]
    total: CostSums


class ReportQuery(msgspec.Struct, frozen=True):
    """Over which times to report."""

    since: str | None = None
    """Time with a zone."""
    until: str | None = None
    """Time with a zone, inclusive."""
    by: Literal["day", "week", "month", "year"] | None = None
    """Unit of the charts over time; left out: one that fits."""
    agent: str = ""
    """Only records of this agent; empty: of all."""
    as_of: str | None = None
    """Time with a zone: only records up to then."""
    skip_damaged: bool = False
    """True: leave damaged logs out of the figures, and say which. For the operator only."""


class ReportShape(FleetPosition, frozen=True, kw_only=True):
    """Figures of the fleet, as `everlog report --json` prints them."""

    figures: Mapping[str, Any]


class ModelsShape(msgspec.Struct, frozen=True, kw_only=True):
    """Known models, the offline model first, as `everlog models --json` prints them."""

    models: Sequence[Mapping[str, Any]]


class ClusterShape(msgspec.Struct, frozen=True, kw_only=True):
    """State of the cluster that runs the agents."""

    running: bool
    """False: agents run in the process of the server."""
    status: Mapping[str, Any] | None
    """As `everlog cluster status --json` prints it, without rates; null if no cluster runs."""
