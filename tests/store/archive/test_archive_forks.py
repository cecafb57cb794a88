"""Forks in the archive: a fork finds what a plain agent with the same records finds, and no row is copied."""

import random
from pathlib import Path

import msgspec
import pytest

from everlog.events import Draft, Record, is_erased, uuid7
from everlog.store import export
from everlog.store.archive import Archive
from everlog.store.archive.row_fold import ENDED, spans_in
from everlog.store.streams.register import Register
from everlog.store.streams.register_file import Assignment
from tests.support.seeds import split
from tests.support.store.archive_world import END, NOW, Chance, World, found, rows_of, search

QUERIES = ("cat", "whale moon", '"winter summer"', "id-77/a", "bread and the train", "")


class Forks(Chance):
    """Random actions of agents and their forks. A deleted memory is sometimes changed and deleted again."""

    def __init__(self, world: World, seed: int) -> None:
        super().__init__(world, seed)
        self.agents = ["sam", "alone"]
        for name in self.agents:
            world.log(name)

    def fork(self) -> None:
        """Fork an agent that has no pending erasure."""
        parents = [name for name in self.agents if not self.world.store.reader(name).erasing(name)]
        parent = self.random.choice(parents or self.agents)
        reader = self.world.store.reader(parent)
        if not parents:
            return
        records = [record for record in reader.read(parent) if not is_erased(record.payload)]
        if records:
            cut = self.random.choice(records)
            name = f"fork {len(self.agents)}"
            forked(self.world, parent, cut.seq, name)
            self.agents.append(name)
            self.alive[name] = [
                record.event_id for record in records if record.type == "archival_inserted" and record.seq <= cut.seq
            ]

    def _delete(self, agent_id: str, mine: list[str]) -> None:
        self.world.delete(agent_id, self.random.choice(mine))

    def _erase(self, agent_id: str, mine: list[str]) -> None:
        """Erase as the command does: in all forks that share the records, too."""
        ancestor = self.world.store.parent_of(agent_id)
        own, end = 1 + (ancestor[1] if ancestor else 0), self.world.seq(agent_id)
        if end >= own:
            first = self.random.randint(own, end)
            erase(self.world, agent_id, first, min(end, first + self.random.randrange(3)))


def forked(world: World, parent: str, at: int, name: str) -> None:
    world.store.fork(parent, at, name, event_id=uuid7(NOW, at * 1000 + len(world.store.agents())))


def erase(world: World, agent_id: str, first: int, last: int) -> None:
    for name, cut in world.store.forks_of(agent_id).items():
        if cut >= first:
            world.erase(name, first, min(cut, last))
    world.erase(agent_id, first, last)


def copied(world: World, agent_id: str, root: Path) -> World:
    """Return a store with the agent's records, as if the agent had never been forked or moved."""
    copy = World(root)
    log = copy.log(agent_id)
    records = list(world.store.reader(agent_id).read(agent_id))
    gone = {name: spans_in(world.store.reader(name).read(name)) for name in {record.agent_id for record in records}}
    log.append(agent_id, 0, [_same(copy, record, gone[record.agent_id]) for record in records])
    return copy


def _same(copy: World, record: Record, gone: list[tuple[int, int]]) -> Draft:
    """Return a record for a copy. A record whose erasure was requested in its writer's log becomes a filler."""
    erased = is_erased(record.payload) or any(first <= record.seq <= last for first, last in gone)
    if record.type in ("agent_moved", "agent_forked") or erased:
        return copy.draft("system_alert", "nothing to keep")
    kind = record.type
    same = {"event_id": record.event_id, "recorded_at": record.recorded_at, "payload": record.payload}
    return msgspec.structs.replace(copy.draft(kind, record.text), **same)


