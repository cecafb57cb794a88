"""`agent.memories`: one API over what was said, stored and derived, of agents, of past moments and of forks."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import everlog
from everlog.actors.memory_views import MemoryMoment, MemoryViews, moments_of
from everlog.actors.ports.effects import in_place
from everlog.actors.recollection.memory_levels import SummaryLimits
from everlog.events import ArchivalInserted, BadInput, MemoriesWithdrawn
from everlog.events.times import moment
from tests.actors.memory.test_derived_search import derived, first_seq, world_with
from tests.support.agent_world import START, World, completion, say

HOUR = 3_600_000_000


def told() -> tuple[World, int]:
    """Return a world with all kinds of memories, and the seq of the first imported message."""
    first = first_seq()
    return world_with(*derived(first), ArchivalInserted(text="Lea's ferry leaves at noon."))


def reader(world: World) -> MemoryViews:
    """Return the reader of the world's agent."""
    return MemoryViews("sam", moments_of(world.system, "sam", in_place))


def run(work: Any) -> Any:
    """Return the result of a coroutine."""
    return asyncio.run(work)


def test_all_memories_are_listed_in_the_order_of_their_times() -> None:
    """Messages, stored texts, insights, facts and items of plans are one list; kinds and names narrow it."""
    world, _ = told()
    memories = reader(world)
    items = run(memories.list())
    assert {item.kind for item in items} == {"message", "archival", "insight", "fact", "plan"}
    assert [(item.at, item.seq, item.part) for item in items] == sorted((i.at, i.seq, i.part) for i in items)
    assert [item.text for item in run(memories.list(kinds=["fact"]))] == ["Lea lives in Rome.", "Lea lives in Bergen."]
    assert [item.outdated for item in run(memories.list(kinds=["fact"]))] == [True, False]
    about = {item.text for item in run(memories.list(about="bergen"))}
    assert about == {"Lea moved to Bergen, by the sea.", "Lea lives in Bergen.", "Sail to Bergen"}
    assert run(memories.count()) == len(items) and run(memories.count(kinds=["plan"])) == 2
    assert run(memories.total_tokens(kinds=["archival"])) == 7
    with pytest.raises(BadInput, match="no kind of memories 'dream'"):
        run(memories.list(kinds=["dream"]))  # type: ignore[list-item]


def test_a_past_list_is_that_of_the_log_cut_there() -> None:
    """As of a seq or a time nothing later is seen, and a fact that ended later still holds."""
    world, first = told()
    memories = reader(world)
    then = run(memories.list(as_of=first + 4))
    assert max(item.seq for item in then) == first + 4
    assert [item.outdated for item in then if item.kind == "fact"] == [False, False]
    assert run(memories.format(as_of=first + 4)) != run(memories.format())
    view = world.system.view("sam", as_of=first + 4)

    @asynccontextmanager
    async def opened(_: object) -> AsyncIterator[MemoryMoment]:
        yield MemoryMoment(view, in_place)

    assert run(MemoryViews("sam", opened).list()) == then


def test_a_search_finds_the_memory_whatever_its_kind() -> None:
    """The best match is first in each mode; facts that have ended are there only if they are asked for."""
    world, _ = told()
    memories = reader(world)
    for mode in ("default", "combined", "paper", "embedding"):
        found = run(memories.search("When does the ferry of Lea leave?", mode=mode))
        assert found.results[0].item.text == "Lea's ferry leaves at noon.", mode
        assert all(one.item.kind != "fact" or not one.item.outdated for one in found.results)
        asked = run(memories.search("Lea lives in Rome", 50, mode=mode, ended=True))
        assert "Lea lives in Rome." in [one.item.text for one in asked.results]
    assert run(memories.search("ferry", mode="paper", kinds=["archival"])).constant == (
        ["relevance", "recency", "importance"]
    )
    assert len(run(memories.search("Lea", 2)).results) == 2
    with pytest.raises(BadInput, match="no mode 'best'"):
        run(memories.search("Lea", mode="best"))  # type: ignore[arg-type]


