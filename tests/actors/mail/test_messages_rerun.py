"""Messages between agents in a rerun: the fork gets the recorded answers, and nothing of it leaves the log."""

import asyncio

import msgspec
import pytest

from everlog.actors.mail.letters import Letter, ReplyLetter, timer_rows, to_deliver
from everlog.actors.mail.mail_functions import NAMES
from everlog.events import AgentMessageSettled, UserMessage
from tests.support.agent_world import World, completion, say
from tests.support.agents.rerun_world import again

ASK = completion(calls=[("ask_agent", {"name": "bob", "message": "When is dinner?"})])


async def asked(world: World) -> None:
    """Have sam ask bob, and get the answer, with the letters carried by hand."""
    world.settings = msgspec.structs.replace(world.settings, optional_functions=NAMES)
    async with world.system.agent("bob", world.settings):
        pass
    async with world.system.agent("sam", world.settings) as sam:
        await sam.receive(UserMessage(text="Ask bob when dinner is"))
        await sam.run()
        [due] = to_deliver("sam", await sam.messages())
        assert isinstance(due.letter, Letter)
        await sam.commit([AgentMessageSettled(message=due.seq, outcome="delivered")], turn=sam.turn, step=0)
        row = next(row for row in await sam.messages() if row["seq"] == due.seq)
        said, ended = ReplyLetter(sender="bob", message=due.seq, text="At 8.", outcome="answered").input(row)
        await sam.receive(said, then=[ended])
        await sam.run()


@pytest.mark.parametrize("recorded", [False, True])
def test_a_rerun_sends_nothing_and_hears_the_recorded_answer(recorded: bool) -> None:
    """The fork asks again and gets the recorded answer as an input; no message of it is due, with the recorded replies
    the same to the record.
    """
    world = World(ASK, say("At 8."))
    asyncio.run(asked(world))
    done = again(world, *([] if recorded else [ASK, say("At eight.")]), recorded=recorded)
    assert done.diverged is None
    assert [pair.variant is not None for pair in done.comparison.turns] == [True, True]
    view = world.system.view("tom")
    rows = view.rows("agent_messages")
    view.close()
    assert {row["state"] for row in rows} == {"copied"}
    assert timer_rows(rows) == []
