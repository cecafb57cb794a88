"""One search over all agents of a store."""

import asyncio
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import strategies as st

import everlog
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.memory.joint_search import merged
from everlog.actors.ports.effects import Hit, Page, in_place
from everlog.actors.reports import fleet_search, searched_texts
from everlog.actors.reports.best_hits import BestHits
from everlog.events import CorruptLog, EverlogError, FunctionError, UnknownAgent, UserMessage, uuid7
from everlog.store import FileStore
from tests.support.agent_world import World, say
from tests.support.law import law
from tests.support.store.archive_world import World as BoatWorld

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


@law(st.lists(st.lists(st.sampled_from([0.1, 0.2, 0.3]), max_size=5), max_size=6), st.randoms(), few=40, many=1000)
def test_only_what_a_page_needs_is_kept(found_by: list[list[float]], chance: random.Random) -> None:
    """In any order of the agents that are searched, the best results are kept, no more of them than a page needs,
    equal ones in the order of the agents and of their own searches; a result is needed if it would be kept.
    """
    hits = [
        [Hit(place, 0, "user", "", "", str(number), score) for place, score in enumerate(sorted(scores, reverse=True))]
        for number, scores in enumerate(found_by)
    ]
    best, order = BestHits(4), list(range(len(hits)))
    chance.shuffle(order)
    for number in order:
        needed = bool(hits[number]) and best.needs(number, hits[number][0].score)
        best.add(number, hits[number])
        assert len(best) <= 4
        assert needed == (str(number) in {hit.ref for hit in best.ranked()})
    assert best.ranked() == merged(hits)[:4]


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


def test_a_damaged_log_hides_no_agent_of_others(tmp_path: Path) -> None:
    """Of many agents, those in a damaged log are reported, with those that began in it, and the others are found."""
    with closing(BoatWorld(tmp_path)) as world:
        names = [f"alone {number}" for number in range(12)]
        for name in names:
            world.append(name, world.draft("agent_created"), world.draft("user_message", f"The boat of {name}."))
        world.seal()
        world.store.fork("alone 3", 2, "kid", event_id=uuid7(world.time, 1))
        (sealed,) = world.store.partition(world.store.partition_of("alone 3")).path.glob("*.parquet")
        data = bytearray(sealed.read_bytes())
        data[len(data) // 2] ^= 1
        sealed.write_bytes(data)
        failed: dict[str, EverlogError] = {}
        system = LocalSystem(world.store)
        wanted = fleet_search.FleetQuery("boat", 0, 100, everlog.Filters())
        reports = fleet_search.SearchReports(failed.__setitem__)
        page = asyncio.run(fleet_search.search_agents(system, [*names, "kid"], wanted, reports, in_place))
    assert {hit.agent for hit in page.results} == {*names} - {"alone 3"}
    assert failed.keys() == {"alone 3", "kid"}
    assert all(isinstance(error, CorruptLog) for error in failed.values())


@pytest.mark.usefixtures("system")
def test_a_cancelled_search_ends_after_the_agents_at_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that is cancelled searches no further agents, and ends as cancelled."""
    monkeypatch.setattr(fleet_search, "ALONE_MAX", 0)
    monkeypatch.setattr(searched_texts, "CHUNK_AGENTS", 1)
    moved: list[int] = []

    async def search() -> None:
        task = asyncio.current_task()
        assert task is not None

        def progress(done: int, _: int) -> None:
            moved.append(done)
            if done == 2:
                task.cancel()

        reports = fleet_search.SearchReports(lambda name, error: pytest.fail(f"{name}: {error}"), progress)
        wanted = fleet_search.FleetQuery("boat", 0, 10, everlog.Filters())
        await fleet_search.search_agents(
            LocalSystem(FileStore(tmp_path, lambda: 1)), NAMES, wanted, reports, asyncio.to_thread
        )

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(search())
    assert moved == [1, 2]


def test_a_cancelled_search_stops_the_query_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine of a query that would run for long is stopped, before the search ends as cancelled."""
    stopped = threading.Event()
    loops: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[object]]] = []

    class Views:
        """Views whose first query runs until it is stopped."""

        def __init__(self, opened: Callable[[Callable[[], None]], None]) -> None:
            self._opened = opened

        def __enter__(self) -> None:
            self._opened(stopped.set)
            loop, task = loops[0]
            loop.call_soon_threadsafe(task.cancel)
            assert stopped.wait(60)
            raise KeyboardInterrupt

        def __exit__(self, *_: object) -> None:
            pytest.fail("it was not entered")

    monkeypatch.setattr(fleet_search, "ALONE_MAX", 0)
    monkeypatch.setattr(fleet_search, "searched_texts", lambda *_, opened, **__: Views(opened))

    async def search() -> None:
        task = asyncio.current_task()
        assert task is not None
        loops.append((asyncio.get_running_loop(), task))
        reports = fleet_search.SearchReports(lambda name, error: pytest.fail(f"{name}: {error}"))
        wanted = fleet_search.FleetQuery("boat", 0, 10, everlog.Filters())
        await fleet_search.search_agents(World().system, ["sam"], wanted, reports, asyncio.to_thread)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(search())
    assert stopped.is_set()
