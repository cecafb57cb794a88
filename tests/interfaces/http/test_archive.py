"""Archival memory and searches over HTTP: inserted, found, changed and deleted, at any moment, by its owner alone."""

import asyncio
from pathlib import Path

from tests.support.cli.command_line import Script, says
from tests.support.http.served_store import served


def test_a_text_is_inserted_found_changed_and_deleted(tmp_path: Path) -> None:
    """A text can be read under its id, is found by its words, has its new words after a change, and is gone after its
    deletion; the moment before still has it.
    """

    async def main() -> None:
        async with served(tmp_path) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            made = await server.call(
                "POST", "/agents/sam/archive", {"text": "The boat is named Alma.", "tags": ["boat"]}, status=201
            )
            path = f"/agents/sam/archive/{made['memory']}"
            shown = await server.call("GET", path, status=200)
            assert (shown["text"], shown["tags"], shown["place"], shown["agent"]) == (
                "The boat is named Alma.", ["boat"], "archive", "sam",
            )  # fmt: skip
            again = await server.call("POST", "/agents/sam/archive", {"text": "The boat is named Alma."}, status=201)
            assert again == made
            await server.call("PUT", path, {"text": "The boat is named Berta."}, status=200)
            assert (await server.call("GET", path, status=200))["tags"] == ["boat"]
            assert (await server.call("GET", f"{path}?as_of={shown['seq']}", status=200))["text"] == shown["text"]
            found = await server.call("GET", "/agents/sam/search?query=Berta&place=archive", status=200)
            assert [hit["ref"] for hit in found["results"]] == [made["memory"]]
            await server.call("DELETE", path, status=200)
            await server.call("GET", path, status=404)
            assert (await server.call("GET", "/agents/sam/archive", status=200))["total"] == 0
            past = await server.call("GET", f"/agents/sam/archive?as_of={shown['seq']}", status=200)
            assert [hit["text"] for hit in past["results"]] == ["The boat is named Alma."]

    asyncio.run(main())


def test_a_repeated_insertion_inserts_once(tmp_path: Path) -> None:
    """Texts sent again with the same idempotency key are not inserted a second time, and have the same ids."""

    async def main() -> None:
        async with served(tmp_path) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            key, body = {"Idempotency-Key": "one"}, {"texts": ["One.", "Two."], "tags": ["n"]}
            first = await server.call("POST", "/agents/sam/archive/batch", body, headers=key, status=201)
            assert len(set(first["memories"])) == 2
            again = await server.call("POST", "/agents/sam/archive/batch", body, headers=key, status=201)
            assert again == first
            assert (await server.call("GET", "/agents/sam/archive?tag=n&count=1", status=200))["pages"] == 2

    asyncio.run(main())


def test_a_search_has_only_what_was_there_at_its_moment(tmp_path: Path) -> None:
    """A search at a moment finds what was said by then, and no later words."""

    async def main() -> None:
        async with served(tmp_path, Script([says("Aye"), says("Indeed")])) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            first = await server.call("POST", "/agents/sam/messages", {"text": "A whale!"}, status=200)
            await server.call("POST", "/agents/sam/messages", {"text": "Another whale!"}, status=200)
            now = await server.call("GET", "/agents/sam/search?query=whale&role=user", status=200)
            assert [hit["text"] for hit in now["results"]].count("Another whale!") == 1
            then = await server.call(
                "GET", f"/agents/sam/search?query=whale&role=user&as_of={first['last_seq']}", status=200
            )
            assert [hit["text"] for hit in then["results"]] == ["A whale!"]

    asyncio.run(main())


def test_a_search_over_all_agents_has_none_of_another_tenant(tmp_path: Path) -> None:
    """A tenant searches its own agents only, and a name of another tenant is unknown without a word about others."""

    async def main() -> None:
        async with served(tmp_path) as server:
            acme, beta = (server.key(tenant=tenant) for tenant in ("acme", "beta"))
            for key, word in ((acme, "apple"), (beta, "banana")):
                await server.call("POST", "/agents", {"name": word}, headers=key, status=201)
                await server.call("POST", f"/agents/{word}/archive", {"text": f"A {word}."}, headers=key, status=201)
            found = await server.call("GET", "/search?query=a", headers=acme, status=200)
            assert [(hit["agent"], hit["text"]) for hit in found["results"]] == [("apple", "A apple.")]
            problem = await server.call("GET", "/search?query=a&agent=banana", headers=acme, status=404)
            assert "beta" not in problem["message"]
            everything = await server.call("GET", "/search?query=a", headers=server.key(), status=200)
            assert {hit["agent"] for hit in everything["results"]} == {"acme~apple", "beta~banana"}

    asyncio.run(main())
