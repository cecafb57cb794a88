"""P1 to P4: the disk after a crash, and the handling of bytes that are no frames."""

import hashlib
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest

from everlog.events import CorruptLog, Record, StoreError
from everlog.store import FileStore, Partition, RealDisk, check
from everlog.store.partition.frame import HEADER_BYTES
from everlog.store.partition.segment import FrameScan
from tests.contract.log_contract import NOW, Drafts
from tests.store.conftest import now
from tests.support.seeds import split
from tests.support.store.faulty_disk import Crash, FaultyDisk

OpenPath = Callable[[], Path]


def ends_of(path: Path, where: Partition) -> list[int]:
    """Return the offsets at which the frames of a file end."""
    return [frame.end for frame in FrameScan(path.read_bytes(), where.salt(path.name), 1, str(path))]


def seqs(records: Sequence[Record]) -> list[tuple[str, int]]:
    return [(record.agent_id, record.seq) for record in records]


def everything(store: FileStore) -> list[tuple[str, int]]:
    table = store.reader("sam").table()
    return list(zip(table.column("agent_id").to_pylist(), table.column("seq").to_pylist(), strict=True))


@pytest.mark.parametrize("kind", ["zeros", "random", "magic", "own frame", "own first frame", "another segment"])
def test_p3_a_nonsense_tail_is_cut_and_kept(
    store: FileStore, where: Partition, filled: list[list[Record]], open_path: OpenPath, kind: str
) -> None:
    """Bytes after the last frame that are not valid at that place are cut and kept next to the file, and the log
    continues.
    """
    path = open_path()
    whole = path.read_bytes()
    ends = ends_of(path, where)
    other = bytearray(whole)
    tail = {
        "zeros": bytes(4096),
        "random": random.Random(7).randbytes(5000),
        "magic": b"EVLF" * 1000,
        "own frame": whole[ends[-2] :],
        "own first frame": whole[: ends[0]],
        "another segment": bytes(other[ends[0] : ends[3]]),
    }[kind]
    path.write_bytes(whole + tail)
    assert not check(where).ok
    reader = store.reader("sam")
    assert reader.table().num_rows == 12
    assert reader.damage is not None and (reader.damage.offset, reader.damage.bytes) == (len(whole), len(tail))
    log = store.open("sam", "after")
    assert log.cut is not None and log.cut.bytes == len(tail)
    assert log.append("sam", 8, Drafts(NOW + 1000).some(1)).number == 7
    assert path.with_name(f"{path.name}.{len(whole)}.cut").read_bytes() == tail
    assert check(where).ok


def test_p3_stale_bytes_of_another_file_never_parse(
    store: FileStore, where: Partition, filled: list[list[Record]], open_path: OpenPath
) -> None:
    """A frame with the right offset and commit, but of another store's file, counts as nonsense."""
    path = open_path()
    whole = path.read_bytes()
    foreign = FrameScan(whole, where._replace(store_id="other").salt(path.name), 1, "x")
    assert list(foreign) == [] and foreign.later is None
    renamed = FrameScan(whole, where.salt("000000000001-e000002.open"), 1, "x")
    assert list(renamed) == [] and renamed.later is None


def test_p4_a_flipped_bit_in_the_middle_is_an_error_that_changes_nothing(
    store: FileStore, where: Partition, filled: list[list[Record]], open_path: OpenPath
) -> None:
    """After a bit of a header or body before the last frame has changed: CorruptLog, unchanged bytes, and working
    earlier reads.
    """
    path = open_path()
    whole = path.read_bytes()
    starts = [0, *ends_of(path, where)]
    chance = random.Random(4)
    places = []
    for number, (start, end) in enumerate(pairwise(starts[:-1])):
        bits = [*range(HEADER_BYTES * 8), *(chance.randrange(HEADER_BYTES * 8, (end - start) * 8) for _ in range(20))]
        places += [(number, start, start * 8 + bit) for bit in chance.sample(bits, 60)]
    for number, start, bit in places:
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        before = hashlib.sha256(path.read_bytes()).digest()
        with pytest.raises(CorruptLog, match=rf"byte {start}, where commit {number + 1} .*seq"):
            store.open("sam", "after")
        got = []
        with pytest.raises(CorruptLog):
            for record in store.reader("sam").read("sam"):
                got.append((record.agent_id, record.seq))
        assert got == [pair for commit in filled[:number] for pair in seqs(commit) if pair[0] == "sam"]
        assert not check(where).ok
        assert hashlib.sha256(path.read_bytes()).digest() == before
    path.write_bytes(whole)
    assert check(where).ok


def test_p4_damage_in_a_closed_file_is_an_error_even_at_its_end(
    store: FileStore, where: Partition, filled: list[list[Record]], open_path: OpenPath
) -> None:
    """A closed file has a known end, so a rotten or missing last frame is damage and never a tail."""
    first = open_path()
    holder = store.open("sam", "holder")
    store.open("sam", "taker", take_over=True).close()
    holder.close()
    whole = first.read_bytes()
    for damaged in [whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1]), b"", whole[: -len(whole) // 2]]:
        first.write_bytes(damaged)
        with pytest.raises(CorruptLog, match="damaged"):
            store.open("sam", "after")
        with pytest.raises(CorruptLog):
            list(store.reader("sam").read("sam"))
        assert not check(where).ok
    first.unlink()
    with pytest.raises(CorruptLog, match="gone"):
        store.open("sam", "after")
    with pytest.raises(CorruptLog, match="gone"):
        store.reader("sam").table()
    first.write_bytes(whole)
    assert check(where).ok


def test_p4_a_damaged_manifest_is_an_error(store: FileStore, where: Partition, filled: list[list[Record]]) -> None:
    """A changed bit in the manifest is detected."""
    path = max(where.path.glob("manifest-*"))
    content = path.read_bytes()
    for position in range(0, len(content), 7):
        path.write_bytes(content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :])
        with pytest.raises(CorruptLog):
            store.open("sam", "after")