def assert_like(archive: Archive, world: World, agent_id: str, root: Path, seed: int) -> None:
    """Check that a fork finds at any moment what a full copy of it finds."""
    copy = copied(world, agent_id, root)
    other = copy.archive()
    other.rebuild()
    head = world.store.reader(agent_id).head(agent_id).seq
    ancestor = world.store.parent_of(agent_id)
    moments = {END, head, *(random.Random(seed).randint(0, head) for _ in range(4))}
    moments.update({ancestor[1] - 1, ancestor[1], ancestor[1] + 1} if ancestor else set())
    for as_of in sorted(moments):
        for query in QUERIES:
            asked = {"agent_id": agent_id, "as_of": as_of, "count": 50}
            assert search(archive, query, **asked) == search(other, query, **asked), (agent_id, query, as_of)
        filtered = {"tags": ["a"], "after": NOW + 20 * 1_000_000, "before": world.time}
        assert found(archive, "", agent_id, as_of, **filtered) == found(other, "", agent_id, as_of, **filtered)
    other.close()
    copy.close()


@pytest.mark.parametrize("seed", split(range(1, 5), 1, label="forks in the archive", part="storage"))
def test_a_fork_finds_what_a_copy_of_it_finds(tmp_path: Path, seed: int) -> None:
    """After forks at any seq, forks of forks, changes, deletions, erasures, moves and new incarnations, each fork and
    each parent finds at any moment what an agent with the same records finds. A rebuild makes the same rows.
    """
    world = World(tmp_path / "store")
    chance = Forks(world, seed)
    archive = world.archive()
    for number in range(90):
        chance.act()
        if number % 15 == 14:
            chance.fork()
        if number % 4 == 0:
            archive.follow(chance.random.sample(world.store.partitions(), 1))  # in any order
    archive.follow()
    assert archive.check() == []
    for agent_id in chance.agents:
        assert_like(archive, world, agent_id, tmp_path / agent_id, seed)
    rows = rows_of(archive)
    assert [row for row in rows if row["kind"] == ENDED]
    archive.rebuild()
    assert rows_of(archive) == rows
    archive.close()
    world.close()


def test_a_fork_costs_the_archive_nothing(tmp_path: Path) -> None:
    """No row and no vector is written for records that a fork has from its parent, only for its own."""
    world = World(tmp_path)
    for number in range(20):
        world.insert("sam", f"cat number {number}")
    archive = world.archive()
    archive.follow()
    rows, asked = rows_of(archive), len(world.embedder.asked)
    forked(world, "sam", 12, "tom")
    assert archive.follow().rows == 0
    assert rows_of(archive) == rows and len(world.embedder.asked) == asked
    assert len(found(archive, "cat", "tom", count=50)) == 12
    world.insert("tom", "a dog")
    assert archive.follow().rows == 1
    archive.close()
    world.close()


def test_what_a_fork_does_to_a_memory_is_its_own(tmp_path: Path) -> None:
    """A change keeps source and first time, a deletion holds; the parent and an earlier fork find the old memory."""
    world = World(tmp_path)
    oak = world.insert("sam", "under the oak", source="map", tags=["a"])
    first = world.time
    elm = world.insert("sam", "under the elm")
    forked(world, "sam", 2, "tom")
    world.update("tom", oak, "under the ash")
    world.delete("tom", elm)
    forked(world, "tom", 4, "ann")
    world.update("tom", elm, "under the birch")
    world.update("ann", oak, "under the lime")
    archive = world.archive()
    archive.follow()
    assert sorted(found(archive, "under", "sam")) == ["under the elm", "under the oak"]
    assert found(archive, "under", "tom") == ["under the ash"]
    assert sorted(found(archive, "under", "ann")) == ["under the elm", "under the lime"]
    matches = search(archive, "lime", "ann", source="map")
    assert [(match.memory, match.seq, match.time) for match in matches.results] == [(oak, 1, first)]
    assert sorted(found(archive, "under", "ann", 2)) == ["under the elm", "under the oak"]
    assert archive.check() == []
    archive.close()
    world.close()


