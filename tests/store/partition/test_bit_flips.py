"""P3 and P4, exhaustively: every bit of every header in every segment, tails of every kind, and forged frames."""

import random
from pathlib import Path

import pyarrow as pa
import pytest

from everlog.events import CorruptLog, Record, place
from everlog.store import check
from everlog.store.base.arrow_schema import body_of
from everlog.store.partition.frame import HEADER_BYTES, pack
from tests.contract.log_contract import NOW, Drafts
from tests.support.seeds import few_and_all, pick
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
)

BODY_BITS = 64
"""Number of random bits of each body that are tried."""
FILES = ["the first segment", "the second to last", "the open one"]


class Segments:
    """Three segments of two frames each: closed, closed, open."""

    def __init__(self) -> None:
        self.disk, store = begun(segment_bytes_max=1500)
        appends = [("sam", 1), ("ann", 1), ("sam", 2), ("ann", 1), ("sam", 1), ("sam", 1)]
        self.commits = fill(store, appends, Drafts())
        self.paths = [path for path, _ in open_files(self.disk)]
        self.ends = [ends_of(self.disk, path) for path in self.paths]
        assert [len(ends) for ends in self.ends] == [3, 3, 3]

    def flipped(self, path: Path, bit: int) -> FaultyDisk:
        """Return the disk with one bit of a file changed."""
        disk = self.disk.power_loss()
        disk.files[path].content[bit // 8] ^= 1 << bit % 8
        disk.files[path].durable = bytes(disk.files[path].content)
        return disk

    def records(self, commits: int) -> list[Record]:
        """Return the records of the first `commits` commits."""
        return [record for commit in self.commits[:commits] for record in commit]


def content(disk: FaultyDisk) -> dict[Path, bytes]:
    """Return all bytes of the log, without the epoch files."""
    return {path: bytes(inode.content) for path, inode in disk.files.items() if not path.name.startswith("epoch-")}


def readable(disk: FaultyDisk, agent_id: str) -> tuple[list[Record], str]:
    """Return an agent's records as a reader gets them, and the error that ended the read."""
    found = []
    try:
        found.extend(store_on(disk).reader(AGENT).read(agent_id))
    except CorruptLog as error:
        return found, str(error)
    return found, ""


def assert_damage_is_told(disk: FaultyDisk, path: Path, offset: int, before: list[Record]) -> None:
    """Check that owner, reader and check raise CorruptLog with file, offset and seq, that nothing changes, and that
    records before the damage can be read.
    """
    was = content(disk)
    heads = {record.agent_id: record.seq for record in before}
    with pytest.raises(CorruptLog) as caught:
        store_on(disk).open(AGENT, "after")
    told = str(caught.value)
    assert told.startswith(f"{path} is damaged at byte {offset}, where commit {len({r.commit for r in before}) + 1} ")
    assert all(f"{agent_id!r} seq {seq + 1}" in told for agent_id, seq in heads.items())
    assert heads or "seq 1" in told
    for agent_id in ("sam", "ann"):
        found, error = readable(disk, agent_id)
        assert found == [record for record in before if record.agent_id == agent_id]
        assert error.startswith(f"{path} is damaged at byte {offset}")
    assert any(str(path) in error for error in check(partition_on(disk)).errors)
    assert content(disk) == was


def assert_tail_is_cut(disk: FaultyDisk, whole: bytes, offset: int, before: list[Record]) -> None:
    """Check that the next owner has the records before the flip and keeps the cut bytes, and that the log continues."""
    log = store_on(disk).open(AGENT, "after")
    assert log.cut is not None
    assert (log.cut.offset, log.cut.bytes) == (offset, len(whole) - offset)
    assert cuts(disk) == [whole[offset:]]
    assert list(log.read("sam")) == [record for record in before if record.agent_id == "sam"]
    assert append(log, "sam", Drafts(NOW + 1_000_000).some(1))[0].seq == log.head("sam").seq
    assert check(partition_on(disk)).ok


@pytest.mark.parametrize("count", few_and_all(20, part="storage"))
@pytest.mark.parametrize("number", range(3), ids=FILES)
def test_p4_every_bit_of_every_header_and_some_of_every_body(number: int, count: int | None) -> None:
    """A flipped bit is an error that names its place and changes nothing; in the last frame it is a torn tail."""
    segments = Segments()
    path, ends = segments.paths[number], segments.ends[number]
    chance = random.Random(number)
    for frame in range(2):
        start, end = ends[frame] * 8, ends[frame + 1] * 8
        body = range(start + HEADER_BYTES * 8, end)
        before = segments.records(2 * number + frame)
        bits = [*range(start, body.start), *chance.sample(body, BODY_BITS)]
        for bit in pick(bits, count, label=f"bits {number} {frame}"):
            disk = segments.flipped(path, bit)
            if (number, frame) == (2, 1):
                assert_tail_is_cut(disk, bytes(disk.files[path].content), start // 8, before)
            else:
                assert_damage_is_told(disk, path, start // 8, before)


@pytest.mark.parametrize("number", range(2), ids=FILES[:2])
def test_p4_a_closed_segment_has_no_torn_tail(number: int) -> None:
    """A closed segment of any other length is damaged, even if it has only whole frames."""
    segments = Segments()
    path, ends = segments.paths[number], segments.ends[number]
    for length in (*range(0, ends[-1], 13), ends[1], ends[-1] - 1):
        disk = segments.disk.power_loss()
        del disk.files[path].content[length:]
        whole = sum(end <= length for end in ends) - 1
        assert_damage_is_told(disk, path, ends[whole], segments.records(2 * number + whole))


def tails(seed: int, own: bytes) -> dict[str, bytes]:
    """Return bytes that are no frames of this place."""
    chance = random.Random(seed)
    start = chance.randrange(len(own))
    return {
        "zeros": bytes(chance.choice([1, 7, 8, 47, 48, 49, 512, 4096])),
        "ones": b"\xff" * chance.choice([1, 8, 48, 512]),
        "stale": own[start : start + chance.randrange(1, 3000)],
        "stale from the start": own[: chance.randrange(1, len(own) + 1)],
        "garbage": chance.randbytes(chance.randrange(1, 2000)),
        "garbage with magic": b"EVLF" + chance.randbytes(chance.randrange(1, 2000)),
        "half a stale frame, then zeros": own[: chance.randrange(4, 1000)] + bytes(chance.randrange(1, 600)),
    }


@pytest.mark.parametrize("torn", [0, 1, 48, 700], ids="after {} bytes of a torn frame".format)
@pytest.mark.parametrize("kind", tails(0, b"own"))
def test_p3_a_tail_of_nonsense_is_cut_whatever_it_is(kind: str, torn: int) -> None:
    """Zeros, old bytes of this and other segments, and garbage are cut by the next owner and kept; the log
    continues.
    """
    segments = Segments()
    stale = b"".join(bytes(segments.disk.files[path].content) for path in segments.paths)
    path = segments.paths[-1]
    whole = bytes(segments.disk.files[path].content)
    for seed in range(8):
        disk = segments.disk.power_loss()
        held = disk.files[path].content
        end = segments.ends[-1][1] if torn else len(whole)
        held[:] = whole[: end + torn] + tails(seed, stale)[kind]
        assert_tail_is_cut(disk, bytes(held), end, segments.records(5 if torn else 6))


FORGED = {
    "of an older epoch": {"epoch": 0},
    "with the commit before": {"first_commit": 6},
    "with the first commit": {"first_commit": 1},
    "with a later commit": {"first_commit": 8},
    "that follows another frame": {"previous": 12345},
    "of a body that has rotted": {"rot": 1},
}


def forged(disk: FaultyDisk, path: Path, offset: int, body: pa.Buffer, **change: int) -> bytes:
    """Return a frame for `offset` of `path` with right checksums that follows the last frame, except for `change`."""
    *_, start, end = ends_of(disk, path)
    salt = partition_on(disk).salt(path.name)
    previous = int.from_bytes(disk.files[path].content[start + HEADER_BYTES - 4 : start + HEADER_BYTES], "little")
    rot = change.pop("rot", 0)
    fields = {"epoch": 1, "first_commit": 7, "commits": 1, "records": 1, "previous": previous, **change}
    header, _ = pack(salt, offset, body, **fields)
    assert end <= offset
    content = bytearray(body)
    content[100] ^= rot
    return header + content


def body_of_one(commit: int = 7) -> pa.Buffer:
    """Return the body of a frame that would be the next of the segments."""
    return body_of([place(Drafts(NOW + 1_000_000).one(), "ann", 3, commit)])


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
def test_p3_a_frame_that_parses_but_does_not_follow_is_cut(change: dict[str, int]) -> None:
    """Right magic, salt, offset and checksums are not enough: epoch, commit and the hash of the frame before must be
    right too.
    """
    segments = Segments()
    path = segments.paths[-1]
    disk = segments.disk.power_loss()
    held = disk.files[path].content
    end = len(held)
    held += forged(disk, path, end, body_of_one(), **change)
    assert_tail_is_cut(disk, bytes(held), end, segments.records(6))


@pytest.mark.parametrize("gap", [8, 48, 1000], ids="{} bytes on".format)
@pytest.mark.parametrize("change", [{}, {"first_commit": 6}, {"first_commit": 1}, {"epoch": 0, "first_commit": 9}])
def test_p3_a_stale_frame_beyond_the_tail_is_cut(change: dict[str, int], gap: int) -> None:
    """A whole frame after nonsense proves damage only if its commit is later and its epoch is not older."""
    segments = Segments()
    path = segments.paths[-1]
    disk = segments.disk.power_loss()
    held = disk.files[path].content
    end = len(held)
    held += random.Random(gap).randbytes(gap) + forged(disk, path, end + gap, body_of_one(), **change)
    assert_tail_is_cut(disk, bytes(held), end, segments.records(6))


def test_p4_a_later_frame_beyond_a_bad_place_is_never_cut() -> None:
    """A whole frame with a later commit was written after the bad place was synced, so the place is damage, and nothing
    is changed.
    """
    segments = Segments()
    path = segments.paths[-1]
    disk = segments.disk.power_loss()
    held = disk.files[path].content
    end = len(held)
    held += bytes(48) + forged(disk, path, end + 48, body_of_one(), first_commit=8)
    assert_damage_is_told(disk, path, end, segments.records(6))


def test_p4_a_whole_frame_that_holds_no_records_is_an_error() -> None:
    """A frame with right checksums whose body is no Arrow batch is our error or a forgery: CorruptLog."""
    segments = Segments()
    path = segments.paths[-1]
    disk = segments.disk.power_loss()
    held = disk.files[path].content
    held += forged(disk, path, len(held), pa.py_buffer(random.Random(3).randbytes(1024)))
    was = content(disk)
    with pytest.raises(CorruptLog):
        store_on(disk).open(AGENT, "after")
    found, error = readable(disk, "sam")
    assert found == [record for record in segments.records(6) if record.agent_id == "sam"]
    assert str(path) in error
    assert not check(partition_on(disk)).ok
    assert content(disk) == was
