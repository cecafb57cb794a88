"""Derived memories over HTTP: derived, noted, listed at any moment, ended, withdrawn."""

import asyncio
from pathlib import Path

from tests.support.cli.command_line import Script, says
from tests.support.http.served_store import served

SAID = {"text": "My name is Chad and I live in Oslo."}


def test_facts_are_noted_believed_and_ended(tmp_path: Path) -> None:
    """A noted fact is believed until it is ended; the moment before its end still has it, and it shows its sources."""

    async def main() -> None:
        async with served(tmp_path, Script([says("Hello Chad")])) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            run = await server.call("POST", "/agents/sam/messages", SAID, status=200)
            body = {"subject": "Chad", "predicate": "lives_in", "object": "Oslo", "sources": [run["first_seq"]]}
            fact = (await server.call("POST", "/agents/sam/facts", body, status=201))["seq"]
            listed = await server.call("GET", "/agents/sam/facts?about=Chad", status=200)
            assert [(row["subject"], row["object"], row["seq"]) for row in listed["rows"]] == [("Chad", "Oslo", fact)]
            tree = await server.call("GET", f"/agents/sam/memories/{fact}", status=200)
            assert [node["seq"] for node in tree["nodes"]] == [fact, run["first_seq"]]
            await server.call("GET", "/agents/sam/memories/9999", status=404)
            end = {"reason": "moved", "valid_to": "2026-01-01T00:00:00Z"}
            assert await server.call("POST", f"/agents/sam/facts/{fact}/end", end, status=200) == {"changed": True}
            assert (await server.call("GET", "/agents/sam/facts", status=200))["rows"] == []
            ended = await server.call("GET", "/agents/sam/facts?all=true", status=200)
            assert [row["valid_to"] for row in ended["rows"]] == ["2026-01-01T00:00:00.000000Z"]
            then = await server.call("GET", f"/agents/sam/facts?as_of={listed['as_of']}", status=200)
            assert [row["seq"] for row in then["rows"]] == [fact]

    asyncio.run(main())


def test_memories_are_derived_ranked_and_withdrawn(tmp_path: Path) -> None:
    """A derivation by rules notes facts of what was said, a search ranks them, and a withdrawn one counts no more."""

    async def main() -> None:
        async with served(tmp_path, Script([says("Hello Chad")])) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            await server.call("POST", "/agents/sam/messages", SAID, status=200)
            report = await server.call("POST", "/agents/sam/derivations", {"kinds": ["facts"]}, status=200)
            assert report["derivations"][0]["noted"] > 0
            again = await server.call("POST", "/agents/sam/derivations", {"kinds": ["facts"]}, status=200)
            assert again["derivations"][0]["noted"] == 0
            page = await server.call("GET", "/agents/sam/memories?kind=fact", status=200)
            assert page["total"] == len(page["memories"]) > 0
            ranked = await server.call("GET", "/agents/sam/memories/search?query=Oslo&kind=fact", status=200)
            first = ranked["results"][0]["memory"]
            assert "Oslo" in first["text"]
            gone = {"seqs": [first["seq"]], "reason": "wrong"}
            assert await server.call("POST", "/agents/sam/withdrawals", gone, status=200) == {"changed": True}
            left = await server.call("GET", "/agents/sam/memories?kind=fact", status=200)
            assert first["seq"] not in [memory["seq"] for memory in left["memories"]]
            assert await server.call(
                "POST", "/agents/sam/withdrawals", {**gone, "withdrawn": False}, status=200
            ) == {"changed": True}  # fmt: skip
            assert await server.call("GET", "/agents/sam/memories?kind=fact", status=200) == page
            await server.call("PUT", "/agents/sam/generation", {"generation": 7}, status=400)

    asyncio.run(main())


def test_plans_are_made_changed_and_become_timers(tmp_path: Path) -> None:
    """The items of a plan are timers of the agent, and an item that is done is no longer listed as open."""

    async def main() -> None:
        async with served(tmp_path, Script([says("Hello")])) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            await server.call("POST", "/agents/sam/messages", SAID, status=200)
            items = [{"text": "Sail", "start": "2999-01-01T08:00:00Z", "minutes": 30}]
            plan = (await server.call("POST", "/agents/sam/plans", {"title": "Day", "items": items}, status=201))["seq"]
            rows = (await server.call("GET", "/agents/sam/plans", status=200))["rows"]
            assert [(row["plan"], row["text"], row["status"]) for row in rows] == [(plan, "Sail", "planned")]
            assert len((await server.call("GET", "/agents/sam/timers", status=200))["timers"]) == 1
            change = {"item": 0, "change": "done", "reason": "calm sea"}
            await server.call("POST", f"/agents/sam/plans/{plan}/changes", change, status=200)
            assert (await server.call("GET", "/agents/sam/plans", status=200))["rows"] == []
            done = (await server.call("GET", "/agents/sam/plans?all=true", status=200))["rows"]
            assert [row["status"] for row in done] == ["done"]
            name = {"alias": "Chaddy", "entity": "Chad", "sources": [rows[0]["sources"][0]]}
            assert await server.call("POST", "/agents/sam/names", name, status=200) == {"changed": True}

    asyncio.run(main())
