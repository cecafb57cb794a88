"""Searches of an agent: the filters that reach the archive, the results without an archive, and the texts for the
model.
"""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from everlog.actors.agent.local_system import AgentServices, LocalSystem
from everlog.actors.functions.memgpt_functions import shown
from everlog.actors.functions.tools import tool
from everlog.actors.memory.agent_search import AgentSearcher
from everlog.actors.ports.effects import Hit, Page
from everlog.actors.replay.rebuild_check import verify
from everlog.events import ArchivalInserted, ArchiveDown, SourceAttached, UserMessage, event_of
from everlog.projections import HEAD
from everlog.store import ArchiveQuery, MemoryStore, SaidMessages
from tests.support.agent_world import SECOND, START, World, completion, say

HIT = Hit(
    seq=7, at=START, role="archival", name="", text="the tide", ref="4711", score=1.0, tags=("sea", "moon"),
    source="almanac", document="tides.txt", part=2, parts=3, near=0.137,
)  # fmt: skip


class FakeArchive:
    """An archive that returns a given page, or raises ArchiveDown, and records the queries."""

    def __init__(self, page: Page | None) -> None:
        self.page = page
        self.asked: list[Any] = []

    async def search(self, wanted: ArchiveQuery, known: object = None) -> Page:
        self.asked.append(wanted)
        if self.page is None:
            raise ArchiveDown("nobody is there")
        return self.page

    reranks = False

    def begin(self, agent_id: str, records: int) -> None:
        """Do nothing: answers are given."""

    def rest(self) -> None:
        """Do nothing: nothing is kept."""

    async def rerank(self, query: str, texts: Sequence[str]) -> Sequence[int]:
        pytest.fail("asked")

    async def meanings(self, agent_id: str, query: str, said: SaidMessages) -> np.ndarray:
        self.asked.append((agent_id, query, said))
        if self.page is None:
            raise ArchiveDown("nobody is there")
        return np.empty(0, np.float32)


def call(world: World, *calls: tuple[str, dict[str, Any]]) -> list[str]:
    """Return the results of the function calls of one reply."""
    world.model.lines = [completion(calls=list(calls)), completion("Oh.")]
    left = asyncio.run(world.tell("go"))
    return [event_of(record).text for record in left if record.type == "function_result"]


def searching(archive: FakeArchive | None) -> World:
    """Return a world with an agent that is attached to one source and searches this archive."""
    world = World(say("Hi."))
    world.system = LocalSystem(
        world.store,
        models=lambda _: world.model,
        ports=world.ports,
        services=AgentServices(archive=archive),  # type: ignore[arg-type]
    )
    world.settings = type(world.settings)(model="scripted", window=8192, zone="Asia/Tokyo")
    asyncio.run(world.tell("Hello"))

    async def attach() -> None:
        async with world.system.agent("sam", world.settings) as agent:
            kept = ArchivalInserted(text="the tide turns at six", tags=["sea"])
            await agent.commit([SourceAttached(source="almanac"), kept], turn=agent.turn, step=0)

    asyncio.run(attach())
    return world


def test_every_filter_reaches_the_archive() -> None:
    """Tags, source, days in the agent's zone, and page are passed on, with the agent's sources as of the request."""
    archive = FakeArchive(Page(12, 1, 3, [HIT], by_meaning=True))
    world = searching(archive)
    arguments = {
        "query": "tide", "page": 1, "tags": ["sea", "moon"], "start_date": "2026-01-01", "end_date": "2026-01-02",
        "source": "almanac",
    }  # fmt: skip
    head = len(world.log())
    (text,) = call(world, ("archival_memory_search", arguments))
    (wanted,) = archive.asked
    midnight = START - 9 * 3600 * SECOND  # midnight before the first of January in Tokyo
    assert (wanted.after, wanted.before) == (midnight, midnight + 2 * 86_400 * SECOND)
    assert (wanted.tags, wanted.source, wanted.sources) == (("sea", "moon"), "almanac", ["almanac"])
    assert (wanted.first, wanted.count, wanted.as_of) == (10, 10, head + 1)
    assert text.startswith("Showing 1 of 12 results (page 1/2): ")
    told = "id: 4711, near: 0.14, part 2 of 3, tags: sea, moon, source: almanac, document: tides.txt, memory: the tide"
    assert json.loads(text.split("): ", 1)[1]) == [f"timestamp: 2026-01-01 09:00:00 AM JST+0900, {told}"]
    assert not verify(world.system.view("sam"), world.system.tools).faults


def test_without_the_archive_a_search_by_words_says_so() -> None:
    """Without an answer of the archive, the agent's own memories are searched by words, under every filter, and the
    result says that documents were not searched.
    """
    world = searching(FakeArchive(None))
    (text,) = call(world, ("archival_memory_search", {"query": "tide", "tags": ["sea"]}))
    assert "page 0/0; by words alone, without documents: the archive does not answer): " in text
    assert "the tide turns at six" in text
    (text,) = call(world, ("archival_memory_search", {"query": "tide", "tags": ["moon"]}))
    assert text == "No results found by words alone, without documents: the archive does not answer."
    (text,) = call(world, ("conversation_search", {"query": "hello"}))
    assert "page 0/0; by words alone): " in text


