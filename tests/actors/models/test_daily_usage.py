"""An agent's usage of today is in its log, so a restarted gateway and a restarted agent know it."""

import asyncio
from typing import Any

import pytest

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.local_system import AgentServices, LocalSystem
from everlog.actors.gateway.gateway import Gateway
from everlog.actors.gateway.gateway_limits import GatewayLimits
from everlog.actors.hosting.agent_factory import GatewayModel
from everlog.actors.models.daily_usage import DAY_US, spent_in
from everlog.events import BudgetExceeded, OverBudget, Usage, UserMessage, event_of
from tests.support.agent_world import World, completion, say

URL = "http://127.0.0.1:1/v1"
DAY_S = DAY_US // 1_000_000
TOTAL = 10_000
"""Tokens of each answer, all but ten of them for the request; a request is estimated at about 4,000."""


def a_world(**settings: Any) -> World:
    world = World(after=say("Yes.", total=TOTAL))
    world.settings = Settings(model="gpt-4o", **settings)
    return world


def behind(world: World, **limits: Any) -> None:
    """Give the agents of this world a new gateway."""
    gateway = Gateway(lambda *_: world.model, GatewayLimits(**limits), clock=world.clock)
    services = AgentServices(models_of=lambda agent_id: lambda name: GatewayModel(name, URL, gateway.ask, agent_id))
    world.system = LocalSystem(world.store, services=services, ports=world.ports)


def test_a_restarted_gateway_knows_the_usage_of_today() -> None:
    """Three answers of 10,000 tokens are counted, each by a new gateway; a fourth request would exceed 30,000 and is
    not sent.
    """
    world = a_world()
    for _ in range(3):
        behind(world, agent_tokens_max=30_000)
        asyncio.run(world.tell("Hello"))
    behind(world, agent_tokens_max=30_000)
    with pytest.raises(OverBudget) as refused:
        asyncio.run(world.tell("Hello"))
    assert (refused.value.budget, refused.value.spent) == ("agent tokens", 30_000) and len(world.model.requests) == 3


@pytest.mark.parametrize(
    ("settings", "budget", "spent"),
    [
        ({"day_tokens_max": 30_000}, "day tokens", 30_000),
        ({"day_cost_max": 0.08}, "day cost", 3 * (9_990 * 2.5 + 10 * 10) / 1e6),
    ],
)
def test_an_agents_own_budget_outlives_gateway_and_agent(settings: dict[str, Any], budget: str, spent: float) -> None:
    """The daily limit in the agent's configuration is checked against the usage in its log, and `budget_exceeded` names
    the budget.
    """
    world = a_world(**settings)
    for _ in range(3):
        behind(world)
        asyncio.run(world.tell("Hello"))
    with pytest.raises(OverBudget):
        asyncio.run(world.tell("Hello"))
    exceeded = event_of(world.log()[-1])
    assert isinstance(exceeded, BudgetExceeded) and exceeded.budget == budget
    assert exceeded.spent == pytest.approx(spent) and len(world.model.requests) == 3
    world.clock.skip(DAY_S)
    asyncio.run(world.tell("Hello again"))
    assert len(world.model.requests) == 4


def test_an_open_agent_keeps_counting_and_resets_at_midnight() -> None:
    """Two answers fit the budget, a third does not, and the next day one does again."""
    world = a_world(day_tokens_max=20_000)
    behind(world)

    async def main() -> None:
        async with world.system.agent("sam", world.settings) as agent:
            for number in range(3):
                await agent.receive(UserMessage(text="Hello"))
                if number < 2:
                    await agent.run()
                else:
                    with pytest.raises(OverBudget):
                        await agent.run()
            world.clock.skip(DAY_S)
            await agent.receive(UserMessage(text="Good morning"))
            await agent.run()

    asyncio.run(main())
    assert len(world.model.requests) == 3


def test_summaries_and_refused_replies_count_by_the_model_that_was_asked() -> None:
    """A summary counts for the summarizer and a rejected first message for the agent's model, whatever name the
    endpoint reports.
    """
    world = World(
        completion("No call.", total=500), after=say("Yes.", total=700), summaries=[completion("S.", total=90)]
    )
    world.settings = Settings(model="big", summarizer="small", window=8192, verify_first=True)
    behind(world)

    async def main() -> None:
        async with world.system.agent("sam", world.settings) as agent:
            for _ in range(4):
                await agent.receive(UserMessage(text="Hello"))
                await agent.run()
            assert await agent.summarize()
            assert (await agent.models.ledger.spent()).models == spent_in(world.log(), "")

    asyncio.run(main())
    found = spent_in(world.log(), "")
    assert {name: usage.total for name, usage in found.items()} == {"big": 500 + 4 * 700, "small": 90}


def test_a_fork_does_not_inherit_the_usage_of_its_parent() -> None:
    """Calls in the inherited past count for the parent only."""
    world = a_world(day_tokens_max=12_000)
    behind(world)
    asyncio.run(world.tell("Hello"))
    world.system.fork("sam", "tim")
    asyncio.run(world.tell("Hello", agent="tim"))
    assert spent_in(world.log("tim"), "")["gpt-4o"] == Usage(prompt=TOTAL - 10, completion=10, total=TOTAL)
    with pytest.raises(OverBudget):
        asyncio.run(world.tell("Hello"))
