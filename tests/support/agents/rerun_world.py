"""A world with an agent and reruns of it; the agent's payments outside are counted."""

import asyncio
from typing import Any

from everlog.actors.functions.tools import Effect, Tool, tool
from everlog.actors.rerun.rerun import RerunEnvironment, RerunOptions, RerunOutcome, rerun
from everlog.actors.rerun.rerun_comparison import TokenPrices, TurnPair
from tests.support.agent_world import Line, World, completion

UNKNOWN = TokenPrices()
BIRTH = 7
"""Seq of the last record of an agent's creation."""


class Outside:
    """An outside service that records its payments."""

    def __init__(self, effect: Effect = "at_most_once") -> None:
        self.paid: list[str] = []

        def pay(to: str, sum: int = 1) -> str:
            """Pay a person.

            Args:
                to: Whom.
                sum: How much.
            """
            self.paid.append(to)
            return f"paid {to} {sum}, receipt {len(self.paid)}"

        self.tool: Tool = tool(pay, effect=effect)


def pays(to: str, **more: Any) -> str:
    """Return a reply that pays and continues the turn."""
    return completion(calls=[("pay", {"to": to, "request_heartbeat": True, **more})])


def lived(*lines: Line, said: tuple[str, ...] = ("Hi",), tools: tuple[Tool, ...] = ()) -> World:
    """Return a world in which sam got these messages and the model gave these replies."""
    world = World(*lines, tools=tools)
    asyncio.run(world.tell(*said))
    return world


def again(
    world: World,
    *lines: Line,
    tools: tuple[Tool, ...] = (),
    prices: TokenPrices = UNKNOWN,
    told: list[TurnPair] | None = None,
    **what: Any,
) -> RerunOutcome:
    """Rerun sam as `tom`, with a model that gives these replies."""
    world.model.lines = list(lines)
    asked = RerunOptions(**{"agent_id": "sam", "from_seq": BIRTH + 1, "fork": "tom", **what})
    return asyncio.run(rerun(asked, stage_of(world, tools, prices), [].append if told is None else told.append))


def stage_of(world: World, tools: tuple[Tool, ...] = (), prices: TokenPrices = UNKNOWN) -> RerunEnvironment:
    """Return the environment for reruns in that world."""
    return RerunEnvironment(
        store=world.store, ports=world.ports, models=lambda _: world.model, tools=tools, prices=prices
    )


def results(done: RerunOutcome) -> list[tuple[str, str | None]]:
    """Return the result of each call of the fork, and how it was answered (`recorded`, `ran`, `refused` or `own`)."""
    return [
        (call.result, call.answered) for pair in done.comparison.turns if pair.variant for call in pair.variant.calls
    ]
