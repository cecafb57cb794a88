"""Timers and idleness: an agent that is not in memory is activated when a timer is due, and an idle agent is
unloaded.
"""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from everlog.events import BadInput, Heartbeat, event_of
from tests.contract.contract_agents import SCRIPTED, alive, asked, log, says, texts
from tests.support.models.loopback_server import serving


class TimeContract:
    """Contract of times; a part of `AgentContract`."""

    kill: Any
    passive: Any
    shortest_s: float
    """Shortest idle time that works in this runtime: a host needs some time to report its last records."""

    @alive
    async def test_a_timer_wakes_an_agent_that_was_unloaded(self, opens: Any) -> None:
        """Heartbeats are sent on time, whether or not the agent is in memory, and each is a turn with an answer."""
        with serving(says("Tick.")) as endpoint:
            async with opens(base_url=endpoint.url) as system:
                agent = await system.agent("sam", SCRIPTED)
                assert await agent.set_timer("", "Look at the tea", every=timedelta(seconds=1)) == "timer-1"
                due = system._reading.view("sam").rows("timers")[0]["due_us"]
                assert await agent.unload()
                await asked(endpoint, 2)
                assert await agent.cancel_timer("timer-1")
                assert not await agent.cancel_timer("timer-1")
                await agent.resume()
                beats = [record for record in log(system) if record.type == "heartbeat"]
                assert len(beats) >= 2
                assert beats[0].recorded_at >= due
                assert {beat.text for beat in beats} == {"Look at the tea"}
                events = [event for event in map(event_of, beats) if isinstance(event, Heartbeat)]
                assert {(event.reason, event.timer) for event in events} == {("timer", "timer-1")}
                assert len(texts(log(system), "message_sent")) == len(beats)

    @alive
    async def test_a_timer_outlives_its_host(self, opens: Any) -> None:
        """A timer still fires after its host died."""
        with serving(says("Tick.")) as endpoint:
            async with opens(base_url=endpoint.url) as system:
                agent = await system.agent("sam", SCRIPTED)
                await agent.set_timer("tea", every=timedelta(seconds=1))
                await self.kill(system, "sam")
                await asked(endpoint, 1)
                assert await agent.cancel_timer("tea")

    @alive
    async def test_a_timer_without_a_time_is_refused(self, opens: Any) -> None:
        """A timer without a time is refused, and no record is left."""
        async with opens() as system:
            agent = await system.agent("sam")
            head = agent.opened.head
            with pytest.raises(BadInput, match="A timer needs `due_at`"):
                await agent.set_timer("tea")
            assert len(log(system)) == head

    @alive
    async def test_an_idle_agent_is_unloaded(self, opens: Any) -> None:
        """An idle agent is unloaded without a request, and activated by the next message."""
        async with opens(idle_s=0.05) as system:
            agent = await system.agent("sam")
            await agent.send("My dog is called Rex")
            await self.passive(system, "sam")
            assert "Rex" in str(texts(await agent.send("What is my dog called?"), "message_sent"))

    @alive
    async def test_a_message_during_unloading_is_answered_once(self, opens: Any) -> None:
        """Agents that are unloaded as soon as they are idle answer every message once."""
        said = [f"My number is {number}" for number in range(6)]
        async with opens(idle_s=self.shortest_s) as system:
            agent = await system.agent("sam")
            for text in said[:3]:
                assert texts(await agent.send(text), "user_message") == [text]
            answers = await asyncio.gather(*(agent.send(text) for text in said[3:]))
            assert [texts(records, "user_message") for records in answers] == [[text] for text in said[3:]]
            assert sorted(map(str, texts(log(system), "user_message"))) == said
