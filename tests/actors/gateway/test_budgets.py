"""Budgets of one agent and of all agents together, and the records of an agent that has exceeded one."""

import asyncio
import json
import pickle
from typing import Any

import pytest

from everlog.actors.gateway.gateway_limits import GatewayLimits, limits_from
from everlog.actors.hosting.agent_factory import GatewayModel
from everlog.actors.models.daily_usage import DAY_US
from everlog.actors.ports.effects import ModelResponse, Spent
from everlog.actors.replay.rebuild_check import verify
from everlog.events import BadInput, BudgetExceeded, ModelError, OverBudget, Usage, event_of
from tests.support.agent_world import START, World, completion, kinds, say
from tests.support.models.virtual_time_models import SlowModel, gateway, outcome, run

URL = "http://127.0.0.1:1/v1"
DAY_S = 24 * 3600


def costs(total: int) -> SlowModel:
    """Return a model whose usage reports `total` tokens for each answer, ten of them for the reply."""
    return SlowModel(lambda *_: ModelResponse(completion(total=total), 1))


def by_the_log(tokens: int, **limits: Any) -> Spent:
    """Return today's usage of an agent with the model `m`, as its log would give it."""
    return Spent(START // DAY_US, {"m": Usage(prompt=tokens, total=tokens)}, **limits)


def test_an_agent_over_its_budget_is_refused_before_anything_is_sent() -> None:
    """Two answers of 500 tokens use up 1,000; the third is not sent, and another agent is answered."""

    async def main() -> None:
        model = costs(500)
        one = gateway(model, agent_tokens_max=1000)
        for _ in range(2):
            await one.ask("m", URL, b"?" * 4, "sam")
        refused = await outcome(one.ask("m", URL, b"?" * 4, "sam"))
        assert isinstance(refused, OverBudget) and len(model.asked) == 2
        assert (refused.kind, refused.budget, refused.limit, refused.spent) == ("budget", "agent tokens", 1000, 1000)
        assert "'sam'" in str(refused) and "EVERLOG_GATEWAY_AGENT_TOKENS_MAX" in str(refused)
        assert refused.retry_after_s == DAY_S - 2
        assert vars(pickle.loads(pickle.dumps(refused))) == vars(refused)
        await one.ask("m", URL, b"?" * 4, "kim")
        assert one.status().failures == {"budget": 1} and one.status().spent == (1500, 0)

    run(main)


def test_a_budget_of_all_is_for_all_together() -> None:
    """All agents share the budget of all; requests without an agent's name count as well."""

    async def main() -> None:
        one = gateway(costs(500), all_tokens_max=1000)
        await one.ask("m", URL, b"?" * 4, "sam")
        await one.ask("m", URL, b"?" * 4)
        refused = await outcome(one.ask("m", URL, b"?" * 4, "kim"))
        assert isinstance(refused, OverBudget) and refused.budget == "all tokens"

    run(main)


def test_requests_under_way_reserve_their_tokens() -> None:
    """Of ten simultaneous requests only those are sent that fit the budget, estimated at four bytes a token."""

    async def main() -> None:
        model = costs(110)
        one = gateway(model, agent_tokens_max=350)
        came = await asyncio.gather(*(outcome(one.ask("m", URL, b"x" * 400, "sam")) for _ in range(10)))
        assert len(model.asked) == 3
        assert sum(isinstance(item, OverBudget) for item in came) == 7

    run(main)


def test_failed_requests_free_their_reserved_tokens() -> None:
    """Tokens that were reserved for a failed or cancelled request are available again."""

    async def main() -> None:
        model = SlowModel(lambda *_: ModelError("No.", kind="rejected"))
        one = gateway(model, agent_tokens_max=100)
        for _ in range(3):
            assert not isinstance(await outcome(one.ask("m", URL, b"x" * 400, "sam")), OverBudget)
        gone = asyncio.create_task(one.ask("m", URL, b"x" * 400, "sam"))
        await asyncio.sleep(0.5)
        gone.cancel()
        await asyncio.wait([gone])
        assert one.status().spent == (0, 0)
        assert not isinstance(await outcome(one.ask("m", URL, b"x" * 400, "sam")), OverBudget)

    run(main)


@pytest.mark.parametrize(("per", "free"), [("day", True), ("life", False)])
def test_a_budget_begins_again_each_day_or_never(per: str, free: bool) -> None:
    """A daily budget is available again the next day; a budget for life is not."""

    async def main() -> None:
        one = gateway(costs(100), agent_tokens_max=100, budget_per=per)
        await one.ask("m", URL, b"?" * 4, "sam")
        await asyncio.sleep(DAY_S)
        came = await outcome(one.ask("m", URL, b"?" * 4, "sam"))
        assert isinstance(came, OverBudget) != free

    run(main)


def test_money_is_counted_by_the_prices() -> None:
    """90 prompt tokens at 10 a million and 10 reply tokens at 100 a million cost 0.0019 an answer; after three answers
    the limit of 0.005 is reached.
    """

    async def main() -> None:
        one = gateway(costs(100), all_cost_max=0.005, price_in=10, price_out=100)
        for _ in range(2):
            await one.ask("m", URL, b"x" * 360, "sam")
        assert one.status().spent == (200, pytest.approx(0.0038))
        await one.ask("m", URL, b"x" * 360, "sam")
        refused = await outcome(one.ask("m", URL, b"x" * 360, "sam"))
        assert isinstance(refused, OverBudget) and refused.budget == "all cost"
        assert refused.spent == pytest.approx(0.0057)

    run(main)


def test_usage_before_a_restart_counts() -> None:
    """A host may report the usage of a log any number of times: the usage counts once, for the agent and for all
    agents.
    """

    async def main() -> None:
        one = gateway(costs(100), agent_tokens_max=1000, all_tokens_max=1250)
        for spent in (750, 750, 850):
            await one.ask("m", URL, b"?" * 4, "sam", by_the_log(spent))
        assert one.status().spent == (1050, 0)
        assert isinstance(await outcome(one.ask("m", URL, b"?" * 4, "sam", by_the_log(950))), OverBudget)
        await one.ask("m", URL, b"?" * 4, "kim")
        assert isinstance(await outcome(one.ask("m", URL, b"x" * 500, "kim")), OverBudget)

    run(main)


def test_an_agents_own_budget_uses_the_usage_in_its_log() -> None:
    """A request that would exceed the agent's own limit of tokens or money, by the usage in its log, is not sent."""

    async def main() -> None:
        model = costs(100)
        one = gateway(model, price_in=10, price_out=10)
        refused = await outcome(one.ask("m", URL, b"x" * 400, "sam", by_the_log(950, tokens_max=1000)))
        assert isinstance(refused, OverBudget) and (refused.budget, refused.spent) == ("day tokens", 950)
        assert "day_tokens_max of its configuration" in str(refused) and refused.retry_after_s == DAY_S
        refused = await outcome(one.ask("m", URL, b"x" * 400, "sam", by_the_log(950, cost_max=0.01)))
        assert isinstance(refused, OverBudget) and refused.budget == "day cost"
        assert refused.spent == pytest.approx(0.0095) and not model.asked
        await one.ask("m", URL, b"x" * 400, "sam", by_the_log(850, tokens_max=1000, cost_max=0.01))

    run(main)


def test_requests_under_way_count_against_an_agents_own_budget() -> None:
    """Of ten simultaneous requests only those are sent that fit the agent's own budget next to the requests under
    way.
    """

    async def main() -> None:
        model = costs(110)
        one = gateway(model)
        spent = by_the_log(650, tokens_max=1000)
        came = await asyncio.gather(*(outcome(one.ask("m", URL, b"x" * 400, "sam", spent)) for _ in range(10)))
        assert len(model.asked) == 3 and sum(isinstance(item, OverBudget) for item in came) == 7

    run(main)


@pytest.mark.parametrize(
    ("limits", "own"), [({"all_cost_max": 5}, {}), ({"agent_cost_max": 5}, {}), ({}, {"cost_max": 5})]
)
def test_a_model_without_a_price_is_not_counted_as_free(limits: dict[str, Any], own: dict[str, Any]) -> None:
    """With a money limit, a model without a price is refused with instructions to set one; a model of the price list is
    called.
    """

    async def main() -> None:
        model = costs(100)
        one = gateway(model, **limits)
        spent = Spent(START // DAY_US, {}, **own)
        refused = await outcome(one.ask("m", URL, b"x", "sam", spent))
        assert isinstance(refused, OverBudget) and not model.asked
        assert "no price of 'm'" in str(refused) and "models.toml" in str(refused) and "PRICE_IN" in str(refused)
        await one.ask("gpt-4o-2024-08-06", URL, b"x", "sam", spent)
        assert len(model.asked) == 1

    run(main)


def test_cached_tokens_cost_what_the_list_says() -> None:
    """Of a million prompt tokens of gpt-4o, 600,000 are cached at 1.25 a million, the others cost 2.5."""

    async def main() -> None:
        answer = json.loads(completion(total=1_000_000, prompt=1_000_000))
        answer["usage"]["prompt_tokens_details"] = {"cached_tokens": 600_000}
        one = gateway(SlowModel(lambda *_: ModelResponse(json.dumps(answer), 1)), all_cost_max=100)
        await one.ask("gpt-4o", URL, b"x", "sam")
        assert one.status().spent == (1_000_000, pytest.approx(0.6 * 1.25 + 0.4 * 2.5))

    run(main)


def test_an_endpoint_that_does_not_count_is_counted_by_bytes() -> None:
    """Without a usage in the answer, a token is estimated as four bytes of request and answer."""

    async def main() -> None:
        one = gateway(SlowModel(lambda *_: ModelResponse('{"choices":[]}', 1)), all_tokens_max=1000)
        await one.ask("m", URL, b"x" * 400, "sam")
        assert one.status().spent == (103, 0)

    run(main)


def test_a_turn_over_budget_leaves_budget_exceeded_in_the_log() -> None:
    """The event names the budget, the limit and the usage; the message is answered with the next one."""
    model = SlowModel(lambda *_: ModelResponse(say("Hello.", total=2000), 1), seconds=0)
    world = World()

    async def main() -> None:
        one = gateway(model, agent_tokens_max=4000)
        world.system._models = lambda name: GatewayModel(name, URL, one.ask, "sam")
        await world.tell("one")
        with pytest.raises(OverBudget):
            await world.tell("two")
        last = event_of(world.log()[-1])
        assert isinstance(last, BudgetExceeded)
        assert (last.budget, last.limit, last.spent) == ("agent tokens", 4000, 2000)
        assert "does not allow this request" in last.text
        more = gateway(model)
        world.system._models = lambda name: GatewayModel(name, URL, more.ask, "")
        left = await world.tell("three")
        assert "message_sent" in kinds(left)
        assert b"two" in model.asked[-1] and b"three" in model.asked[-1]

    run(main)
    assert not verify(world.system.view("sam"), world.system.tools).faults
    statuses = {row["turn"]: row["status"] for row in world.system.view("sam").rows("turns")}
    assert statuses == {1: "done", 2: "failed", 3: "done"}


def test_limits_come_from_variables() -> None:
    """Each limit has a variable; a variable that is not set, or empty, leaves the default."""
    variables = {
        "EVERLOG_GATEWAY_ASKS_MAX": "7",
        "EVERLOG_GATEWAY_ALL_COST_MAX": "2.5",
        "EVERLOG_GATEWAY_PRICE_IN": "1",
    }
    given = limits_from({**variables, "EVERLOG_GATEWAY_BUDGET_PER": "life", "EVERLOG_GATEWAY_WAITING_MAX": " "})
    assert given == GatewayLimits(asks_max=7, all_cost_max=2.5, price_in=1, budget_per="life")
    assert limits_from({"PATH": "/bin"}) == GatewayLimits()


@pytest.mark.parametrize(("variable", "value", "words"), [
    ("ASKS_MAX", "0", "EVERLOG_GATEWAY_ASKS_MAX"),
    ("ASKS_MAX", "many", "EVERLOG_GATEWAY_ASKS_MAX"),
    ("TOKENS_PER_MINUTE", "-1", "EVERLOG_GATEWAY_TOKENS_PER_MINUTE"),
    ("PRICE_IN", "nan", "EVERLOG_GATEWAY_PRICE_IN"),
    ("PRICE_OUT", "inf", "price_out"),
    ("BUDGET_PER", "week", "EVERLOG_GATEWAY_BUDGET_PER"),
    ("ALL_TOKEN_MAX", "5", "EVERLOG_GATEWAY_ALL_TOKENS_MAX"),
])  # fmt: skip
def test_invalid_limits_are_refused(variable: str, value: str, words: str) -> None:
    """A misspelt budget variable, which would limit nothing, is refused together with the intended name."""
    with pytest.raises(BadInput, match=words):
        limits_from({f"EVERLOG_GATEWAY_{variable}": value})
