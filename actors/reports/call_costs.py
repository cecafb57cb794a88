"""Sum the tokens and costs of model calls, by day and model or by agent, in columns of the fleet's views.

Used by `everlog cost`. Calls whose endpoint reported no tokens are estimated as budgets do, see
`daily_usage.usage_of_answer`: else a sum would say 0 where a budget refuses.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from everlog.actors.models.daily_usage import BYTES_PER_TOKEN
from everlog.projections.fleet_views import FleetViews

CostRow = dict[str, Any]
"""Sums over some calls, by column."""

ANSWERED = f"""WITH recent AS MATERIALIZED (
    SELECT agent_id, life, seq, day, model, context_bytes, prompt_tokens, cached_tokens, completion_tokens, tokens
    FROM model_calls WHERE day > DATE '{{today}}' - {{days}}
),
priced AS MATERIALIZED (SELECT model, price_of(model) AS price FROM (SELECT DISTINCT model FROM recent)),
estimated AS (
    SELECT c.agent_id, c.day, c.model, c.context_bytes // {BYTES_PER_TOKEN} AS prompt_tokens, 0 AS cached_tokens,
        length(r.payload->>'$.raw') // {BYTES_PER_TOKEN} AS completion_tokens, true AS estimated
    FROM recent c JOIN records r ON r.agent_id = c.agent_id AND r.life = c.life AND r.seq = c.seq
    WHERE c.tokens = 0 AND length(r.payload->>'$.raw') > 0
),
counted AS (
    SELECT agent_id, day, model, prompt_tokens, cached_tokens, completion_tokens, tokens, false AS estimated
    FROM recent WHERE tokens > 0
    UNION ALL BY NAME SELECT *, prompt_tokens + completion_tokens AS tokens FROM estimated
),
answered AS MATERIALIZED (
    SELECT c.*, cost_at(p.price, prompt_tokens, completion_tokens, tokens, cached_tokens) AS cost
    FROM counted c JOIN priced p USING (model)
)"""
"""Definition of `answered`: the answered calls of the last days."""
SUMS = """count(*) AS calls, sum(prompt_tokens) AS prompt_tokens, sum(cached_tokens) AS cached_tokens,
    sum(completion_tokens) AS completion_tokens, sum(tokens) AS tokens, sum(cost) AS cost,
    count(*) FILTER (cost IS NULL) AS unpriced, count(*) FILTER (estimated) AS estimated"""
"""Sums over rows of `answered`."""
_BY_DAY = f"{ANSWERED} SELECT day, model, {SUMS} FROM answered GROUP BY day, model ORDER BY day, cost DESC, model"
_BY_DAY_AND_DEAREST = f"""{ANSWERED},
dearest AS (
    FROM answered SELECT agent_id GROUP BY agent_id ORDER BY sum(cost) DESC NULLS LAST, sum(tokens) DESC, agent_id
    LIMIT {{most}}
),
summed AS (
    SELECT NULL AS agent_id, day, model, {SUMS} FROM answered GROUP BY day, model
    UNION ALL
    SELECT agent_id, day, model, {SUMS} FROM answered SEMI JOIN dearest USING (agent_id) GROUP BY agent_id, day, model
)
FROM summed
ORDER BY agent_id NULLS FIRST, day, CASE WHEN agent_id IS NULL THEN cost END DESC NULLS LAST, model"""


def costs_by_day(views: FleetViews, today: str, days: int) -> list[CostRow]:
    """Return the sums of each day (UTC) and model over the last `days` days, `today` (an ISO date) included."""
    rows: list[CostRow] = views.table(_BY_DAY.format(today=today, days=days)).to_pylist()
    return rows


def costs_by_day_and_dearest(
    views: FleetViews, today: str, days: int, most: int
) -> tuple[list[CostRow], list[CostRow]]:  # fmt: skip
    """Return the sums of each day and model, as `costs_by_day` does, and those of each agent, day (UTC) and model, of
    the `most` agents that cost most; without prices, of those that used most tokens. The calls are read once.
    """
    query = _BY_DAY_AND_DEAREST.format(today=today, days=days, most=most)
    rows: list[CostRow] = views.table(query).to_pylist()
    by_day = [
        {key: value for key, value in row.items() if key != "agent_id"} for row in rows if row["agent_id"] is None
    ]
    return by_day, [row for row in rows if row["agent_id"] is not None]


def summed(rows: Sequence[Mapping[str, Any]]) -> CostRow:
    """Return the sums over all rows. The cost covers the calls whose price is known; it is None if there is no such
    call.
    """
    known = [row["cost"] for row in rows if row["cost"] is not None]
    counts = ("calls", "tokens", "prompt_tokens", "cached_tokens", "completion_tokens", "unpriced", "estimated")
    return {**{key: sum(row[key] for row in rows) for key in counts}, "cost": sum(known) if known else None}
