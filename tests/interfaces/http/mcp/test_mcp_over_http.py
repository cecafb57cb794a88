"""MCP clients at /mcp: the tools and resources of agents, by the keys, tenants and roles of the native API."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from everlog.interfaces.http.mcp import agent_tools, mcp_mount
from tests.support.cli.command_line import Script, says
from tests.support.http.served_store import Headers, Served, served

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError


@asynccontextmanager
async def client_of(
    server: Served, headers: Headers | None = None, *, path: str = "/mcp", mode: str = "auto"
) -> AsyncIterator[Any]:
    """Connect the client of the SDK."""
    async with (
        httpx2.AsyncClient(headers=dict(headers or {}), timeout=60, trust_env=False) as http,
        Client(streamable_http_client(f"{server.address}{path}", http_client=http), mode=mode, cache=None) as client,
    ):
        yield client


async def result(client: Any, tool: str, **arguments: Any) -> Any:
    """Return the structure that a tool answers; it must not fail."""
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content[0].text
    return answer.structured_content


async def refused(client: Any, tool: str, **arguments: Any) -> str:
    """Return the words of a call that must fail."""
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error
    return str(answer.content[0].text)


def names(found: Any) -> list[str]:
    return [row["agent"] for row in found["agents"]]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_talks_to_an_agent_and_reads_its_memory(mode: str, tmp_path: Path) -> None:
    """Every tool answers, by both revisions of the protocol; a repeat with the same key changes nothing twice."""

    async def run() -> None:
        async with served(tmp_path / "store", Script([says("Hello, Chad.")])) as server:
            await server.call("POST", "/agents", {"name": "sam", "settings": {"model": "script"}}, status=201)
            async with client_of(server, mode=mode) as client:
                assert names(await result(client, "list_agents")) == ["sam"]
                sent = {"agent": "sam", "text": "I am Chad", "idempotency_key": "one"}
                first = await result(client, "send_message", **sent)
                assert (first["text"], first["status"]) == ("Hello, Chad.", "done")
                assert (await result(client, "send_message", **sent))["run"] == first["run"]
                found = await result(client, "search_recall", agent="sam", query="Chad")
                assert {hit["role"] for hit in found["results"]} == {"user", "assistant"}
                texts = "/agents/sam/archive"
                await server.call("POST", texts, {"text": "Chad sails a red boat"}, status=201)
                (hit,) = (await result(client, "search_archive", agent="sam", query="boat"))["results"]
                assert hit["text"] == "Chad sails a red boat"
                line = {"agent": "sam", "label": "human", "text": "Sails.", "idempotency_key": "two"}
                assert await result(client, "append_block", **line) == {"changed": True}
                assert await result(client, "append_block", **line) == {"changed": False, "repeated": True}
                edit = {"agent": "sam", "label": "human", "old": "Sails", "new": "Swims"}
                assert await result(client, "replace_block", **edit) == {"changed": True}
                assert "does not hold the text 'Sails'" in await refused(client, "replace_block", **edit)
                value = (await result(client, "read_block", agent="sam", label="human"))["value"]
                assert value.endswith("\nSwims.")
                assert value.count("Swims.") == 1
                read = await client.read_resource("everlog://agents/sam/blocks/human")
                assert read.contents[0].text == value
                templates = await client.list_resource_templates()
                assert [one.uri_template for one in templates.resource_templates] == [
                    "everlog://agents/{name}/blocks/{label}"
                ]

    asyncio.run(run())


def test_wrong_calls_are_answered_in_words(tmp_path: Path) -> None:
    """An unknown tool, agent or argument is a failed result that a model reads; an unknown resource is an error."""

    async def run() -> None:
        async with served(tmp_path / "store") as server, client_of(server) as client:
            assert "There is no tool 'erase'" in await refused(client, "erase")
            assert "no agent 'ann'" in await refused(client, "read_block", agent="ann")
            assert "missing required field `agent`" in await refused(client, "read_block")
            assert "unknown field `x`" in await refused(client, "list_agents", x=1)
            for uri in ("everlog://agents/ann/blocks/human", "everlog://agents/ann", "file:///etc/passwd"):
                with pytest.raises(MCPError, match=r"no agent 'ann'|There is no resource"):
                    await client.read_resource(uri)

    asyncio.run(run())


def test_a_key_limits_what_a_client_sees_and_does(tmp_path: Path) -> None:
    """No key is 401; a key for reading has no tools that write, and cannot call them; a tenant sees its own agents."""

    async def run() -> None:
        async with served(tmp_path / "store", Script([])) as server:
            admin, acme, reader = server.key(), server.key("talk", "acme"), server.key("read")
            for name in ("sam", "acme~ann"):
                body = {"name": name, "settings": {"model": "script"}}
                await server.call("POST", "/agents", body, status=201, headers=admin)
            answer = await server.client.post("/mcp", json={})
            assert answer.status_code == 401
            async with client_of(server, reader) as client:
                tools = {tool.name: tool for tool in (await client.list_tools()).tools}
                assert list(tools) == ["list_agents", "search_recall", "search_archive", "read_block"]
                assert all(tool.annotations.read_only_hint for tool in tools.values())
                assert "needs 'talk'" in await refused(client, "send_message", agent="sam", text="Hi")
                write = {"agent": "sam", "label": "human", "text": "x", "idempotency_key": "k"}
                assert "needs 'talk'" in await refused(client, "append_block", **write)
            async with client_of(server, acme) as client:
                assert names(await result(client, "list_agents")) == ["ann"]
                assert (await result(client, "send_message", agent="ann", text="Hi"))["agent"] == "ann"
                assert "There is no agent" in await refused(client, "read_block", agent="sam")
            async with client_of(server, admin) as client:
                assert names(await result(client, "list_agents")) == ["acme~ann", "sam"]

    asyncio.run(run())


def test_an_address_of_one_agent_hides_all_others(tmp_path: Path) -> None:
    """At /mcp/sam a client sees sam, and nothing says that there are others."""

    async def run() -> None:
        async with served(tmp_path / "store") as server:
            for name in ("sam", "ann"):
                await server.call("POST", "/agents", {"name": name}, status=201)
            async with client_of(server, path="/mcp/sam") as client:
                assert names(await result(client, "list_agents")) == ["sam"]
                assert await result(client, "read_block", agent="sam", label="human")
                assert await refused(client, "read_block", agent="ann") == "There is no agent 'ann' here."
                with pytest.raises(MCPError, match="no agent 'ann'"):
                    await client.read_resource("everlog://agents/ann/blocks/human")

    asyncio.run(run())


def test_the_checks_of_every_route_hold(tmp_path: Path) -> None:
    """A page of another origin, a host of another name, a form and a GET are refused, before the SDK sees them."""

    async def run() -> None:
        async with served(tmp_path / "store") as server:
            json = {"Content-Type": "application/json"}
            send = server.client.post
            assert (
                await send("/mcp", content=b"{}", headers={**json, "Origin": "https://evil.example"})
            ).status_code == 403
            assert (await send("/mcp", content=b"{}", headers={**json, "Host": "evil.example"})).status_code == 421
            assert (await send("/mcp", content=b"a=1", headers={"Content-Type": "text/plain"})).status_code == 415
            assert (await server.client.get("/mcp")).status_code == 405
            nonsense = await send("/mcp", content=b"{}", headers=json)
            assert nonsense.status_code in (400, 406)
            assert nonsense.headers["x-content-type-options"] == "nosniff"

    asyncio.run(run())


def test_edits_of_many_clients_at_once_are_all_there(tmp_path: Path) -> None:
    """Each appended line is in the block once, also if another comes between."""

    async def run() -> None:
        async with served(tmp_path / "store") as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            async with client_of(server) as client:
                lines = [f"line {number}" for number in range(4)]
                await asyncio.gather(
                    *(result(client, "append_block", agent="sam", label="human", text=line) for line in lines)
                )
                value = (await result(client, "read_block", agent="sam", label="human"))["value"]
                assert sorted(value.splitlines()[-4:]) == lines

    asyncio.run(run())


def test_the_address_of_a_block_is_read_back() -> None:
    """Names of any characters go into an address and come out of it."""
    from everlog.interfaces.http.mcp import mcp_server

    assert mcp_server._parts(mcp_server.block_address("a/b ü~", "x?y")) == ("a/b ü~", "x?y")


def test_a_server_without_the_sdk_has_no_such_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package the routes are not there, and nothing else changes."""
    monkeypatch.setattr(mcp_mount, "find_spec", lambda _: None)

    async def run() -> None:
        async with served(tmp_path / "store") as server:
            assert (await server.client.post("/mcp", json={})).status_code == 404

    asyncio.run(run())


