"""Pages of a moment: they show that moment and no other, and lead to its neighbours. If the log is sealed they read a
small part of it, and say what they said before.
"""

import asyncio
import random
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import strategies as st

from everlog.actors.agent.local_system import LocalSystem
from everlog.events import Record, UserMessage, draft, place, uuid7
from everlog.interfaces.http.console.agent_life import AgentLife
from everlog.interfaces.http.console.agent_pages import values_before
from everlog.interfaces.http.console.life_pages import drawn, landing
from everlog.interfaces.replay_console import load_timeline
from everlog.projections import DERIVER, Projections
from everlog.store import FileStore
from tests.interfaces.console.test_every_page import script
from tests.laws.test_any_moment import CLOSE
from tests.laws.test_resume_from_states import table_of
from tests.support.agents.random_edited_agent import edited
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
            assert grown.clock(7) == whole.clock(7)
            assert whole.points["failure"], "one call failed"
            for kind in ("turn", "edit", "summary", "failure"):
                assert list(whole.points[kind]) == list(replayed.jump_points(kind)), kind

    asyncio.run(main())


@law(st.lists(st.integers(-50, 200), min_size=1, max_size=40), st.integers(1, 60), few=60, many=5000)
def test_by_time_every_step_is_equally_long(waits, steps):
    """Each step of the clock leads to the last record that was written by then, the last one to the head, and the bars
    count every record once. Where the clock was set back, records count as written at the time before.
    """
    said = [draft(UserMessage(text=""), event_id=uuid7(1, n), recorded_at=time, turn=0, step=0)
            for n, time in enumerate(accumulate(waits, initial=10**6))][1:]  # fmt: skip
    life = AgentLife()
    life.add(table_of([place(one, "sam", seq, seq) for seq, one in enumerate(said, start=1)]))
    first = said[0].recorded_at
    reached = [max(one.recorded_at for one in said[: end + 1]) for end in range(len(said))]
    span = reached[-1] - first
    plain = [sum(time <= first + span * step // steps for time in reached) for step in range(steps + 1)]
    assert life.clock(steps) == plain
    assert plain[-1] == len(said)
    assert sum(map(sum, life.bars(steps, "time"))) == len(said)
    assert drawn(life, "time").startswith(b"<svg")


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
        moments = ["", *(f"?as_of={seq}" for seq in range(1, head + 1, 61))]
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
    """An agent that was created again has a first turn again. The page of this turn marks what this turn changed, and
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


@law(st.integers(0, 10**6), few=1, many=60)
def test_a_page_finds_the_memory_before_a_turn_in_the_records_that_it_has(seed: int) -> None:
    """From all records before the moment, or from a few, the values of blocks before the turn are found as those that
    core memory had then, of removed blocks and of agents that were created again too.
    """
    world = edited(seed)
    records, chance = world.log(), random.Random(seed)
    for turn in sorted({record.turn for record in records if record.turn}):
        began = max(_seqs_of_life(records, turn), default=1)
        if began == 1:
            continue
        with world.system.view("sam", as_of=began) as view:
            then = {row["label"]: row["value"] for row in view.rows("core_memory", began - 1)}
            near = records[chance.randrange(began) : began]
            frame: Any = SimpleNamespace(near=near, turn_began=began)
            assert values_before(view, frame, {*then, "none"}) == then
            for label, value in then.items():
                assert values_before(view, frame, {label}) == {label: value}


def _seqs_of_life(records: Sequence[Record], turn: int) -> Iterator[int]:
    """Yield the first seq of a turn in each life of an agent."""
    before = None
    for record in records:
        if record.turn == turn and before != turn:
            yield record.seq
        before = record.turn
