"""A few memories that are searched in memory are found as the table finds them, to the digit."""

import random
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from everlog.events import Record
from everlog.projections.search.memory_cache import RECORDS_MAX, KnownMemories, MemoryCache
from everlog.store import ArchiveQuery
from everlog.store.archive import message_vectors_of
from tests.store.archive.test_archive_laws import lived
from tests.support.seeds import split
from tests.support.store.archive_world import END, World, search

PROGRAM = """
import sys
from pathlib import Path
from everlog.events import ArchivalInserted, draft, place, uuid7
from everlog.store import ArchiveQuery, FileStore
from everlog.store.archive import message_vectors_of
from everlog.store.embedding.embedder import embedder_of

store = FileStore.create(Path(sys.argv[1]), lambda: 1, "store", shards=1)
made = draft(ArchivalInserted(text="the cat sleeps"), event_id=uuid7(1, 1), recorded_at=1, turn=0, step=0)
vectors = message_vectors_of(store, lambda _: embedder_of())
rows = vectors.memory_rows([place(made, "sam", 1, 1)], None)
found = vectors.search_memories(rows, ArchiveQuery(agent_id="sam", query="cat", as_of=9, as_of_time=9))
vectors.close()
print(found.total, "pandas" in sys.modules)
"""
"""A host that searches the memory of an agent which has one."""

QUERIES = ("cat", "whale moon", '"winter summer"', "id-77/a", "bread and the train", "", "?!", "cat " * 300)


def known(cache: MemoryCache, records: list[Record]) -> KnownMemories | None:
    """Return what the cache knows of an agent whose creation and records it was told."""
    birth = msgspec.structs.replace(records[0], type="agent_created", seq=0)
    for record in (birth, *records):
        cache.note([record])
    return cache.known(records[0].agent_id, END)


@pytest.mark.parametrize("seed", split(range(12), 2, label="known memories", part="storage"))
def test_memories_in_memory_are_found_as_in_the_table(tmp_path: Path, seed: int) -> None:
    """Results, order, scores, totals and `by_meaning` of every query, page and filter, as of any seq of a life, are
    those of the table.
    """
    world = World(tmp_path / "store")
    lived(world, seed, 60, rarely=False)
    archive = world.archive()
    archive.follow()
    vectors = message_vectors_of(world.store, lambda _: world.embedder)
    chance = random.Random(seed)
    for agent_id in ("sam", "ann", "alone"):
        records = list(world.store.reader(agent_id).read(agent_id))
        found = known(MemoryCache(bytes_max=10**9), records)
        assert found is not None
        rows = vectors.memory_rows(found.records, None)
        for query in QUERIES:
            times = sorted(chance.choices(records, k=2), key=lambda record: record.recorded_at)
            more = {
                "first": chance.choice([0, 3]), "count": chance.choice([2, 50]), "tags": chance.choice([(), ("new",)]),
                "after": chance.choice([None, times[0].recorded_at]),
                "before": chance.choice([None, times[1].recorded_at]),
                "as_of": chance.choice([END, chance.choice(records).seq]),
            }  # fmt: skip
            wanted = ArchiveQuery(agent_id=agent_id, query=query, as_of_time=END, **more)
            assert vectors.search_memories(rows, wanted) == search(archive, query, agent_id, **more)
    vectors.close()
    archive.close()
    world.close()


def test_searching_a_few_memories_does_not_load_pandas(tmp_path: Path) -> None:
    """Arrow imports pandas, if it is installed, when it gets or returns values of others: 25 MB in each host, and half
    a second of its first search.
    """
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "store")]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "1 False\n"


def test_rows_are_made_once_and_again_after_a_change(tmp_path: Path) -> None:
    """A second search uses the rows of the first; a new memory is found by the next search. No text is embedded twice,
    and following the log embeds none of them again.
    """
    world = World(tmp_path / "store")
    vectors = message_vectors_of(world.store, lambda _: world.embedder)
    world.insert("sam", "the cat sleeps")
    first = vectors.memory_rows(list(world.store.reader("sam").read("sam")), None)
    world.insert("sam", "the cat wakes")
    records = list(world.store.reader("sam").read("sam"))
    second = vectors.memory_rows(records, first)
    assert second is not first and vectors.memory_rows(records, second) is second
    wanted = ArchiveQuery(agent_id="sam", query="cat", as_of=END, as_of_time=END)
    assert vectors.search_memories(second, wanted).total == 2
    asked = [text for text in world.embedder.asked if text.startswith("the cat")]
    archive = world.archive()
    archive.follow()
    assert asked == ["the cat sleeps", "the cat wakes"]
    assert [text for text in world.embedder.asked if text.startswith("the cat")] == asked
    archive.close()
    vectors.close()
    world.close()


@pytest.mark.parametrize("kind", ["records_erased", "source_attached"])
def test_an_agent_that_erases_or_has_sources_is_left_to_the_archive(tmp_path: Path, kind: str) -> None:
    """Nothing is known of an agent after an erasure or with a source, until it is created again."""
    world = World(tmp_path / "store")
    world.insert("sam", "the cat sleeps")
    world.append("sam", world.draft(kind, from_seq=1, to_seq=1))
    world.append("sam", world.draft("agent_created"))
    world.insert("sam", "the cat wakes")
    records = list(world.store.reader("sam").read("sam"))
    cache = MemoryCache(bytes_max=10**9)
    assert known(cache, records[:2]) is None and cache.used == 0
    cache.note(records[2:])
    again = cache.known("sam", END)
    assert again is not None and [record.text for record in again.records] == ["the cat wakes"]
    assert cache.known("sam", 2) is None
    world.close()


def test_an_agent_with_many_memories_is_left_to_the_archive(tmp_path: Path) -> None:
    """Up to RECORDS_MAX records are kept, and in all no more bytes than allowed: the agent that was searched longest
    ago is dropped first.
    """
    world = World(tmp_path / "store")
    world.insert("sam", "the cat sleeps")
    (record,) = world.store.reader("sam").read("sam")
    many = [msgspec.structs.replace(record, seq=seq) for seq in range(1, RECORDS_MAX + 2)]
    cache = MemoryCache(bytes_max=10**9)
    assert known(cache, many[:-1]) is not None
    size = cache.used
    cache.note(many[-1:])
    assert cache.known("sam", END) is None and cache.used == 0
    small = MemoryCache(bytes_max=size)
    known(small, many[:-1])
    known(small, [msgspec.structs.replace(record, agent_id="ann")])
    assert small.known("sam", END) is None and small.known("ann", END) is not None
    world.close()
