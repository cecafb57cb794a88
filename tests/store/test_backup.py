"""Exports and restores: what comes out of the file is what went in, record for record, or nothing comes out."""

import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from events import BadInput, CorruptLog, NewerFormat, PartitionBusy, StoreError, UsageError, event_of
from events.lifecycle import AgentMoved
from store import Contents, FileStore, MemoryStore, Restoration, Store, check, check_moves, export, partition_of
from store.exportfile import CHECKSUM, MARK, ExportReader
from tests.contract.drafts import NOW, Drafts
from tests.contract.sealed import erasing
from tests.store.conftest import now
from tests.store.faulty_disk import Crash, FaultyDisk
from tests.store.test_forks import assert_whole, fork, say
from tests.store.test_moves import CHANGES, ROUTE, travel, words_for
from tests.store.test_sealing import Counting

ROOT = Path("/sim")
OTHER = Path("/other")
MakeStore = Callable[[str], Store]


@pytest.fixture(params=["memory", "files"])
def made(request: pytest.FixtureRequest) -> MakeStore:
    """Makes empty stores of one implementation."""

    def make(name: str) -> Store:
        if request.param == "memory":
            return MemoryStore(2, now)
        return FileStore.create(Path("/") / name, now, name, shards=2, disk=FaultyDisk())

    return make


@pytest.fixture
def store(made: MakeStore) -> Store:
    return made("sim")


@pytest.fixture
def other(made: MakeStore) -> Store:
    return made("other")


def save(store: Store, name: str, path: Path, **more: object) -> Contents:
    return export(store, name, path, store_id="sim", made_at=NOW, **more)  # type: ignore[arg-type]


def through(store: Store, name: str, other: Store, tmp_path: Path) -> Restoration:
    """Export an agent from one store and restore it in another."""
    path = tmp_path / f"{name}.everlog"
    save(store, name, path, replace=True)
    return other.restore(path, Counting())


def assert_same(store: Store, other: Store, name: str) -> None:
    """Every record of an agent is the same in both, but for the number of its commit; so is the chain at every seq."""
    mine, theirs = store.reader(name), other.reader(name)
    assert_whole(theirs, name)
    fields = ("agent_id", "seq", "event_id", "recorded_at", "said_at", "type", "turn", "step", "cause", "version",
              "text", "payload")  # fmt: skip
    for a, b in zip(mine.read(name), theirs.read(name), strict=True):
        assert [getattr(a, field) for field in fields] == [getattr(b, field) for field in fields]
    head = mine.head(name)
    assert (theirs.head(name).seq, theirs.head(name).chain) == (head.seq, head.chain)


def assert_fine(store: Store) -> None:
    """No check of the files finds anything."""
    if isinstance(store, FileStore):
        for partition in store.partitions():
            report = check(store.partition(partition), deep=True, derive=Counting())
            assert report.ok, report.errors
        assert check_moves(store) == []


def test_an_agent_comes_out_as_it_went_in_and_goes_on(store: Store, other: Store, tmp_path: Path) -> None:
    drafts = Drafts()
    say(store, "sam", drafts, 5)
    done = through(store, "sam", other, tmp_path)
    assert [(r.stream.agent_id, r.written) for r in done.streams] == [("sam", 5)]
    assert_same(store, other, "sam")
    assert_fine(other)
    for place in (store, other):
        say(place, "sam", Drafts(NOW + 5_000_000), 2)
    assert_same(store, other, "sam")
    assert_fine(other)


def test_commits_stay_whole_and_apart(store: Store, other: Store, tmp_path: Path) -> None:
    """What was one commit is one again, and what was two is two, though others' commits lay in between."""
    drafts = Drafts()
    store.register("sam", shared=True)
    log = store.open("sam", "test")
    for count in (2, 1, 3):
        log.append("ann", log.head("ann").seq, drafts.some(1))
        log.append("sam", log.head("sam").seq, drafts.some(count))
    log.close()
    through(store, "sam", other, tmp_path)
    assert [record.commit for record in other.reader("sam").read("sam")] == [1, 1, 2, 3, 3, 3]


