"""Agents that work for others keep the budgets of those: the rest travels with a message, and the answer is counted."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.gateway.gateway import Gateway
from everlog.actors.gateway.gateway_limits import GatewayLimits
from everlog.actors.mail.mail_functions import NAMES
from everlog.actors.models.daily_usage import DAY_US, charged_in, tokens_of
from everlog.actors.ports.effects import DeltaCallback, ModelResponse, Spent
from everlog.actors.replay.rebuild_check import verify
from everlog.events import (
    AgentMessageReceived,
    AgentMessageSent,
    AgentReplyReceived,
    BudgetExceeded,
    OverBudget,
    event_of,
)
from tests.support import virtual_time
from tests.support.agents.virtual_time_runtime import open_ref
from tests.support.agents.writing_agents import Town, obedient

EACH = 10_000
"""Tokens of each answer of the model; a request is estimated at less than half of it."""
MODEL = "gpt-4o"


class PaidTown(Town):
    """A town whose model reports tokens and is called through a gateway."""

    def __init__(self, store: Any = None) -> None:
        super().__init__(store)
        self.asked: list[str] = []
        """Agents of the requests that were sent, in order."""
        self.gateway = Gateway(lambda *_: _Model(), GatewayLimits(), clock=self.clock)

    async def ask(
        self, name: str, base_url: str, request: bytes, agent_id: str = "", spent: Any = None, **more: Any
    ) -> Any:
        """Ask the model through the gateway."""
        answer = await self.gateway.ask(name, base_url, request, agent_id, spent, **more)
        self.asked.append(agent_id)
        await asyncio.sleep(self.pauses.get(agent_id, 0))
        return answer

    async def worker(self, name: str, labels: Sequence[str] = (), **limits: Any) -> None:
        """Open an agent that may write to others, with a budget."""
        settings = Settings(model=MODEL, verify_first=False, optional_functions=NAMES, labels=labels, **limits)
        await open_ref(self.ref(name), settings)

    def ends(self, name: str) -> list[BudgetExceeded]:
        """Return the turns of an agent that a budget ended."""
        return [event for event in map(event_of, self.log(name)) if isinstance(event, BudgetExceeded)]

    def check(self) -> None:
        """Check that every log verifies, and that its projections can be rebuilt."""
        system = LocalSystem(self.store)
        for name in system.agents():
            view = system.view(name)
            report = verify(view, system.tools)
            view.close()
            assert (report.faults, report.mismatches) == ([], [])


class _Model:
    name = MODEL

    async def ask(
        self, request: bytes, *, on_delta: DeltaCallback | None = None, spent: Spent | None = None
    ) -> ModelResponse:
        usage = {"prompt_tokens": EACH - 10, "completion_tokens": 10, "total_tokens": EACH}
        return ModelResponse(json.dumps(json.loads(obedient(request)) | {"usage": usage}), 1000)

    async def close(self) -> None:
        """Close nothing."""


def play(main: Callable[[PaidTown], Coroutine[Any, Any, None]]) -> None:
    """Run `main` in a new town, in virtual time, and verify every log of it."""

    async def run() -> None:
        town = PaidTown()
        await main(town)
        await town.leave()
        town.check()

    virtual_time.run(run)


def test_a_question_carries_the_budget_and_its_answer_what_was_used() -> None:
    """The message says what was used of the sender's budget when it left, and the tokens of the answer count as used
    by the sender: a third answer of the model fits its budget of 40,000, and a fourth with the question's own does not.
    """

    async def main(town: PaidTown) -> None:
        await town.worker("sam", day_tokens_max=40_000)
        await town.worker("bob")
        await town.ref("sam").send("ask bob (say (at 8))")
        await asyncio.sleep(10)
        [received] = town.of("bob", AgentMessageReceived)
        [budget] = received.budgets
        assert (budget.agent, budget.tokens_max, tokens_of(budget.used)) == ("sam", 40_000, EACH)
        [reply] = town.of("sam", AgentReplyReceived)
        assert (reply.outcome, tokens_of(reply.used)) == ("answered", EACH)
        assert tokens_of(charged_in(town.log("sam"))) == EACH
        await town.ref("sam").send("say (one more)")
        with pytest.raises(OverBudget):
            await town.ref("sam").send("say (too much)")
        await asyncio.sleep(10)
        assert town.asked == ["sam", "bob", "sam", "sam"]
        [end] = town.ends("sam")
        assert (end.budget, end.spent, end.limit) == ("day tokens", 40_000, 40_000)

    play(main)


def test_an_agent_without_a_budget_cannot_use_more_than_the_rest_of_the_one_that_asked() -> None:
    """Bob has no budget of his own, and his answer to sam would exceed that of sam: nothing is sent to the model, the
    turn ends with the name of sam's budget, and sam hears that there is no answer. What people ask bob is answered.
    """

    async def main(town: PaidTown) -> None:
        await town.worker("sam", day_tokens_max=11_000)
        await town.worker("bob")
        await town.ref("sam").send("ask bob (say (at 8))")
        await asyncio.sleep(10)
        [end] = town.ends("bob")
        assert (end.budget, end.spent, end.limit) == ("inherited tokens", EACH, 11_000)
        assert "The budget of the agent 'sam', for which 'bob' works," in (end.text or "")
        [reply] = town.of("sam", AgentReplyReceived)
        assert (reply.outcome, reply.used) == ("silent", {})
        await town.ref("bob").send("say (hello)")
        assert town.asked == ["sam", "bob"] and town.said("bob") == ["hello"]

    play(main)


def test_a_budget_in_money_is_inherited_too() -> None:
    """The price of the other agent's model counts, whatever the first agent's own costs."""

    async def main(town: PaidTown) -> None:
        await town.worker("sam", day_cost_max=0.03)  # one answer costs 0.025
        await town.worker("bob")
        await town.ref("sam").send("ask bob (say (at 8))")
        await asyncio.sleep(10)
        [end] = town.ends("bob")
        assert (end.budget, end.limit, round(end.spent, 3)) == ("inherited cost", 0.03, 0.025)

    play(main)


def test_a_budget_reaches_through_agents_between() -> None:
    """The agent eve works for bob, who works for sam: sam's budget holds for eve, with what bob used of it; and what
    eve used is in bob's answer to sam.
    """

    async def main(town: PaidTown) -> None:
        await town.worker("sam", day_tokens_max=90_000)
        await town.worker("bob", day_tokens_max=80_000)
        await town.worker("eve")
        await town.ref("sam").send("ask bob (ask eve (say (blue)))")
        await asyncio.sleep(10)
        budgets = {one.agent: tokens_of(one.used) for one in town.of("eve", AgentMessageReceived)[0].budgets}
        assert budgets == {"sam": 2 * EACH, "bob": EACH}
        [from_eve], [from_bob] = town.of("bob", AgentReplyReceived), town.of("sam", AgentReplyReceived)
        assert (tokens_of(from_eve.used), tokens_of(from_bob.used)) == (EACH, 3 * EACH)
        assert town.asked == ["sam", "bob", "eve", "bob", "sam"]

    play(main)


def test_agents_that_work_at_the_same_time_share_one_budget() -> None:
    """Ten agents get a message at once, and the budget of the sender has room for three more answers: the gateway
    counts what others use, although no answer says so.
    """

    async def main(town: PaidTown) -> None:
        await town.worker("sam", day_tokens_max=40_000)
        names = [f"bob{number}" for number in range(10)]
        for name in names:
            await town.worker(name, labels=["crew"])
        await town.ref("sam").send("shout crew (say (hello))")
        await asyncio.sleep(100)
        assert len(town.asked) <= 4
        assert {end.budget for name in names for end in town.ends(name)} == {"inherited tokens"}
        assert sum(len(town.ends(name)) for name in names) == 10 - (len(town.asked) - 1)
        with pytest.raises(OverBudget):
            await town.ref("sam").send("say (more)")
        assert [end.budget for end in town.ends("sam")] == ["day tokens"]

    play(main)


def test_what_others_used_outlives_the_process_and_ends_with_the_day() -> None:
    """The next process knows from the log what others used for an agent, and the next day it counts no more."""

    async def main(town: PaidTown) -> None:
        await town.worker("sam", day_tokens_max=30_000)
        await town.worker("bob")
        await town.ref("sam").send("ask bob (say (at 8))")
        await asyncio.sleep(10)
        after = PaidTown(town.store)
        await town.leave()
        await after.worker("sam")
        with pytest.raises(OverBudget):
            await after.ref("sam").send("say (more)")
        assert [(end.budget, end.spent) for end in after.ends("sam")] == [("day tokens", 30_000)]
        await asyncio.sleep(DAY_US / 1_000_000)
        await after.ref("sam").send("say (good morning)")
        await asyncio.sleep(10)
        assert town.said("sam")[-1] == "good morning"
        await after.leave()

    play(main)


def test_without_budgets_messages_and_answers_have_none() -> None:
    """Agents without a budget write nothing about budgets into their logs."""

    async def main(town: PaidTown) -> None:
        await town.worker("sam")
        await town.worker("bob")
        await town.ref("sam").send("ask bob (say (at 8))")
        await asyncio.sleep(10)
        assert [one.budgets for one in town.of("bob", AgentMessageReceived)] == [[]]
        assert [one.used for one in town.of("sam", AgentReplyReceived)] == [{}]

    play(main)


def test_an_agent_does_not_inherit_its_own_budget() -> None:
    """A message that comes back to the agent whose budget it carries is worked on within that budget once."""

    async def main(town: PaidTown) -> None:
        await town.worker("sam", day_tokens_max=90_000)
        await town.worker("bob")
        await town.ref("sam").send("tell bob (tell sam (tell bob (say (end))))")
        await asyncio.sleep(10)
        sent = [event for event in map(event_of, town.log("sam")) if isinstance(event, AgentMessageSent)]
        assert [[(one.agent, tokens_of(one.used)) for one in event.budgets] for event in sent] == [
            [("sam", EACH)], [("sam", 2 * EACH)],
        ]  # fmt: skip

    play(main)