def test_what_an_ancestor_had_deleted_stays_so(tmp_path: Path) -> None:
    """A deletion before the fork point holds for the fork, whatever its later records are; after a later deletion the
    fork still has the memory.
    """
    world = World(tmp_path)
    oak = world.insert("sam", "under the oak")
    world.delete("sam", oak)
    forked(world, "sam", 2, "tom")
    forked(world, "sam", 1, "ann")
    for name in ("tom", "ann"):
        world.update(name, oak, f"under the ash of {name}")
        world.update(name, oak, f"under the elm of {name}")
    forked(world, "tom", 5, "max")
    world.update("max", oak, "under the lime")
    archive = world.archive()
    archive.follow()
    assert {name: found(archive, "under", name) for name in ("sam", "tom", "ann", "max")} == {
        "sam": [], "tom": [], "ann": ["under the elm of ann"], "max": [],
    }  # fmt: skip
    assert found(archive, "under", "ann", 1) == ["under the oak"]
    archive.close()
    world.close()


def test_a_fork_that_is_created_again_has_no_memories(tmp_path: Path) -> None:
    """A fork that is created again does not find its ancestors' memories; as of its earlier incarnation it finds
    them.
    """
    world = World(tmp_path)
    world.insert("sam", "an old cat")
    forked(world, "sam", 1, "tom")
    world.append("tom", world.draft("agent_deleted"))
    world.append("tom", world.draft("agent_created"))
    world.insert("tom", "a new dog")
    archive = world.archive()
    archive.follow()
    assert found(archive, "", "tom") == ["a new dog"]
    assert found(archive, "", "tom", 3) == ["an old cat"]
    assert found(archive, "", "sam") == ["an old cat"]
    archive.close()
    world.close()


def test_the_order_of_partitions_does_not_matter(tmp_path: Path) -> None:
    """The index may read a fork's change before the record that is changed."""
    world = World(tmp_path)
    oak = world.insert("sam", "under the oak", source="map")
    forked(world, "sam", 1, "tom")
    world.update("tom", oak, "under the ash")
    archive = world.archive()
    archive.follow([world.store.partition_of("tom")])
    archive.follow()
    assert found(archive, "under", "tom", source="map") == ["under the ash"]
    assert found(archive, "under", "sam") == ["under the oak"]
    rows = rows_of(archive)
    archive.rebuild()
    assert rows_of(archive) == rows
    archive.close()
    world.close()


def test_what_is_erased_in_a_parent_is_found_in_no_fork(tmp_path: Path) -> None:
    """No fork finds memories that were erased in the parent; a memory that a fork had changed keeps the fork's text."""
    world = World(tmp_path)
    oak = world.insert("sam", "under the oak", source="map")
    world.insert("sam", "under the elm")
    forked(world, "sam", 2, "tom")
    world.update("tom", oak, "under the ash")
    forked(world, "tom", 4, "max")
    archive = world.archive()
    archive.follow()
    assert sorted(found(archive, "under", "max")) == ["under the ash", "under the elm"]
    erase(world, "sam", 1, 2)
    archive.follow()
    for name in ("tom", "max"):
        assert found(archive, "under", name) == ["under the ash"]
        assert found(archive, "under", name, source="map") == []
    assert archive.check() == []
    archive.close()
    world.close()


def test_an_index_that_follows_while_a_fork_is_restored_learns_nothing_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A memory that the fork deleted stays deleted, although a search ran between its last record and its
    registration.
    """
    source = World(tmp_path / "a")
    memory = source.insert("sam", "under the elm")
    source.insert("sam", "under the oak")
    forked(source, "sam", 2, "tom")
    source.delete("tom", memory)
    source.close()
    export(source.store, "tom", tmp_path / "tom.everlog", store_id="a", made_at=NOW)
    world = World(tmp_path / "b")
    archive, add = world.archive(), Register.add

    def late(register: Register, assignment: Assignment, *, begun: bool) -> bool:
        archive.follow()
        return add(register, assignment, begun=begun)

    monkeypatch.setattr(Register, "add", late)
    world.store.restore(tmp_path / "tom.everlog")
    archive.follow()
    assert found(archive, "under", "tom") == ["under the oak"]
    assert archive.check() == []
