"""Functions of MCP servers: they are called where the agent runs, and the loss of its host is that of any effect."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from everlog.actors.agent.undo import INTERRUPTED
from everlog.actors.functions.tools import Tool
from everlog.actors.mcp.mcp_functions import functions_of
from everlog.actors.mcp.server_connections import process_connections
from tests.contract.agent_functions import results, settled
from tests.contract.contract_agents import alive, assert_sound, calls, log, says, scripted
from tests.support.mcp.server_worlds import connections, raw_entry, wait_for


async def acting(mode: str, file: Path) -> Tool:
    """Return a function of a server made by hand that acts once, and asks no person."""
    entry = raw_entry(mode, file, approval=False)
    with connections() as made:
        offer = await made.offer("raw", entry)
    return next(tool for tool in functions_of("raw", entry, offer.tools) if tool.name == "raw__act")


class ServerContract:
    """Contract of functions of servers; a part of `AgentContract`."""

    kill: Any

    @alive
    async def test_a_function_of_a_server(self, opens: Any, tmp_path: Path) -> None:
        """A function of a server is called, also after the host died: each host starts the server's program."""
        pytest.importorskip("mcp", reason="the extra mcp is not installed")
        file = tmp_path / "effects"
        tool = await acting("plain", file)
        turn = (calls("raw__act", {"words": "Hi"}), says("Done."))
        async with scripted(opens, *turn, *turn, tools=[tool]) as (system, agent):
            for _ in range(2):
                assert [result.text for result in results(await agent.send("go"))] == ["wrote Hi"]
                await self.kill(system, "sam")
            assert_sound(system)
        assert file.read_text() == "act Hi\n" * 2
        await asyncio.to_thread(process_connections().close)

    @alive
    async def test_a_host_that_dies_during_a_call_of_a_server(self, opens: Any, tmp_path: Path) -> None:
        """The call's outcome is unknown, the server is not asked again, and the turn ends."""
        pytest.importorskip("mcp", reason="the extra mcp is not installed")
        file = tmp_path / "effects"
        tool = await acting("hanging", file)
        async with scripted(opens, calls("raw__act", {"words": "Hi"}), says("Done."), tools=[tool]) as (system, agent):
            answer = asyncio.ensure_future(agent.send("go"))
            await asyncio.to_thread(wait_for, file)
            await self.kill(system, "sam")
            await settled(answer)
            await agent.resume()
            assert [(result.ok, result.text) for result in results(log(system))] == [(False, INTERRUPTED)]
            assert_sound(system)
        assert file.read_text() == "act Hi\n"
        await asyncio.to_thread(process_connections().close)
