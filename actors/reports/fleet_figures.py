"""Answer questions about the whole fleet, each in words and with the figures behind the answer.

Used by `everlog report`, in the terminal, as HTML and as JSON: the names of the fields are the keys of `--json`. All
data comes from the views of `everlog.projections.fleet_views`. Equal logs, prices and times give equal answers.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any, Literal, NamedTuple

import msgspec

from everlog.actors.reports.time_buckets import (
    AXES,
    BUCKETS_MAX,
    Unit,
    beginning,
    count_between,
    label,
    last_buckets,
    unit_for,
)
from everlog.projections.fleet_views import FleetViews

TOP = 10
"""Largest number of agents, models or failure kinds in a chart."""

FigureRow = dict[str, Any]


class ChartPoint(msgspec.Struct, frozen=True):
    """One bar."""

    label: str
    value: float
    note: str = ""
    """Further facts about the bar."""


class Chart(msgspec.Struct, frozen=True):
    """One question with its answer and its figures."""

    key: str
    title: str
    answer: str
    unit: str
    """Unit of the values."""
    over: str
    """Meaning of the labels."""
    form: Literal["time", "bars"]
    points: list[ChartPoint]


class FleetFigures(msgspec.Struct, frozen=True):
    """All figures of the fleet."""

    by: Unit
    """Unit of the charts over time."""
    agents: int
    deleted: int
    messages: int
    turns_open: int
    calls: int
    tokens: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    cost: float | None
    """Cost of the calls with a known price, in the currency of the prices; None if there are none. The offline model is
    free.
    """
    latency_ms: dict[str, float]
    """p50, p90, p99 of model calls in milliseconds; empty if there were none."""
    failures: int
    edits: int
    near: int
    """Agents whose context window is filled at least up to the fraction at which they are warned."""
    charts: list[Chart]


class ReportScope(NamedTuple):
    """Times that a report is about, microseconds UTC, both inclusive; None: no limit."""

    first: int | None = None
    last: int | None = None

    def rows(self, view: str) -> str:
        """Return a query for the rows of a view within these times: messages by when they were said."""
        at = "said_at" if view == "messages" else "recorded_at"
        limits = [] if self.first is None else [f"{at} >= make_timestamptz({self.first})"]
        limits += [] if self.last is None else [f"{at} <= make_timestamptz({self.last})"]
        return f"(FROM {view} WHERE {' AND '.join(limits)})" if limits else view


QueryRunner = Callable[[str], list[FigureRow]]
"""Function that runs a query. A view in braces, such as {messages}, stands for its rows within the times."""
WHOLE = ReportScope()


def figures(views: FleetViews, currency: str, scope: ReportScope = WHOLE, by: Unit | None = None) -> FleetFigures:
    """Return all figures. Raises CorruptLog, BadInput.

    `currency`: that of the prices. `scope`: only messages said, and calls, failures and edits recorded, at these times;
    agents, open turns and windows are the newest. `by`: unit of the charts over time; None: the smallest that suits the
    time between the first message or failure and the last.
    """
    within = {view: scope.rows(view) for view in ("messages", "model_calls", "failures", "memory_history")}

    def ask(query: str) -> list[FigureRow]:
        found: list[FigureRow] = views.table(query.format(**within)).to_pylist()
        return found

    (agents,) = ask(
        "SELECT count(*) FILTER (NOT deleted) AS alive, count(*) FILTER (deleted) AS deleted FROM agents WHERE current"
    )
    (turns,) = ask("SELECT count(*) FILTER (status = 'open') AS open FROM turns")
    (calls,) = ask(
        "SELECT count(*) AS calls, coalesce(sum(tokens), 0) AS tokens, "
        "coalesce(sum(prompt_tokens), 0) AS prompt_tokens, coalesce(sum(cached_tokens), 0) AS cached_tokens, "
        f"coalesce(sum(completion_tokens), 0) AS completion_tokens, {_PRICED} FROM {{model_calls}}"
    )
    unpriced, cost = calls.pop("unpriced"), calls.pop("cost")
    latency = _latency(ask)
    days = {view: _days(ask, view) for view in ("messages", "failures")}
    span = _span([*days["messages"], *days["failures"]])
    unit = by or (unit_for(*span) if span else "day")
    pressed = _pressure(ask, agents["alive"])
    edited = _memory(ask)
    return FleetFigures(
        by=unit,
        agents=agents["alive"],
        deleted=agents["deleted"],
        messages=sum(days["messages"].values()),
        turns_open=turns["open"],
        **calls,
        cost=None if cost is None else round(cost, 6),
        latency_ms=latency,
        failures=sum(days["failures"].values()),
        edits=edited[0],
        near=pressed[0],
        charts=[
            _over_time("messages", f"How much is said each {unit}?", "message", "Nothing was said.", days, unit),
            _spent(ask, calls, cost, unpriced, currency),
            _latency_chart(ask, latency, calls["calls"]),
            _failures(ask),
            _over_time("failures", f"How much fails each {unit}?", "failure", "Nothing.", days, unit),
            edited[1],
            pressed[1],
            _busy(ask),
        ],
    )


DayCounts = dict[date, int]


def _days(ask: QueryRunner, view: str) -> DayCounts:
    rows = ask(f"SELECT day, count(*) AS n FROM {{{view}}} GROUP BY day ORDER BY day")
    return {row["day"]: row["n"] for row in rows}


def _span(days: Sequence[date]) -> tuple[date, date] | None:
    return (min(days), max(days)) if days else None


def _over_time(view: str, title: str, noun: str, nothing: str, days: dict[str, DayCounts], unit: Unit) -> Chart:
    """Return the rows of a view in each bucket. All charts over time have the same buckets, also empty ones."""
    counts: Counter[date] = Counter()
    for day, count in days[view].items():
        counts[beginning(day, unit)] += count
    span = _span([day for counted in days.values() for day in counted])
    answer, points = nothing, []
    if counts and span:
        busiest = max(counts, key=lambda bucket: (counts[bucket], -bucket.toordinal()))
        number = count_between(*span, unit)
        shown = f" Shown are the last {BUCKETS_MAX} {unit}s." if number > BUCKETS_MAX else ""
        answer = (
            f"Most in the {unit} {'' if unit in ('month', 'year') else 'of '}{label(busiest, unit)}: "
            f"{counts[busiest]:,} of {_count(counts.total(), noun)} in {_count(number, unit)}.{shown}"
        )
        points = [ChartPoint(label(bucket, unit), counts[bucket]) for bucket in last_buckets(*span, unit)]
    key = {"messages": "messages", "failures": "failures_over_time"}[view]
    return Chart(key, title, answer, f"{noun}s", AXES[unit], "time", points)


_PRICED = (
    "sum(cost) FILTER (model <> 'offline') AS cost, count(*) FILTER (cost IS NULL AND outcome <> 'failed') AS unpriced"
)


def _spent(ask: QueryRunner, calls: FigureRow, cost: float | None, unpriced: int, currency: str) -> Chart:
    known = bool(cost)  # bars of nothing but 0 say nothing: then they show tokens
    rows = ask(
        "SELECT model, count(*) AS calls, sum(tokens) AS tokens, sum(cached_tokens) AS cached, "
        "coalesce(sum(cost), 0) AS cost FROM {model_calls} GROUP BY model HAVING sum(tokens) > 0 "
        f"ORDER BY {'cost DESC, ' if known else ''}tokens DESC, model LIMIT {TOP}"
    )
    points = [
        ChartPoint(row["model"] or "(not named)", row["cost"] if known else row["tokens"],
              f"{row['tokens']:,} tokens{_cached(row['cached'])} in {_count(row['calls'], 'call')}" if known
              else f"in {_count(row['calls'], 'call')}{_cached(row['cached'])}")
        for row in rows
    ]  # fmt: skip
    used = f"{calls['tokens']:,} tokens in {_count(calls['calls'], 'model call')}"
    answer = f"{used}. The cost is unknown: no model has a price."
    if cost == 0:
        answer = f"{used}, which cost nothing"
        answer += f"; {_count(unpriced, 'more call')} without a price." if unpriced else "."
    elif cost is not None:
        answer = f"{cost:,.2f} {currency}, for {used}, at current prices"
        answer += f"; {_count(unpriced, 'call')} of these without a price." if unpriced else "."
    if not calls["calls"]:
        answer = "No model was called."
    title, unit = ("What do the models cost?", currency) if known else ("Which models use the most tokens?", "tokens")
    return Chart("cost", title, answer, unit, "model", "bars", points)


def _cached(tokens: int) -> str:
    return f" ({tokens:,} cached)" if tokens else ""


def _latency(ask: QueryRunner) -> dict[str, float]:
    (row,) = ask(f"SELECT {_QUANTILES} FROM {{model_calls}} WHERE {_TIMED}")
    return {name: us / 1000 for name, us in zip(("p50", "p90", "p99"), row["us"] or [], strict=False)}


_QUANTILES = "quantile_disc(latency_us, [0.5, 0.9, 0.99]) AS us"
_TIMED = "outcome = 'ok' AND latency_us > 0"


def _latency_chart(ask: QueryRunner, latency: dict[str, float], calls: int) -> Chart:
    """Return the median of each model, those with the most calls, the slowest first."""
    answer = "No call was timed." if calls else "No model was called."
    if latency:
        answer = (
            f"Half of the calls took up to {_ms(latency['p50'])}, one in ten more than {_ms(latency['p90'])}, one in a "
            f"hundred more than {_ms(latency['p99'])}."
        )
    rows = ask(
        f"SELECT * FROM (SELECT model, count(*) AS calls, {_QUANTILES} FROM {{model_calls}} WHERE {_TIMED} "
        f"GROUP BY model ORDER BY calls DESC, model LIMIT {TOP}) ORDER BY us[1] DESC, model"
    )
    points = [
        ChartPoint(row["model"] or "(not named)", row["us"][0] / 1000,
              f"p90 {_ms(row['us'][1] / 1000)}, p99 {_ms(row['us'][2] / 1000)}, {_count(row['calls'], 'call')}")
        for row in rows
    ]  # fmt: skip
    title = "How long does each model take to answer?"
    return Chart("latency", title, answer, "ms (median)", "model", "bars", points)


def _failures(ask: QueryRunner) -> Chart:
    rows = ask(
        "SELECT what, coalesce(kind, '') AS kind, name, count(*) AS n, count(DISTINCT agent_id) AS agents, "
        "sum(count(*)) OVER () AS total FROM {failures} GROUP BY ALL ORDER BY n DESC, what, kind, name "
        f"LIMIT {TOP}"
    )
    points = [
        ChartPoint(f"{row['name'] or row['what']} {row['kind']}".strip(), row["n"],
              f"of {_count(row['agents'], 'agent')}")
        for row in rows
    ]  # fmt: skip
    answer = "Nothing."
    if rows:
        answer = f"{_count(rows[0]['total'], 'failure')}; most often: {points[0].label}, {points[0].value:,}."
    return Chart("failures", "What fails?", answer, "times", "what, and how", "bars", points)


def _memory(ask: QueryRunner) -> tuple[int, Chart]:
    rows = ask(
        "SELECT coalesce(label, '') AS label, count(*) AS n, count(DISTINCT agent_id) AS agents, "
        "sum(count(*)) OVER () AS total "
        f"FROM {{memory_history}} WHERE operation <> 'created' GROUP BY label ORDER BY n DESC, label LIMIT {TOP}"
    )
    most = ask(
        "SELECT agent_id, count(*) AS n FROM {memory_history} WHERE operation <> 'created' GROUP BY agent_id "
        "ORDER BY n DESC, agent_id LIMIT 1"
    )
    points = [ChartPoint(row["label"], row["n"], f"by {_count(row['agents'], 'agent')}") for row in rows]
    total = int(rows[0]["total"]) if rows else 0
    answer = "No agent changed its core memory."
    if rows:
        answer = f"The block {points[0].label}: {points[0].value:,} of {_count(total, 'edit')}. "
        answer += f"Most by {most[0]['agent_id']}, {most[0]['n']:,}."
    return total, Chart("memory", "Which memory changes most?", answer, "edits", "block", "bars", points)


def _pressure(ask: QueryRunner, alive: int) -> tuple[int, Chart]:
    rows = ask(
        'SELECT agent_id, tokens, "window", used, warned, sum((used >= fraction)::INT) OVER () AS near FROM pressure '
        f"WHERE NOT deleted AND used IS NOT NULL ORDER BY used DESC, agent_id LIMIT {TOP}"
    )
    points = [
        ChartPoint(row["agent_id"], row["used"] * 100,
              f"{row['tokens']:,} of {row['window']:,} tokens{', warned' if row['warned'] else ''}")
        for row in rows
    ]  # fmt: skip
    near = int(rows[0]["near"] or 0) if rows else 0
    answer = "No agent has a window yet."
    if rows:
        answer = f"{near:,} of {_count(alive, 'agent')} at or above the fraction at which they are warned. "
        answer += f"Fullest: {points[0].label}, {points[0].value:.0f} %."
    title = "Who is near the end of its window?"
    return near, Chart("pressure", title, answer, "% of the window", "agent", "bars", points)


def _busy(ask: QueryRunner) -> Chart:
    rows = ask(
        "SELECT agent_id, count(*) AS n, count(DISTINCT (life, turn)) FILTER (turn > 0) AS turns FROM {messages} "
        f"GROUP BY agent_id ORDER BY n DESC, agent_id LIMIT {TOP}"
    )
    points = [
        ChartPoint(row["agent_id"], row["n"], f"in {_count(row['turns'], 'turn')}" if row["turns"] else "imported")
        for row in rows
    ]
    answer = "Nothing was said."
    if rows:
        answer = f"{points[0].label}, with {_count(points[0].value, 'message')} ({points[0].note})."
    return Chart("active", "Who is most active?", answer, "messages", "agent", "bars", points)


def _count(number: float, what: str) -> str:
    return f"{number:,.0f} {what}{'s' * (number != 1)}"


def _ms(ms: float) -> str:
    return f"{ms / 1000:,.1f} s" if ms >= 1000 else f"{ms:,.3g} ms"