def test_restoring_again_changes_nothing(store: Store, other: Store, tmp_path: Path) -> None:
    """Once, twice, and when the agent has gone on since: what is there already is left as it is."""
    say(store, "sam", Drafts(), 3)
    assert through(store, "sam", other, tmp_path).written == 3
    assert through(store, "sam", other, tmp_path).written == 0
    say(other, "sam", Drafts(NOW + 5_000_000), 2)
    before = list(other.reader("sam").read("sam"))
    assert other.restore(tmp_path / "sam.everlog").written == 0
    assert list(other.reader("sam").read("sam")) == before


def test_an_agent_that_has_the_first_of_the_records_gets_the_others(store: Store, other: Store, tmp_path: Path) -> None:
    drafts = Drafts()
    say(store, "sam", drafts, 3)
    through(store, "sam", other, tmp_path)
    say(store, "sam", drafts, 4)
    assert through(store, "sam", other, tmp_path).written == 4
    assert_same(store, other, "sam")
    assert_fine(other)


def test_a_name_that_is_somebody_else_is_refused(store: Store, other: Store, tmp_path: Path) -> None:
    """Other records under the name, fewer or more, or a fork of somebody: nothing is changed, nobody is added."""
    say(store, "sam", Drafts(), 3)
    fork(store, "sam", 3, "tom")
    say(store, "tom", Drafts(NOW + 5_000_000), 1)
    save(store, "tom", tmp_path / "tom.everlog")
    for count in (1, 6):
        say(other, "tom", Drafts(NOW + 9_000_000 * count), count)
        before = list(other.reader("tom").read("tom"))
        with pytest.raises(BadInput, match="an agent 'tom' here already, and its records are others"):
            other.restore(tmp_path / "tom.everlog")
        assert list(other.reader("tom").read("tom")) == before and other.agents() == ["tom"]


def test_a_fork_brings_its_ancestors_and_is_restored_as_a_fork(store: Store, other: Store, tmp_path: Path) -> None:
    """Forks of forks, cut before and after their parents' own records: an ancestor comes as far as it is needed."""
    drafts = Drafts()
    say(store, "sam", drafts, 5)
    fork(store, "sam", 4, "tom")
    say(store, "tom", drafts, 3)
    fork(store, "tom", 6, "after")
    say(store, "after", drafts, 1)
    fork(store, "tom", 2, "before")
    say(store, "before", drafts, 1)
    done = through(store, "after", other, tmp_path)
    streams = [(r.stream.agent_id, r.stream.from_seq, r.stream.to_seq, r.written) for r in done.streams]
    assert streams == [("sam", 1, 4, 4), ("tom", 5, 6, 2), ("after", 7, 8, 2)]
    assert other.agents() == ["after", "sam", "tom"]
    assert other.parent_of("after") == ("tom", 6) and other.parent_of("tom") == ("sam", 4)
    assert_same(store, other, "after")
    done = through(store, "before", other, tmp_path)
    assert [(r.stream.agent_id, r.written) for r in done.streams] == [("sam", 0), ("before", 2)]
    assert other.parent_of("before") == ("sam", 2)
    assert_same(store, other, "before")
    for name in ("sam", "tom"):
        through(store, name, other, tmp_path)
    for name in ("sam", "tom", "after", "before"):
        assert_same(store, other, name)
    assert_fine(other)


def test_an_ancestor_is_never_half_of_a_commit(store: Store, other: Store, tmp_path: Path) -> None:
    """A fork that begins in the middle of a commit has an ancestor that ends with it, and both can be read."""
    store.register("sam")
    log = store.open("sam", "test")
    log.append("sam", 0, Drafts().some(4))
    log.append("sam", 4, Drafts(NOW + 1_000_000).some(2))
    log.close()
    fork(store, "sam", 2, "tom")
    done = through(store, "tom", other, tmp_path)
    assert [(r.stream.agent_id, r.stream.to_seq) for r in done.streams] == [("sam", 4), ("tom", 3)]
    assert_same(store, other, "tom")
    through(store, "sam", other, tmp_path)
    assert_same(store, other, "sam")
    assert [record.commit for record in other.reader("sam").read("sam")] == [1, 1, 1, 1, 2, 2]


