"""A position of all logs has every record once, whatever the owners do meanwhile."""

from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow.compute as pc
import pytest

from everlog.events import CorruptLog, UserMessage, draft
from everlog.store import FileLog, FileStore, RealDisk, Snapshot, snapshot
from everlog.testing import CountingIds, ManualClock

clock, ids = ManualClock(tick_us=1000), CountingIds()


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    store = FileStore.create(tmp_path / "store", clock.now, "s", shards=2)
    store.register_many(["ann", "bob"], shared=True)
    store.register("sam")
    return store


def say(log: FileLog, name: str, count: int = 1) -> None:
    for _ in range(count):
        seq = log.head(name).seq
        event = UserMessage(text=f"{name} {seq + 1}")
        log.append(name, seq, [draft(event, event_id=ids.new(clock.now()), recorded_at=clock.now(), turn=1, step=0)])


def seqs(position: Snapshot, name: str) -> list[int]:
    """Return the seqs of an agent that DuckDB reads, sorted."""
    fresh = position.fresh
    found: list[int] = fresh.filter(pc.equal(fresh.column("agent_id"), name)).column("seq").to_pylist()
    if position.paths:
        query = "SELECT seq FROM read_parquet(?) WHERE agent_id = ?"
        found += [seq for (seq,) in duckdb.execute(query, [position.paths, name]).fetchall()]
    return sorted(found)


def test_it_is_of_one_moment_whatever_is_sealed_and_compacted_later(store: FileStore) -> None:
    """Later records are not in the position, and files that are removed meanwhile are read to the end."""
    with closing(store.open("sam", "test")) as log:
        say(log, "sam", 3)
        log.seal()
        say(log, "sam", 2)
        folder = store.root / "log" / log.partition
        with snapshot(store) as position:
            before = set(folder.glob("*.parquet"))
            say(log, "sam", 4)
            log.seal()
            assert before.isdisjoint(folder.iterdir())
            assert seqs(position, "sam") == [1, 2, 3, 4, 5]
            (part,) = [part for part in position.parts if part.partition == log.partition]
            assert (part.commit, part.records) == (5, 5)
            assert position.damage() is None
        with snapshot(store) as position:
            assert seqs(position, "sam") == list(range(1, 10))


def test_a_file_that_goes_while_it_is_taken_is_found_in_another(store: FileStore) -> None:
    """If the owner seals between the reading of the manifest and of its files, the next manifest is used."""
    log = store.open("sam", "test")
    say(log, "sam", 3)

    class Sealing(RealDisk):
        done = False

        def read(self, path: Path, offset: int = 0, length: int | None = None) -> bytes:
            if path.suffix == ".open" and not Sealing.done:
                Sealing.done = True
                log.seal()
            return super().read(path, offset, length)

    with snapshot(FileStore(store.root, clock.now, disk=Sealing())) as position:
        assert Sealing.done
        assert seqs(position, "sam") == [1, 2, 3]
    log.close()


def test_a_torn_tail_is_passed_over(store: FileStore) -> None:
    """Whole frames count; bytes that a dead writer left after them do not."""
    with closing(store.open("sam", "test")) as log:
        say(log, "sam", 2)
        name = log.partition
    (path,) = (store.root / "log" / name).glob("*.open")
    path.write_bytes(path.read_bytes()[:-5])
    with snapshot(store) as position:
        assert seqs(position, "sam") == [1]


def test_an_agent_that_moves_meanwhile_is_whole(store: FileStore) -> None:
    """If an agent moves twice after its old partition was read, the position is taken again."""
    with closing(store.open("sam", "test")) as log:
        say(log, "sam", 2)

    class Moving(RealDisk):
        moves = 0

        def read(self, path: Path, offset: int = 0, length: int | None = None) -> bytes:
            if "shard-" in str(path) and Moving.moves == 0:
                Moving.moves = 1
                move(store)
            return super().read(path, offset, length)

    with closing(store.open("ann", "test")) as log:
        say(log, "ann")
    with closing(store.open("bob", "test")) as log:
        say(log, "bob")
    with snapshot(FileStore(store.root, clock.now, disk=Moving())) as position:
        assert Moving.moves
        found = seqs(position, "sam")
    assert found == list(range(1, found[-1] + 1))
    assert len(found) >= 6


def move(store: FileStore) -> None:
    """Let sam write two messages, move to a shard, and write two more."""
    with closing(store.open("sam", "test")) as log:
        say(log, "sam", 2)
        store.begin_move(log, "sam", "shard-001")
    with closing(store.open("sam", "test")) as log:
        say(log, "sam", 2)


def test_a_fork_has_its_own_records_only_sealed_or_moved(store: FileStore) -> None:
    """A fork's log begins after the fork point, in any partition; the records before do not count as missing."""
    with closing(store.open("sam", "test")) as log:
        say(log, "sam", 3)
    store.fork("sam", 2, "tom", event_id=ids.new(clock.now()))
    for step in ("written", "sealed", "moved", "sealed again"):
        with closing(store.open("tom", "test")) as log:
            say(log, "tom")
            if step == "moved":
                store.begin_move(log, "tom", "shard-001")
        with closing(store.open("tom", "test")) as log:
            if step.startswith("sealed"):
                log.seal()
        with snapshot(store) as position:
            assert seqs(position, "tom") == [*range(3, store.reader("tom").head("tom").seq + 1)]
            assert seqs(position, "sam") == [1, 2, 3]


@pytest.mark.parametrize("harm", ["frame", "file gone"])
def test_damage_is_an_error_that_names_the_file(store: FileStore, harm: str) -> None:
    """For a damaged frame before another frame, and for a missing sealed file, no query is answered."""
    with closing(store.open("sam", "test")) as log:
        say(log, "sam", 3)
        if harm == "file gone":
            log.seal()
        folder = store.root / "log" / log.partition
    if harm == "frame":
        (path,) = folder.glob("*.open")
        data = bytearray(path.read_bytes())
        data[100] ^= 1
        path.write_bytes(data)
    else:
        (path,) = folder.glob("*.parquet")
        path.unlink()
    with pytest.raises(CorruptLog, match=path.name):
        snapshot(store)
    with snapshot(store, skip_damaged=True) as position:
        assert [left.partition for left in position.left_out] == [folder.name]
        assert path.name in position.left_out[0].reason


def test_an_empty_store_has_a_position_too(tmp_path: Path) -> None:
    """An empty store has a position; nothing is read and nothing is made."""
    store = FileStore.create(tmp_path / "store", clock.now, "s")
    with snapshot(store) as position:
        assert (position.parts, position.paths, position.records) == ([], [], 0)
