"""Large agents and sources: LanceDB's indices find what the rows in memory find, at any moment and under any filter."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from everlog.events import uuid7
from everlog.store.archive import Archive, Matches
from everlog.store.archive.archive_table import Table
from tests.support.store.archive_world import END, NOW, SECOND, WORDS, Hashed, World, search

ROWS = 400
QUERIES = (
    "cat river", "whale moon bread", "winter summer garden stone", "id-77/a", "coffee", "the treasure of the train",
    '"winter summer" cat', "cat river whale", "nothing of this kind", "garden", "猫",
)  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Return a store with a source, an agent and a fork of ROWS rows and more, of which some have ended."""
    world = World(tmp_path_factory.mktemp("large") / "store")
    world.embedder = Hashed(dimension=32)
    chance = random.Random(1)
    loaded, kept = [], []
    for number in range(ROWS):
        text = " ".join(chance.choices(WORDS, k=chance.randrange(3, 20))) + f" id-{number}/a"
        loaded.append(world.draft("document_loaded", text, source="books", document=f"{number % 350}.txt"))
        kept.append(world.draft("archival_inserted", text, tags=["a", "b"][: number % 3]))
        if number % 10 == 9:
            kept.append(world.draft("archival_deleted", memory_id=kept[-5].event_id))
    world.append("source:books", *loaded)
    first = world.append("sam", *kept, world.draft("archival_inserted", "我的猫很好"))
    world.store.fork("sam", len(kept), "tom", event_id=uuid7(NOW, 5))
    world.delete("tom", first)
    world.insert("tom", "a cat of the fork by the river")
    yield world
    world.close()


def made_small(patched: pytest.MonkeyPatch) -> None:
    """Make owners of more than 100 rows large."""
    for module in ("archive_table", "row_caches"):
        patched.setattr(f"everlog.store.archive.{module}.LARGE_ROWS", 100)


@pytest.fixture(scope="module")
def both(world: World) -> Iterator[Any]:
    """Return two functions that search with the rows in memory, and with LanceDB's indices."""
    memory, large = world.archive(), world.archive()
    memory.follow()
    with pytest.MonkeyPatch.context() as patched:
        made_small(patched)
        large.rebuild()

    def with_indices(query: str, **more: Any) -> Matches:
        with pytest.MonkeyPatch.context() as patched:
            made_small(patched)
            return search(large, query, **more)

    yield lambda query, **more: search(memory, query, **more), with_indices
    memory.close()
    large.close()


@pytest.mark.parametrize("owner", ["sam", "tom", "books"])
def test_both_ways_find_the_same(both: Any, owner: str) -> None:
    """The first ten results are the same but for one in twenty, with the same totals, now and in the middle."""
    memory, large = both
    same = every = 0
    for query in QUERIES:
        for moment in (END, 250):
            more: dict[str, Any] = {"agent_id": owner, "as_of": moment}
            if owner == "books":
                time = END if moment == END else NOW + ROWS * SECOND
                more = {"agent_id": "ann", "sources": ["books"], "as_of_time": time}
            expected, found = memory(query, **more), large(query, **more)
            every += len(expected.results)
            known = {(match.memory, match.part) for match in expected.results}
            same += sum((match.memory, match.part) in known for match in found.results)
            if owner != "tom":  # what a fork ended is counted, because its ancestor has it
                assert found.total == expected.total, (query, moment)
    assert every > 100 and same >= 0.95 * every


def test_filters_reach_the_indices(both: Any) -> None:
    """Tags, days and an empty query give the same results, order and totals as in memory."""
    memory, large = both
    for more in (
        {"tags": ["a", "b"]}, {"after": NOW + 200 * SECOND, "before": NOW + 400 * SECOND}, {"tags": ["it's"]},
    ):  # fmt: skip
        for query in ("cat river", ""):
            expected, found = memory(query, **more), large(query, **more)
            assert [match.memory for match in found.results] == [match.memory for match in expected.results]
            assert found.total == expected.total
    everything = [match.text for first in (0, 10, 20) for match in large("", first=first).results]
    assert everything == [match.text for match in memory("", count=30).results]


def test_one_text_and_documents_alone_are_found_both_ways(both: Any) -> None:
    """The parts of one memory or document are found by its id, also without a query; `own=False` finds documents only,
    and nothing without sources.
    """
    memory, large = both
    for query in ("", "cat river"):
        some = memory(query, sources=["books"], own=False, count=500)
        assert some.results and {match.source for match in some.results} == {"books"}
        for match in some.results[:3]:
            for search_by in (memory, large):
                (one,) = search_by(query, sources=["books"], memory=match.memory, count=5).results
                assert (one.memory, one.text) == (match.memory, match.text)
    assert memory("cat", own=False).total == large("cat", own=False).total == 0
    assert memory("", sources=["books"], memory="nothing").total == large("", sources=["books"], memory="x").total == 0


def test_pages_go_on(both: Any) -> None:
    """Pages are parts of one order, far beyond the first."""
    memory, large = both
    pages = [match.memory for first in range(0, 60, 10) for match in large("cat river", first=first).results]
    assert len(pages) == len(set(pages)) == 60
    assert len(set(pages) & {match.memory for match in memory("cat river", count=60).results}) >= 54


def test_a_large_owner_is_never_read_whole(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """No search of a large owner reads all its rows, and none stays in memory; a small owner beside it does. Rows that
    the indices do not cover yet are found.
    """
    made_small(monkeypatch)
    archive: Archive = world.archive()
    archive.follow()
    archive.rebuild()
    world.insert("ann", "the cat of ann")
    world.load("books", "new.txt", "a zebra, newer than the indices")
    archive.follow()
    most = 0
    whole = Table.read

    def counted(self: Table, condition: Any = None, columns: Any = None, *more: Any, **options: Any) -> Any:
        nonlocal most
        found = whole(self, condition, columns, *more, **options)
        most = max(most, found.num_rows if columns is None or "vector" in columns else 0)
        return found

    monkeypatch.setattr(Table, "read", counted)
    found = search(archive, "a newer zebra", "ann", sources=["books"])
    assert found.total >= 100 and found.results[0].document == "new.txt" and most == 1
    assert archive._row_caches is not None and set(archive._row_caches._found) == {("ann", "kept")}
    archive.close()


def test_indices_are_made_only_for_large_owners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of many small agents gets no vector index, which would take a minute for a million rows."""
    monkeypatch.setattr("everlog.store.archive.archive_table.LARGE_ROWS", 5)
    world = World(tmp_path / "store")
    for number in range(12):
        world.insert(f"agent {number % 3}", f"cat {number}")
    archive = world.archive()
    archive.rebuild()
    table = archive._writer_opened().tables.open(1)
    assert not table.has_large_owner() and len(table._table.list_indices()) == 3
    archive.close()
    world.close()
