"""Answer questions about the whole fleet, each in words and with the figures behind the answer.

Used by `everlog report`, in the terminal, as HTML and as JSON: the names of the fields are the keys of `--json`. All
data comes from the views of `everlog.projections.fleet_views`. Equal logs, prices and times give equal answers.
"""

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from typing import Any, Literal

import msgspec

from everlog.projections.fleet_views import FleetViews

TOP = 10
"""Largest number of agents, models or failure kinds in a chart."""
DAYS_MAX = 60
"""Largest number of days in a chart: the last ones."""

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
    form: Literal["days", "bars"]
    points: list[ChartPoint]


class FleetFigures(msgspec.Struct, frozen=True):
    """All figures of the fleet."""

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


def figures(views: FleetViews, currency: str) -> FleetFigures:
    """Return all figures. `currency`: that of the prices. Raises CorruptLog, BadInput."""

    def ask(query: str) -> list[FigureRow]:
        found: list[FigureRow] = views.table(query).to_pylist()
        return found

    (agents,) = ask(
        "SELECT count(*) FILTER (NOT deleted) AS alive, count(*) FILTER (deleted) AS deleted FROM agents WHERE current"
    )
    (turns,) = ask("SELECT count(*) FILTER (status = 'open') AS open FROM turns")
    (calls,) = ask(
        "SELECT count(*) AS calls, coalesce(sum(tokens), 0) AS tokens, "
        "coalesce(sum(prompt_tokens), 0) AS prompt_tokens, coalesce(sum(cached_tokens), 0) AS cached_tokens, "
        f"coalesce(sum(completion_tokens), 0) AS completion_tokens, {_PRICED} FROM model_calls"
    )
    unpriced, cost = calls.pop("unpriced"), calls.pop("cost")
    latency = _latency(ask)
    days = _days(ask)
    pressed = _pressure(ask, agents["alive"])
    failed = _failures(ask)
    edited = _memory(ask)
    return FleetFigures(
        agents=agents["alive"],
        deleted=agents["deleted"],
        messages=int(sum(point.value for point in days)),
        turns_open=turns["open"],
        **calls,
        cost=None if cost is None else round(cost, 6),
        latency_ms=latency,
        failures=failed[0],
        edits=edited[0],
        near=pressed[0],
        charts=[
            _said(days),
            _spent(ask, calls, cost, unpriced, currency),
            _latency_chart(latency, calls["calls"]),
            failed[1],
            edited[1],
            pressed[1],
            _busy(ask),
        ],
    )


QueryRunner = Callable[[str], list[FigureRow]]


def _days(ask: QueryRunner) -> list[ChartPoint]:
    """Return the messages of each day from the first to the last; days without messages are 0."""
    rows = ask("SELECT day, count(*) AS n FROM messages GROUP BY day ORDER BY day")
    if not rows:
        return []
    counted = {row["day"]: row["n"] for row in rows}
    last: date = rows[-1]["day"]
    first = max(rows[0]["day"], last - timedelta(days=36_500))
    every = (first + timedelta(days=number) for number in range((last - first).days + 1))
    return [ChartPoint(day.isoformat(), counted.get(day, 0)) for day in every]


def _said(days: Sequence[ChartPoint]) -> Chart:
    total = int(sum(point.value for point in days))
    busiest = max(days, key=lambda point: point.value, default=None)
    answer = "Nothing has been said yet."
    if busiest is not None:
        answer = f"Busiest day: {busiest.label}, with {_count(busiest.value, 'message')} of {total:,}"
        answer += f" in {_count(len(days), 'day')}."
        answer += f" Shown are the last {DAYS_MAX} days." if len(days) > DAYS_MAX else ""
    return Chart("messages", "How much is said each day?", answer, "messages", "day, UTC", "days", [*days[-DAYS_MAX:]])


_PRICED = (
    "sum(cost) FILTER (model <> 'offline') AS cost, count(*) FILTER (cost IS NULL AND outcome <> 'failed') AS unpriced"
)


def _spent(ask: QueryRunner, calls: FigureRow, cost: float | None, unpriced: int, currency: str) -> Chart:
    known = cost is not None
    rows = ask(
        "SELECT model, count(*) AS calls, sum(tokens) AS tokens, sum(cached_tokens) AS cached, "
        "coalesce(sum(cost), 0) AS cost FROM model_calls GROUP BY model "
        f"ORDER BY {'cost DESC, ' if known else ''}tokens DESC, model LIMIT {TOP}"
    )
    points = [
        ChartPoint(row["model"] or "(not named)", row["cost"] if known else row["tokens"],
              f"{row['tokens']:,} tokens{_cached(row['cached'])} in {_count(row['calls'], 'call')}")
        for row in rows
    ]  # fmt: skip
    used = f"{calls['tokens']:,} tokens in {_count(calls['calls'], 'model call')}"
    answer = f"{used}. No prices are known, so nobody knows the money."
    if cost is not None:
        answer = f"{cost:,.2f} {currency}, for {used}, at the prices of now"
        answer += f"; no price is known of {_count(unpriced, 'call')} among them." if unpriced else "."
    if not calls["calls"]:
        answer = "No model has been called yet."
    unit = currency if known else "tokens"
    return Chart("cost", "What do the models cost?", answer, unit, "model", "bars", points)


