"""P2, exhaustively: the file is cut at every byte, and the repair dies after every change of the disk."""

import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from everlog.store import Append, FileStore, Head, check
from tests.contract.log_contract import NOW, Drafts
from tests.support import seeds
from tests.support.store.faulty_disk import FaultyDisk
from tests.support.store.memory_disk_store import (
    AGENT,
    append,
    begun,
    cuts,
    ends_of,
    fill,
    open_files,
    partition_on,
    store_on,
    unbegin,
)

APPENDS = [("sam", 1), ("ann", 1), ("sam", 2), ("ann", 1), ("sam", 1), ("ann", 3)]
CHANGES = {"create", "write", "sync", "truncate", "link", "remove", "sync_dir"}
KIB64 = 64 * 1024
SECOND = 1_000_000

Heads = dict[str, Head]


class Filled:
    """A partition of one file, with the expected content of each prefix of its frames."""

    def __init__(self, frames: int) -> None:
        self.disk, store = begun()
        log = store.open(AGENT, "fill")
        drafts = Drafts()
        self.heads: list[Heads] = [{"sam": log.head("sam"), "ann": log.head("ann")}]
        for number, (agent_id, count) in enumerate(APPENDS[:frames]):
            group = [Append(agent_id, log.head(agent_id).seq, drafts.some(count))]
            if number == 1:  # one frame of two commits
                group.append(Append("sam", log.head("sam").seq, drafts.some(1)))
            log.append_group(group)
            self.heads.append({"sam": log.head("sam"), "ann": log.head("ann")})
        log.close()
        ((self.path, inode),) = open_files(self.disk)
        self.whole = bytes(inode.content)
        self.ends = ends_of(self.disk, self.path)

    def cut(self, length: int) -> FaultyDisk:
        """Return a disk with only the first `length` bytes of the file."""
        disk = self.disk.killed()
        disk.files[self.path].content = bytearray(self.whole[:length])
        disk.files[self.path].durable = self.whole[:length]
        if not self.frames_in(length):
            unbegin(disk)
        return disk

    def frames_in(self, length: int) -> int:
        """Return the number of frames that end within the first `length` bytes."""
        return sum(end <= length for end in self.ends) - 1


def deaths(disk: FaultyDisk) -> Iterator[FaultyDisk]:
    """Open the log on `disk`. Yield the disk as each death during the opening would leave it: of the process, and of
    the machine.
    """
    seen = {disk.state()}
    found: list[FaultyDisk] = []
    watched = disk.killed()
    step = watched.step

    def look(operation: str, path: Path) -> int | None:
        changed = not watched.log or watched.log[-1][0] in CHANGES
        for after in (watched.killed(), watched.power_loss()) if changed else ():
            if (state := after.state()) not in seen:
                seen.add(state)
                found.append(after)
        return step(operation, path)

    watched.step = look  # type: ignore[method-assign]
    store_on(watched).open(AGENT, "dies")
    yield from found


def assert_recovers(disk: FaultyDisk, heads: Heads, tail: bytes) -> None:
    """Check that the next owner has exactly the whole commits, and that the cut tail is kept next to the file."""
    log = store_on(disk).open(AGENT, "after")
    assert {agent_id: log.head(agent_id) for agent_id in heads} == heads
    assert log.agents() == sorted(agent_id for agent_id, head in heads.items() if head.seq)
    log.close()
    assert tail in cuts(disk) if tail else not any(cuts(disk))


def cut_at(filled: Filled, lengths: Iterable[int]) -> int:
    """Cut the file at each length, and let the repair die at each of its changes. Return the number of recovered
    disks.
    """
    recovered = 0
    for length in lengths:
        frames = filled.frames_in(length)
        tail = filled.whole[filled.ends[frames] : length]
        disk = filled.cut(length)
        for number, after in enumerate((disk.killed(), *deaths(disk))):
            assert_recovers(after, filled.heads[frames], tail)
            recovered += 1
            if number % 7 == length % 7:
                assert check(partition_on(after)).ok
    return recovered


def bytes_of(filled: Filled) -> Sequence[int]:
    """Return every length at which the file may be cut."""
    return range(len(filled.whole) + 1)


def test_p2_some_bytes_and_every_death_of_the_repair() -> None:
    """At some lengths of the file, wherever its repair dies, the next owner has the whole commits."""
    filled = Filled(2)
    lengths = {*seeds.pick(bytes_of(filled), 60, label="bytes"), *filled.ends}
    assert cut_at(filled, sorted(lengths)) > 5 * len(lengths)


