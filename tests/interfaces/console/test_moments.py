"""Pages of a moment: they show that moment and no other, and lead to its neighbours."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import strategies as st

from everlog.actors.agent.local_system import LocalSystem
from everlog.interfaces.http.console.agent_life import AgentLife
from everlog.interfaces.http.console.life_pages import drawn, landing
from everlog.interfaces.replay_console import load_timeline
from tests.interfaces.console.test_every_page import script
from tests.laws.test_resume_from_states import table_of
from tests.support.cli.command_line import Script, completion, says
from tests.support.http.parsed_page import ParsedPage
from tests.support.http.served_store import served
from tests.support.law import law


def test_a_moment_shows_what_was_then(tmp_path: Path) -> None:
    """Before an edit the page shows the old memory; in the turn of the edit it marks the new words; later words are not
    there, and the page says how many events came after. The picture and the landmarks are of the whole life.
    """

    async def main() -> None:
        async with served(tmp_path, script()) as server:
            agent = await server.system.agent("sam")
            await agent.ask("I have a dog")
            await agent.ask("A later word")
            blocks = (await server.call("GET", "/agents/sam/blocks"))["blocks"]
            seq = next(block["seq"] for block in blocks if block["label"] == "human")
            before = (await server.client.get(f"/console/a/sam/memory?as_of={seq - 1}")).text
            then = (await server.client.get(f"/console/a/sam?as_of={seq}")).text
            now = (await server.client.get("/console/a/sam")).text
            assert "Has a dog." not in before and "later event" in before
            assert "Has a dog.</ins>" in then and "A later word" not in then
            assert "Has a dog." in now and "</ins>" not in now and "A later word" in now and "later event" not in now
            outline = (await server.client.get("/console/a/sam/life.json")).json()
            assert seq in outline["edit"] and outline["head"] > seq
            picture = await server.client.get("/console/a/sam/life.svg")
            assert picture.headers["content-type"].startswith("image/svg+xml")
            assert picture.text.startswith("<svg") and 'class="edit"' in picture.text

    asyncio.run(main())


def test_a_link_for_others_names_its_past(tmp_path: Path) -> None:
    """The link of a page has the seq and the first digits of the chain value. A reader whose store has the same past
    sees the page; one with another past under that name is told so.
    """

    async def main() -> None:
        async with served(tmp_path) as server:
            await server.system.agent("sam")
            page = ParsedPage((await server.client.get("/console/a/sam/memory")).text)
            (link,) = [address for address in page.values("a", "href") if "chain=" in address]
            assert link.startswith("/console/a/sam/memory?as_of=")
            assert "another past" not in (await server.client.get(link)).text
            other = link[:-8] + ("0" * 8 if not link.endswith("0" * 8) else "1" * 8)
            assert "another past" in (await server.client.get(other)).text

    asyncio.run(main())


def test_words_lead_to_the_edit_that_put_them_there(tmp_path: Path) -> None:
    """The page of a block has its text in links; the page of a link shows the input that led to the words, and what
    stood there before.
    """
    answers = Script([
        completion(("core_memory_append", {"label": "human", "content": "Rex is her dog.", "request_heartbeat": True})),
        says("Noted."),
        completion(("core_memory_replace", {"label": "human", "old_content": "Rex is", "new_content": "Rex was",
                                            "request_heartbeat": True})),
        says("I am sorry."),
    ])  # fmt: skip

    async def main() -> None:
        async with served(tmp_path, answers) as server:
            agent = await server.system.agent("sam")
            await agent.ask("My dog is Rex")
            await agent.ask("Rex died in March")
            page = await server.client.get("/console/a/sam/memory/human")
            links = [href for href in ParsedPage(page.text).values("a", "href") if "by=" in href]
            newest = max(links, key=lambda href: int(href.partition("by=")[2].partition("#")[0]))
            explained = await server.client.get(newest.partition("#")[0])
            parsed = ParsedPage(explained.text)
            parsed.check()
            assert "Rex died in March" in parsed.text and "My dog is Rex" not in parsed.text
            assert "<del> is</del>" in explained.text and "<ins> was</ins>" in explained.text

    asyncio.run(main())


def test_jumps_lead_to_landmarks_and_change_nothing(tmp_path: Path) -> None:
    """A jump is a redirect to the page at the landmark; where there is none it stays; no jump leaves the console."""

    async def main() -> None:
        async with served(tmp_path, script()) as server:
            await (await server.system.agent("sam")).ask("Hi")
            outline = (await server.client.get("/console/a/sam/life.json")).json()
            jumps = {
                "from=1&to=next-turn": f"/console/a/sam?as_of={outline['turn'][0]}",
                "from=99999&to=previous-edit&page=memory": f"/console/a/sam/memory?as_of={outline['edit'][-1]}",
                "from=2&to=next-failure&page=context": "/console/a/sam/context?as_of=2",
                "from=2&to=last&page=memory/human": f"/console/a/sam/memory/human?as_of={outline['head']}",
            }
            for query, landed in jumps.items():
                answer = await server.client.get(f"/console/a/sam/jump?{query}")
                assert (answer.status_code, answer.headers["location"]) == (303, landed)
            for page in ("//evil.example", "../agents", "memory/..", "memory/a/b", "nothing"):
                answer = await server.client.get("/console/a/sam/jump", params={"from": 1, "to": "last", "page": page})
                assert answer.status_code in {400, 404}, page
            assert (await server.client.get("/console/a/sam/life.json")).json()["head"] == outline["head"]

    asyncio.run(main())


def test_the_outline_agrees_with_the_replay(tmp_path: Path) -> None:
    """The landmarks of the outline are those that the terminal's replay finds, and it grows record by record to the
    same.
    """

    async def main() -> None:
        failing = completion(("core_memory_append", {"label": "none", "content": "x", "request_heartbeat": True}))
        async with served(tmp_path, Script([failing, says("Hm."), *script().answers])) as server:
            agent = await server.system.agent("sam")
            for text in ("One", "Two", "Three"):
                await agent.ask(text)
            await agent.summarize()
            with LocalSystem(server.system.store).view("sam") as view:
                replayed = load_timeline.begun(view)
            whole, grown = AgentLife(), AgentLife()
            whole.add(table_of(replayed.records))
            for record in replayed.records:
                grown = grown.copy()
                grown.add(table_of([record]))
            assert grown.kinds == whole.kinds and grown.points == whole.points
            assert whole.points["failure"], "one call failed"
            for kind in ("turn", "edit", "summary", "failure"):
                assert list(whole.points[kind]) == list(replayed.jump_points(kind)), kind

    asyncio.run(main())


@law(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.integers(1, 80), st.integers(1, 12), few=60, many=5000)
def test_bars_and_jumps_lose_nothing(kinds, origin, most):
    """The bars count every record once, and a jump lands on the nearest landmark of a plain search."""
    life = AgentLife()
    life.kinds = bytearray(kinds)
    for seq, kind in enumerate(kinds, start=1):
        if kind == 2:
            life.points["edit"].append(seq)
    bars = life.bars(most)
    assert len(bars) == min(most, len(kinds))
    assert [sum(column) for column in zip(*bars, strict=True)] == [kinds.count(kind) for kind in range(5)]
    here = min(origin, len(kinds))
    edits = [seq for seq, kind in enumerate(kinds, start=1) if kind == 2]
    assert landing(life, origin, "next-edit") == min((seq for seq in edits if seq > here), default=here)
    assert landing(life, origin, "previous-edit") == max((seq for seq in edits if seq < here), default=here)
    assert landing(life, origin, "next-event") == min(len(kinds), here + 1)
    assert drawn(life).endswith(b"</svg>")


@pytest.mark.parametrize("tab", ["", "/memory", "/context", "/records", "/chat"])
def test_pages_of_a_fork_and_of_a_deleted_agent(tmp_path: Path, tab: str) -> None:
    """A fork shows the past that it shares, and names its parent; a deleted agent's past can be read."""

    async def main() -> None:
        async with served(tmp_path, script()) as server:
            await (await server.system.agent("sam")).ask("Hi")
            await server.system.fork("sam", "tim", at=5)
            fork = await server.client.get(f"/console/a/tim{tab}")
            assert fork.status_code == 200 and "fork of" in fork.text, fork.text
            await server.system.delete("tim")
            gone = await server.client.get(f"/console/a/tim{tab}")
            assert gone.status_code == 200 and "was deleted" in gone.text

    asyncio.run(main())