def test_an_agent_that_moved_is_whole_in_one_partition_and_moves_on(store: Store, other: Store, tmp_path: Path) -> None:
    """Its moves are over: it is here, takes records, is sealed, forked and moved again, and every check agrees."""
    store.register("sam")
    travel(store, ROUTE, words_for(ROUTE))
    through(store, "sam", other, tmp_path)
    assert other.route("sam") == [partition_of("sam")]
    assert_same(store, other, "sam")
    assert_fine(other)
    drafts = Drafts(NOW + 50_000_000)
    say(other, "sam", drafts, 1, seal=True)
    for place in ("shard-001", partition_of("sam"), "shard-000"):
        log = other.open("sam", "test")
        other.begin_move(log, "sam", place)
        log.close()
        say(other, "sam", drafts, 1, seal=True)
        assert_whole(other.reader("sam"), "sam")
        assert_fine(other)
    third = MemoryStore(2, now)
    through(other, "sam", third, tmp_path)
    assert_same(other, third, "sam")


def test_forks_cut_at_every_record_of_a_move_are_restored(store: Store, made: MakeStore, tmp_path: Path) -> None:
    """Also where the cut is the record with which the parent went away: the parent comes with its arrival."""
    store.register("sam")
    travel(store, ROUTE[:3], words_for(ROUTE[:3]))
    for at in range(1, store.reader("sam").head("sam").seq + 1):
        name = f"fork {at}"
        fork(store, "sam", at, name)
        other = made(f"other {at}")
        done = through(store, name, other, tmp_path)
        assert not other.reader("sam").head("sam").away
        assert done.streams[0].stream.to_seq in (at, at + 1)
        assert_same(store, other, name)
        say(other, "sam", Drafts(NOW + 50_000_000), 1)
        assert_whole(other.reader("sam"), "sam")
        assert_fine(other)


def test_an_agent_on_its_way_is_exported_as_it_was_before(store: Store, other: Store, tmp_path: Path) -> None:
    """A move that is not finished is no part of the export; a fork cut there waits until it is."""
    say(store, "sam", Drafts(), 3)
    log = store.open("sam", "test")
    store.begin_move(log, "sam", "shard-000")
    log.close()
    fork(store, "sam", 4, "tom")
    assert through(store, "sam", other, tmp_path).written == 3
    assert_whole(other.reader("sam"), "sam")
    with pytest.raises(BadInput, match="just moving"):
        save(store, "tom", tmp_path / "tom.everlog")
    assert not (tmp_path / "tom.everlog").exists()
    assert any(isinstance(event_of(record), AgentMoved) for record in store.reader("sam").read("sam"))


def test_what_was_erased_is_restored_as_erased(store: Store, other: Store, tmp_path: Path) -> None:
    """Tombstones go through with their digests, and the header says how many; sealing again changes nothing."""
    say(store, "sam", Drafts(), 5)
    log = store.open("sam", "test")
    log.append("sam", 5, [erasing(2, 3)])
    log.seal()
    log.close()
    done = through(store, "sam", other, tmp_path)
    assert done.contents.own.erased == 2
    assert_same(store, other, "sam")
    assert [record.text is None for record in other.reader("sam").read("sam", 1, 5)] == [
        False, True, True, False, False,
    ]  # fmt: skip
    assert_fine(other)


def test_an_older_export_does_not_bring_back_what_was_erased(store: Store, tmp_path: Path) -> None:
    """Restored over the agent that has erased since: the chain is equal, so it is there, and it stays erased."""
    say(store, "sam", Drafts(), 4)
    path = tmp_path / "sam.everlog"
    save(store, "sam", path)
    log = store.open("sam", "test")
    log.append("sam", 4, [erasing(1, 4)])
    log.seal()
    log.close()
    assert store.restore(path).written == 0
    assert all(record.text is None for record in store.reader("sam").read("sam", 1, 4))
    assert b"word" not in repr(list(store.reader("sam").read("sam"))).encode()


def test_an_erasure_that_was_not_carried_out_is_when_it_is_restored(store: Store, other: Store, tmp_path: Path) -> None:
    say(store, "sam", Drafts(), 4)
    log = store.open("sam", "test")
    log.append("sam", 4, [erasing(1, 3)])
    log.close()
    save(store, "sam", tmp_path / "sam.everlog")
    other.restore(tmp_path / "sam.everlog")
    assert [record.text is None for record in other.reader("sam").read("sam", 1, 4)] == [True, True, True, False]


