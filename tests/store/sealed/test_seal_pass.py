"""Sealing in files: the disk before, during and after (P18, P19)."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from everlog.events import CorruptLog, Draft, Fenced, StoreError
from everlog.store import SCHEMA, FileStore, Partition, check
from everlog.store.partition.manifest import FileEntry, load
from tests.contract.log_contract import NOW, Drafts
from tests.contract.seal_contract import all_reads, erasing, saying
from tests.store.conftest import now
from tests.support.seeds import few_and_all, pick
from tests.support.store.faulty_disk import Crash, FaultyDisk

ROOT = Path("/sim")
SECRET = b"nobody must ever read this"


class Counting:
    """A `Derive`: the number of each agent's records, and its last text."""

    maker = "counting"

    def __call__(self, earlier: pa.Table | None, records: pa.Table) -> pa.Table:
        found: dict[str, tuple[int, str | None]] = {}
        for row in earlier.to_pylist() if earlier is not None else []:
            found[row["agent_id"]] = (row["seq"], row["said"])
        for row in records.to_pylist():
            count, _ = found.get(row["agent_id"], (0, None))
            assert row["seq"] == count + 1, "a state is derived from every record, in order"
            found[row["agent_id"]] = (row["seq"], row["text"])
        columns = sorted((agent, count, said) for agent, (count, said) in found.items())
        schema = pa.schema([("agent_id", pa.string()), ("seq", pa.int64()), ("said", pa.string())])
        return pa.table([[c[i] for c in columns] for i in range(3)], schema=schema)


def fill(store: FileStore, drafts: Drafts, rounds: int, *, seal: bool = False) -> None:
    log = store.open("sam", "fill")
    for _ in range(rounds):
        for agent_id in ("sam", "ann"):
            log.append(agent_id, log.head(agent_id).seq, saying(drafts, 2))
    if seal:
        log.seal(Counting())
    log.close()


def on_disk(disk: FaultyDisk, ending: str) -> list[str]:
    return sorted(path.name for path in disk.files if path.name.endswith(ending))


def sealed(where: Partition) -> list[FileEntry]:
    return [entry for entry in load(where).files if entry.kind == "sealed"]


def test_p19_any_tool_reads_a_sealed_file(store: FileStore, where: Partition, drafts: Drafts) -> None:
    """Pyarrow and DuckDB read the records without everlog: same columns, same types, sorted by agent and seq."""
    fill(store, drafts, 20, seal=True)
    (path,) = where.path.glob("*.parquet")
    table = pq.read_table(path)
    table = table.select(SCHEMA.names)  # figures stand after them
    assert table.schema.remove_metadata().equals(SCHEMA)
    assert table.sort_by([("commit", "ascending"), ("seq", "ascending")]).equals(store.reader("sam").table())
    with duckdb.connect() as db:
        rows = db.execute(
            "SELECT agent_id, seq, event_id::VARCHAR, epoch_us(recorded_at), text FROM read_parquet(?)", [str(path)]
        ).fetchall()
    records = [*store.reader("sam").read("ann"), *store.reader("sam").read("sam")]
    assert rows == [(r.agent_id, r.seq, r.event_id, r.recorded_at, r.text) for r in records]


