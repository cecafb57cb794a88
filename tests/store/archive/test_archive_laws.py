"""The index is a projection of the log: its rows do not depend on how it was made."""

import random
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from everlog.events import Record, is_erased
from everlog.projections import Projections
from everlog.store.embedding.chunks import chunks
from tests.support.seeds import split
from tests.support.store.archive_world import Chance, World, found, rows_of, search

QUERIES = ("cat", "whale moon", '"winter summer"', "id-77/a", "bread and the train", "")


def fields(record: Record) -> dict:
    return msgspec.json.decode(record.payload)


def folded(records: Iterable[Record], as_of: int) -> dict[str, tuple]:
    """Return an agent's memories as of a seq, by definition: text, tags, source and first time by memory id."""
    kept: dict[str, tuple] = {}
    for record in records:
        if record.seq > as_of or is_erased(record.payload):
            continue
        if record.type == "archival_inserted":
            kept[record.event_id] = (record.text, fields(record).get("tags", []), record.recorded_at, record.seq)
        elif record.type == "archival_updated":
            memory = fields(record)["memory_id"]
            first = kept.get(memory, (0, 0, record.recorded_at, record.seq))
            kept[memory] = (record.text, fields(record).get("tags", []), first[2], first[3])
        elif record.type == "archival_deleted":
            kept.pop(fields(record)["memory_id"], None)
        elif record.type == "agent_created":
            kept.clear()
    return kept


def lived(world: World, seed: int, acts: int, **more: object) -> Chance:
    chance = Chance(world, seed)
    for _ in range(acts):
        chance.act(**more)
    return chance


@pytest.mark.parametrize("seed", split(range(8), 1, label="bit by bit", part="storage"))
def test_bit_by_bit_at_once_and_rebuilt_are_the_same_rows(tmp_path: Path, seed: int) -> None:
    """Following after each commit, following at the end, and a rebuild give equal rows."""
    world = World(tmp_path / "store")
    chance = Chance(world, seed)
    bit = world.archive()
    for number in range(60):
        chance.act()
        bit.follow()
        if number % 20 == 7:  # another process continues
            bit.close()
    rows = rows_of(bit)
    assert rows and bit.check() == []
    bit.close()
    (tmp_path / "store" / "archive").rename(tmp_path / "first")
    once = world.archive()
    once.follow()
    assert rows_of(once) == rows
    assert once.check() == []
    once.rebuild()
    assert rows_of(once) == rows
    assert once.follow().rows == 0
    once.close()
    world.close()


@pytest.mark.parametrize("seed", split(range(8), 1, label="as of a seq", part="storage"))
def test_what_holds_as_of_a_seq_is_what_the_log_says(tmp_path: Path, seed: int) -> None:
    """A search for everything, as of any seq, finds exactly the memories of a plain fold of the records up to
    that seq.
    """
    world = World(tmp_path / "store")
    lived(world, seed, 80, rarely=False)
    archive = world.archive()
    archive.follow()
    for agent_id in ("sam", "ann", "alone"):
        records = list(world.store.reader(agent_id).read(agent_id))
        for as_of in range(len(records) + 1):
            kept = folded(records, as_of)
            expected = sorted((key, part) for key, value in kept.items() for part in chunks(value[0]))
            matches = search(archive, "", agent_id, as_of, count=1000)
            assert sorted((match.memory, match.text) for match in matches.results) == expected
            assert matches.total == len(expected)
            for match in matches.results:
                assert (list(match.tags), match.time, match.seq) == kept[match.memory][1:]
    archive.close()
    world.close()


def test_the_projection_in_sql_and_the_index_say_the_same(tmp_path: Path) -> None:
    """A search for everything gives the rows of `archival_memory.sql`, at the agent's end and before."""
    world = World(tmp_path / "store")
    lived(world, 6, 120, rarely=False)
    archive = world.archive()
    archive.follow()
    for agent_id in ("sam", "ann", "alone"):
        with Projections() as projections:
            records = list(world.store.reader(agent_id).read(agent_id))
            projections.add(records)
            for as_of in [*range(1, len(records), 5), len(records)]:
                rows = projections.rows("archival_memory", agent_id, as_of)
                expected = {(row["memory_id"], row["seq"], row["time"], tuple(row["tags"])) for row in rows}
                matches = search(archive, "", agent_id, as_of, count=1000)
                assert {(m.memory, m.seq, m.time, tuple(m.tags)) for m in matches.results} == expected
    archive.close()
    world.close()


