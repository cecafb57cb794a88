"""Results of a search, their order, and how pages and filters combine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from everlog.store.archive import Archive
from everlog.store.archive.archive_constants import NEAREST
from everlog.store.embedding.tokenizer import numbers_of, query_numbers
from tests.support.store.archive_world import SECOND, World, found, search


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "store")
    yield world
    world.close()


@pytest.fixture
def archive(world: World) -> Iterator[Archive]:
    archive = world.archive()
    yield archive
    archive.close()


def total(archive: Archive, query: str, **more: object) -> int:
    return search(archive, query, **more).total


def test_an_index_that_never_followed_finds_nothing(archive: Archive) -> None:
    """An index that never followed the log finds nothing, and a search makes no file."""
    assert found(archive, "cat", "sam") == []
    assert not archive._folder.exists()


def test_the_whole_query_word_for_word_comes_first(world: World, archive: Archive) -> None:
    """A memory that contains the query literally comes before memories that contain its words more often."""
    world.insert("sam", "cats and rivers, rivers and cats, cats, rivers")
    world.insert("sam", "we met where the River Cats play")
    archive.follow()
    assert found(archive, "river cats", "sam")[0] == "we met where the River Cats play"


def test_what_stands_in_quotes_must_be_held(world: World, archive: Archive) -> None:
    """A quoted phrase is a filter, word for word and case-insensitive; the other words rank."""
    world.insert("sam", "the winter summer garden")
    world.insert("sam", "the summer garden in winter")
    world.insert("sam", "Winter Summer stone")
    archive.follow()
    assert sorted(found(archive, 'stone "winter summer"', "sam")) == ["Winter Summer stone", "the winter summer garden"]
    assert found(archive, 'stone "winter summer"', "sam")[0] == "Winter Summer stone"
    assert total(archive, '"no such words"') == 0


@pytest.mark.parametrize("name", ["0190f5e2-7c1a-7bbb-8000-00000000002a", "store.archive", "a@b.de", "k8s_node-7"])
def test_identifiers_are_found_exactly(world: World, archive: Archive, name: str) -> None:
    """An id is the first result among ids that share parts of it."""
    world.insert("sam", f"the key is {name}x")
    world.insert("sam", f"the key is {name}.")
    world.insert("sam", f"the key is x{name}")
    archive.follow()
    assert found(archive, name, "sam")[0] == f"the key is {name}."


def test_words_are_compared_by_their_stems_and_question_words_do_not_count() -> None:
    """Plural and singular match; 'what did' finds nothing unless the query has no other words; Chinese is searched by
    character.
    """
    assert set(query_numbers("what did the cats do")) == set(numbers_of("cat"))
    assert set(query_numbers("what did")) == set(numbers_of("what did"))
    assert set(query_numbers("猫")) < set(numbers_of("我的猫很好"))


def test_pages_are_parts_of_one_order(world: World, archive: Archive) -> None:
    """The pages together have every result once, with the same total, and a repeated search gives the same pages."""
    for number in range(150):
        world.insert("sam", f"cat number {number % 7} by the river" if number % 2 else f"whale {number}")
    archive.follow()
    for query in ("cat river", ""):
        everything = search(archive, query, count=1000)
        pages = [search(archive, query, first=first, count=7) for first in range(0, 168, 7)]
        assert [match for page in pages for match in page.results] == list(everything.results)
        assert {page.total for page in pages} == {everything.total} == {len(everything.results)}
    assert total(archive, "") == 150
    assert 75 <= total(archive, "cat") <= 75 + NEAREST


def test_an_empty_query_finds_everything_newest_first(world: World, archive: Archive) -> None:
    for number in range(5):
        world.insert("sam", f"memory {number}")
    archive.follow()
    assert found(archive, " ", "sam") == [f"memory {number}" for number in reversed(range(5))]


def test_filters_and_their_totals(world: World, archive: Archive) -> None:
    """Tags (all of them), dates (from inclusive, to exclusive), source and agent each filter the results and the
    total.
    """
    world.insert("sam", "cat one", tags=["a", "b"])
    start = world.time
    world.insert("sam", "cat two", tags=["a"], source="notes")
    world.insert("sam", "cat three", tags=["b", "a"])
    world.insert("ann", "cat of ann")
    archive.follow()
    assert sorted(found(archive, "cat", "sam", tags=["a", "b"])) == ["cat one", "cat three"]
    assert total(archive, "cat", tags=["a", "c"]) == 0
    assert found(archive, "cat", "sam", source="notes") == ["cat two"]
    assert found(archive, "cat", "sam", after=start, before=start + SECOND) == ["cat one"]
    assert total(archive, "cat", after=start + 1) == 2
    assert total(archive, "cat") == 3 and found(archive, "cat", "ann") == ["cat of ann"]


def test_sources_are_shared_and_have_a_time_of_their_own(world: World, archive: Archive) -> None:
    """Two agents search one source; a reloaded document replaces the old one; as of an earlier time the old one is
    found.
    """
    first = world.load("books", "whale.txt", "Call me Ishmael.")
    then = world.time
    world.load("books", "other.txt", "Call me later.")
    world.load("books", "whale.txt", "Call me Ahab.")
    world.insert("sam", "call the whale")
    archive.follow()
    for agent_id in ("sam", "ann"):
        texts = found(archive, "call", agent_id, sources=["books"])
        assert {"Call me Ahab.", "Call me later."} <= set(texts) and "Call me Ishmael." not in texts
        assert "Call me Ahab." not in found(archive, "call", agent_id)
    old = search(archive, "call", "ann", 0, as_of_time=then, sources=["books"])
    assert [(match.memory, match.document, match.source) for match in old.results] == [(first, "whale.txt", "books")]
    world.remove("books", "whale.txt")
    archive.follow()
    assert found(archive, "", "ann", sources=["books"], source="books") == ["Call me later."]


def test_a_long_text_is_found_by_its_parts(world: World, archive: Archive) -> None:
    """Parts name their memory and their position; an update replaces all parts together."""
    text = " ".join(f"Sentence {number} is about the river." for number in range(100)) + " The treasure: a garden."
    memory = world.insert("sam", text)
    archive.follow()
    best = search(archive, "treasure garden").results[0]
    assert (best.memory, best.part, best.parts) == (memory, best.parts, best.parts) and best.parts > 2
    world.update("sam", memory, "short now")
    archive.follow()
    assert found(archive, "", "sam") == ["short now"]


def test_a_repeated_search_reads_no_table(world: World, archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repeated search reads no table, and still finds records that were followed in between."""
    memory = world.insert("sam", "the first cat")
    archive.follow()
    assert found(archive, "cat", "sam") == ["the first cat"]
    monkeypatch.setattr("everlog.store.archive.archive_table.Table.read", None)
    assert found(archive, "cat", "sam") == ["the first cat"]
    monkeypatch.undo()
    world.insert("sam", "the second cat")
    world.update("sam", memory, "the first cat, older")
    archive.follow()
    monkeypatch.setattr("everlog.store.archive.archive_table.Table.read", None)
    assert sorted(found(archive, "cat", "sam")) == ["the first cat, older", "the second cat"]
    assert found(archive, "cat", "sam", as_of=1) == ["the first cat"]


def test_row_caches_are_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """With more agents than fit into the row caches, the agents searched last are cached, and all searches are
    right.
    """
    monkeypatch.setattr("everlog.store.archive.row_caches.ROW_CACHE_BYTES_MAX", 20_000)
    for number in range(10):
        world.insert(f"agent {number}", f"the cat of {number}")
    archive = world.archive()
    archive.follow()
    for _ in range(2):
        for number in range(10):
            assert found(archive, "cat", f"agent {number}") == [f"the cat of {number}"]
    assert archive._row_caches is not None and 0 < len(archive._row_caches._found) < 10
    archive.close()
