"""A random agent with undone turns, edited thoughts, expanded summaries, imports and new configurations."""

import asyncio
import random

import msgspec

from everlog.actors.agent.agent import Agent
from everlog.actors.agent.conversation_import import ImportedMessage
from everlog.events import BadInput, MessageSent, UserMessage
from everlog.events.times import moment
from tests.support.agent_world import World, counted
from tests.support.agents.tampered_log import by_hand, input_of, line_of


def edited(seed: int) -> World:
    """Return a world as `lived` does, with random edits of the agent's past, and sometimes an earlier agent of the
    name.
    """
    chance = random.Random(seed)
    world = World()
    world.settings = msgspec.structs.replace(world.settings, window=chance.choice([4096, 8192]))
    world.model.after = lambda request: counted(request, line_of(chance))

    async def live(*, last: bool) -> None:
        async with world.system.agent("sam", world.settings) as agent:
            for _ in range(chance.randint(4, 10)):
                await agent.receive(input_of(chance))
                await agent.run()
                await by_hand(agent, chance)
                await _edited(agent, chance, world)
            if not last:
                await agent.delete()

    if chance.random() < 0.3:
        asyncio.run(live(last=False))
    asyncio.run(live(last=True))
    return world


async def _edited(agent: Agent, chance: random.Random, world: World) -> None:
    try:
        match chance.randrange(12):
            case 0:
                await agent.hide(chance.randint(1, 2))
            case 1:
                await agent.rethink("I thought of the harbour.")
            case 2:
                await agent.expand()
            case 3:
                past = [UserMessage(text="Long ago " * 9, imported=True), MessageSent(text="Indeed.", imported=True)]
                await agent.import_messages([ImportedMessage(event, moment(1000)) for event in past])
            case 4:
                world.settings = msgspec.structs.replace(world.settings, zone=chance.choice(["Europe/Berlin", "UTC"]))
                await agent.configure(world.settings)
            case 5:
                await agent.summarize()
    except BadInput:
        return  # nothing in view to take back
