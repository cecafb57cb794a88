"""Pages of an agent whose log is sealed: they read a small part of it, and say what they said before it was sealed."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from everlog.projections import DERIVER, Projections
from everlog.store import FileStore
from tests.laws.test_any_moment import CLOSE
from tests.support.cli.command_line import Script, completion, says
from tests.support.http.served_store import served

TURNS = 28


def remembering() -> Script:
    """Return a model that edits a block in every third turn."""
    answers = []
    for turn in range(TURNS):
        if turn % 3 == 0:
            given = {"label": "human", "content": f"Day {turn}.", "request_heartbeat": True}
            answers.append(completion(("core_memory_append", given)))
        answers.append(says(f"Noted {turn}."))
    return Script(answers)


async def lived(root: Path) -> int:
    """Let an agent live. Return the seq of its last record."""
    async with served(root, remembering()) as server:
        agent = await server.system.agent("sam")
        for turn in range(TURNS):
            await agent.ask(f"Word {turn}")
        return int((await server.call("GET", "/agents/sam"))["head"])


def seal(root: Path) -> None:
    """Seal the log, with states in the middle of it."""
    log = FileStore(root, lambda: 10**18).open("sam", "test")
    with CLOSE:
        log.seal(DERIVER)
    log.close()


async def pages(root: Path, paths: list[str]) -> list[str]:
    """Return pages of a server of their own."""
    async with served(root) as server:
        answers = [await server.client.get(path) for path in paths]
        assert {answer.status_code for answer in answers} == {200}
        return [answer.text for answer in answers]


def test_sealing_changes_no_page(tmp_path: Path) -> None:
    """Whole pages at every moment are the same before and after the log was sealed, when they come from states, and
    whatever page an engine was used for before.
    """

    async def main() -> None:
        head = await lived(tmp_path)
        moments = ["", *(f"?as_of={seq}" for seq in range(1, head + 1, 11))]
        paths = [f"/console/a/sam{tab}{moment}" for moment in moments for tab in ("", "/memory")]
        block = "/console/a/sam/memory/human"
        paths += ["/console/a/sam/chat", block, f"{block}?as_of={head // 2}"]
        before = await pages(tmp_path, paths)
        seal(tmp_path)
        assert await pages(tmp_path, paths) == before
        assert "Day 27." in before[0]

    asyncio.run(main())


def test_a_page_reads_no_more_of_a_longer_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page of now and that of a moment load states and what follows them, and never the life before. The page of a
    block loads the edits.
    """
    loaded: list[int] = []
    load = Projections.load

    def counted(engine: Any, table: Any) -> None:
        loaded.append(table.num_rows)
        load(engine, table)

    async def main() -> None:
        head = await lived(tmp_path)
        seal(tmp_path)
        monkeypatch.setattr(Projections, "load", counted)
        await pages(tmp_path, ["/console/a/sam", f"/console/a/sam?as_of={head // 2}", "/console/a/sam/chat"])
        assert loaded and max(loaded) <= 8
        loaded.clear()
        await pages(tmp_path, ["/console/a/sam/memory/human"])
        assert 10 <= max(loaded) <= 20 < head

    asyncio.run(main())


def test_a_page_shows_what_was_said_since_the_last_page(tmp_path: Path) -> None:
    """An engine that showed an agent shows what came since, and the next agent has nothing of it."""

    async def main() -> None:
        async with served(tmp_path, remembering()) as server:
            for name in ("sam", "ann"):
                await server.system.agent(name)
            sam = await server.system.agent("sam")
            await sam.ask("I sail")
            assert "Day 0." in (await server.client.get("/console/a/sam")).text
            assert "Day 0." not in (await server.client.get("/console/a/ann")).text
            await sam.update_block("human", "Swims.")
            page = (await server.client.get("/console/a/sam/memory")).text
            assert "Swims." in page and "Day 0." not in page

    asyncio.run(main())


def test_a_turn_of_a_second_life_is_not_one_of_the_first(tmp_path: Path) -> None:
    """An agent that was created again counts its turns anew. A page of its first turn marks what this turn changed, and
    not the blocks with which it was created.
    """

    async def main() -> None:
        async with served(tmp_path, Script([says("Hi"), says("Hello")])) as server:
            await (await server.system.agent("sam")).ask("I sail")
            await server.call("DELETE", "/agents/sam")
            await (await server.system.agent("sam")).ask("I swim")
            page = (await server.client.get("/console/a/sam")).text
            assert "I swim" in page and "changed in this turn" not in page

    asyncio.run(main())