def test_no_archive_is_mentioned_where_there_is_none() -> None:
    """In a system without an archive, results do not mention one."""
    world = searching(None)
    for name in ("archival_memory_search", "conversation_search"):
        (text,) = call(world, (name, {"query": "tide hello"}))
        assert "(page 0/0): " in text
    assert shown(Page(0, 0, 0, []), "UTC", roles=True) == "No results found."


def test_an_unknown_source_is_refused_with_the_known_ones() -> None:
    """An unknown source is an error with the known names, not an empty result."""
    world = searching(FakeArchive(Page(0, 0, 0, [])))
    (text,) = call(world, ("archival_memory_search", {"query": "tide", "source": "almanach"}))
    assert "There is no source 'almanach' to search; there are 'almanac'." in text


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Los_Angeles", "Europe/Oslo"])
def test_both_days_count_whole_in_the_zone_of_the_agent(zone: str) -> None:
    """The first and the last second of a day belong to the day, also when the clocks change."""
    world = World(say("Hi."))
    world.settings = type(world.settings)(model="scripted", window=8192, zone=zone)
    asyncio.run(world.tell("Hello"))
    days = ("2025-03-30", "2025-10-26", "2025-03-09")

    async def import_messages() -> None:
        async with world.system.agent("sam", world.settings) as agent:
            for day in days:
                for clock in ("00:00:00", "23:59:59"):
                    at = _moment(f"{day}T{clock}", zone)
                    said = UserMessage(text=f"{day} {clock}", imported=True)
                    await agent.commit([said], turn=agent.turn, step=0, said_at=[at])

    asyncio.run(import_messages())
    for day in days:
        (text,) = call(world, ("conversation_search_date", {"start_date": day, "end_date": day}))
        assert text.startswith("Showing 2 of 2 results (page 0/0): ")
        assert f"{day} 00:00:00" in text
        assert f"{day} 23:59:59" in text


@pytest.mark.parametrize("day", ["now", "", "2025-02-30", "2025-13-01", "30.1.2025", "2025-01-31T00:00", "0001-01-01"])
def test_an_invalid_day_is_refused_at_either_end(day: str) -> None:
    """The error says how a date is written."""
    world = World(say("Hi."))
    asyncio.run(world.tell("Hello"))
    for start, end in ((day, "2025-01-01"), ("2025-01-01", day)):
        (text,) = call(world, ("conversation_search_date", {"start_date": start, "end_date": end}))
        assert "A date is written YYYY-MM-DD" in text
    (text,) = call(world, ("conversation_search_date", {"start_date": "2025-01-02", "end_date": "2025-01-01"}))
    assert "The last day, 2025-01-01, is before the first, 2025-01-02." in text


def test_roles_and_days_are_passed_to_the_search_of_what_was_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Role and days reach the archive; an unknown role is refused before the search."""
    world = World(say("Hi."))
    asyncio.run(world.tell("Hello"))
    asked: list[Any] = []

    async def recall(self: Any, query: str, page: int, count: int, filters: Any) -> Page:
        asked.append((query, page, filters.roles, filters.start, filters.end))
        return Page(0, page, 0, [])

    monkeypatch.setattr(AgentSearcher, "recall", recall)
    narrow = {"query": "x", "page": 2, "roles": ["user"], "start_date": "2025-01-01", "end_date": "2025-01-02"}
    assert call(world, ("conversation_search", narrow)) == ["No results found."]
    assert asked == [("x", 2, ("user",), "2025-01-01", "2025-01-02")]
    assert "Invalid enum value" in call(world, ("conversation_search", {"query": "x", "roles": ["system"]}))[0]
    assert len(asked) == 1


def test_calls_after_a_crash_know_the_memories_before_it() -> None:
    """A memory that was stored before an outside effect is recognised by the next call, also after a restart."""
    posted: list[str] = []

    @tool(effect="idempotent")
    async def post(words: str) -> str:
        """Post a card.

        Args:
            words: What is on it.
        """
        if not posted:
            posted.append(words)
            raise KeyboardInterrupt
        return "posted"

    insert = ("archival_memory_insert", {"content": "The boat is Vera."})
    world = World(completion(calls=[insert, ("post", {"words": "ahoy"}), insert]), store=MemoryStore(), tools=[post])
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(world.tell("go"))
    again = world.restarted(completion("Oh."))

    async def finish() -> None:
        async with again.system.agent("sam", again.settings) as agent:
            await agent.run()

    asyncio.run(finish())
    assert again.kinds().count("archival_inserted") == 1
    assert "Kept already" in str([event_of(r).text for r in again.log() if r.type == "function_result"][-1])
    view = again.system.view("sam")
    assert not verify(view, again.system.tools).faults
    assert len(view.searcher(HEAD).listed(0, 5).results) == 1


def _moment(text: str, zone: str) -> int:
    from datetime import datetime
    from zoneinfo import ZoneInfo

    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()) * SECOND