def test_a_query_without_words_ranks_by_recency_and_importance() -> None:
    """All memories are equally relevant then: relevance is reported as constant."""
    world, _ = told()
    found = run(reader(world).search("", 100, mode="paper"))
    assert "relevance" in found.constant and len(found.results) == run(reader(world).count()) - 1


def test_a_search_changes_nothing_unless_access_is_asked_for() -> None:
    """The agent's own search leaves the ranking as it was at a moment; with `accesses` its results are the recent
    ones.
    """
    world, first = told()
    memories = reader(world)
    now = moment(START + 9000 * HOUR)
    before = run(memories.search("Lea", 50, mode="paper", as_of=first + 7, now=now))
    assert run(memories.search("Lea", 50, mode="paper", as_of=first + 7, now=now)) == before
    world = world.restarted(completion(calls=[("archival_memory_search", {"query": "ferry"})]), say("At noon."))
    world.clock.skip(8000 * 3600)
    asyncio.run(world.tell("When does the ferry leave?"))
    assert world.kinds().count("function_result") >= 1
    memories = reader(world)
    assert run(memories.search("Lea", 50, mode="paper", as_of=first + 7, now=now)) == before
    plain = run(memories.search("", 50, mode="default", kinds=["archival"], now=now)).results[0]
    used = run(memories.search("", 50, mode="default", kinds=["archival"], now=now, accesses=True)).results[0]
    assert plain.item == used.item and used.recency > plain.recency
    early = moment(START + 10 * HOUR)
    same = run(memories.search("", 50, mode="default", kinds=["archival"], now=early, accesses=True)).results[0]
    assert same == run(memories.search("", 50, mode="default", kinds=["archival"], now=early)).results[0]


def test_the_format_keeps_time_order_within_both_limits() -> None:
    """The newest are taken, or those that answer the query; the text has them in the order of their times."""
    world, _ = told()
    memories = reader(world)
    texts = [item.text for item in run(memories.list())]
    plain = {"formatter": lambda item: item.text, "separator": "\n"}
    assert run(memories.format(**plain)).split("\n") == texts
    assert run(memories.format(item_limit=2, **plain)).split("\n") == texts[-2:]
    assert run(memories.format(item_limit=0)) == ""
    both = run(memories.format("ferry", item_limit=3, token_limit=16, **plain)).split("\n")
    assert "Lea's ferry leaves at noon." in both and "Buy a ferry ticket" in both and len(both) <= 3
    assert [texts.index(text) for text in both] == sorted(texts.index(text) for text in both)
    assert "] insight (outdated): Lea likes old Italian towns." in run(memories.format(kinds=["insight"]))


def test_a_tree_goes_down_to_messages_and_up_to_what_rests_on_them() -> None:
    """Each memory is there once, with its sources; a withdrawn insight says so, and rests on nothing for others."""
    world, first = told()
    memories = reader(world)
    tree = run(memories.tree(first + 3))
    assert [(depth, node.seq) for depth, node in tree.down()] == [(0, first + 3), (1, first), (1, first + 2)]
    assert tree.root.outdated and tree.root.kind == "insight"
    assert tree.nodes[first].kind == "message"
    up = run(memories.tree(first))
    assert {node.seq for _, node in up.up()} == {first, first + 2, first + 3}
    ended = run(memories.tree(first + 6))
    assert [node.kind for _, node in ended.down()] == ["plan", "fact", "message"]
    assert ended.root.text == "Buy a ferry ticket; Sail to Bergen"

    async def withdraw() -> None:
        async with world.system.agent("sam", world.settings) as agent:
            await agent.commit([MemoriesWithdrawn(seqs=[first + 3])], turn=agent.turn, step=0)

    asyncio.run(withdraw())
    assert run(memories.tree(first + 3)).root.withdrawn
    assert {node.seq for _, node in run(memories.tree(first)).up()} == {first, first + 2}
    with pytest.raises(BadInput, match="no memory with seq 99999"):
        run(memories.tree(99999))
    with pytest.raises(BadInput, match=r"no memory with seq 1\."):
        run(memories.tree(1))


