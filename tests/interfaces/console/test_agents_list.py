"""The list of agents: filtered, ordered, page by page, and never of another time than it says."""

import asyncio
import re
from pathlib import Path

from tests.support.cli.command_line import Script, completion, says
from tests.support.http.served_store import Served, served


async def _names(server: Served, query: str) -> list[str]:
    page = await server.client.get(f"/console/agents?{query}")
    assert page.status_code == 200, page.text
    return re.findall(r'<th scope="row"><a href="[^"]+"><bdi>([^<]+)</bdi>', page.text)


def test_an_empty_store_says_how_to_begin(tmp_path: Path) -> None:
    """Without agents the page has the command that makes one."""

    async def main() -> None:
        async with served(tmp_path) as server:
            assert "everlog send sam" in (await server.client.get("/console/agents")).text

    asyncio.run(main())


def test_filters_and_orders_are_those_of_the_log(tmp_path: Path) -> None:
    """A failure, a fork and a message each move an agent to where the page says; words find it by its name; a deleted
    agent is not listed.
    """
    failing = completion(("core_memory_append", {"label": "none", "content": "x", "request_heartbeat": True}))

    async def main() -> None:
        async with served(tmp_path, Script([failing, says("Hm.")])) as server:
            await (await server.system.agent("ann")).ask("Hi")
            for name in ("bob", "Cleo", "dead"):
                await server.system.agent(name)
            await server.system.fork("ann", "ann-2", at=4)
            await server.system.delete("dead")
            assert await _names(server, "sort=name") == ["Cleo", "ann", "ann-2", "bob"]
            assert await _names(server, "sort=messages") == ["ann", "Cleo", "ann-2", "bob"]
            assert await _names(server, "show=failing") == ["ann"]
            assert await _names(server, "show=forks") == ["ann-2"]
            assert await _names(server, "show=working") == []
            assert await _names(server, "q=CLE") == ["Cleo"]
            assert "No agent matches" in (await server.client.get("/console/agents?q=zzz")).text
            assert (await server.client.get("/console/agents?sort=size")).status_code == 400

    asyncio.run(main())


def test_pages_follow_each_other_without_a_gap(tmp_path: Path) -> None:
    """The links to the next page lead through all agents, each once, in order."""

    async def main() -> None:
        async with served(tmp_path) as server:
            server.system.store.register_many([f"a{number:03}" for number in range(250)], shared=True)
            for number in range(0, 250, 50):
                await asyncio.gather(*(server.system.agent(f"a{n:03}") for n in range(number, number + 50)))
            found: list[str] = []
            query = "sort=name"
            while query:
                found += await _names(server, query)
                page = await server.client.get(f"/console/agents?{query}")
                link = re.search(r'rel="next" href="/console/agents\?([^"]+)"', page.text)
                query = link[1].replace("&amp;", "&") if link else ""
            assert found == [f"a{number:03}" for number in range(250)]

    asyncio.run(main())