def test_ids_and_kinds_of_any_age_are_taken(store: Store, other: Store, tmp_path: Path) -> None:
    """Records years older than the clock, of kinds that nobody knows; once restored, old ids are refused as ever."""
    store.register("sam")
    old = Drafts(NOW - 10**15)
    log = store.open("sam", "test")
    log.append("sam", 0, [old.one("was", recorded_at=NOW - 10**15), old.one(None, '{"x":1}', type="of_tomorrow")])
    log.append("sam", 2, [Drafts().one("ist — ünïcode 🦜")])
    log.close()
    through(store, "sam", other, tmp_path)
    assert_same(store, other, "sam")
    assert_fine(other)


def test_the_other_streams_that_are_asked_for_come_along(store: Store, other: Store, tmp_path: Path) -> None:
    for name in ("sam", "source:books"):
        store.register(name)
        log = store.open(name, "test")
        log.append(name, 0, Drafts(NOW + len(name)).some(2))
        log.close()
    contents = save(store, "sam", tmp_path / "x.everlog", sources=["books", "gone"], streams=["source:books"])
    assert contents.sources == ["books", "gone"] and contents.own.agent_id == "sam"
    other.restore(tmp_path / "x.everlog")
    assert (other.agents(), other.sources()) == (["sam"], ["books"])
    assert_same(store, other, "sam")
    assert list(other.reader("source:books").read("source:books"))[1].text == "word 1"


def test_an_export_is_a_prefix_of_what_is_written_meanwhile(store: Store, other: Store, tmp_path: Path) -> None:
    """The agent is open and goes on while it is exported: what it had when that began comes out, and nothing waits."""
    drafts = Drafts()
    store.register("sam")
    log = store.open("sam", "test")
    log.append("sam", 0, drafts.some(3))

    def moved(_done: int, _all: int) -> None:
        log.append("sam", log.head("sam").seq, drafts.some(1))

    contents = save(store, "sam", tmp_path / "sam.everlog", progress=moved)
    assert contents.records == 3 and log.head("sam").seq > 3
    other.restore(tmp_path / "sam.everlog")
    assert [record.text for record in other.reader("sam").read("sam")] == ["word 0", "word 1", "word 2"]


def test_a_file_that_is_there_is_not_overwritten_unasked(store: Store, tmp_path: Path) -> None:
    say(store, "sam", Drafts(), 1)
    path = tmp_path / "sam.everlog"
    path.write_text("mine")
    with pytest.raises(BadInput, match="--force"):
        save(store, "sam", path)
    assert path.read_text() == "mine"
    save(store, "sam", path, replace=True)
    assert ExportReader(path).contents.records == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["sam.everlog"]


def test_what_cannot_be_written_leaves_no_file(store: Store, tmp_path: Path) -> None:
    say(store, "sam", Drafts(), 1)
    with pytest.raises(StoreError, match="No such file or directory"):
        save(store, "sam", tmp_path / "no" / "sam.everlog")
    store.register("ann")
    with pytest.raises(BadInput, match="no records yet"):
        save(store, "ann", tmp_path / "ann.everlog")
    assert list(tmp_path.iterdir()) == []


def test_a_log_that_is_open_elsewhere_is_not_restored_into(tmp_path: Path) -> None:
    store, other = MemoryStore(), MemoryStore()
    say(store, "sam", Drafts(), 2)
    save(store, "sam", tmp_path / "sam.everlog")
    other.restore(tmp_path / "sam.everlog")
    drafts = Drafts(NOW + 5_000_000)
    say(store, "sam", drafts, 1)
    save(store, "sam", tmp_path / "more.everlog")
    log = other.open("sam", "everlog chat")
    with pytest.raises(PartitionBusy):
        other.restore(tmp_path / "more.everlog")
    assert log.head("sam").seq == 2


