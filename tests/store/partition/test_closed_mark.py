"""The mark of a clean close: commits that are lost from the end of the open file are told from a torn write."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from everlog.events import CorruptLog, Fenced, Record, StoreError
from everlog.store import FileStore, Partition, check
from everlog.store.partition.closed_mark import decode_mark, encode_mark
from everlog.store.partition.frame import HEADER_BYTES
from everlog.store.partition.segment import FrameScan
from tests.contract.log_contract import NOW, Drafts
from tests.store.conftest import now
from tests.support.seeds import few_and_all, pick
from tests.support.store.faulty_disk import Crash, FaultyDisk
from tests.support.store.memory_disk_store import AGENT, ROOT, partition_on

OpenPath = Callable[[], Path]


def ends_of(path: Path, where: Partition) -> list[int]:
    """Return the offsets at which the frames of a file end."""
    return [frame.end for frame in FrameScan(path.read_bytes(), where.salt(path.name), 1, str(path))]


def made_on(disk: FaultyDisk) -> FileStore:
    """Return a new store on the disk, with sam registered."""
    store = FileStore.create(ROOT, now, "sim", disk=disk)
    store.register(AGENT)
    return store


def marks(where: Partition) -> list[str]:
    return sorted(path.name for path in where.path.glob("closed-*"))


@pytest.mark.parametrize("commits", [1, 2, 5])
def test_lost_whole_frames_are_an_error_and_never_look_whole(
    store: FileStore, where: Partition, filled: list[list[Record]], open_path: OpenPath, commits: int
) -> None:
    """A file cut at the border of a frame after a clean close is damage: a check fails, a reader warns, the next owner
    names the lost commits, and a note stays.
    """
    path = open_path()
    path.write_bytes(path.read_bytes()[: [0, *ends_of(path, where)][6 - commits]])
    said = f"{commits} acknowledged commits ({7 - commits} to 6)" if commits > 1 else "1 acknowledged commit (6)"
    (error,) = check(where).errors
    assert said in error and "backup" in error and "torn" in error
    reader = store.reader("sam")
    assert reader.table().num_rows == 12 - 2 * commits
    assert reader.damage is not None and said in str(reader.damage)
    log = store.open("sam", "after")
    assert log.cut is not None and log.cut.bytes == 0 and log.cut.lost is not None
    assert (log.cut.lost.first, log.cut.lost.last) == (7 - commits, 6)
    log.append("sam", log.head("sam").seq, Drafts(NOW + 1000).some(1))
    log.close()
    report = check(where)
    assert report.ok
    assert any(f"commits {7 - commits} to 6" in note for note in report.notes)
    again = store.open("sam", "again")
    assert again.cut is None
    again.close()
    assert marks(where) == ["closed-000001.lost", "closed-000003"]


def test_the_loss_of_every_commit_is_an_error_and_no_new_beginning(
    store: FileStore, where: Partition, filled: list[list[Record]], open_path: OpenPath
) -> None:
    """A file that lost all of its frames is named by the check, and a registered agent in it does not begin again."""
    open_path().write_bytes(b"")
    (error,) = check(where).errors
    assert "6 acknowledged commits (1 to 6)" in error and "No commit is left" in error
    with pytest.raises(CorruptLog, match="has begun"):
        store.open("sam", "after")


@pytest.mark.parametrize("count", few_and_all(20, part="storage"))
def test_any_damage_of_the_last_frame_is_loss_and_never_a_torn_write(
    store: FileStore, where: Partition, filled: list[list[Record]], open_path: OpenPath, count: int | None
) -> None:
    """After a clean close each flipped bit and each truncation of the last frame is reported as a lost commit."""
    path = open_path()
    whole = path.read_bytes()
    start = ends_of(path, where)[-2]
    bits = [*range(HEADER_BYTES * 8), *range(HEADER_BYTES * 8, (len(whole) - start) * 8, 7)]
    damaged = []
    for bit in pick(bits, count, label="mark bits"):
        flipped = bytearray(whole)
        flipped[start + bit // 8] ^= 1 << bit % 8
        damaged.append(bytes(flipped))
    damaged += [whole[:end] for end in pick(range(start, len(whole)), count, label="mark ends")]
    damaged.append(whole[:start] + bytes(len(whole) - start))
    for content in damaged:
        path.write_bytes(content)
        assert any("1 acknowledged commit (6)" in error for error in check(where).errors)
        reader = store.reader("sam")
        reader.table()
        assert reader.damage is not None and reader.damage.lost is not None
    path.write_bytes(whole)
    assert check(where).ok


def test_a_mark_stays_true_while_later_owners_append(
    store: FileStore, where: Partition, filled: list[list[Record]], open_path: OpenPath
) -> None:
    """The mark of an earlier owner still holds for its part of the file when a later owner was killed, and no more."""
    path = open_path()
    closed = len(path.read_bytes())
    killed = store.open("sam", "killed")
    killed.append("sam", 8, Drafts(NOW + 1000).some(1))
    assert marks(where) == ["closed-000001"]
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    report = check(where)
    assert len(report.errors) == 1 and "torn tail" in report.errors[0]
    path.write_bytes(whole[: closed - 5])
    (error,) = check(where).errors
    assert "1 acknowledged commit (6)" in error


def test_a_sealed_file_makes_the_mark_void_and_the_next_close_removes_it(
    store: FileStore, where: Partition, filled: list[list[Record]]
) -> None:
    """After sealing no mark is left to hold: there is no frame, and the check is clean."""
    log = store.open("sam", "seal")
    log.seal()
    assert check(where).ok
    log.close()
    assert marks(where) == []
    log = store.open("sam", "append")
    log.append("sam", 8, Drafts(NOW + 1000).some(1))
    log.close()
    assert marks(where) == ["closed-000003"]
    assert check(where).ok


@pytest.mark.parametrize("count", few_and_all(30, part="storage"))
def test_an_invalid_mark_is_a_note_and_never_an_error(
    store: FileStore, where: Partition, filled: list[list[Record]], count: int | None
) -> None:
    """A mark that was torn, flipped or emptied at any place is ignored, and the next close replaces it."""
    path = where.path / "closed-000001"
    whole = path.read_bytes()
    assert decode_mark(whole) is not None
    torn = [whole[:end] for end in range(len(whole))]
    for bit in pick(range(len(whole) * 8), count, label="torn marks"):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        torn.append(bytes(flipped))
    for content in [*torn, bytes(len(whole))]:
        path.write_bytes(content)
        report = check(where)
        assert report.ok
        assert any("closed-000001 is no valid mark" in note for note in report.notes), content
    log = store.open("sam", "after")
    assert log.cut is None
    log.close()
    assert marks(where) == ["closed-000002"]
    assert check(where).notes == []


def test_a_mark_is_never_believed_over_frames_of_a_later_epoch(
    store: FileStore, where: Partition, filled: list[list[Record]], open_path: OpenPath
) -> None:
    """A mark that comes back after a later owner appended other frames is no error, and no loss is reported."""
    path, mark = open_path(), where.path / "closed-000001"
    content = mark.read_bytes()
    path.write_bytes(path.read_bytes()[: ends_of(path, where)[3]])
    mark.unlink()
    log = store.open("sam", "unaware")
    for number in range(4):
        log.append("sam", log.head("sam").seq, Drafts(NOW + 1000 * (number + 1)).some(1))
    mark.write_bytes(content)
    assert check(where).ok
    reader = store.reader("sam")
    reader.table()
    assert reader.damage is None
    log.close()
    assert store.open("sam", "after").cut is None


def test_other_frames_at_the_place_of_the_mark_are_an_error(
    store: FileStore, where: Partition, filled: list[list[Record]], open_path: OpenPath
) -> None:
    """A file whose frames are whole but are not those that were closed is damage."""
    path = open_path()
    mark = decode_mark((where.path / "closed-000001").read_bytes())
    assert mark is not None
    store.open("sam", "killed").append("sam", 8, Drafts(NOW + 1000).some(1))
    assert len(path.read_bytes()) > mark.bytes and check(where).ok
    (where.path / "closed-000001").write_bytes(encode_mark(replace(mark, frame=mark.frame ^ 1, epoch=9)))
    (error,) = check(where).errors
    assert "other frames" in error and "backup" in error


def test_a_fenced_or_poisoned_writer_leaves_no_mark() -> None:
    """A writer that does not know which of its bytes count says nothing about them when it is closed."""
    disk = FaultyDisk()
    store = made_on(disk)
    first = store.open(AGENT, "first")
    first.append(AGENT, 0, Drafts().some(1))
    second = store.open(AGENT, "second", take_over=True)
    with pytest.raises(Fenced):
        first.append(AGENT, 1, Drafts(NOW + 1000).some(1))
    first.close()
    disk.fail("sync", 5)
    with pytest.raises(StoreError):
        second.append(AGENT, 1, Drafts(NOW + 2000).some(1))
    second.close()
    assert not [path.name for path in disk.files if path.name.startswith("closed-")]


def test_a_close_syncs_nothing_and_an_append_does_nothing_for_the_mark() -> None:
    """The mark costs one small file and two names at the close, and no sync; an append does what it did before."""
    disk = FaultyDisk()
    store = made_on(disk)
    log = store.open(AGENT, "count")
    drafts = Drafts()
    log.append(AGENT, 0, drafts.some(1))  # the first append of an agent also removes its mark in the register
    start = len(disk.log)
    log.append(AGENT, 1, drafts.some(1))
    assert [operation for operation, _ in disk.log[start:]] == ["write", "sync", "exists", "read"]
    start = len(disk.log)
    log.close()
    assert [operation for operation, _ in disk.log[start:]] == ["create", "write", "link", "remove", "names"]


def test_a_failing_disk_at_any_step_of_the_close_is_not_the_callers_concern() -> None:
    """The close succeeds when the mark cannot be written, and the log opens whole."""
    for operation in ("create", "write", "link", "remove", "names"):
        disk = FaultyDisk()
        store = made_on(disk)
        log = store.open(AGENT, "full")
        log.append(AGENT, 0, Drafts().some(2))
        disk.fail(operation, 28, name="" if operation == "names" else "closed-")
        log.close()
        after = store.open(AGENT, "after")
        assert after.cut is None
        assert after.head(AGENT).seq == 2
        after.close()
        assert check(partition_on(disk)).ok


def test_a_crash_at_any_step_of_the_close_loses_nothing_and_invents_no_loss() -> None:
    """Killed, or without power, at each operation of a second close: the next owner has every record, and no mark makes
    it report a loss.
    """
    for step in range(40):
        for life in range(8):
            disk = FaultyDisk()
            store = made_on(disk)
            for number in range(2):
                log = store.open(AGENT, "life")
                log.append(AGENT, 2 * number, Drafts(NOW + 1000 * number).some(2))
                if number:
                    disk.crash_at = len(disk.log) + step
                try:
                    log.close()
                except Crash:
                    pass
            over = disk.crash_at is not None and len(disk.log) < disk.crash_at
            disk = disk.killed() if not life else disk.power_loss(random.Random(life))
            assert check(partition_on(disk)).errors == []
            log = FileStore(ROOT, now, disk=disk).open(AGENT, "after")
            assert log.cut is None
            assert log.head(AGENT).seq == 4
            log.close()
            folder = partition_on(disk).path
            assert not [name for name in disk.names(folder) if name.endswith((".tmp", ".lost"))]
        if over:
            return
    raise AssertionError("the close has no end")


def test_a_crash_at_any_step_of_the_opening_after_a_loss_keeps_the_report_of_it() -> None:
    """The loss is reported to one that lives, or the check has it, however often the next owners die."""
    for step in range(200):
        disk = FaultyDisk()
        store = made_on(disk)
        log = store.open(AGENT, "life")
        for number in range(3):
            log.append(AGENT, number, Drafts(NOW + 1000 * number).some(1))
        log.close()
        for inode in disk.files.values():
            inode.durable = bytes(inode.content)
        path = next(path for path in disk.files if path.suffix == ".open")
        disk.sync_dir(path.parent)
        disk.files[path].content = disk.files[path].content[:-5]
        disk.files[path].durable = bytes(disk.files[path].content)
        disk.crash_at = len(disk.log) + step
        try:
            told = FileStore(ROOT, now, disk=disk).open(AGENT, "dies").cut
            disk.crash_at = None
        except Crash:
            told = None
        over = told is not None
        for after in (disk.killed(), disk.power_loss()):
            report = check(partition_on(after))
            assert any("acknowledged commit" in text for text in [*report.errors, *report.notes]), step
            log = FileStore(ROOT, now, disk=after).open(AGENT, "lives")
            assert log.head(AGENT).seq == 2
            assert (log.cut is not None and log.cut.lost is not None) or any("were lost" in n for n in report.notes)
            log.append(AGENT, 2, Drafts(NOW + 9000).some(1))
            log.close()
            report = check(partition_on(after))
            assert report.ok and any("were lost" in note for note in report.notes)
        if over:
            return
    raise AssertionError("the opening has no end")
