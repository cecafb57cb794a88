"""everlog as the client of everlog: one agent reads and edits the memory of another, over stdio and over HTTP."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from everlog.actors.mcp.mcp_functions import functions_of
from everlog.actors.mcp.server_entry import ServerEntry
from everlog.events import FunctionResult, McpError
from tests.support.cli.command_line import Line
from tests.support.http.served_store import served
from tests.support.mcp.server_worlds import called, connections, functions
from tests.tidy.parsed_source import ROOT

pytest.importorskip("mcp", reason="the extra mcp is not installed")


@pytest.mark.beside_store("the command serves the files of a store")
def test_a_program_that_starts_everlog_reads_one_agent(cli: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """`everlog mcp serve` speaks on stdin and stdout, shows the agent of --agent, and with --role read only reads."""
    cli.ok("create", "sam")
    cli.ok("create", "ann")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    command = ["-m", "everlog.interfaces.cli.main", "--store", str(cli.root), "mcp", "serve", "--runtime", "local"]
    one = (*command, "--agent", "sam", "--role", "read")
    with connections() as made:
        tools = functions(ServerEntry(command=sys.executable, args=one, env=("PYTHONPATH",)), made)
        assert list(tools) == ["list_agents", "search_recall", "search_archive", "read_block"]
        assert {tool.effect for tool in tools.values()} == {"read_only"}
        assert "First name" in str(called(tools["read_block"], agent="sam", label="human"))
        result = called(tools["read_block"], agent="ann", label="human")
        assert isinstance(result, FunctionResult)
        assert "There is no agent 'ann' here." in result.text


def test_an_agent_uses_another_server_with_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key is the value of a variable that the entry names; without the right key nothing is offered. A message to
    the other agent waits for a person, an edit of its memory does not.
    """

    async def run() -> None:
        async with served(tmp_path / "store") as server:
            key = server.key("talk")["Authorization"].removeprefix("Bearer ")
            await server.call("POST", "/agents", {"name": "sam"}, status=201, headers=server.key())
            entry = ServerEntry(url=f"{server.address}/mcp", token="THEIR_KEY")
            monkeypatch.setenv("THEIR_KEY", "evl_wrong")
            with connections() as made:
                with pytest.raises(McpError, match="cannot be used"):
                    await made.offer("theirs", entry)
                monkeypatch.setenv("THEIR_KEY", key)
                offer = await made.offer("theirs", entry)
                tools = {tool.name: tool for tool in functions_of("theirs", entry, offer.tools, lambda: made)}
                assert {name for name, tool in tools.items() if tool.approval} == {
                    "theirs__send_message", "theirs__replace_block",
                }  # fmt: skip
                append = tools["theirs__append_block"]
                await append.function(agent="sam", label="human", text="Likes tea.", idempotency_key="a")
                block = await tools["theirs__read_block"].function(agent="sam", label="human")
                assert "Likes tea." in block
                await asyncio.to_thread(made.close)

    asyncio.run(run())
