"""One search for messages, memories and documents: what it ranks first, and that each place keeps its own order."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import strategies as st

import everlog
from everlog.actors.memory import joint_search
from everlog.actors.memory.agent_search import AgentSearcher
from everlog.actors.memory.joint_search import PLACES, RESULTS_MAX, covered, falling, merged, places_of, scored
from everlog.actors.ports.effects import Filters, Hit, Page
from everlog.events import ArchivalInserted, Event, FunctionError, UserMessage
from everlog.store.embedding.best_passage import Passage
from tests.support.agent_world import START, World, say
from tests.support.law import law

RELEVANCES = st.lists(st.floats(0, 1).map(lambda value: round(value, 3)), max_size=12)


def world_with(*events: Event) -> World:
    """Return a world whose agent has these events."""
    world = World(say("Hi."))
    asyncio.run(world.tell("Hello"))

    async def add() -> None:
        async with world.system.agent("sam", world.settings) as agent:
            await agent.commit(list(events), turn=agent.turn, step=0, said_at=[START] * len(events))

    asyncio.run(add())
    return world


def searched(world: World, query: str, filters: Filters | None = None, as_of: int | None = None) -> Page:
    """Return the first hundred results of the search of everything, by words."""
    searcher: AgentSearcher = world.system.view("sam").searcher(as_of)
    return asyncio.run(searcher.everything(query, 0, 100, filters or Filters()))


def texts(found: Page) -> list[str]:
    """Return the texts of the results."""
    return [hit.text for hit in found.results]


def hit(place: str, number: int) -> Hit:
    """Return a result of a place."""
    role = {"messages": "user", "derived": "derived"}.get(place, "archival")
    source = "s" if place == "documents" else ""
    return Hit(number, START, role, "", f"{place} {number}", str(number), 0.0, source=source)


@law(st.tuples(RELEVANCES, RELEVANCES, RELEVANCES, RELEVANCES), few=30, many=1000)
def test_each_place_keeps_its_own_order(places: tuple[list[float], ...]) -> None:
    """The joint results of one place alone are in the order in which that place ranked them; no score rises."""
    lists = [[hit(place, n) for n in range(len(values))] for place, values in zip(PLACES, places, strict=True)]
    found = merged(scored(hits, values) for hits, values in zip(lists, places, strict=True))
    for place, hits in zip(PLACES, lists, strict=True):
        assert [one.text for one in found if one.place == place] == [one.text for one in hits]
    assert all(one.score >= other.score for one, other in pairwise(found))


@law(RELEVANCES, few=30, many=1000)
def test_falling_values_are_the_nearest_that_do_not_rise(values: list[float]) -> None:
    """The sum stays, no value rises, and falling values stay as they are."""
    found = falling(values)
    assert len(found) == len(values)
    assert sum(found) == pytest.approx(sum(values))
    assert all(one >= other for one, other in pairwise(found))
    assert falling(found) == pytest.approx(found)
    if values == sorted(values, reverse=True):
        assert found == values


def test_a_share_is_what_the_passage_and_the_speaker_cover() -> None:
    """Each word of a query counts by its rarity; a word that no text has counts too; an empty query is not covered."""
    weights = {"boat": 3.0, "sail": 1.0, "zebra": 4.0}
    assert covered(Passage("a boat", frozenset({"boat"})), "", weights) == 3 / 8
    assert covered(Passage("a boat", frozenset({"boat"})), "Sail", weights) == 4 / 8
    assert covered(Passage("", frozenset()), "", {}) == 0.0


def test_a_clear_memory_comes_before_a_vague_message_and_the_other_way_round() -> None:
    """Of a message and a memory, the one with the rarer words of the question comes first."""
    chat = [UserMessage(text=f"I put the kettle on, number {number}.", imported=True) for number in range(9)]
    clear, vague = "The spare keys of the boat are under the blue pot.", "I put the pot on."
    question = "where are the spare keys of the boat put, in the pot?"
    for said, kept, first in ((vague, clear, clear), (clear, vague, clear)):
        world = world_with(*chat, UserMessage(text=said, imported=True), ArchivalInserted(text=kept))
        found = searched(world, question)
        assert texts(found)[0] == first
        assert {said, kept} <= set(texts(found))
        assert found.results[0].place == ("archive" if first == kept else "messages")
        assert 1 >= found.results[0].score > found.results[-1].score >= 0


def test_a_search_of_one_place_is_that_place_s_own() -> None:
    """Restricted to one place, results, scores and totals are those of its own search, without a limit."""
    chat = [UserMessage(text=f"The boat, day {number}", imported=True) for number in range(RESULTS_MAX + 20)]
    world = world_with(*chat, *(ArchivalInserted(text=f"A boat of {wood}") for wood in ("oak", "elm", "pine")))
    searcher = world.system.view("sam").searcher()
    alone = searched(world, "boat", Filters(places=("messages",)))
    assert alone == asyncio.run(searcher.recall("boat", 0, 100)) and alone.total == RESULTS_MAX + 20
    kept = searched(world, "boat", Filters(places=("archive",)))
    assert kept == asyncio.run(searcher.archival("boat", 0, 100)) and kept.total == 3
    assert searched(world, "boat", Filters(places=("documents",))).total == 0
    both = searched(world, "boat")
    assert both.total == RESULTS_MAX + 3
    for place, own in (("messages", alone), ("archive", kept)):
        assert [one.text for one in both.results if one.place == place] == texts(own)[:RESULTS_MAX]


def test_pages_are_parts_of_one_order() -> None:
    """The pages together have each result once, in the order of one long page, and a page after the last is empty."""
    chat = [UserMessage(text=f"The boat, day {number}", imported=True) for number in range(9)]
    world = world_with(*chat, *(ArchivalInserted(text=f"A boat of {wood}") for wood in ("oak", "elm", "pine")))
    searcher = world.system.view("sam").searcher()
    pages = [asyncio.run(searcher.everything("a boat of oak", page, 5)) for page in range(4)]
    assert [len(page.results) for page in pages] == [5, 5, 4, 0]  # with two messages that are not about boats
    assert [(page.total, page.page, page.pages) for page in pages] == [(14, page, 3) for page in range(4)]
    assert [one for page in pages for one in page.results] == list(searched(world, "a boat of oak").results)


def test_a_past_search_is_that_of_the_log_cut_there() -> None:
    """As of a seq, results and scores are those that the search had when that record was the newest."""
    world = world_with(UserMessage(text="The boat is red.", imported=True), ArchivalInserted(text="A boat of oak"))
    before, head = searched(world, "red boat"), len(world.log())
    asyncio.run(world.tell("The boat is red and old."))
    assert searched(world, "red boat").total > before.total
    assert searched(world, "red boat", as_of=head) == before


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(), PLACES),
        (Filters(roles=("user",)), ("messages",)),
        (Filters(tags=("a",)), ("archive", "documents")),
        (Filters(source="s"), ("documents",)),
        (Filters(places=("documents", "messages")), ("messages", "documents")),
    ],
)
def test_a_filter_limits_the_places(filters: Filters, expected: Sequence[str]) -> None:
    """Places that cannot have what a filter asks for are not searched."""
    assert places_of(filters) == tuple(expected)


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        (Filters(roles=("user",), tags=("a",)), "No place has all"),
        (Filters(places=("archive",), source="s"), "No place has all"),
        (Filters(places=("recall",)), "There is no place 'recall'"),  # type: ignore[arg-type]
        (Filters(start="yesterday"), "A date is written"),
        (Filters(source="nowhere"), "There is no source 'nowhere'"),
        (Filters(roles=("nobody",)), "Nobody speaks as nobody"),
    ],
)
def test_an_impossible_filter_is_refused(filters: Filters, said: str) -> None:
    """The error says what exists; no empty page hides the mistake."""
    with pytest.raises(FunctionError, match=said):
        searched(world_with(ArchivalInserted(text="x")), "x", filters)


@pytest.mark.parametrize("query", ["", "the", "👋", "[" * 2000, "wörd 猫 boat " * 9000])
def test_any_text_is_a_query(query: str) -> None:
    """Stop words, emoji, brackets and a hundred thousand characters are answered with a page."""
    world = world_with(UserMessage(text="The boat 猫 👋 is red.", imported=True), ArchivalInserted(text="the wörd"))
    assert searched(world, query).total <= 4


def test_an_index_is_not_asked_where_it_can_find_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent without memories and sources is answered without the archive, whose opening takes seconds."""
    world = world_with(UserMessage(text="The boat is red.", imported=True))
    searcher = world.system.view("sam").searcher()
    monkeypatch.setattr(AgentSearcher, "_kept_page", None)
    assert texts(asyncio.run(searcher.everything("boat", 0)))[0] == "The boat is red."


def test_messages_memories_and_documents_are_found_by_meaning(tmp_path: Path) -> None:
    """With the archive each place finds what has no word of the question, and says where and how near it is."""
    with everlog.open(tmp_path) as system:
        system.sources.load(
            "handbook", [everlog.Document(name="pets.txt", text="Every puppy needs a vaccination in spring.")]
        )
        agent = system.agent("sam")
        agent.ask("My spaniel barks at night")
        agent.archive.insert("The cat sleeps on the sofa")
        agent.attach_source("handbook")
        found = agent.search("household animals and dogs")
        assert found.by_meaning
        assert {one.place for one in found.results} == {*joint_search.PLACES} - {"derived"}
        assert all(one.near is not None and one.agent == "sam" for one in found.results)
        with system.view("sam") as view:
            assert view.search("household animals and dogs") == found
            for place, own in (("messages", view.search_messages), ("archive", view.search_archive)):
                (alone,) = [[one.text for one in found.results if one.place == place]]
                ordered = [one.text for one in own("household animals and dogs").results if one.place == place]
                assert alone == ordered
        documents = agent.search("household animals and dogs", filters=everlog.Filters(places=("documents",)))
        assert [one.document for one in documents.results] == ["pets.txt"]
