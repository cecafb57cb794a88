"""Following a partition: every record is read once, in order, and nothing is read twice."""

import random
from pathlib import Path

import pytest

from everlog.events import CorruptLog
from everlog.store import FileStore, Partition, RealDisk
from everlog.store.log.log_follower import LogFollower
from tests.contract.log_contract import Drafts
from tests.store.conftest import now


class Counting(RealDisk):
    """The real disk, with a count of the bytes that are read from files of frames."""

    def __init__(self) -> None:
        self.bytes = 0

    def read(self, path: Path, offset: int = 0, length: int | None = None) -> bytes:
        data = super().read(path, offset, length)
        self.bytes += len(data) if path.suffix == ".open" else 0
        return data


def read(follower: LogFollower, commit: int) -> list[tuple[str, int, int]]:
    found = []
    for table in follower.since(commit):
        columns = (table.column(name).to_pylist() for name in ("agent_id", "seq", "commit"))
        found += list(zip(*columns, strict=True))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_every_record_comes_once_whatever_the_owner_does(tmp_path: Path, seed: int) -> None:
    """After appends, seals, new files and new owners in any order, the follower has read the records that a reader
    reads.
    """
    chance = random.Random(seed)
    store = FileStore.create(tmp_path / "store", now, "tests", segment_bytes_max=3000)
    store.register("sam")
    log, drafts = store.open("sam", "test"), Drafts()
    partition = store.partition(log.partition)
    follower, commit, seen = LogFollower(partition), 0, []
    for _ in range(60):
        act = chance.choice(["append", "append", "append", "seal", "reopen", "restart", "nothing"])
        if act == "append":
            log.append("sam", log.head("sam").seq, drafts.some(chance.randint(1, 3)))
        elif act == "seal":
            log.seal()
        elif act == "reopen":
            log.close()
            log = store.open("sam", "again")
        elif act == "restart":
            follower = LogFollower(partition)
        if chance.random() < 0.6:
            new = read(follower, commit)
            assert not follower.has_more(new[-1][2] if new else commit)
            seen += new
            commit = seen[-1][2] if seen else 0
    seen += read(follower, commit)
    table = store.reader("sam").table()
    columns = (table.column(name).to_pylist() for name in ("agent_id", "seq", "commit"))
    assert seen == list(zip(*columns, strict=True))
    log.close()


def test_what_was_read_is_not_read_again(tmp_path: Path) -> None:
    """The cost of following is that of the new records; without new records no file is read."""
    disk = Counting()
    store = FileStore.create(tmp_path / "store", now, "tests", disk=disk)
    store.register("sam")
    log, drafts = store.open("sam", "test"), Drafts()
    follower = LogFollower(store.partition(log.partition))
    for number in range(50):
        log.append("sam", number, drafts.some(1))
        assert follower.has_more(number)
        disk.bytes = 0
        assert len(read(follower, number)) == 1
        assert 0 < disk.bytes < 2000
        disk.bytes = 0
        assert not follower.has_more(number + 1) and disk.bytes == 0
    log.close()


@pytest.mark.parametrize("seed", range(6))
def test_a_follower_that_skips_to_the_end_reads_only_what_comes_later(tmp_path: Path, seed: int) -> None:
    """`skip_to_end` returns the last commit of the log, however it is stored, and `since` continues after it: whatever
    the owner does, later records are read once and earlier ones never.
    """
    chance = random.Random(seed)
    store = FileStore.create(tmp_path / "store", now, "tests", segment_bytes_max=3000)
    store.register("sam")
    follower = LogFollower(store.partition(store.reader("sam").partition))
    assert follower.skip_to_end() == 0
    log, drafts = store.open("sam", "test"), Drafts()
    for _ in range(12):
        for _ in range(chance.randint(0, 4)):
            act = chance.choice(["append", "append", "seal", "reopen"])
            if act == "append":
                log.append("sam", log.head("sam").seq, drafts.some(2))
            elif act == "seal":
                log.seal()
            else:
                log.close()
                log = store.open("sam", "again")
        if chance.random() < 0.3:
            follower = LogFollower(store.partition(log.partition))
        table = store.reader("sam").table()
        end = table.column("commit")[-1].as_py() if table.num_rows else 0
        assert follower.skip_to_end() == end
        assert not follower.has_more(end)
        assert read(follower, end) == []
        (later,) = {record.commit for record in log.append("sam", log.head("sam").seq, drafts.some(2)).records}
        if chance.random() < 0.5:
            log.seal()
        assert follower.has_more(end)
        assert {commit for _, _, commit in read(follower, end)} == {later}
    log.close()


def test_skipping_reads_no_closed_file(tmp_path: Path) -> None:
    """The end of a log is found without reading what is sealed."""
    disk = Counting()
    store = FileStore.create(tmp_path / "store", now, "tests", disk=disk)
    store.register("sam")
    log, drafts = store.open("sam", "test"), Drafts()
    for number in range(20):
        log.append("sam", number, drafts.some(1))
    log.seal()
    disk.bytes = 0
    assert LogFollower(store.partition(log.partition)).skip_to_end() == 20
    assert disk.bytes == 0
    log.close()


def test_a_torn_tail_is_passed_over_until_it_is_whole(
    store: FileStore, where: Partition, filled: object, open_path
) -> None:
    """A half frame is no commit; when the rest of the frame is there, the commit is read."""
    path = open_path()
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    follower = LogFollower(where)
    assert read(follower, 0)[-1][2] == 5
    path.write_bytes(whole)
    assert [commit for _, _, commit in read(follower, 5)] == [6, 6]


def test_damage_before_the_end_is_an_error(store: FileStore, where: Partition, filled: object, open_path) -> None:
    """A bad frame before good ones is not a torn tail: the good ones are not skipped without an error."""
    path = open_path()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    follower = LogFollower(where)
    with pytest.raises(CorruptLog, match="is damaged at byte"):
        read(follower, 0)


def test_a_position_that_was_given_up_is_read_again(store: FileStore, where: Partition, filled: object) -> None:
    """A follower that failed to process a batch reads it again from its old position."""
    follower = LogFollower(where)
    next(follower.since(0))
    assert follower.has_more(2)
    assert [commit for _, _, commit in read(follower, 2)] == [3, 3, 4, 4, 5, 5, 6, 6]