def _cached(tokens: int) -> str:
    return f" ({tokens:,} cached)" if tokens else ""


def _latency(ask: QueryRunner) -> dict[str, float]:
    (row,) = ask(
        "SELECT quantile_disc(latency_us, [0.5, 0.9, 0.99]) AS us FROM model_calls "
        "WHERE outcome = 'ok' AND latency_us > 0"
    )
    return {name: us / 1000 for name, us in zip(("p50", "p90", "p99"), row["us"] or [], strict=False)}


def _latency_chart(latency: dict[str, float], calls: int) -> Chart:
    answer = "No call has a time." if calls else "No model has been called yet."
    if latency:
        answer = (
            f"Half of the calls took up to {_ms(latency['p50'])}, one in ten more than {_ms(latency['p90'])}, one in a "
            f"hundred more than {_ms(latency['p99'])}."
        )
    points = [ChartPoint(name, ms) for name, ms in latency.items()]
    return Chart("latency", "How long does a model take to answer?", answer, "ms", "share of calls", "bars", points)


def _failures(ask: QueryRunner) -> tuple[int, Chart]:
    rows = ask(
        "SELECT what, coalesce(kind, '') AS kind, name, count(*) AS n, count(DISTINCT agent_id) AS agents, "
        "sum(count(*)) OVER () AS total FROM failures GROUP BY ALL ORDER BY n DESC, what, kind, name "
        f"LIMIT {TOP}"
    )
    points = [
        ChartPoint(f"{row['name'] or row['what']} {row['kind']}".strip(), row["n"],
              f"of {_count(row['agents'], 'agent')}")
        for row in rows
    ]  # fmt: skip
    total = int(rows[0]["total"]) if rows else 0
    answer = f"{_count(total, 'failure')}; most often: {points[0].label}, {points[0].value:,}." if rows else "Nothing."
    return total, Chart("failures", "What fails?", answer, "times", "what, and how", "bars", points)


def _memory(ask: QueryRunner) -> tuple[int, Chart]:
    rows = ask(
        "SELECT coalesce(label, '') AS label, count(*) AS n, count(DISTINCT agent_id) AS agents, "
        "sum(count(*)) OVER () AS total "
        f"FROM memory_history WHERE operation <> 'created' GROUP BY label ORDER BY n DESC, label LIMIT {TOP}"
    )
    most = ask(
        "SELECT agent_id, count(*) AS n FROM memory_history WHERE operation <> 'created' GROUP BY agent_id "
        "ORDER BY n DESC, agent_id LIMIT 1"
    )
    points = [ChartPoint(row["label"], row["n"], f"by {_count(row['agents'], 'agent')}") for row in rows]
    total = int(rows[0]["total"]) if rows else 0
    answer = "No agent has changed its core memory yet."
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
        answer = f"{near:,} of {_count(alive, 'agent')} at or above the part at which they are warned. "
        answer += f"Fullest: {points[0].label}, {points[0].value:.0f} %."
    title = "Who is near the end of its window?"
    return near, Chart("pressure", title, answer, "% of the window", "agent", "bars", points)


def _busy(ask: QueryRunner) -> Chart:
    rows = ask(
        "SELECT agent_id, sum(messages) AS n, max(turns) AS turns FROM agents GROUP BY agent_id HAVING n > 0 "
        f"ORDER BY n DESC, agent_id LIMIT {TOP}"
    )
    points = [ChartPoint(row["agent_id"], row["n"], _count(row["turns"], "turn")) for row in rows]
    answer = "Nobody has said anything yet."
    if rows:
        answer = f"{points[0].label}, with {_count(points[0].value, 'message')} in {points[0].note}."
    return Chart("active", "Who is most active?", answer, "messages", "agent", "bars", points)


def _count(number: float, what: str) -> str:
    return f"{number:,.0f} {what}{'s' * (number != 1)}"


def _ms(ms: float) -> str:
    return f"{ms / 1000:,.1f} s" if ms >= 1000 else f"{ms:,.3g} ms"