def test_p2_a_crash_anywhere_in_recovery_can_be_recovered(tmp_path: Path) -> None:
    """An opening that cuts a tail and dies at any operation leaves a log that opens with the same records."""
    root = Path("/sim")
    for crash in range(60):
        disk = FaultyDisk()
        store = FileStore.create(root, now, "sim", disk=disk)
        store.register("sam")
        log = store.open("sam", "one")
        drafts = Drafts()
        log.append("sam", 0, drafts.some(2))
        disk.fail("write", 28, name=".open", partial=100)
        with pytest.raises(Exception, match="full"):
            log.append("sam", 2, drafts.some(2))
        log.close()
        disk.crash_at = len(disk.log) + crash
        with suppress(Crash):
            FileStore(root, now, disk=disk).open("sam", "two").close()
        disk.crash_at = None
        after = FileStore(root, now, disk=disk.power_loss(random.Random(crash)))
        log = after.open("sam", "three")
        assert [record.seq for record in log.read("sam")] == [1, 2]
        log.append("sam", 2, drafts.some(1))
        assert check(after.partition(log.partition)).ok


@pytest.mark.parametrize("seed", split(range(300), 20, label="power losses", part="storage"))
def test_p1_what_was_acknowledged_survives_a_power_loss_at_any_operation(seed: int) -> None:
    """After any loss of unsynced bytes, the next owner finds each acknowledged commit, and no half commit."""
    chance = random.Random(seed)
    root = Path("/sim")
    disk = FaultyDisk()
    store = FileStore.create(root, now, "sim", disk=disk, segment_bytes_max=chance.choice([1, 3000, 10**6]))
    store.register("sam")
    drafts = Drafts()
    acknowledged: list[Record] = []
    for _ in range(3):
        disk.crash_at = len(disk.log) + chance.randrange(120)
        tried: list[str] = []
        try:
            log = FileStore(root, now, disk=disk, segment_bytes_max=3000).open("sam", "life")
            while True:
                mine = drafts.some(chance.randint(1, 4))
                tried = [draft.event_id for draft in mine]
                acknowledged += log.append("sam", log.head("sam").seq, mine).records
                tried = []
        except Crash:
            pass
        disk = disk.power_loss(chance)
        after = FileStore(root, now, disk=disk)
        found = list(after.reader("sam").read("sam"))
        assert found[: len(acknowledged)] == acknowledged
        extra = [record.event_id for record in found[len(acknowledged) :]]
        assert extra in ([], tried)
        acknowledged = found
        log = after.open("sam", "judge")
        assert list(log.read("sam")) == found
        assert check(after.partition(log.partition)).ok
        log.close()


def test_p1_the_real_disk_is_asked_in_the_right_order() -> None:
    """The folder is synced before the manifest names a file. An append writes, syncs, looks for a newer epoch, and only
    then is acknowledged; after the first one the mark of an agent without records is removed, without a sync.
    """
    disk = FaultyDisk()
    store = FileStore.create(Path("/sim"), now, "sim", disk=disk)
    store.register("sam")
    log = store.open("sam", "order")
    steps = [(operation, name) for operation, name in disk.log if operation != "read"]
    created = steps.index(("create", "000000000001-e000001.open"))
    linked = steps.index(("link", "manifest-000001"))
    assert steps.index(("link", "epoch-000001")) < created
    assert "sync_dir" in [operation for operation, _ in steps[created:linked]]
    assert "sync_dir" in [operation for operation, _ in steps[linked:]]
    start = len(disk.log)
    log.append("sam", 0, Drafts().some(2))
    assert [operation for operation, _ in disk.log[start:]] == ["write", "sync", "exists", "read", "exists", "remove"]
    start = len(disk.log)
    log.append("sam", 2, Drafts(NOW + 1_000_000).some(2))
    assert [operation for operation, _ in disk.log[start:]] == ["write", "sync", "exists", "read"]
    assert isinstance(RealDisk().names(Path("/")), list)


def test_p1_an_owner_makes_found_frames_durable_before_it_appends() -> None:
    """The next owner writes and syncs a frame again whose sync had failed, so the frame survives a power loss."""
    disk = FaultyDisk()
    store = FileStore.create(Path("/sim"), now, "sim", disk=disk)
    store.register("sam")
    log = store.open("sam", "one")
    mine = Drafts().some(2)
    disk.fail("sync", 5)
    with pytest.raises(StoreError):
        log.append("sam", 0, mine)
    log.close()
    start = len(disk.log)
    assert store.open("sam", "two").append("sam", 0, mine).repeated
    name = next(path.name for path in disk.files if path.suffix == ".open")
    assert disk.log.index(("write", name), start) < disk.log.index(("sync", name), start)
    after = FileStore(Path("/sim"), now, disk=disk.power_loss())
    assert [record.seq for record in after.reader("sam").read("sam")] == [1, 2]
