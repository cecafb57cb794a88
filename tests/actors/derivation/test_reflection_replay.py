"""An agent that reflected, planned and had a block edited: replayed without a model, it is the same."""

import asyncio
import json

from everlog.actors.agent.commands import AddBlock
from everlog.actors.deriving.block_edits import BlockDerivation
from everlog.actors.deriving.idle_derivation import IdleDerivation
from everlog.actors.deriving.memory_commands import DeriveMemories, MakePlan
from everlog.actors.hosting.edit_commands import edit
from everlog.actors.replay.rebuild_check import rebuild, verify
from everlog.events import PlanItem
from tests.support.agent_world import SECOND, START, World, written

HOUR = 3600 * SECOND
ANSWERS = {
    "reflect on what it remembers. Given its newest": {"questions": ["What do they love?"]},
    "reflect on what it remembers. Given numbered": {
        "insights": [{"text": "Boats bring the two of them together.", "because_of": [1, 2]}]
    },
    "carry out a plan": {"steps": [{"text": "Pack", "minutes": 15}, {"text": "Leave", "minutes": 15}]},
    "keep the core memory": {"lines": [{"text": "Loves boats.", "because_of": [1]}]},
}


def answer(raw: bytes) -> str:
    told = raw.decode()
    return written(raw, next((json.dumps(found) for words, found in ANSWERS.items() if words in told), "{}"))


def test_derivations_verify_and_rebuild_without_a_model() -> None:
    """After reflections, a divided plan and an edited block by a model, every request and every projection is the same
    when the log is read again, and no request reaches a model.
    """

    async def main() -> None:
        world = World(summaries=[answer] * 50)
        await world.tell("Lea and I bought a boat.", "We love sailing.")
        async with world.system.agent("sam", world.settings) as agent:
            await edit(agent, AddBlock(id=world.ids.new(world.clock.now()), label="known", value="", limit=200))
            items = (PlanItem("Go to the lake", START + HOUR, 90),)
            await edit(agent, MakePlan(id=world.ids.new(world.clock.now()), text="Sunday", items=items))
            for kind in ("reflection", "plans"):
                wanted = DeriveMemories(id=world.ids.new(world.clock.now()), derivation=kind, model="thinker")
                assert (await edit(agent, wanted)).noted == 1
            assert (await BlockDerivation(agent, ["known"], "thinker").run()).noted == 1
        await world.tell("What now?")
        asked = len(world.model.requests)
        view = world.system.view("sam")
        try:
            for report in (verify(view, world.system.tools), rebuild(view)):
                assert (report.faults, report.mismatches) == ([], [])
                assert report.checked
        finally:
            view.close()
        assert len(world.model.requests) == asked

    asyncio.run(main())


def test_everything_in_an_idle_time_by_rules_happens_once() -> None:
    """An idle time by rules derives facts, insights, blocks and parts of plans; a second one leaves no event."""

    async def main() -> None:
        world = World()
        block = {"deriver": "rules", "derive_blocks": ("human",)}
        world.settings = type(world.settings)(model="scripted", window=8192, **block)
        await world.tell("I live in Rome.", "I like sailing.", "I like chess.", "I like jazz.")
        async with world.system.agent("sam", world.settings) as agent:
            items = (PlanItem("Go to the lake", START + HOUR, 90),)
            await edit(agent, MakePlan(id=world.ids.new(world.clock.now()), text="Sunday", items=items))
            assert await IdleDerivation(agent).run(rested=True) == ""
            kinds = set(world.kinds())
            assert {"fact_noted", "insight_noted", "memory_edited", "plan_made"} <= kinds
            assert any("~ " in row["value"] for row in await agent.rows("core_memory"))
            head = agent.head
            # Another activation knows nothing of the first one but what the log says.
            assert await IdleDerivation(agent).run(rested=True) == ""
            assert agent.head == head
        assert not world.model.summaries

    asyncio.run(main())
