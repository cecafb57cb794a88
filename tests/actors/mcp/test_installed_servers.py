"""Published servers of other people, installed as they are: an agent calls the functions of each."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from everlog.actors.functions.tools import Tool
from everlog.actors.mcp.server_entry import ServerEntry
from everlog.actors.replay.rebuild_check import verify
from everlog.events import FunctionResult, UserMessage, event_of
from tests.support.agent_world import World, completion, say
from tests.support.mcp.server_worlds import connections, functions
from tests.support.models.loopback_server import serving
from tests.support.published_programs import installed, installed_for_node

pytest.importorskip("mcp", reason="the extra mcp is not installed")
pytestmark = [pytest.mark.long, pytest.mark.clients]


@contextmanager
def lent(entry: ServerEntry, name: str) -> Iterator[Mapping[str, Tool]]:
    with connections() as made:
        yield functions(entry, made, name)


def told(tools: Mapping[str, Tool], *calls: tuple[str, dict[str, Any]]) -> list[FunctionResult]:
    """Return the results of calls, each in a step of one turn of an agent whose log verifies afterwards."""
    asked = [completion(calls=[(name, {"request_heartbeat": True, **given})]) for name, given in calls]
    world = World(*asked, say("Done."), tools=list(tools.values()))
    asyncio.run(world.tell("Go"))
    with world.system.view("sam") as view:
        assert verify(view, world.system.tools).faults == []
    return [event for event in map(event_of, world.log()) if isinstance(event, FunctionResult) and "__" in event.name]


def test_an_agent_reads_a_page_with_the_fetch_server(tmp_path: Path) -> None:
    """mcp-server-fetch turns a page of this machine into text; an address that it refuses is a failed call."""
    programs = installed(tmp_path / "env", "mcp-server-fetch")
    args = ("-m", "mcp_server_fetch", "--allow-private-ips", "--ignore-robots-txt")
    entry = ServerEntry(command=str(programs / "python"), args=args, approval=False)
    page = "<html><body><h1>Tides</h1><p>High water is at noon.</p></body></html>"
    with serving((404, "")) as web, lent(entry, "fetch") as tools:
        web.listing = 200, page
        read, refused = told(tools, ("fetch__fetch", {"url": web.url, "raw": True}), ("fetch__fetch", {"url": "tide"}))
    assert read.ok
    assert "High water is at noon." in read.text
    assert not refused.ok


def test_an_agent_calls_what_the_everything_server_offers(tmp_path: Path) -> None:
    """Texts, structured content, images, links and resources are results that a model can read; a wrong argument is a
    failed call, and so is a request that the server has to put to a person.
    """
    programs = installed_for_node(tmp_path / "js", "@modelcontextprotocol/server-everything")
    entry = ServerEntry(command=str(programs / "mcp-server-everything"), approval=False)
    with lent(entry, "every") as tools:
        results = told(
            tools,
            ("every__echo", {"message": "Hi"}),
            ("every__get-sum", {"a": 2, "b": 40}),
            ("every__get-structured-content", {"location": "Chicago"}),
            ("every__get-tiny-image", {}),
            ("every__get-resource-links", {"count": 2}),
            ("every__get-annotated-message", {"messageType": "error"}),
            ("every__get-sum", {"a": "two"}),
        )  # fmt: skip
    texts = [result.text for result in results]
    assert [result.ok for result in results] == [True] * 6 + [False]
    assert "Hi" in texts[0]
    assert "42" in texts[1]
    assert "temperature" in texts[2]
    assert "image/png" in texts[3]
    assert texts[4].count("resource") >= 2


def test_the_progress_of_the_everything_server_is_shown(tmp_path: Path) -> None:
    """Lines that the server reports while its operation runs come before the result, in their order."""
    programs = installed_for_node(tmp_path / "js", "@modelcontextprotocol/server-everything")
    entry = ServerEntry(command=str(programs / "mcp-server-everything"), approval=False)
    seen: list[str] = []

    class Watched:
        """Previews of an agent, of which the progress counts."""

        def preview_for(self, *_: Any) -> None:
            return None

        def on_call(self, *_: Any) -> None:
            seen.append("call")

        def on_progress(self, _turn: int, _step: int, line: str) -> None:
            seen.append(line)

    with lent(entry, "every") as tools:
        lines = [
            completion(calls=[("every__trigger-long-running-operation", {"duration": 2, "steps": 4})]), say("Done."),
        ]  # fmt: skip
        world = World(*lines, tools=list(tools.values()))

        async def run() -> None:
            async with world.system.agent("sam", world.settings) as agent:
                agent.previews = Watched()
                await agent.receive(UserMessage(text="Go"))
                await agent.run()

        asyncio.run(run())
    assert seen[0] == "call"
    assert seen[1:] == [f"{step} of 4" for step in range(1, 4)] or seen[1:] == [f"{step} of 4" for step in range(1, 5)]
