"""Costs, reports, models and the cluster over HTTP: of the caller's own agents."""

import asyncio
from pathlib import Path

from tests.support.cli.command_line import Script, says
from tests.support.http.served_store import served


def test_costs_and_reports_are_of_the_agents_of_the_caller(tmp_path: Path) -> None:
    """Each tenant has the sums of its own calls, the operator those of all, and agents add up to days."""

    async def main() -> None:
        async with served(tmp_path, Script([says("One"), says("Two"), says("Three")])) as server:
            acme, beta = (server.key(tenant=tenant) for tenant in ("acme", "beta"))
            for key, texts in ((acme, ["a", "b"]), (beta, ["c"])):
                await server.call("POST", "/agents", {"name": "sam"}, headers=key, status=201)
                for text in texts:
                    await server.call("POST", "/agents/sam/messages", {"text": text}, headers=key, status=200)
            for key, calls, agents in (
                (acme, 2, ["sam"]),
                (beta, 1, ["sam"]),
                (server.key(), 3, ["acme~sam", "beta~sam"]),
            ):
                cost = await server.call("GET", "/cost", headers=key, status=200)
                assert (cost["total"]["calls"], cost["spent_today"]["calls"]) == (calls, calls)
                each = await server.call("GET", "/cost/agents", headers=key, status=200)
                assert sorted(row["agent"] for row in each["rows"]) == agents
                assert each["total"] == cost["total"]
                report = await server.call("GET", "/report?by=day", headers=key, status=200)
                assert (report["figures"]["calls"], report["figures"]["agents"]) == (calls, len(agents))
            one = await server.call("GET", "/cost?agent=sam", headers=acme, status=200)
            assert (one["total"]["calls"], one["budget"]) == (2, {"tokens": 0, "cost": 0.0})
            await server.call("GET", "/cost?agent=bob", headers=acme, status=404)
            wrong = "/report?since=2026-02-01T00:00:00Z&until=2026-01-01T00:00:00Z"
            await server.call("GET", wrong, headers=acme, status=400)

    asyncio.run(main())


def test_models_are_listed_and_the_cluster_is_the_operators_business(tmp_path: Path) -> None:
    """Everybody sees which models there are; the state of the cluster is shown to the operator only."""

    async def main() -> None:
        async with served(tmp_path) as server:
            acme = server.key(tenant="acme")
            models = (await server.call("GET", "/models", headers=acme, status=200))["models"]
            assert models[0]["model"] == "offline"
            assert {row["url"] for row in models} == {None}
            await server.call("GET", "/cluster", headers=acme, status=404)
            assert await server.call("GET", "/cluster", headers=server.key(), status=200) == {
                "running": False, "status": None,
            }  # fmt: skip

    asyncio.run(main())
