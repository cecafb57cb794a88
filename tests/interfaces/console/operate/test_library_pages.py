"""Pages about what agents share and derived, the cluster and the keys: each leads back to the log."""

import asyncio
from pathlib import Path

from tests.interfaces.console.test_every_page import cookie
from tests.support.cli.command_line import Script, completion, says
from tests.support.http.parsed_page import ParsedPage
from tests.support.http.served_store import Served, served


async def shown(server: Served, path: str, **headers: str) -> ParsedPage:
    """Return a page, which has to be sound."""
    page = await server.client.get(path, headers=headers)
    assert page.status_code == 200, page.text
    parsed = ParsedPage(page.text)
    parsed.check()
    return parsed


def test_the_library_has_blocks_and_sources_with_those_who_have_them(tmp_path: Path) -> None:
    """A shared block is there with its text and its agents, and its page has every version with its author; a source
    is there with its documents.
    """

    async def main() -> None:
        async with served(tmp_path) as server:
            await server.system.agent("sam")
            assert "No block is shared" in (await shown(server, "/console/library")).text
            await server.call("POST", "/blocks", {"block": "the house", "value": "A cat."}, status=201)
            await server.call("PUT", "/agents/sam/shared/the%20house", {"label": "house"}, status=200)
            await server.call("PATCH", "/blocks/the%20house", {"value": "Two cats."}, status=200)
            answer = await server.client.put(
                "/api/v1/sources/notes/documents/a.txt", content=b"Sail.", headers={"Content-Type": "text/plain"}
            )
            assert answer.status_code == 201, answer.text
            library = await shown(server, "/console/library")
            assert "Two cats." in library.text and "Seen by sam" in library.text
            links = library.values("a", "href")
            assert "/console/shared/the~20house" in links and "/console/sources/notes" in links
            block = await shown(server, "/console/shared/the~20house")
            assert "A cat." in block.text and "Two cats." in block.text and "by a person" in block.text
            assert "a.txt" in (await shown(server, "/console/sources/notes")).text

    asyncio.run(main())


def test_an_edit_of_a_shared_block_leads_to_its_author_and_the_record(tmp_path: Path) -> None:
    """A version that an agent made names it and its own record of the edit, and leads to both; one of a person leads to
    no record.
    """
    calls = [("core_memory_append", {"label": "team", "content": words, "request_heartbeat": False}) for words in "ab"]

    async def main() -> None:
        async with served(tmp_path, Script([*map(completion, calls), says("Ahoy.")])) as server:
            await server.call("POST", "/blocks", {"block": "team", "value": "Bob sails."}, status=201)
            for name in ("sam", "kim"):
                agent = await server.system.agent(name)
                await server.call("PUT", f"/agents/{name}/shared/team", {}, status=200)
                await agent.ask("Ann cooks")
            block = await shown(server, "/console/shared/team")
            for name in ("sam", "kim"):
                records = (await server.call("GET", f"/agents/{name}/records?limit=1000"))["records"]
                edit = next(one["seq"] for one in records if one["type"] == "memory_edited" and one["turn"])
                assert f"/console/a/{name}/records/{edit}" in block.values("a", "href")
                assert f"by {name}, event {edit}" in block.text
                assert (await server.client.get(f"/console/a/{name}/records/{edit}")).status_code == 200
            assert len([href for href in block.values("a", "href") if "/records/" in href]) == 2

    asyncio.run(main())


def test_a_fact_leads_to_what_it_rests_on(tmp_path: Path) -> None:
    """A fact is listed with the seqs that it rests on; its tree shows the message, which leads to its moment; at a
    moment before the fact there is none.
    """

    async def main() -> None:
        async with served(tmp_path, Script([says("Ahoy.")])) as server:
            await (await server.system.agent("sam")).ask("I sail a yawl")
            records = (await server.call("GET", "/agents/sam/records"))["records"]
            said = next(one["seq"] for one in records if one["type"] == "user_message")
            fact = {"subject": "user", "predicate": "sails", "object": "a yawl", "sources": [said]}
            noted = (await server.call("POST", "/agents/sam/facts", fact, status=201))["seq"]
            page = await shown(server, "/console/a/sam/memories?kind=fact")
            assert f"/console/a/sam/memories/{noted}" in page.values("a", "href")
            tree = await shown(server, f"/console/a/sam/memories/{noted}")
            assert "I sail a yawl" in tree.text
            assert f"/console/a/sam?as_of={said}" in tree.values("a", "href")
            before = await shown(server, f"/console/a/sam/memories?as_of={said}")
            assert "No memories" in before.text
            assert (await server.client.get(f"/console/a/sam/memories/{said}0")).status_code == 404

    asyncio.run(main())


def test_the_archive_is_that_of_the_moment(tmp_path: Path) -> None:
    """A stored text is listed with its tags and its event, and is not there before it was stored."""

    async def main() -> None:
        async with served(tmp_path) as server:
            await server.system.agent("sam")
            body = {"text": "The gold is under the oak.", "tags": ["gold"]}
            await server.call("POST", "/agents/sam/archive", body, status=201)
            page = await shown(server, "/console/a/sam/archive?tag=gold")
            assert "The gold is under the oak." in page.text
            assert "Nothing is in its archive" in (await shown(server, "/console/a/sam/archive?as_of=1")).text

    asyncio.run(main())


def test_a_search_over_all_agents_leads_to_moments(tmp_path: Path) -> None:
    """Words that one of two agents was told are found with that agent and the event; a tenant finds its own alone."""

    async def main() -> None:
        async with served(tmp_path, Script([says("Ahoy."), says("Moo."), says("Aye.")])) as server:
            await (await server.system.agent("sam")).ask("I sail a yawl")
            await (await server.system.agent("tom")).ask("I keep cows")
            page = await shown(server, "/console/search?q=yawl")
            assert "I sail a yawl" in page.text
            agents = [href for href in page.values("a", "href") if href.startswith("/console/a/")]
            assert agents[0] == "/console/a/sam" and agents[1].startswith("/console/a/sam?as_of=")
            admin = server.key(tenant="acme")
            await server.call("POST", "/agents", {"name": "ann"}, headers=admin, status=201)
            mine = cookie(server, server.key("read", "acme"))
            other = await shown(server, "/console/search?q=yawl", **mine)
            assert "Nothing found" in other.text

    asyncio.run(main())


def test_keys_are_listed_without_the_keys(tmp_path: Path) -> None:
    """An admin sees the names, roles and ends of keys, and no key; a tenant's admin sees the keys of the tenant."""

    async def main() -> None:
        async with served(tmp_path) as server:
            admin, secret = server.key("admin", name="the operator"), server.key("talk", "acme", name="a phone")
            page = await shown(server, "/console/keys", **cookie(server, admin))
            assert "the operator" in page.text and "a phone" in page.text and "acme" in page.text
            key = secret["Authorization"].removeprefix("Bearer ")
            assert key not in page.text
            mine = await shown(server, "/console/keys", **cookie(server, server.key("admin", "acme", name="of acme")))
            assert "a phone" in mine.text and "the operator" not in mine.text
            refused = await server.client.get("/console/keys", headers=cookie(server, secret))
            assert refused.status_code == 403

    asyncio.run(main())


def test_without_a_cluster_the_page_says_how_to_get_one(tmp_path: Path) -> None:
    """A server that runs the agents itself says so, and names the command."""

    async def main() -> None:
        async with served(tmp_path) as server:
            await server.system.agent("sam")
            page = await shown(server, "/console/cluster")
            assert "No cluster runs" in page.text and "everlog up" in page.text

    asyncio.run(main())
