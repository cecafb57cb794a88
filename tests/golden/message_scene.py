"""The scene of a golden log in which two agents write to each other, and the lines of its model."""

from collections.abc import Callable
from typing import Any

import msgspec

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.mail.background import to_tell
from everlog.actors.mail.inherited import used_for
from everlog.actors.mail.letters import Letter, ReplyLetter, to_deliver
from everlog.events import AgentMessageSettled, UserMessage
from tests.support.agent_world import World, completion, counted


def line(function: str, **arguments: Any) -> Callable[[bytes], str]:
    """Return a reply of the model: one call, with its tokens counted."""
    body = completion("Hm.", [(function, arguments)])
    return lambda request: counted(request, body)


async def write_to_each_other(world: World) -> None:
    """Write two agents with a label, one of which asked the other within its budget, and got its answer."""
    settings = msgspec.structs.replace(
        world.settings, optional_functions=("message_agent", "ask_agent"), labels=("crew",)
    )
    async with world.system.agent("zoe", msgspec.structs.replace(settings, model="gpt-4o", verify_first=False)):
        pass
    world.model.lines = [line("ask_agent", name="zoe", message="When is dinner?")]
    limited = msgspec.structs.replace(settings, model="gpt-4o", verify_first=False, day_tokens_max=1_000_000)
    async with world.system.agent("yan", limited) as agent:
        await agent.receive(UserMessage(text="Ask zoe when dinner is."))
        await agent.run()
        [due] = to_deliver("yan", await agent.messages())
        await agent.commit([AgentMessageSettled(message=due.seq, outcome="delivered")], turn=agent.turn, step=0)
    assert isinstance(due.letter, Letter)
    world.model.lines = [line("send_message", message="At 8.")]
    async with world.system.agent("zoe") as agent:
        said, received = due.letter.input()
        await agent.receive(said, then=[received])
        await agent.run()
        [row] = rows = await agent.messages()
        [answer] = to_deliver("zoe", rows, {row["seq"]: await used_for(agent, row["seq"])})
        await agent.commit([AgentMessageSettled(message=answer.seq, outcome="answered")], turn=agent.turn, step=0)
    assert isinstance(answer.letter, ReplyLetter)
    async with world.system.agent("yan") as agent:
        row = next(row for row in await agent.messages() if row["seq"] == due.seq)
        said, ended = answer.letter.input(row)
        await agent.receive(said, then=[ended])
        await agent.run()
    await _talk_in_a_group(world, settings)
    await _tell_in_the_background(world, settings)


async def _talk_in_a_group(world: World, settings: Settings) -> None:
    """Write a group that a person talks to: one member has answered, and the manager was asked to pick the next."""
    group = msgspec.structs.replace(
        settings, model="group/dynamic", members=("zoe",), manager="yan", rounds=2, answer_minutes=5, labels=()
    )
    async with world.system.agent("team", group) as agent:
        await agent.receive(UserMessage(text="When is dinner?", name="Chad"))
        await agent.run()
        for name, answer in (("yan", "zoe"), ("zoe", "At 8.")):
            row = next(row for row in await agent.messages() if row["state"] == "pending")
            await agent.commit([AgentMessageSettled(message=row["seq"], outcome="delivered")], turn=agent.turn, step=0)
            letter = ReplyLetter(sender=name, message=row["seq"], text=answer, outcome="answered")
            said, ended = letter.input(row)
            await agent.receive(said, then=[ended])
            await agent.run()


async def _tell_in_the_background(world: World, settings: Settings) -> None:
    """Write what an agent tells the other one, which works in its background, and what it is to tell next."""
    async with world.system.agent("yan", msgspec.structs.replace(settings, background="zoe")):
        pass
    await world.tell("Dinner is fish.", agent="yan")
    async with world.system.agent("yan") as agent:
        [row] = await agent.rows("background")
        await agent.commit(to_tell("yan", row, agent.records(row["cursor"] + 1)), turn=0, step=0)
        [due] = to_deliver("yan", await agent.messages())
        await agent.commit([AgentMessageSettled(message=due.seq, outcome="delivered")], turn=agent.turn, step=0)
    assert isinstance(due.letter, Letter)
    async with world.system.agent("zoe", settings) as agent:
        said, received = due.letter.input()
        await agent.receive(said, then=[received])
        await agent.run()
    await world.tell("Is it?", agent="yan")
