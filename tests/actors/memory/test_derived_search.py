"""Insights, facts and plans are found by searches, with what they rest on, and beside messages and documents."""

import asyncio

from everlog.actors.memory.agent_search import AgentSearcher
from everlog.actors.ports.effects import Filters, Page
from everlog.events import Event, FactEnded, FactNoted, InsightNoted, PlanItem, PlanMade, UserMessage
from everlog.store import Store
from tests.support.agent_world import START, World, say

DAY = 86_400_000_000
DERIVED = Filters(places=("derived",))


def world_with(*events: Event, store: Store | None = None) -> tuple[World, int]:
    """Return a world whose agent has these events, and the seq of the first of them."""
    world = World(say("Hi."), store=store)
    asyncio.run(world.tell("Hello"))
    first = len(world.log()) + 1

    async def add() -> None:
        async with world.system.agent("sam", world.settings) as agent:
            await agent.commit(list(events), turn=agent.turn, step=0, said_at=[START] * len(events))

    asyncio.run(add())
    return world, first


def derived(first: int) -> list[Event]:
    """Return two messages, and what follows from them, as events from seq `first` on."""
    old = FactNoted(
        subject="Lea", predicate="lives_in", object="Rome", text="Lea lives in Rome.", sources=[first], single=True
    )
    new = FactNoted(
        subject="Lea", predicate="lives_in", object="Bergen", text="Lea lives in Bergen.", sources=[first + 1],
        single=True,
    )  # fmt: skip
    return [
        UserMessage(text="My sister Lea has a flat in Rome.", imported=True),
        UserMessage(text="Lea moved to Bergen, by the sea.", imported=True),
        old,
        InsightNoted(text="Lea likes old Italian towns.", sources=[first, first + 2]),
        new,
        FactEnded(fact=first + 2, successor=first + 4, valid_to=START + DAY, to_precision="day", sources=[first + 1]),
        PlanMade(
            text="Visit", sources=[first + 4],
            items=[PlanItem("Buy a ferry ticket", START, 30), PlanItem("Sail to Bergen", START + DAY, 300)],
        ),
    ]  # fmt: skip


def told() -> tuple[World, int]:
    """Return a world with all kinds of derived memories, and the seq of the first message."""
    return world_with(*derived(first_seq()))


def first_seq() -> int:
    """Return the seq of the first event that `world_with` adds."""
    world = World(say("Hi."))
    asyncio.run(world.tell("Hello"))
    return len(world.log()) + 1


def searched(world: World, query: str, filters: Filters = DERIVED, as_of: int | None = None) -> Page:
    """Return the first hundred results of the search of everything, by words."""
    searcher: AgentSearcher = world.system.view("sam").searcher(as_of)
    return asyncio.run(searcher.everything(query, 0, 100, filters))


def texts(found: Page) -> list[str]:
    """Return the texts of the results."""
    return [hit.text for hit in found.results]


def test_what_was_derived_is_a_place_of_its_own() -> None:
    """An insight, a fact and an item of a plan are found by their words, with their kind and what they rest on."""
    world, first = told()
    (insight,) = searched(world, "Italian towns").results
    assert (insight.place, insight.kind, insight.sources) == ("derived", "insight", (first, first + 2))
    assert insight.outdated and insight.agent == "sam" and insight.ref == str(first + 3)
    (item,) = searched(world, "a ferry").results
    assert (item.kind, item.text, item.ref) == ("plan", "Buy a ferry ticket", f"{first + 6}.0")
    assert {hit.kind for hit in searched(world, "Bergen").results} == {"fact", "plan"}
    assert searched(world, "helicopter").total == 0


def test_a_fact_that_has_ended_is_hidden_until_it_is_asked_for() -> None:
    """As of now it is hidden; asked for, it is there with its end; before its end it is found as it was."""
    world, first = told()
    assert "Lea lives in Rome." not in texts(searched(world, "Lea lives"))
    asked = searched(world, "Lea lives in Rome", Filters(places=("derived",), ended=True)).results[0]
    assert (asked.text, asked.outdated, asked.until) == ("Lea lives in Rome.", True, START + DAY)
    before = searched(world, "Lea lives in Rome", as_of=first + 4).results[0]
    assert (before.text, before.outdated, before.until) == ("Lea lives in Rome.", False, None)
    assert searched(world, "Lea lives in Rome", as_of=first + 1).total == 0


def test_all_places_are_ranked_together() -> None:
    """A search of everything has messages and derived memories, by their relevance; messages alone are as before."""
    world, _ = told()
    found = searched(world, "Where does Lea live in Bergen?", Filters())
    assert texts(found)[0] == "Lea lives in Bergen." and found.results[0].place == "derived"
    assert {hit.place for hit in found.results} == {"messages", "derived"}
    alone = searched(world, "Where does Lea live in Bergen?", Filters(places=("messages",)))
    assert [hit.text for hit in found.results if hit.place == "messages"] == texts(alone)
    own = searched(world, "Where does Lea live in Bergen?")
    assert [hit.ref for hit in found.results if hit.place == "derived"] == [hit.ref for hit in own.results]


def test_messages_are_ranked_as_without_derived_memories() -> None:
    """Results, scores and totals of a search of messages do not depend on what was derived."""
    first = first_seq()
    events = derived(first)
    bare, _ = world_with(*events[:2])
    full, _ = world_with(*events)
    messages = Filters(places=("messages",))
    assert searched(bare, "Lea in Rome", messages) == searched(full, "Lea in Rome", messages)


def test_phrases_and_days_narrow_the_results() -> None:
    """A quoted phrase must occur; days are those of the noting; a blank query lists all, newest first."""
    world, first = told()
    assert texts(searched(world, '"lives in Bergen"')) == ["Lea lives in Bergen."]
    assert searched(world, '"lives in Oslo"').total == 0
    assert searched(world, "Bergen", Filters(places=("derived",), end="2001-01-01")).total == 0
    listed = searched(world, " ")
    assert [hit.seq for hit in listed.results] == [first + 6, first + 6, first + 4, first + 3]
