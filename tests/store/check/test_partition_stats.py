"""Statistics of a partition are counted from the manifest and the frames, without reading a sealed file."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from everlog.events import CorruptLog, Record, RecordsErased, draft
from everlog.projections import DERIVER
from everlog.store import FileStore, Partition, PartitionStats, RealDisk, stats
from tests.contract.log_contract import NOW, Drafts
from tests.store.conftest import now


def words(records: Sequence[Record]) -> int:
    return sum(len((record.text or "").encode()) + len(record.payload.encode()) for record in records)


def everything(store: FileStore) -> list[Record]:
    reader = store.reader("sam")
    return [record for agent_id in reader.agents() for record in reader.read(agent_id)]


def agrees(store: FileStore, where: Partition) -> PartitionStats:
    """Check the statistics against the records and the files. Return the statistics."""
    found = stats(where)
    records = everything(store)
    assert found.records == len(records)
    assert found.text_bytes == words(records)
    assert found.commits == max((record.commit for record in records), default=0)
    assert found.agents == len({record.agent_id for record in records})
    sizes = [path.stat().st_size for path in where.path.iterdir()]
    assert (found.all.files, found.all.bytes) == (len(sizes), sum(sizes))
    return found


def test_a_partition_that_was_never_opened_holds_nothing(store: FileStore, where: Partition) -> None:
    """Without manifest and files there is no amplification."""
    found = agrees(store, where)
    assert found == PartitionStats()
    assert found.amplification is None


@pytest.mark.usefixtures("filled")
def test_every_form_is_counted(store: FileStore, where: Partition, drafts: Drafts) -> None:
    """The same records are counted in open, sealed, mixed, compacted and erased form, and each file under its kind."""
    found = agrees(store, where)
    assert found.open.bytes == found.all.bytes - found.other.bytes
    log = store.open("sam", "seal")
    log.seal(DERIVER)
    found = agrees(store, where)
    assert (found.sealed.files, found.states.files, found.open.bytes) == (1, 1, 0)
    log.append("new", 0, drafts.some(3))
    found = agrees(store, where)
    assert found.open.bytes > 0
    log.seal(DERIVER)
    head = log.head("sam").seq
    erased = draft(RecordsErased(from_seq=1, to_seq=head), event_id=drafts.some(1)[0].event_id, recorded_at=NOW,
                   turn=0, step=0)  # fmt: skip
    log.append("sam", head, [erased])
    log.seal()
    agrees(store, where)
    log.close()
    agrees(store, where)


def test_closed_frames_are_counted(tmp_path: Path, drafts: Drafts) -> None:
    """Files that were closed at their maximum size, and are not sealed yet, are counted."""
    store = FileStore.create(tmp_path / "small", now, "tests", segment_bytes_max=1)
    store.register("sam")
    log = store.open("sam", "fill")
    for seq in range(0, 6, 2):
        log.append("sam", seq, drafts.some(2))
    log.close()
    found = agrees(store, store.partition(store.reader("sam").partition))
    assert (found.frames.files, found.open.files) == (2, 1)


@pytest.mark.usefixtures("filled")
def test_leftovers_count_as_other(store: FileStore, where: Partition, open_path) -> None:
    """A cut tail and unnamed files count as other bytes; a torn tail counts in its file, without records."""
    (where.path / "000000000001-e000001.open.77.cut").write_bytes(b"x" * 100)
    with open_path().open("ab") as file:
        file.write(b"torn")
    before = stats(where)
    assert agrees(store, where) == before
    assert before.other.bytes > 100


@pytest.mark.usefixtures("filled")
def test_a_sealed_file_is_not_read(store: FileStore, where: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
    """The manifest has the facts of a sealed file, so only bytes beyond the file's end would be read."""
    log = store.open("sam", "seal")
    log.seal(DERIVER)
    log.close()
    read: list[int] = []

    def counted(self: RealDisk, path: Path, offset: int = 0, length: int | None = None) -> bytes:
        data = real(self, path, offset, length)
        read.append(len(data) if path.suffix in (".parquet", ".state") else 0)
        return data

    real = RealDisk.read
    monkeypatch.setattr(RealDisk, "read", counted)
    stats(where)
    assert sum(read) == 0


@pytest.mark.usefixtures("filled")
def test_a_lost_file_is_damage_and_a_lost_state_is_none(store: FileStore, where: Partition) -> None:
    """A missing file of records is reported with its name; a missing state can be made again."""
    log = store.open("sam", "seal")
    log.seal(DERIVER)
    log.close()
    (state,) = where.path.glob("*.state")
    state.unlink()
    assert agrees(store, where).states.files == 0
    (sealed,) = where.path.glob("*.parquet")
    sealed.unlink()
    with pytest.raises(CorruptLog, match=sealed.name):
        stats(where)


@pytest.mark.usefixtures("filled")
def test_sealed_while_it_is_counted(store: FileStore, where: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the owner replaces files between the reading of the manifest and of the files, the partition is counted
    again.
    """
    log = store.open("sam", "seal")
    real = RealDisk.read
    done: list[bool] = []

    def sealing(self: RealDisk, path: Path, offset: int = 0, length: int | None = None) -> bytes:
        if path.suffix == ".open" and not done:
            done.append(True)
            log.seal(DERIVER)
        return real(self, path, offset, length)

    monkeypatch.setattr(RealDisk, "read", sealing)
    found = stats(where)
    monkeypatch.undo()
    expected = agrees(store, where)  # before the log is closed, which changes its marks
    log.close()
    assert done
    assert found == expected


@pytest.mark.usefixtures("filled")
def test_a_sum_adds_up(where: Partition) -> None:
    """The sum of two equal partitions has twice each number, and the same amplification."""
    one = stats(where)
    two = PartitionStats.sum([one, one])
    assert (two.records, two.all.files, two.all.bytes) == (2 * one.records, 2 * one.all.files, 2 * one.all.bytes)
    assert two.amplification == one.amplification
    assert PartitionStats.sum([]) == PartitionStats()