def test_row_groups_prune(store: FileStore, where: Partition, drafts: Drafts, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read of a few records of one agent reads only the row groups that hold them."""
    monkeypatch.setattr("everlog.store.sealed.parquet_file.ROW_GROUP_ROWS", 8)
    fill(store, drafts, 40, seal=True)
    (entry,) = sealed(where)
    assert entry.parquet is not None and len(entry.parquet.groups) == 20
    path = where.path / entry.name
    whole = path.read_bytes()
    last = entry.parquet.groups[-1]
    path.write_bytes(whole[: last.offset] + bytes(last.bytes) + whole[last.offset + last.bytes :])
    reader = store.reader("sam")
    assert len(list(reader.read("ann"))) == 80
    assert [record.seq for record in reader.read("sam", 10, 12)] == [10, 11, 12]
    found = []
    with pytest.raises(CorruptLog, match="'sam' seq 73 to 'sam' seq 80"):
        found.extend(record.seq for record in reader.read("sam"))
    assert found == list(range(1, 73))
    assert not check(where).ok
    path.write_bytes(whole)
    assert check(where, deep=True, derive=Counting()).ok


def test_p19_small_files_are_merged_and_few_are_left(store: FileStore, where: Partition, drafts: Drafts) -> None:
    """After any number of seals a log has few files, and each read is unchanged."""
    for _ in range(12):
        fill(store, drafts, 2, seal=True)
        assert len(sealed(where)) <= 4
    names = {path.name for path in where.path.iterdir()}
    assert {name for name in names if name.endswith((".parquet", ".state", ".open"))} == load(where).names()
    report = check(where, deep=True, derive=Counting())
    assert report.ok and not report.notes
    assert [record.seq for record in store.reader("sam").read("ann")] == list(range(1, 49))


def test_p11_a_state_is_of_all_records_before_it_and_is_losable(
    store: FileStore, where: Partition, drafts: Drafts
) -> None:
    """The newest state counts every record; a state that is damaged, missing or of another maker is skipped, and made
    again.
    """
    fill(store, drafts, 6, seal=True)
    fill(store, drafts, 1, seal=True)
    reader = store.reader("sam")
    for agent_id in ("sam", "ann"):
        state = reader.state(agent_id, "counting")
        assert state is not None and state.seq == 14
        assert state.rows.column("seq").to_pylist() == [14]
        assert reader.state(agent_id, "another") is None
    assert reader.state("nobody", "counting") is None
    for path in where.path.glob("*.state"):
        path.write_bytes(path.read_bytes()[:-30] + bytes(30))
    assert reader.state("sam", "counting") is None
    assert len(list(reader.read("sam"))) == 14
    fill(store, drafts, 1, seal=True)
    state = reader.state("sam", "counting")
    assert state is not None and state.rows.column("seq").to_pylist() == [16]


def sealing_disk(*, erase: bool = False) -> tuple[FaultyDisk, list[object]]:
    """Return a disk with a sealed file and frames, and the results of all reads.

    With `erase`, a tail was cut and kept as well, and an owner died after recording the erasure of all of sam's
    messages.
    """
    disk = FaultyDisk()
    store = FileStore.create(ROOT, now, "sim", disk=disk)
    store.register("sam")
    drafts = Drafts()
    fill(store, drafts, 6, seal=True)
    fill(store, drafts, 1)
    if erase:
        path = next(path for path in disk.files if path.suffix == ".open")
        disk.files[path].content += SECRET + b" in a torn tail"
        log = store.open("sam", "erase")
        assert log.cut is not None
        log.append("sam", 14, [*saying_secrets(drafts), erasing(1, 16)])
        log._file.close()  # dies before it seals
        log._ownership.release()
    return disk, all_reads(store.reader("sam"))


def saying_secrets(drafts: Drafts) -> list[Draft]:
    return [drafts.one(text=SECRET.decode()) for _ in range(2)]


def moments(count: int | None, *, erase: bool) -> Iterator[tuple[FaultyDisk, list[object]]]:
    """Yield the disk after a crash at `count` operations of opening and sealing, or at each, and the results of reads
    before.
    """
    whole, before = sealing_disk(erase=erase)
    began = len(whole.log)
    FileStore(ROOT, now, disk=whole).open("sam", "seal").seal(Counting())
    assert len(whole.log) - began > 30
    yield whole, before
    for moment in pick(range(len(whole.log) - began), count, label=f"sealing {erase}"):
        disk, before = sealing_disk(erase=erase)
        disk.crash_at = len(disk.log) + moment
        with pytest.raises(Crash):
            FileStore(ROOT, now, disk=disk).open("sam", "seal").seal(Counting())
        disk.crash_at = None
        yield disk, before


@pytest.mark.parametrize("count", few_and_all(4, part="storage"))
def test_p19_a_crash_at_any_step_of_sealing_loses_and_doubles_nothing(count: int | None) -> None:
    """After a kill or a power loss at an operation, reads are unchanged, with and without a new owner, and the log can
    be sealed.
    """
    for disk, before in moments(count, erase=False):
        for after in (disk.killed(), disk.power_loss()):
            store = FileStore(ROOT, now, disk=after)
            assert all_reads(store.reader("sam")) == before
            log = store.open("sam", "next")
            log.seal(Counting())
            assert all_reads(log) == before
            log.close()
            report = check(store.partition(log.partition), deep=True, derive=Counting())
            assert report.ok and not report.notes


@pytest.mark.parametrize("count", few_and_all(4, part="storage"))
def test_p18_after_a_crash_at_any_step_the_next_owner_has_erased(count: int | None) -> None:
    """After a crash at any operation, opening the log leaves tombstones, and no file with the erased content."""
    for disk, _ in moments(count, erase=True):
        for after in (disk.killed(), disk.power_loss()):
            store = FileStore(ROOT, now, disk=after)
            log = store.open("sam", "next")
            assert [record.text for record in log.read("sam")] == [None] * 17
            assert len([record for record in log.read("ann") if record.text]) == 14
            assert not [path.name for path, inode in after.files.items() if SECRET in bytes(inode.content)]
            assert not [path.name for path in after.files if path.name.endswith(".cut")]
            log.seal(Counting())
            log.close()
            assert check(store.partition(log.partition), deep=True, derive=Counting()).ok


def test_p18_no_file_holds_what_was_erased(store: FileStore, where: Partition) -> None:
    """No byte below the store's folder has the content: in sealed files, frames, states and cut tails."""
    secret = "the canary of sam"
    drafts = Drafts()
    log = store.open("sam", "one")
    for seq in range(30):
        log.append("sam", seq, [drafts.one(text=f"{secret} {seq}", payload=f'{{"ref":"{secret}"}}')])
        log.append("ann", seq, [drafts.one(text=f"ann keeps {seq}")])
        if seq in (9, 19):
            log.seal(Counting())
    log.close()
    path = max(where.path.glob("*.open"))
    path.write_bytes(path.read_bytes() + secret.encode())  # a torn tail
    log = store.open("sam", "two")
    assert log.cut is not None
    everywhere = b"".join(path.read_bytes() for path in store.root.rglob("*") if path.is_file())
    assert secret.encode() in everywhere
    log.append("sam", 30, [erasing(1, 30)])
    assert log.seal(Counting()).erased == 30
    for path in store.root.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path
            if path.suffix in (".parquet", ".state"):
                columns = pq.read_table(path).select(["agent_id"] if path.suffix == ".state" else ["text", "payload"])
                for column in columns.columns:
                    assert not pc.any(pc.match_substring(column, secret)).as_py(), path
    state = log.state("sam", "counting")
    assert state is not None and state.rows.column("said").to_pylist() == [None]
    assert [record.text for record in log.read("ann")] == [f"ann keeps {seq}" for seq in range(30)]
    log.close()


@pytest.mark.parametrize("code", [28, 5, 24, 30])
def test_p10_a_fault_at_any_step_of_sealing_changes_nothing(code: int) -> None:
    """A full disk, an I/O error, too many files and a read-only disk are a StoreError with unchanged reads, and a later
    seal works.
    """
    places = {
        "create": ".parquet",
        "write": ".parquet",
        "sync": ".state",
        "sync_dir": "",
        "link": "manifest",
        "read": "",
    }
    for operation, name in places.items():
        disk, before = sealing_disk()
        store = FileStore(ROOT, now, disk=disk)
        log = store.open("sam", "seal")
        disk.fail(operation, code, name=name)
        with pytest.raises(StoreError):
            log.seal(Counting())
        assert all_reads(store.reader("sam")) == before
        log.close()
        log = store.open("sam", "next")
        log.seal(Counting())
        assert all_reads(log) == before
        log.close()


def test_p19_damage_in_an_old_file_does_not_prevent_sealing_new_frames(
    store: FileStore, where: Partition, drafts: Drafts
) -> None:
    """A rotten sealed file stays as it is and is reported by its readers; new frames are sealed without it."""
    fill(store, drafts, 6, seal=True)
    path = max(where.path.glob("*.parquet"))
    path.write_bytes(path.read_bytes()[:200] + b"rot" + path.read_bytes()[203:])
    fill(store, Drafts(NOW + 1_000_000), 3, seal=True)
    assert len(sealed(where)) == 2
    assert [record.seq for record in store.reader("sam").read("sam", 13)] == [13, 14, 15, 16, 17, 18]
    with pytest.raises(CorruptLog):
        list(store.reader("sam").read("sam"))


def test_p18_a_file_that_a_fenced_owner_left_is_erased_with_the_rest(store: FileStore, where: Partition) -> None:
    """A file of an owner that was fenced while sealing is removed when the newer owner erases."""
    drafts = Drafts()
    first = store.open("sam", "first")
    first.append("sam", 0, saying_secrets(drafts))
    second = store.open("sam", "second", take_over=True)
    (where.path / "000000000001-000000000001-e000001-000002.parquet").write_bytes(SECRET)
    second.append("sam", 2, [erasing(1, 2)])
    second.seal()
    assert not [path for path in where.path.iterdir() if SECRET in path.read_bytes()]
    with pytest.raises(Fenced):
        first.seal()
    second.close()


def test_p11_a_state_comes_with_the_next_sealing_after_an_upgrade(
    store: FileStore, where: Partition, drafts: Drafts
) -> None:
    """If no state can be used, sealing makes one even without new frames; once, and not again."""
    fill(store, drafts, 6)
    log = store.open("sam", "old")
    assert log.seal().files == 1
    assert log.state("sam", "counting") is None
    assert log.seal(Counting()).files == 1
    assert log.state("sam", "counting") is not None
    log.append("sam", 12, [erasing(1, 2)])
    log.seal(Counting())
    for _ in range(3):
        assert log.seal(Counting()).files == 0
    for path in where.path.glob("*.state"):
        path.write_bytes(bytes(len(path.read_bytes())))
    assert check(where).notes
    assert log.seal(Counting()).files > 0
    assert not check(where).notes
    log.close()
