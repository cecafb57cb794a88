"""Agents that derive memories while they are idle: between turns, after a long rest, and never in a turn."""

import asyncio
import json
from typing import Any

import pytest

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.ports.effects import ModelResponse
from everlog.events import MemoriesDerived, OverBudget, event_of
from tests.support import virtual_time
from tests.support.agent_world import say, written
from tests.support.agents.virtual_time_runtime import Home, open_ref
from tests.support.agents.virtual_time_shard import SharedHome

POIGNANT = "I am going to marry Lea in Rome in June, and I am so happy and scared."
"""A message of importance 10 by the rules, or nearly."""
HOMES = pytest.mark.parametrize("kind", [Home, SharedHome])


async def told(home: Any, *texts: str, **settings: Any) -> Any:
    """Open the agent with these settings, and send messages, each to the end of its turn."""
    if isinstance(home, SharedHome):
        home.store.register_many(["sam"], shared=True)
    ref = home.ref("sam")
    await open_ref(ref, Settings(**{"model": "scripted", **settings}))
    for text in texts:
        async for _ in ref.send(text):
            pass
    return ref


def derived(home: Any) -> list[tuple[str, int]]:
    """Return kind and deriver's results of each derivation in the log."""
    found = [event_of(record) for record in home.log() if record.type == "memories_derived"]
    return [(event.derivation, event.noted) for event in found if isinstance(event, MemoriesDerived)]


def kinds(home: Any) -> list[str]:
    return [record.type for record in home.log()]


@HOMES
def test_an_agent_without_a_deriver_derives_nothing(kind: type[Home]) -> None:
    """By default nothing is derived by itself, however long the agent rests."""

    async def main() -> None:
        home = kind(idle_s=300)
        await told(home, POIGNANT)
        await asyncio.sleep(3000)
        assert derived(home) == []
        await home.leave()

    virtual_time.run(main)


@HOMES
def test_an_agent_reflects_after_a_long_rest_and_once(kind: type[Home]) -> None:
    """Facts and a reflection are derived after the idle time, before the agent is unloaded; a further rest, in which
    nothing is said, derives nothing.
    """

    async def main() -> None:
        home = kind(idle_s=300)
        await told(home, "I live in Paris.", "I like chess.", deriver="rules")
        assert derived(home) == []
        await asyncio.sleep(1000)
        assert {kind for kind, _ in derived(home)} == {"facts", "reflection"}
        count = len(home.log())
        await asyncio.sleep(1000)
        assert len(home.log()) == count
        await home.leave()

    virtual_time.run(main)


@HOMES
def test_a_full_measure_of_importance_makes_an_agent_reflect_at_once(kind: type[Home]) -> None:
    """At the threshold the agent reflects when its turn has ended, without a long rest; below it, it does not."""

    async def main() -> None:
        home = kind(idle_s=300)
        ref = await told(home, "Hello.", deriver="rules", reflect_at=8)
        await asyncio.sleep(1)
        assert derived(home) == []
        async for _ in ref.send(POIGNANT):
            pass
        await asyncio.sleep(1)
        assert "reflection" in {kind for kind, _ in derived(home)}
        await home.leave()

    virtual_time.run(main)


class SlowModel:
    """A model that takes its time for requests of derivations, and answers others at once."""

    def __init__(self, home: Any, seconds: float, answer: str) -> None:
        self.home, self.seconds, self.answer = home, seconds, answer
        self.asked = self.answered = 0

    async def ask(self, name: str, base_url: str, request: bytes, agent_id: str, *_: object, **__: object) -> Any:
        if json.loads(request).get("tools"):
            return ModelResponse(say("Yes."), 1000)
        self.asked += 1
        await asyncio.sleep(self.seconds)
        self.answered += 1
        return ModelResponse(written(request, self.answer), 1000)


@HOMES
def test_a_command_that_arrives_ends_a_derivation(kind: type[Home]) -> None:
    """A message that comes while a model is asked is answered at once; the derivation is made up for later."""

    async def main() -> None:
        home = kind(idle_s=300)
        model = SlowModel(home, 1000, '{"questions": []}')
        home.ask = model.ask  # type: ignore[method-assign]
        ref = await told(home, POIGNANT, deriver="thinker", reflect_at=1)
        await asyncio.sleep(10)
        assert (model.asked, model.answered) == (1, 0)
        loop = asyncio.get_running_loop()
        began = loop.time()
        async for _ in ref.send("Are you there?"):
            pass
        assert loop.time() - began < 1
        assert kinds(home).count("message_sent") >= 2
        assert model.answered == 0
        await asyncio.sleep(5000)
        assert model.answered >= 1
        assert ("reflection", 0) in derived(home)
        await home.leave()

    virtual_time.run(main)


@HOMES
def test_a_spent_budget_ends_the_derivation_with_a_note(kind: type[Home]) -> None:
    """Over budget nothing is lost: the cursor stays, a note says so, and the agent answers and is unloaded as ever."""

    async def main() -> None:
        home = kind(idle_s=300)

        async def ask(name: str, base_url: str, request: bytes, agent_id: str, *_: object, **__: object) -> Any:
            if json.loads(request).get("tools"):
                return ModelResponse(say("Yes."), 1000)
            raise OverBudget("The day's tokens are spent.", budget="agent tokens", limit=1, spent=2)

        home.ask = ask  # type: ignore[method-assign]
        await told(home, POIGNANT, deriver="thinker")
        await asyncio.sleep(2000)
        assert "reflection" not in {kind for kind, _ in derived(home)}
        assert any("could not derive memories" in note for note in home.notes)
        await home.leave()

    virtual_time.run(main)


@HOMES
def test_what_a_process_did_not_derive_the_next_one_derives(kind: type[Home]) -> None:
    """A process that ends before the long rest leaves the cursor as it was; the next process derives the same once."""

    async def main() -> None:
        home = kind(idle_s=300)
        await told(home, "I live in Paris.", deriver="rules")
        await asyncio.sleep(5)
        await home.leave()
        assert derived(home) == []
        again = kind(home.store, idle_s=300)
        async for _ in (await again.open()).send("I like chess."):
            pass
        await asyncio.sleep(2000)
        found = derived(again)
        assert sorted(kind for kind, _ in found) == ["facts", "reflection"]
        await again.leave()

    virtual_time.run(main)


@HOMES
def test_nothing_is_derived_while_a_turn_runs(kind: type[Home]) -> None:
    """Records of a derivation never stand between the records of a turn."""

    async def main() -> None:
        home = kind(idle_s=300)
        await told(home, *[POIGNANT] * 4, deriver="rules", reflect_at=1)
        await asyncio.sleep(1000)
        assert _is_apart(home)
        await home.leave()

    virtual_time.run(main)


DERIVED = ("memories_derived", "fact_noted", "insight_noted", "entity_named")


def _is_apart(home: Any) -> bool:
    """Return True if each turn had ended where something was derived: no record of a step follows in that turn."""
    log = home.log()
    for number, record in enumerate(log):
        if record.type in DERIVED and any(later.turn == record.turn and later.step > 0 for later in log[number:]):
            return False
    return any(record.type in DERIVED for record in log)