@pytest.mark.parametrize("seed", split(range(8), 1, label="searches", part="storage"))
def test_a_search_as_of_a_seq_is_that_of_a_log_cut_there(tmp_path: Path, seed: int) -> None:
    """Results, order, scores and totals as of a seq equal those of an index that was made when the log ended at that
    seq.
    """
    world = World(tmp_path / "store")
    lived(world, seed, 60, rarely=False)
    archive = world.archive()
    archive.follow()
    records = list(world.store.reader("sam").read("sam"))
    for cut in sorted(random.Random(seed).sample(range(1, len(records)), 4)):
        before = World(tmp_path / f"cut-{cut}")
        log = before.log("sam")
        for record in records[:cut]:
            same = {"event_id": record.event_id, "recorded_at": record.recorded_at, "payload": record.payload}
            draft = msgspec.structs.replace(before.draft(record.type, record.text), **same)
            log.append("sam", record.seq - 1, [draft])
        other = before.archive()
        other.rebuild()
        for query in QUERIES:
            asked = {"as_of": cut, "count": 50}
            assert search(archive, query, **asked) == search(other, query, **asked)
        other.close()
        before.close()
    archive.close()
    world.close()


def test_order_of_partitions_does_not_matter(tmp_path: Path) -> None:
    """The partition to which an agent moved may be followed before its old partition."""
    world = World(tmp_path / "store")
    memory = world.insert("sam", "the first text")
    here = world.store.partition_of("sam")
    there = next(name for name in ("shard-000", "shard-001") if name != here)
    world.move("sam", there)
    world.update("sam", memory, "the second text")
    world.move("sam", here)
    world.update("sam", memory, "the third text")
    archive = world.archive()
    archive.follow([there])
    assert found(archive, "text", "sam") == ["the third text"]
    archive.follow([here])
    archive.follow()
    assert found(archive, "text", "sam") == ["the third text"]
    assert archive.check() == []
    rows = rows_of(archive)
    archive.rebuild()
    assert rows_of(archive) == rows
    archive.close()
    world.close()


def test_an_old_partition_read_late_does_not_change_newer_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Following a partition that an agent left long ago, record by record, does not change the agent's newer rows."""
    monkeypatch.setattr("everlog.store.archive.archive.BATCH_RECORDS", 1)
    world = World(tmp_path / "store")
    memory = world.insert("sam", "the first text")
    world.seal()  # a file of its own, so a batch of its own
    here = world.store.partition_of("sam")
    there = next(name for name in ("shard-000", "shard-001") if name != here)
    world.move("sam", there)
    world.update("sam", memory, "the second text")
    archive = world.archive()
    archive.follow([there])
    seen: list[list[str]] = []
    other = world.archive(step=lambda step: seen.append(found(archive, "text", "sam")) if step == "position" else None)
    other.follow([here])
    assert seen == [["the second text"]] * 2
    archive.close()
    other.close()
    world.close()


def test_many_agents_that_moved_are_read_partition_by_partition(tmp_path: Path) -> None:
    """A move of twenty agents at once is followed like the move of one agent."""
    world = World(tmp_path / "store")
    names = [f"agent {number}" for number in range(20)]
    for name in names:
        world.insert(name, f"{name} likes bread")
        here = world.store.partition_of(name)
        world.move(name, next(place for place in ("shard-000", "shard-001") if place != here))
        world.insert(name, f"{name} likes coffee")
    archive = world.archive()
    archive.follow()
    assert archive.check() == []
    assert all(len(found(archive, "likes", name)) == 2 for name in names)
    archive.close()
    world.close()


def test_an_agent_that_is_created_again_has_no_memories(tmp_path: Path) -> None:
    """Memories of a deleted agent are not found after the deletion; as of an earlier moment they are found."""
    world = World(tmp_path / "store")
    world.insert("sam", "an old cat")
    world.append("sam", world.draft("agent_deleted"))
    world.append("sam", world.draft("agent_created"))
    world.insert("sam", "a new dog")
    archive = world.archive()
    archive.follow()
    assert found(archive, "", "sam") == ["a new dog"]
    assert found(archive, "", "sam", as_of=1) == ["an old cat"]
    archive.close()
    world.close()


def test_what_was_deleted_stays_so_and_a_change_keeps_the_source(tmp_path: Path) -> None:
    """As in the projection, a deleted memory stays deleted, and a change keeps the source; also if delete and change
    are in different batches.
    """
    world = World(tmp_path)
    archive = world.archive()
    oak, elm = world.insert("sam", "under the oak", source="map"), world.insert("sam", "under the elm")
    archive.follow()
    world.delete("sam", elm)
    archive.follow()
    world.update("sam", elm, "under the birch")
    world.update("sam", oak, "under the ash")
    archive.follow()
    assert found(archive, "under", "sam") == ["under the ash"]
    assert {row["source"] for row in rows_of(archive) if row["memory"] == oak} == {"map"}
    assert archive.check() == []
    archive.close()
    world.close()
