"""Errors reach the caller with their own type, wherever they are raised, and acknowledged records stay."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from everlog.actors.agent.agent_setup import Settings
from everlog.events import BadInput, DuplicateId, ModelError, PartitionBusy, UnknownAgent
from tests.contract.contract_agents import SCRIPTED, alive, log, says, scripted, texts
from tests.soak.test_killed_processes import start
from tests.support.agent_world import kinds
from tests.support.models.loopback_server import serving

HOLDS = """
import asyncio, sys
from everlog.actors.api import open_system

async def main():
    async with open_system(sys.argv[1], runtime="local") as system:
        await system.agent("sam", command="everlog chat")
        print("open", flush=True)
        await asyncio.to_thread(sys.stdin.readline)

asyncio.run(main())
"""
"""Program of a process that has sam open until it reads a line."""


class ErrorContract:
    """Contract of errors; a part of `AgentContract`."""

    @alive
    async def test_an_agent_that_does_not_exist(self, opens: Any) -> None:
        """UnknownAgent suggests similar names, and makes no agent."""
        async with opens() as system:
            await system.agent("samuel")
            with pytest.raises(UnknownAgent, match=r"There is no agent 'samue' here. Did you mean 'samuel'\?"):
                await system.agent("samue", create=False)
            with pytest.raises(UnknownAgent, match=r"'nobody' here. `everlog agents` lists those that exist"):
                await system.agent("nobody", create=False)
            assert await system.agents() == ["samuel"]

    @alive
    async def test_invalid_settings_are_refused(self, opens: Any) -> None:
        """BadInput names the fault; an existing agent continues as it was."""
        async with opens() as system:
            with pytest.raises(BadInput, match="There is no time zone 'Oslo'"):
                await system.agent("sam", Settings(zone="Oslo"))
            agent = await system.agent("sam")
            assert await agent.unload()
            with pytest.raises(BadInput, match="A window must have 4096 to"):
                await system.agent("sam", Settings(window=17))
            assert texts(await agent.send("Hi"), "message_sent")

    @alive
    async def test_an_endpoint_that_refuses(self, opens: Any) -> None:
        """ModelError keeps its kind; the message is recorded, and answered with the next one."""
        async with scripted(opens, (400, '{"error": {"message": "no"}}'), says("Both.")) as (system, agent):
            with pytest.raises(ModelError, match="refused the request with status 400") as caught:
                await agent.send("One")
            assert caught.value.kind == "rejected"
            assert kinds(log(system))[-2:] == ["user_message", "model_failed"]
            assert texts(await agent.send("Two"), "message_sent") == ["Both."]
            assert texts(log(system), "user_message") == ["One", "Two"]

    @alive
    async def test_an_endpoint_that_fails_hurts_its_own_agent_only(self, opens: Any) -> None:
        """Of two agents at the same time, the one whose model works is answered."""
        with serving((400, "{}")) as broken:
            async with opens(base_url=broken.url) as system:
                ill, well = await system.agent("ill", SCRIPTED), await system.agent("well")
                failed, answered = await asyncio.gather(ill.send("Hi"), well.send("Hi"), return_exceptions=True)
                assert isinstance(failed, ModelError)
                assert texts(answered, "message_sent")  # type: ignore[arg-type]

    @alive
    async def test_an_agent_that_another_process_has_open(self, opens: Any, folder: Path) -> None:
        """PartitionBusy names the process and its command; when that process has closed the agent, it can be opened."""
        async with opens():
            pass
        holder = start("-c", HOLDS, str(folder))
        assert holder.stdout is not None
        assert await asyncio.to_thread(holder.stdout.readline) == "open\n"
        async with opens() as system:
            with pytest.raises(PartitionBusy, match=rf"sam is open in process {holder.pid} \(everlog chat\)") as caught:
                await system.agent("sam")
            assert caught.value.pid == holder.pid
            await asyncio.to_thread(holder.communicate, "\n")
            assert texts(await (await system.agent("sam")).send("Hi"), "message_sent")

    @alive
    async def test_an_event_id_with_another_content_is_refused(self, opens: Any) -> None:
        """An id that was used with another text is refused, and the agent continues."""
        async with opens() as system:
            agent = await system.agent("sam")
            first = await agent.send("One")
            with pytest.raises(DuplicateId):
                await agent.send("Two", event_id=first[0].event_id)
            assert texts(log(system), "user_message") == ["One"]
            assert texts(await agent.send("Three"), "message_sent")
