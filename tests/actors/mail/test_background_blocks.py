"""A background agent keeps the memory blocks that it shares with the agent that it watches, and can be asked why."""

import asyncio
import json

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.commands import ConfigureAgent
from everlog.events import MemoryEdited, event_of
from tests.support import virtual_time
from tests.support.agent_world import say
from tests.support.agents.shared_block_agents import Crew, append


def edits(crew: Crew, name: str) -> list[tuple[str, int]]:
    """Return text and version of each value of a shared block in an agent's log."""
    events = map(event_of, crew.log(name))
    return [(e.text or "", e.origin_version) for e in events if isinstance(e, MemoryEdited) and e.origin]


def test_it_keeps_a_shared_block_and_says_why() -> None:
    """The words of the watched agent reach it, its edit is in the next request of that agent, and a question about the
    edit is answered from a context that has both.
    """

    async def main() -> None:
        crew = Crew()
        await crew.people.create("team", "")
        sam, eve = await crew.following(["sam", "eve"])
        await sam._sender.perform(
            ConfigureAgent, settings=Settings(background="eve", background_turns=1, background_idle=0)
        )
        crew.voice("sam").lines = [say("Noted.")]
        crew.voice("eve").lines = [append("Ann likes tea.")]
        await sam.send("Ann likes tea")
        await asyncio.sleep(10)
        await sam.send("What does Ann like?")
        assert b"Ann likes tea." in crew.voice("sam").requests[-1]
        assert edits(crew, "eve") == edits(crew, "sam") == [("", 1), ("Ann likes tea.", 2)]
        crew.voice("eve").lines = [say("Because sam's user said so.")]
        await asyncio.sleep(10)
        await eve.send("Why did you write that?")
        messages = list(map(str, json.loads(crew.voice("eve").requests[-1])["messages"]))
        assert any("user: Ann likes tea" in message for message in messages)
        assert any("core_memory_append" in message and "Ann likes tea." in message for message in messages)
        await crew.leave()

    virtual_time.run(main)