def test_the_order_of_the_tools_stays() -> None:
    """Prompts of clients begin with the tools: another order would cost each of them its cache."""
    assert list(agent_tools.TOOLS) == [
        "list_agents", "search_recall", "search_archive", "read_block", "append_block", "replace_block", "send_message",
    ]  # fmt: skip


class Waiting(Script):
    """A model that answers when it is let."""

    def __init__(self) -> None:
        super().__init__([says("Hello, Chad.")])
        self.reached, self.let = asyncio.Event(), asyncio.Event()

    async def ask(self, request: bytes, **more: object) -> Any:
        self.reached.set()
        await self.let.wait()
        return await super().ask(request, **more)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_message_outlives_its_client(mode: str, tmp_path: Path) -> None:
    """A client that leaves during a call gets the answer by a repeat with the same key: the model was asked once."""

    async def run() -> None:
        model = Waiting()
        async with served(tmp_path / "store", model) as server:
            await server.call("POST", "/agents", {"name": "sam", "settings": {"model": "script"}}, status=201)
            sent = {"agent": "sam", "text": "I am Chad", "idempotency_key": "one"}
            async with client_of(server, mode=mode) as client:
                call = asyncio.ensure_future(client.call_tool("send_message", sent))
                await model.reached.wait()
                call.cancel()
                await asyncio.gather(call, return_exceptions=True)
            model.let.set()
            async with client_of(server, mode=mode) as client:
                answer = await result(client, "send_message", **sent)
            assert (answer["text"], answer["status"], len(model.asked)) == ("Hello, Chad.", "done", 1)

    asyncio.run(run())
