"""One search over all agents of a store."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import everlog
from everlog.actors.ports.effects import Page
from everlog.actors.reports import fleet_search
from everlog.events import FunctionError, UnknownAgent, UserMessage
from tests.support.agent_world import World, say

NAMES = ("ann", "bob", "cid", "dan")
SAID = {
    "ann": ("My boat is called Vera.", "I bake bread."),
    "bob": ("The weather is mild.", "A boat needs paint every year."),
    "cid": ("I bake rye bread every Sunday.", "The oven is old."),
    "dan": ("Chess is slow.",),
}


@pytest.fixture
def system(tmp_path: Path) -> Iterator[everlog.SyncSystem]:
    """Yield a system with four agents that have said a few things."""
    with everlog.open(tmp_path) as opened:
        for name in NAMES:
            at = datetime(2026, 1, 1, tzinfo=UTC)
            opened.agent(name).import_messages(
                [everlog.ImportedMessage(UserMessage(text=text, imported=True), at) for text in SAID[name]]
            )
        yield opened


def found(page: Page) -> list[tuple[str, str]]:
    """Return agent and text of each result."""
    return [(hit.agent, hit.text) for hit in page.results]


def test_all_agents_are_ranked_together(system: everlog.SyncSystem) -> None:
    """The best result of all agents comes first, each result says its agent, and scores fall from 1 to 0 at most."""
    page = system.search("what is the boat called")
    assert found(page)[0] == ("ann", "My boat is called Vera.")
    assert ("bob", "A boat needs paint every year.") in found(page)[:2]
    scores = [hit.score for hit in page.results]
    assert scores == sorted(scores, reverse=True) and scores[0] <= 1 and scores[-1] >= 0
    assert found(system.search("rye bread on Sunday"))[0] == ("cid", "I bake rye bread every Sunday.")


def test_each_agent_keeps_its_own_order(system: everlog.SyncSystem) -> None:
    """The results of one agent are in the order of its own search; `agents` searches these alone."""
    whole = system.search("bread and a boat", count=100)
    for name in NAMES:
        own = found(system.agent(name).search("bread and a boat", count=100))
        assert [one for one in found(whole) if one[0] == name] == own
        assert found(system.search("bread and a boat", count=100, agents=[name])) == own
    pair = system.search("bread and a boat", count=100, agents=["ann", "dan"])
    assert found(pair) == [one for one in found(whole) if one[0] in ("ann", "dan")]


def test_pages_are_parts_of_one_order(system: everlog.SyncSystem) -> None:
    """The pages together are one long page."""
    whole = system.search("bread and a boat", count=100)
    pages = [system.search("bread and a boat", page, 3) for page in range(-(-whole.total // 3))]
    assert [one for page in pages for one in page.results] == list(whole.results)
    assert {(page.total, page.pages) for page in pages} == {(whole.total, len(pages))}


def test_only_what_a_page_needs_is_kept(system: everlog.SyncSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two agents no more results are kept than those up to the end of the wanted page."""
    kept: list[int] = []
    merged = fleet_search.merged

    def counted(lists: list[list[everlog.Event]]) -> object:
        kept.append(len(lists[0]))
        return merged(lists)  # type: ignore[arg-type]

    monkeypatch.setattr(fleet_search, "merged", counted)
    system.search("bread and a boat", page=0, count=2)
    assert len(kept) == len(NAMES) and max(kept) == 2


def test_a_deleted_agent_is_not_searched_and_a_past_moment_can_be(system: everlog.SyncSystem) -> None:
    """Agents that are deleted are left out, and so are agents that did not exist at the moment."""
    now = datetime.now(UTC)
    assert system.search("boat", as_of=now).total == system.search("boat").total
    assert system.search("boat", as_of=now - timedelta(days=9000)).total == 0
    system.agent("eve").import_messages(
        [everlog.ImportedMessage(UserMessage(text="A boat of reed.", imported=True), now)]
    )
    assert "eve" in {agent for agent, _ in found(system.search("boat"))}
    assert "eve" not in {agent for agent, _ in found(system.search("boat", as_of=now))}
    system.delete("ann")
    assert "ann" not in {agent for agent, _ in found(system.search("boat"))}
    assert "ann" in {agent for agent, _ in found(system.search("boat", as_of=now))}


def test_wrong_filters_and_names_are_refused(system: everlog.SyncSystem) -> None:
    """An invalid filter, a source that no agent has, an unknown name and a moment without a zone are errors."""
    with pytest.raises(FunctionError, match="A date is written"):
        system.search("x", filters=everlog.Filters(start="monday"))
    with pytest.raises(FunctionError, match="No place has all"):
        system.search("x", filters=everlog.Filters(roles=("user",), tags=("a",)))
    with pytest.raises(everlog.BadInput, match="no time zone"):
        system.search("x", as_of=datetime(2026, 1, 1))  # noqa: DTZ001 - without a zone
    with pytest.raises(UnknownAgent, match="nobody"):
        system.search("x", agents=["ann", "nobody"])


def test_an_unreadable_log_hides_no_other_agent() -> None:
    """The error of one agent is reported, and the others are searched."""
    world = World(after=say("Hi."))
    asyncio.run(world.tell("The boat is red."))
    failed: list[str] = []
    reports = fleet_search.SearchReports(lambda name, error: failed.append(f"{name}: {error}"))
    names = ["nobody", "sam"]
    wanted = fleet_search.FleetQuery("boat", 0, 10, everlog.Filters())
    page = asyncio.run(fleet_search.search_agents(world.system, names, wanted, reports, world.ports.aside))
    assert found(page)[0] == ("sam", "The boat is red.")
    assert len(failed) == 1 and "nobody: There is no agent 'nobody'" in failed[0]
