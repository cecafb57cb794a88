"""Laws of the search in many agents: one pass over the logs finds what the searches of the agents find, merged."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from everlog.actors.agent.local_system import AgentServices, LocalSystem
from everlog.actors.archive.archive_service import ArchiveService, LocalArchiveClient
from everlog.actors.archive.message_meanings import NOTHING_SAID, MessageMeanings
from everlog.actors.archive.reranker import Reranker
from everlog.actors.memory.joint_search import merged, page_of
from everlog.actors.ports.effects import ArchiveClient, Filters, Page, in_place
from everlog.actors.reports import fleet_search
from everlog.actors.reports.fleet_search import FleetQuery, SearchReports, search_agents, searched_agents
from everlog.events import FunctionError, uuid7
from everlog.events.times import moment
from everlog.projections import DERIVER
from everlog.store.archive import message_vectors_of
from tests.support.seeds import split
from tests.support.store.archive_world import SECOND, World

ALONE_MAX = 3
"""Number of agents up to which these tests ask each agent by itself."""
AGENTS = ALONE_MAX + 4
WORLDS = 40
QUERIES = 6
WORDS = (
    "Sam", "Ann", "sail", "sailing", "boat", "the", "what", "May", "cake?", "cake.", "boat?", "puppy", "my puppy Toby",
    "Toby", "1990s", "猫好", "vela", "yesterday", "A boat sails far, and the cake is on board. " * 12, "!",
)  # fmt: skip
ASKED = ("Sam", "sail", "boat", "cake", "what", "when", "puppy", "May", "zebra", "1990", "猫", '"a boat"', "yesterday")
NAMES = ("", "", "Sam", "Ann", "Sam Hill")
DAY = 86_400 * SECOND


@pytest.fixture(autouse=True)
def few_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_search, "ALONE_MAX", ALONE_MAX)


def texts(chance: random.Random) -> str:
    """Return a text of a few words."""
    return " ".join(chance.choices(WORDS, k=chance.randint(1, 4)))


def lived(world: World, name: str, chance: random.Random) -> None:
    """Append random records of all kinds that a search reads to an agent; to most agents only messages."""
    inserted: list[str] = []
    plain = chance.random() < 0.6
    for _ in range(chance.randint(0, 12)):
        world.time += chance.choice([1, 60, 4000]) * SECOND
        seq = world.seq(name)
        what = 0.0 if plain else chance.random()
        if what < 0.6:
            kind = chance.choice(["user_message", "message_sent"])
            world.append(
                name, world.draft(kind, texts(chance), name=chance.choice(NAMES), ref=chance.choice(["", "r"]))
            )
        elif what < 0.72:
            tags = chance.choice([[], ["sea"], ["sea", "dog"]])
            inserted.append(world.insert(name, texts(chance), tags=tags))
        elif what < 0.8 and inserted:
            memory = chance.choice(inserted)
            world.update(name, memory, texts(chance), tags=[]) if chance.random() < 0.6 else world.delete(name, memory)
        elif what < 0.88 and seq > 2:
            fields = {"sources": [chance.randint(2, seq)], "deriver": "rules-1", "generation": 1}
            world.append(name, world.draft("insight_noted", texts(chance), **fields))
        elif what < 0.92:
            world.append(name, world.draft("source_attached", source="almanac"))
        elif what < 0.96 and seq > 3:
            world.erase(name, chance.randint(2, seq), seq)
        else:
            world.append(name, world.draft("agent_deleted"), world.draft("agent_created"))


def fleet(root: Path, chance: random.Random) -> World:
    """Return a store of random agents: some sealed, moved, forked, deleted and created again."""
    world = World(root)
    world.load("almanac", "tides.txt", "A boat waits for the tide. " * 60)
    for number in range(AGENTS):
        name = f"{chance.choice(['', 'alone ', 'acme~'])}agent {number}"
        zone = {"zone": chance.choice(["UTC", "Asia/Tokyo"])}
        world.append(name, world.draft("agent_created"), world.draft("agent_configured", **zone))
        lived(world, name, chance)
        if chance.random() < 0.3:
            parent = chance.choice(world.store.agents())
            world.seal()  # an erasure has to be finished first
            at, kid = chance.randint(1, world.seq(parent)), f"fork {number}"
            world.store.fork(parent, at, kid, event_id=uuid7(world.time, number))
            lived(world, kid, chance)
        if chance.random() < 0.15:
            world.append(name, world.draft("agent_deleted"))
        if chance.random() < 0.4:
            for log in world._logs.values():
                log.seal(DERIVER)
    return world


def archive_of(world: World) -> LocalArchiveClient:
    """Return an archive client of a store, with an embedder that needs no model."""
    vectors = MessageMeanings(
        lambda: message_vectors_of(world.store, lambda _: world.embedder), lambda _: NOTHING_SAID, note=pytest.fail
    )
    service = ArchiveService(world.archive, world.store, note=pytest.fail)
    return LocalArchiveClient(service, vectors, Reranker(world.root, note=pytest.fail))


def asked(chance: random.Random, now: int) -> FleetQuery:
    """Return a random search."""
    filters = chance.choice(
        [
            Filters(), Filters(), Filters(), Filters(roles=("user",)), Filters(start="2027-01-15", end="2027-01-16"),
            Filters(places=("messages",)), Filters(places=("archive", "derived")), Filters(tags=("sea",)),
            Filters(kinds=("insight",)), Filters(places=("documents",)), Filters(source="almanac"),
        ]
    )  # fmt: skip
    text = " ".join(chance.choices(ASKED, k=chance.choice([0, 1, 1, 2, 3])))
    until = chance.choice([None, None, now - chance.randrange(DAY)])
    return FleetQuery(text, chance.choice([0, 0, 1]), chance.choice([1, 2, 10]), filters, until)


async def one_by_one(system: LocalSystem, names: Sequence[str], wanted: FleetQuery) -> Page:
    """Return what the searches of the agents find, merged."""
    pages, refused = [], []
    for name in names:
        as_of = None if wanted.until is None else moment(wanted.until)
        try:
            with system.view(name, as_of=as_of) as view:
                pages.append(await view.searcher().ranked(wanted.text, wanted.filters))
        except FunctionError as error:
            refused.append(error)
    if refused and not pages:
        raise refused[-1]
    hits = merged(page.results for page in pages)
    by_meaning = bool(hits) and all(page.by_meaning for page in pages if page.results)
    down = any(page.archive_down for page in pages)
    whole = Page(sum(page.total for page in pages), 0, 1, hits, by_meaning=by_meaning, archive_down=down)
    return page_of(whole, wanted.page, wanted.count)


async def compared(world: World, archive: ArchiveClient | None, chance: random.Random) -> int:
    """Compare random searches of all agents with those of each. Return how many results there were."""
    system = LocalSystem(world.store, services=AgentServices(archive=archive))
    seen = 0
    for _ in range(QUERIES):
        wanted = asked(chance, world.time)
        names, damaged = searched_agents(world.store, wanted.until)
        assert not damaged
        if chance.random() < 0.3:  # of one tenant
            names = [name for name in names if not name.startswith("acme~")]
        reports = SearchReports(lambda name, error: pytest.fail(f"{name}: {error}"))
        found = await search_agents(system, names, wanted, reports, in_place)
        expected = await one_by_one(system, names, wanted)
        for one, other in zip(found.results, expected.results, strict=False):
            assert one == other, (wanted, names)
        assert found == msgspec.structs.replace(expected, results=found.results), (wanted, names)
        assert len(found.results) == len(expected.results)
        seen += len(found.results)
    return seen


@pytest.mark.parametrize("seed", split(range(WORLDS), 1, label="fleet search", part="laws"))
def test_a_search_by_words_is_the_searches_of_the_agents_merged(seed: int, tmp_path: Path) -> None:
    """Without an archive the results, their order, scores, number and passages are those of each agent's own search:
    of any store, at any moment, with any filters, for any page.
    """
    chance = random.Random(seed)
    with closing(fleet(tmp_path, chance)) as world:
        assert asyncio.run(compared(world, None, chance))


@pytest.mark.parametrize("seed", split(range(WORLDS), 1, label="fleet search by meaning", part="laws"))
def test_a_search_by_meaning_is_the_searches_of_the_agents_merged(seed: int, tmp_path: Path) -> None:
    """With an archive they are, too, also those of memories, documents and what was derived."""
    chance = random.Random(seed + 1000)

    async def compare() -> int:
        archive = archive_of(world)
        try:
            return await compared(world, archive, chance)
        finally:
            await archive.close()

    with closing(fleet(tmp_path, chance)) as world:
        assert asyncio.run(compare())