def test_a_stored_text_that_was_changed_is_compared_as_it_is_now(tmp_path: Path) -> None:
    """By meaning, an updated text of archival memory is near to what it says now, not to what it said before."""
    with everlog.open(tmp_path) as system:
        agent = system.agent("sam")
        changed = agent.archive.insert("The dog sleeps in the kennel")
        agent.archive.insert("The council meets on Monday")
        first = agent.memories.search("puppies and hounds", mode="embedding")
        assert first.by_meaning and first.results[0].item.text == "The dog sleeps in the kennel"
        agent.archive.update(changed, "The bank raises interest rates")
        agent.archive.insert("A spaniel chases a ball")
        found = agent.memories.search("puppies and hounds", mode="embedding")
        scores = {one.item.text: one.score for one in found.results}
        assert scores["A spaniel chases a ball"] > 2 * scores["The bank raises interest rates"]


def test_forks_and_blocking_programs_have_the_same_memories(tmp_path: Path) -> None:
    """A fork remembers what its parent had up to the fork, and nothing later of it; a view reads one moment only."""
    with everlog.open(tmp_path) as system:
        agent = system.agent("sam")
        agent.ask("My boat is called Vera")
        system.fork("sam", "sam2")
        assert agent.memories.add("The berth is number nine") == agent.archive.insert("The berth is number nine")
        fork = system.agent("sam2")
        mine, forked = agent.memories.list(), fork.memories.list()
        assert [item.text for item in forked] == [item.text for item in mine][:-1]
        assert "Vera" in fork.memories.search("boat").results[0].item.text
        assert fork.memories.format(item_limit=1, formatter=lambda item: item.role) == "assistant"
        with system.view("sam", as_of=forked[-1].seq) as view:
            assert [item.seq for item in view.memories.list()] == [item.seq for item in forked]
            with pytest.raises(BadInput, match="open another one"):
                view.memories.count(as_of=1)


def test_meanings_are_those_of_the_other_searches(tmp_path: Path) -> None:
    """A message and a fact are as near to a query as the search of their place says; a fact is found by meaning."""
    with everlog.open(tmp_path) as system:
        agent = system.agent("sam")
        told = agent.ask("My spaniel barks at night")
        source = told.records[0].seq
        agent.memories.note_fact("Sam", "has", "a spaniel", sources=[source], sentence="Sam keeps a spaniel.")
        query = "household animals and dogs"
        found = agent.memories.search(query, 100, mode="embedding")
        near = {one.item.key: one.score for one in found.results}
        derived = agent.search(query, filters=everlog.Filters(places=("derived",)))
        assert derived.by_meaning and derived.results[0].text == "Sam keeps a spaniel."
        with system.view("sam") as view:
            said = view.search_messages(query)
        for hit in (*said.results, *derived.results):
            assert hit.near is not None and near[hit.seq, 0] == pytest.approx(hit.near, abs=1e-6)
        joint = agent.search(query)
        assert joint.by_meaning and {hit.place for hit in joint.results} == {"messages", "derived"}


def test_older_memories_become_summaries_within_the_budget() -> None:
    """The newest memory stands as it was said; the same log gives the same summaries; the total is within the limit."""
    world, _ = told()
    memories = reader(world)
    limits = SummaryLimits(token_limit=60, one_message_limit=30, summary_limit=20)
    levels = run(memories.summarized(limits=limits, kinds=None))
    assert levels == run(memories.summarized(limits=limits, kinds=None))
    assert max(level.level for level in levels) > 0
    items = run(memories.list())
    assert [seq for level in levels for seq in level.seqs] == [item.seq for item in items]
    assert levels[0].at == items[0].at
    assert levels[-1].text.endswith(items[-1].text) and levels[-1].level == 0