@pytest.mark.long
@pytest.mark.storage
@pytest.mark.parametrize("frames", [2, len(APPENDS)])
def test_p2_every_byte_and_every_death_of_the_repair(frames: int) -> None:
    """The same holds for every length of a file of two frames, and of six."""
    filled = Filled(frames)
    assert cut_at(filled, bytes_of(filled)) > 9 * len(filled.whole)


@pytest.mark.parametrize("every", [29, pytest.param(1, marks=[pytest.mark.long, pytest.mark.storage])])
def test_p2_a_reader_sees_the_whole_commits_at_every_byte(every: int) -> None:
    """For a file that is cut at any byte, a reader returns exactly the whole commits, and the length of the torn
    tail.
    """
    filled = Filled(3)
    first = seeds.chance("a reader").randrange(every)
    for length in sorted({*bytes_of(filled)[first::every], *filled.ends}):
        frames = filled.frames_in(length)
        reader = store_on(filled.cut(length)).reader(AGENT)
        assert {agent_id: reader.head(agent_id) for agent_id in ("sam", "ann")} == filled.heads[frames]
        assert (reader.damage.bytes if reader.damage else 0) == length - filled.ends[frames]


def test_p2_recovery_is_idempotent_and_the_log_continues() -> None:
    """After a repair, a second opening changes no record and cuts nothing, and the next append has the next commit
    number.
    """
    filled = Filled(3)
    for length in range(0, len(filled.whole) + 1, 97):
        disk = filled.cut(length)
        store_on(disk).open(AGENT, "repairs").close()
        before = [bytes(inode.content) for _, inode in open_files(disk)]
        log = store_on(disk).open(AGENT, "again")
        assert log.cut is None
        assert [bytes(inode.content) for _, inode in open_files(disk)] == before
        seq = log.head("sam").seq
        records = append(log, "sam", Drafts(NOW + SECOND).some(2))
        assert [record.seq for record in records] == [seq + 1, seq + 2]
        assert check(partition_on(disk)).ok


SIZES = st.sampled_from([0, 1, 511, 4096, KIB64 - 1, KIB64, KIB64 + 1]) | st.integers(0, 2 * KIB64)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sizes=st.lists(SIZES, min_size=1, max_size=5), near=st.integers(-70, 70), cut=st.integers(0), data=st.data())
def test_p2_commits_of_any_size(sizes: list[int], near: int, cut: int, data: st.DataObject) -> None:
    """Among empty, small and large commits, cut anywhere or near a boundary, the longest prefix of whole commits
    remains.
    """
    disk, store = begun()
    drafts = Drafts()
    log = store.open(AGENT, "fill")
    commits = [append(log, "sam", [drafts.one("é" * (size // 2) + "x" * (size % 2))]) for size in sizes]
    log.close()
    ((path, _),) = open_files(disk)
    ends = ends_of(disk, path)
    border = data.draw(st.sampled_from(ends))
    for length in (max(0, min(border + near, ends[-1])), cut % (ends[-1] + 1)):
        after = disk.killed()
        del after.files[path].content[length:]
        whole = [commit[0] for end, commit in zip(ends[1:], commits, strict=True) if end <= length]
        if not whole:
            unbegin(after)
        assert list(store_on(after).open(AGENT, "after").read("sam")) == whole
        assert check(partition_on(after)).ok


@pytest.mark.parametrize("seed", seeds.split(range(40), 12, label="sectors", part="storage"))
def test_p2_any_sectors_of_the_last_write_may_be_missing(seed: int) -> None:
    """If a machine dies between write and sync, any sectors of the write may be missing: the commit is complete or is
    cut.
    """
    chance = random.Random(seed)
    disk, store = begun()
    before = fill(store, APPENDS[: chance.randrange(4)], Drafts())
    log = store.open(AGENT, "dies")
    disk.fail("sync", 5, name=".open")
    mine = Drafts(NOW + SECOND).some(chance.choice([1, 1, 30]))
    with pytest.raises(Exception, match="sync"):
        append(log, "ann", mine)
    after = disk.power_loss(chance)
    again = FileStore(store.root, lambda: 0, disk=after).open(AGENT, "after")
    records = [record for commit in before for record in commit if record.agent_id == "ann"]
    found = list(again.read("ann"))
    assert found[: len(records)] == records
    assert [record.event_id for record in found[len(records) :]] in ([], [draft.event_id for draft in mine])
    assert check(partition_on(after)).ok
