"""The page of costs has the sums of `everlog cost`, and says of each agent since when and why."""

import asyncio
from datetime import date, timedelta
from pathlib import Path

import pytest

from everlog.actors.reports.call_costs import summed
from everlog.interfaces.http.console.questions.costs_page import dearest
from tests.interfaces.console.test_every_page import cookie, script
from tests.support.http.parsed_page import ParsedPage
from tests.support.http.served_store import served

SPAN = [date(2026, 1, 1) + timedelta(days=day) for day in range(7)]


def row(agent: str, day: int, model: str, tokens: int, cost: float | None) -> dict[str, object]:
    """Return sums of one call."""
    counts = {"calls": 1, "prompt_tokens": tokens, "cached_tokens": 0, "completion_tokens": 0, "tokens": tokens}
    return {"agent_id": agent, "day": SPAN[day], "model": model, **counts, "cost": cost,
            "unpriced": int(cost is None), "estimated": 0}  # fmt: skip


def test_the_dearest_agent_comes_first_with_its_reasons() -> None:
    """Agents are ordered by money, and each has its share, its first day, its largest day and its largest model."""
    rows = [row("a", 0, "big", 10, 1.0), row("a", 3, "big", 10, 6.0), row("a", 3, "small", 900, 1.0),
            row("b", 5, "small", 5000, 2.0)]  # fmt: skip
    first, second = dearest(rows, SPAN, summed(rows))
    assert (first.agent, second.agent) == ("a", "b")
    assert (first.share, first.since, first.peak) == (0.8, "2026-01-01", "2026-01-04")
    assert (first.model, first.model_share, first.peak_share) == ("big", 7 / 8, 7 / 8)
    assert list(first.days) == [1.0, 0, 0, 7.0, 0, 0, 0]


def test_without_prices_tokens_decide() -> None:
    """If no call has a known price, shares and order are those of tokens."""
    rows = [row("a", 0, "x", 100, None), row("b", 0, "x", 300, None)]
    assert [(one.agent, one.share) for one in dearest(rows, SPAN, summed(rows))] == [("b", 0.75), ("a", 0.25)]


def test_the_page_has_the_numbers_of_the_api_and_of_the_tenant_alone(tmp_path: Path) -> None:
    """Calls and tokens of an agent are those of `/cost/agents`; another tenant sees none of them."""

    async def main() -> None:
        async with served(tmp_path, script()) as server:
            await server.call("POST", "/agents", {"name": "sam"}, headers=server.key(tenant="acme"), status=201)
            mine = server.key("talk", "acme")
            await server.call("POST", "/agents/sam/messages", {"text": "Hi"}, headers=mine, status=200)
            known = (await server.call("GET", "/cost/agents", headers=mine))["rows"]
            (sam,) = (one for one in known if one["agent"] == "sam")
            assert sam["calls"] > 0
            page = ParsedPage((await server.client.get("/console/costs", headers=cookie(server, mine))).text)
            page.check()
            assert "/console/a/sam" in page.values("a", "href")
            assert f"{sam['tokens']:,}" in page.text and "acme" not in page.text
            other = await server.client.get("/console/costs", headers=cookie(server, server.key("read", "beta")))
            assert "No model calls" in other.text and "/a/sam" not in other.text

    asyncio.run(main())


@pytest.mark.parametrize("days", [0, 367, -1])
def test_days_that_cannot_be_are_refused(tmp_path: Path, days: int) -> None:
    """A number of days outside the limits answers 400 as a page."""

    async def main() -> None:
        async with served(tmp_path) as server:
            page = await server.client.get(f"/console/costs?days={days}")
            assert page.status_code == 400
            ParsedPage(page.text).check()

    asyncio.run(main())
