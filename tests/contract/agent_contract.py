"""The contract of agents, over the Python API: it must hold in every placement and runtime.

To test a new runtime, write a test file in this folder:

    class TestMyAgents(AgentContract):
        runtime = "mine"
        shortest_s = 0.0                                    # idle time in seconds

        async def kill(self, system, name) -> None:         # kill the host of the agent
            ...

        async def passive(self, system, name) -> None:      # wait until its host has unloaded it
            ...

Sending messages is tested here, users' functions in `agent_functions.py`, functions of servers in `agent_servers.py`,
archival memory in `agent_archival.py`, timers and idleness in `agent_times.py`, messages between agents in
`agent_messages.py`, errors in `agent_errors.py`. No test of the contract uses hosts or processes.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.conversation_import import conversation
from everlog.actors.agent_system import AgentSystem
from everlog.actors.api import RuntimeName, open_system
from everlog.events import AlreadyDecided, ApprovalRule, Record, UnknownAgent, uuid7
from tests.contract.agent_archival import ArchivalContract
from tests.contract.agent_errors import ErrorContract
from tests.contract.agent_functions import FunctionContract
from tests.contract.agent_messages import MessageContract
from tests.contract.agent_servers import ServerContract
from tests.contract.agent_times import TimeContract
from tests.contract.contract_agents import KNOCKS, alive, assert_sound, context, gate, log, scripted, texts
from tests.support.agent_world import kinds


class AgentContract(
    FunctionContract, ServerContract, ArchivalContract, TimeContract, MessageContract, ErrorContract
):  # fmt: skip
    """Tests that every runtime must pass."""

    runtime: RuntimeName
    shortest_s: float

    async def kill(self, system: AgentSystem, name: str) -> None:
        """Kill the host of the agent, whatever it is doing."""
        raise NotImplementedError

    async def passive(self, system: AgentSystem, name: str) -> None:
        """Wait until the host of the agent has unloaded it."""
        raise NotImplementedError

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return tmp_path / "store"

    @pytest.fixture
    def opens(self, folder: Path) -> Any:
        """Return a function that opens the test's store with options."""

        def opens(**options: Any) -> AbstractAsyncContextManager[AgentSystem]:
            return open_system(folder, runtime=self.runtime, **options)

        return opens

    @alive
    async def test_a_new_agent_is_created_and_answers(self, opens: Any) -> None:
        """The agent is created by the first `agent` call, and answers."""
        async with opens() as system:
            agent = await system.agent("sam")
            assert (agent.opened.born, agent.opened.model, agent.opened.waiting) == (True, "offline", 0)
            records = await agent.send("Hi, I sail")
            assert kinds(records)[0] == "user_message"
            assert texts(records, "message_sent")
            assert await system.agents() == ["sam"]
            assert not (await system.agent("sam")).opened.born

    @alive
    async def test_delivered_records_are_the_log(self, opens: Any) -> None:
        """The records of an answer are those of the log, in order and without a gap."""
        async with opens() as system:
            agent = await system.agent("sam")
            heard = [record async for record in agent.send("My dog is called Rex")]
            heard += await agent.send("What is my dog called?")
            assert heard == log(system)[agent.opened.head :]

    @alive
    async def test_a_record_is_delivered_as_soon_as_it_is_durable(self, opens: Any) -> None:
        """Messages are delivered while the turn still runs, and readers of the log see them too."""
        async with gate() as place, scripted(opens, *KNOCKS, tools=[place.knock()]) as (system, agent):
            answer = aiter(agent.send("go"))
            first = await anext(answer)
            assert (first.type, first.text) == ("user_message", "go")
            visitor = await place.reached()
            view = system._reading.view("sam")
            assert [turn["status"] for turn in view.rows("turns")] == ["open"]
            assert kinds(view.reader.read("sam"))[-1] == "function_started"
            view.close()
            await visitor.enters()
            rest = [record async for record in answer]
            assert texts(rest, "message_sent") == ["Done."]

    @alive
    async def test_a_call_waits_for_a_person_while_its_host_dies(self, opens: Any) -> None:
        """The call is approved after its host was killed, by the next one, and runs once; a second decision is an error
        that names the first.
        """
        async with opens() as system:
            agent = await system.agent("sam", Settings(approvals=[ApprovalRule("core_memory_*")]))
            records = await agent.send("I sail")
            request = next(record.seq for record in records if record.type == "approval_requested")
            await self.kill(system, "sam")
            decided = await agent.approve(request, reason="Yes.")
            assert kinds(decided)[:3] == ["approval_decided", "memory_edited", "function_result"]
            assert texts(decided, "message_sent")
            with pytest.raises(AlreadyDecided, match="was approved at"):
                await agent.refuse(request)
            assert kinds(log(system)).count("memory_edited") == 3
            assert_sound(system)

    @alive
    async def test_the_same_id_counts_once(self, opens: Any) -> None:
        """A message that is sent twice is recorded once, and both callers get the same records."""
        async with opens() as system:
            agent = await system.agent("sam")
            known = uuid7(agent._sender.ports.clock.now(), 7)
            first = await agent.send("I live in Oslo", event_id=known)
            again = await agent.send("I live in Oslo", event_id=known)
            assert first[0].event_id == known
            assert again == first
            assert texts(log(system), "user_message") == ["I live in Oslo"]

    @alive
    async def test_two_callers_get_their_own_turns(self, opens: Any) -> None:
        """Turns of simultaneous callers run one after the other, and each caller gets its own turn only."""
        async with opens() as system:
            callers = [await system.agent("sam") for _ in range(4)]
            said = [f"My number is {number}" for number in range(len(callers))]
            answers = await asyncio.gather(*(agent.send(text) for agent, text in zip(callers, said, strict=True)))
            for text, records in zip(said, answers, strict=True):
                assert texts(records, "user_message") == [text]
                assert len({record.turn for record in records}) == 1
                assert texts(records, "message_sent")
            assert len({records[0].turn for records in answers}) == len(said)

    @alive
    async def test_a_caller_who_leaves_does_not_stop_the_turn(self, opens: Any) -> None:
        """A caller that leaves after the first record leaves a turn that continues to its end."""
        async with gate() as place, scripted(opens, *KNOCKS, tools=[place.knock()]) as (system, agent):
            answer = aiter(agent.send("go"))
            assert (await anext(answer)).text == "go"
            visitor = await place.reached()
            assert isinstance(answer, AsyncIterator)
            await answer.aclose()  # type: ignore[attr-defined]
            await visitor.enters()
            await agent.resume()
            assert texts(log(system), "message_sent") == ["Done."]

    @alive
    async def test_ten_agents_at_once(self, opens: Any) -> None:
        """Each of ten agents at work at the same time has its own conversation, and verifies."""
        names = [f"agent {number}" for number in range(10)]
        async with opens() as system:

            async def talk(name: str) -> list[Record]:
                agent = await system.agent(name)
                await agent.send(f"My dog is called {name}.")
                return await agent.send("What is my dog called?")

            answers = await asyncio.gather(*map(talk, names))
            for name, records in zip(names, answers, strict=True):
                assert name in str(texts(records, "message_sent"))
                assert_sound(system, name)
            assert await system.agents() == sorted(names)

    @alive
    async def test_settings_apply_whenever_an_agent_is_opened(self, opens: Any) -> None:
        """Given settings configure an existing agent; without settings it stays as it is."""
        async with opens() as system:
            agent = await system.agent("sam", Settings(zone="Europe/Oslo", window=5000))
            assert agent.opened.zone == "Europe/Oslo"
            assert await agent.unload()
            assert (await system.agent("sam", Settings(zone="Asia/Tokyo"))).opened.zone == "Asia/Tokyo"
            assert await agent.unload()
            assert (await system.agent("sam")).opened.zone == "Asia/Tokyo"
            assert context(system).config.window == 5000

    @alive
    async def test_an_unloaded_agent_is_activated_again(self, opens: Any, folder: Path) -> None:
        """After `unload` another process can open the agent; the next message activates it unchanged."""
        async with opens() as system:
            agent = await system.agent("sam")
            await agent.send("My dog is called Rex")
            assert await agent.unload()
            assert await agent.unload(), "letting go of what is let go of is nothing"
            async with open_system(folder, runtime="local") as other:
                assert await (await other.agent("sam")).send("What is my dog called?")
            assert "Rex" in str(texts(await agent.send("What is my dog called?"), "message_sent"))

    @alive
    async def test_an_agent_at_work_is_not_unloaded(self, opens: Any) -> None:
        """`unload` returns False while a turn runs, and the turn continues."""
        async with gate() as place, scripted(opens, *KNOCKS, tools=[place.knock()]) as (_, agent):
            answer = asyncio.ensure_future(agent.send("go"))
            visitor = await place.reached()
            assert not await agent.unload()
            await visitor.enters()
            assert texts(await answer, "message_sent") == ["Done."]

    @alive
    async def test_a_deleted_agent_can_be_created_again(self, opens: Any) -> None:
        """A deleted agent is unknown until it is created again; then it remembers nothing, and its old records stay."""
        async with opens() as system:
            agent = await system.agent("sam")
            await agent.send("My dog is called Rex")
            await agent.delete()
            with pytest.raises(UnknownAgent, match="was deleted"):
                await system.agent("sam", create=False)
            anew = await system.agent("sam")
            assert anew.opened.born
            assert "Rex" not in str(texts(await anew.send("What is my dog called?"), "message_sent"))
            assert kinds(log(system)).count("agent_created") == 2

    @alive
    async def test_a_summary_is_made_and_taken_back(self, opens: Any) -> None:
        """`summarize` and `expand` return True if they did something, and leave their records."""
        async with opens() as system:
            agent = await system.agent("sam")
            for number in range(4):
                await agent.send(f"My number is {number}")
            assert await agent.summarize()
            assert await agent.undo_summary()
            assert not await agent.undo_summary()
            assert kinds(log(system))[-2:] == ["summary", "summary_expanded"]

    @alive
    async def test_a_past_conversation_can_be_imported(self, opens: Any) -> None:
        """An import is one commit, and the agent can use it afterwards."""
        line = b'{"role": "user", "content": "My dog is called Rex", "time": "2023-05-08T10:00:00"}'
        async with opens() as system:
            agent = await system.agent("sam")
            imported = await agent.import_messages(conversation([line], "here"))
            assert imported.delayed is None
            assert [record.text for record in imported.records] == ["My dog is called Rex"]
            assert log(system)[-1] == imported.records[-1]

    @alive
    async def test_everything_is_there_after_the_host_died(self, opens: Any) -> None:
        """After a kill the projections are those of the host before."""
        async with opens() as system:
            agent = await system.agent("sam")
            await agent.send("My dog is called Rex")
            before = log(system)
            await self.kill(system, "sam")
            assert "Rex" in str(texts(await agent.send("What is my dog called?"), "message_sent"))
            assert log(system)[: len(before)] == before
            assert_sound(system)
