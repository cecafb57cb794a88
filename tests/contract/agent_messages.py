"""Messages between agents: each arrives once and the answer comes back, wherever the two run, and after a host died."""

from typing import Any

import msgspec

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.mail.mail_functions import NAMES
from tests.contract.contract_agents import SCRIPTED, alive, asked, assert_sound, gate, log, says, texts
from tests.support.agent_world import completion
from tests.support.models.loopback_server import Reply, serving

WRITING = msgspec.structs.replace(SCRIPTED, optional_functions=NAMES)

GROUP = Settings(model="group/round-robin", members=("ann", "bob"))


def writes(function: str, name: str, message: str) -> Reply:
    """Return the endpoint's answer that writes to another agent."""
    return 200, completion(calls=[(function, {"name": name, "message": message})])


def states(system: Any, name: str) -> list[str]:
    """Return the states of an agent's messages."""
    view = system._reading.view(name)
    try:
        return [row["state"] for row in view.rows("agent_messages")]
    finally:
        view.close()


class MessageContract:
    """Contract of messages between agents; a part of `AgentContract`."""

    kill: Any

    @alive
    async def test_an_agent_asks_another_one(self, opens: Any) -> None:
        """The question is an input of the other agent, and its answer is an input of the one that asked."""
        replies = writes("ask_agent", "bob", "When is dinner?"), says("At 8."), says("Bob says at 8.")
        with serving(*replies) as endpoint:
            async with opens(base_url=endpoint.url) as system:
                sam, bob = await system.agent("sam", WRITING), await system.agent("bob", WRITING)
                await sam.send("Ask bob when dinner is")
                await asked(endpoint, 3)
                await sam.resume()
                assert texts(log(system, "bob"), "user_message") == ["When is dinner?"]
                assert texts(log(system, "sam"), "user_message") == ["Ask bob when dinner is", "At 8."]
                assert texts(log(system, "sam"), "message_sent") == ["Bob says at 8."]
                assert states(system, "sam") == ["answered"]
                await bob.resume()
                assert_sound(system, "sam")
                assert_sound(system, "bob")

    @alive
    async def test_an_answer_reaches_an_agent_whose_host_died_meanwhile(self, opens: Any) -> None:
        """A wait holds no process: the agent that asked is killed before the answer, and gets it once."""
        replies = (
            writes("ask_agent", "eve", "When is dinner?"),
            (200, completion(calls=[("knock", {"request_heartbeat": True})])),
            says("At 8."),
            says("Bob says at 8."),
        )
        async with gate() as place:
            with serving(*replies) as endpoint:
                async with opens(base_url=endpoint.url, tools=[place.knock()]) as system:
                    sam = await system.agent("sam", WRITING)
                    await system.agent("eve", WRITING)
                    partition_of = system._reading.store.partition_of
                    assert partition_of("eve") != partition_of("sam"), "the kill must not reach the other agent"
                    await sam.send("Ask bob when dinner is")
                    visitor = await place.reached()
                    await self.kill(system, "sam")
                    await visitor.enters()
                    await asked(endpoint, 4)
                    await sam.resume()
                    assert texts(log(system, "sam"), "user_message") == ["Ask bob when dinner is", "At 8."]
                    assert states(system, "sam") == ["answered"]
                    assert_sound(system, "sam")

    @alive
    async def test_a_group_answers_with_what_its_members_say(self, opens: Any) -> None:
        """The members are asked one after the other, and the agent that asked the group gets what both said, once."""
        replies = writes("ask_agent", "team", "Is it late?"), says("Yes."), says("No."), says("They do not agree.")
        with serving(*replies) as endpoint:
            async with opens(base_url=endpoint.url) as system:
                sam = await system.agent("sam", WRITING)
                for name in ("ann", "bob"):
                    await system.agent(name, SCRIPTED)
                team = await system.agent("team", GROUP)
                await sam.send("Ask the team if it is late")
                await asked(endpoint, 4)
                await sam.resume()
                await team.resume()
                assert texts(log(system, "ann"), "user_message") == ["sam: Is it late?"]
                assert texts(log(system, "bob"), "user_message") == ["sam: Is it late?\nann: Yes."]
                assert texts(log(system, "team"), "message_sent") == ["ann: Yes.", "bob: No."]
                assert texts(log(system, "sam"), "user_message")[1:] == ["ann: Yes.\nbob: No."]
                assert_sound(system, "team")

    @alive
    async def test_a_background_agent_is_told_what_was_said(self, opens: Any) -> None:
        """It gets the words of the turn as an input, keeps a block that both share, and its log says why."""
        note = {"name": "team", "content": "Dinner is at 8.", "request_heartbeat": False}
        replies = says("I note it."), (200, completion(calls=[("core_memory_append", note)]))
        with serving(*replies) as endpoint:
            async with opens(base_url=endpoint.url) as system:
                await system.shared.create("team", "")
                eve = await system.agent("eve", SCRIPTED)
                watched = msgspec.structs.replace(SCRIPTED, background="eve", background_turns=1)
                sam = await system.agent("sam", watched)
                await eve.attach_block("team")
                await sam.attach_block("team")
                await sam.send("Dinner is at 8")
                await asked(endpoint, 2)
                await eve.resume()
                [told] = texts(log(system, "eve"), "user_message")
                assert told.split("\n")[1:] == [
                    f"[{record.seq}] {who}: {record.text}"
                    for record in log(system, "sam")
                    for who in {"user_message": ["user"], "message_sent": ["sam"]}.get(record.type, [])
                ]
                assert (await system.shared.show("team")).value == "Dinner is at 8."
                assert states(system, "sam") == ["delivered"]
                assert_sound(system, "sam")
                assert_sound(system, "eve")