def test_other_tools_read_an_export_and_check_it(store: Store, tmp_path: Path) -> None:
    """DuckDB and pyarrow read the file under its own name; the checksum needs nothing but hashlib."""
    say(store, "sam", Drafts(), 4)
    fork(store, "sam", 3, "tom")
    path = tmp_path / "tom.everlog"
    save(store, "tom", path)
    rows = duckdb.sql(f"SELECT agent_id, seq, type, text FROM read_parquet('{path}') ORDER BY seq").fetchall()
    assert [(row[0], row[1]) for row in rows] == [("sam", 1), ("sam", 2), ("sam", 3), ("tom", 4)]
    assert rows[3][2] == "agent_forked" and rows[0][3].startswith("sam said")
    ids = duckdb.sql(f"SELECT event_id::VARCHAR, epoch_us(recorded_at) FROM read_parquet('{path}') ORDER BY seq")
    assert ids.fetchall() == [(record.event_id, record.recorded_at) for record in store.reader("tom").read("tom")]
    assert pq.read_table(path).column("seq").to_pylist() == [1, 2, 3, 4]
    header = json.loads(pq.read_metadata(path).metadata[b"everlog"])
    assert [stream["agent_id"] for stream in header["streams"]] == ["sam", "tom"]
    data = path.read_bytes()
    at = data.rindex(b"everlog.sha256\x18@") + 16
    assert hashlib.sha256(data[:at] + b"0" * 64 + data[at + 64 :]).hexdigest() == data[at : at + 64].decode()


def forged(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Change a file, and make its checksum right again."""
    data = change(path.read_bytes())
    at = data.rindex(MARK) + len(MARK)
    bare = data[:at] + b"0" * 64 + data[at + 64 :]
    path.write_bytes(data[:at] + hashlib.sha256(bare).hexdigest().encode() + data[at + 64 :])


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    """An export of a fork."""
    store = MemoryStore(0, now)
    say(store, "sam", Drafts(), 20)
    fork(store, "sam", 10, "tom")
    say(store, "tom", Drafts(NOW + 5_000_000), 5)
    save(store, "tom", tmp_path / "tom.everlog")
    return tmp_path / "tom.everlog"


def refused(path: Path) -> Exception:
    """Why a file is not restored; nothing of it is kept."""
    other = MemoryStore(0, now)
    with pytest.raises((CorruptLog, BadInput)) as caught:
        other.restore(path)
    assert other.agents() == []
    return caught.value


def test_any_flipped_bit_is_found(exported: Path) -> None:
    """Wherever it is, the first and last bytes included, and every one of the footer's last ones."""
    whole = exported.read_bytes()
    chance = random.Random(7)
    bits = {chance.randrange(8 * len(whole)) for _ in range(600)}
    bits.update(range(32), range(8 * (len(whole) - 40), 8 * len(whole)))
    at = 8 * whole.rindex(CHECKSUM.encode())
    bits.update(range(at, at + 8 * (len(MARK) + 64)))
    for bit in sorted(bits):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        exported.write_bytes(data)
        assert isinstance(refused(exported), CorruptLog), bit
    exported.write_bytes(whole)
    assert MemoryStore(0, now).restore(exported).written == 16


def test_a_file_that_was_cut_short_is_found(exported: Path) -> None:
    whole = exported.read_bytes()
    for length in (*range(0, len(whole), 97), *range(len(whole) - 20, len(whole))):
        exported.write_bytes(whole[:length])
        assert isinstance(refused(exported), CorruptLog) or length < 4
    exported.write_bytes(whole + b"more")
    assert "damaged" in str(refused(exported))


def test_a_file_that_is_no_export_is_told_so(tmp_path: Path) -> None:
    path = tmp_path / "x.everlog"
    with pytest.raises(BadInput, match="There is no file"):
        MemoryStore().restore(path)
    for content in (b"", b"hello", b"\0" * 1000):
        path.write_bytes(content)
        assert "no export of everlog" in str(refused(path))
    duckdb.sql(f"COPY (SELECT 1 AS one) TO '{path}' (FORMAT parquet)")
    assert "Parquet, but no export" in str(refused(path))
    with pytest.raises(StoreError, match="cannot be read"):
        MemoryStore().restore(tmp_path)


def test_a_newer_format_is_refused_as_such(exported: Path) -> None:
    forged(exported, lambda data: data.replace(b'{"format":1,', b'{"format":2,'))
    with pytest.raises(NewerFormat, match="has format 2, but this everlog knows formats up to 1"):
        MemoryStore().restore(exported)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b'"to_seq":16', b'"to_seq":15', "records are missing"),
        (b'"to_seq":16', b'"to_seq":17', "records are missing"),
        (b'"parent_seq":10', b'"parent_seq":11', "is not in it"),
        (b'"parent":"sam"', b'"parent":"tim"', "is not in it"),
        (b'"agent_id":"tom","store_id"', b'"agent_id":"tim","store_id"', "no records of 'tim'"),
        (b'"agent_id":"sam"', b'"agent_id":"tim"', "header does not name"),
        (b'"streams":[', b'"streamz":[', "header is not one"),
        (b'"chain":"', b'"chain":_', "header is not one"),
    ],
)
def test_a_header_that_does_not_fit_its_records_is_damage(exported: Path, old: bytes, new: bytes, said: str) -> None:
    """With a checksum that is right: the chain of each stream and its places are held against the records as well."""
    whole = exported.read_bytes()
    assert old in whole
    forged(exported, lambda data: data.replace(old, new, 1))
    error = refused(exported)
    assert isinstance(error, CorruptLog)
    assert said in str(error)


@pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.long)])
def test_a_restore_that_was_interrupted_anywhere_leaves_nobody_or_everybody(tmp_path: Path, every: int) -> None:
    """A crash before any change of the disk: each agent is there whole or not at all, nobody can open what is half
    there, and the same restore finishes it.
    """
    source = FileStore.create(OTHER, now, "other", shards=2, disk=FaultyDisk())
    source.register("sam")
    travel(source, ROUTE[:2], words_for(ROUTE[:2]))
    fork(source, "sam", 5, "tom")
    say(source, "tom", Drafts(NOW + 5_000_000), 2)
    path = tmp_path / "tom.everlog"
    save(source, "tom", path)
    whole = FaultyDisk()
    FileStore.create(ROOT, now, "sim", disk=whole)
    start = len(whole.log)
    FileStore(ROOT, now, disk=whole).restore(path, Counting())
    steps = [step for step in range(start, len(whole.log)) if whole.log[step][0] in CHANGES]
    assert len(steps) > 30
    for step in steps[::every]:
        crashing = FaultyDisk()
        FileStore.create(ROOT, now, "sim", disk=crashing)
        crashing.crash_at = step
        with pytest.raises(Crash):
            FileStore(ROOT, now, disk=crashing).restore(path, Counting())
        for disk in (crashing.power_loss(), crashing.killed()):
            store = FileStore(ROOT, now, disk=disk)
            for name in store.agents():
                assert_whole(store.reader(name), name)
                assert store.reader(name).head(name).seq == {"sam": 6, "tom": 8}[name]
            store.restore(path, Counting())
            assert_same(source, store, "tom")
            assert_fine(store)
            say(store, "tom", Drafts(NOW + 9_000_000), 1)
            assert not [path for path in disk.files if path.name == "restoring"]


def test_what_is_half_restored_cannot_be_opened_or_mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever makes an agent of that name, and whoever restores another export of it, is told what to do."""
    monkeypatch.setattr("store.restoring.RESTORE_COMMITS", 2)
    source = FileStore.create(OTHER, now, "other", disk=FaultyDisk())
    say(source, "sam", Drafts(), 6)
    first, second = tmp_path / "first.everlog", tmp_path / "second.everlog"
    save(source, "sam", first)
    say(source, "sam", Drafts(NOW + 5_000_000), 1)
    save(source, "sam", second)
    disk = FaultyDisk()
    store = FileStore.create(ROOT, now, "sim", disk=disk)
    whole = FaultyDisk()
    FileStore.create(ROOT, now, "sim", disk=whole).restore(first)
    writes = [step for step, (kind, name) in enumerate(whole.log) if kind == "write" and name.endswith(".open")]
    assert len(writes) == 3
    disk.crash_at = writes[2]
    with pytest.raises(Crash):
        store.restore(first)
    store = FileStore(ROOT, now, disk=disk.killed())
    assert store.agents() == []
    with pytest.raises(BadInput, match="restore of another export of 'sam' was interrupted"):
        store.restore(second)
    store.register("sam")
    with pytest.raises(UsageError, match="was interrupted"):
        store.open("sam", "test")
    store = FileStore(ROOT, now, disk=disk.killed())
    store.restore(first)
    store.restore(second)
    assert_same(source, store, "sam")
