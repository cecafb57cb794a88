"""P7: one writer. Fencing in one process and between two, take-over, and files of a dead owner."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from everlog.events import CorruptLog, Fenced, NewerFormat, PartitionBusy
from everlog.store import FileLog, FileStore, Partition, check
from everlog.store.base.disk import publish_open
from everlog.store.partition.partition import EPOCH, token
from tests.contract.log_contract import Drafts
from tests.store.conftest import now
from tests.support.seeds import split
from tests.support.store.faulty_disk import FaultyDisk

CHILD = """
import sys
from pathlib import Path
from everlog.events import Fenced
from everlog.store import FileStore
from tests.contract.log_contract import NOW, Drafts
log = FileStore(Path(sys.argv[1]), lambda: NOW).open("sam", "everlog chat")
drafts = Drafts(NOW + 1000)
for line in sys.stdin:
    try:
        print(log.append("sam", log.head("sam").seq, drafts.some(1)).number, flush=True)
    except Fenced:
        print("fenced", flush=True)
"""


class Child:
    """Another process that has sam open and appends on command."""

    def __init__(self, root: Path) -> None:
        cwd = Path(__file__).parents[3]
        self.process = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(root)], cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def append(self) -> str:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def test_p7_a_second_process_gets_the_owners_name_and_can_fence_it(store: FileStore, where: Partition) -> None:
    """A live process is never fenced without --take-over; after --take-over it is never acknowledged again."""
    child = Child(store.root)
    try:
        assert (child.append(), child.append()) == ("1", "2")
        with pytest.raises(PartitionBusy, match=rf"^sam is open in process {child.process.pid} \(everlog chat\)"):
            store.open("sam", "me")
        log = store.open("sam", "me", take_over=True)
        assert log.head("sam").seq == 2
        assert (child.append(), child.append()) == ("fenced", "fenced")
        assert log.append("sam", 2, Drafts().some(1)).number == 3
    finally:
        child.kill()
    assert [record.seq for record in store.reader("sam").read("sam")] == [1, 2, 3]
    with pytest.raises(PartitionBusy):
        store.open("sam", "third")
    log.close()
    report = check(where)
    assert report.ok and any("fenced" in note for note in report.notes)


def test_p7_a_writer_stays_fenced_when_its_epoch_is_published_again(store: FileStore, where: Partition) -> None:
    """A process that looked for the highest epoch long ago publishes one that later owners have swept. The writer that
    held that epoch first was paused meanwhile: it does not take the file for its own, and acknowledges nothing.
    """
    drafts = Drafts()
    paused = store.open("sam", "paused")
    paused.append("sam", 0, drafts.some(1))
    for name in ("second", "third"):
        newest = store.open("sam", name, take_over=True)
        newest.append("sam", newest.head("sam").seq, drafts.some(1))
    assert where.numbers(EPOCH) == [3]
    late = json.dumps({"host": "late", "pid": 7, "start": 1, "command": "late", "taken_at": 1}).encode()
    published = publish_open(where.disk, where.numbered(EPOCH, 1), late, token(), lock=True)
    assert published is not None
    with pytest.raises(Fenced):
        paused.append("sam", 1, drafts.some(1))
    published.close()
    assert [record.seq for record in store.reader("sam").read("sam")] == [1, 2, 3]


def test_p7_the_owner_after_a_killed_process_continues_in_the_same_file(store: FileStore, where: Partition) -> None:
    """A free lock on the same machine needs no take-over and no new file."""
    child = Child(store.root)
    assert child.append() == "1"
    child.kill()
    log = store.open("sam", "me")
    assert (log.epoch, log.append("sam", 1, Drafts().some(1)).number) == (2, 2)
    assert len(list(where.path.glob("*.open"))) == 1


def test_p7_an_owner_from_another_machine_is_followed_in_a_new_file(store: FileStore, where: Partition) -> None:
    """If the last owner was on another host the lock proves nothing, so the owner's file is closed and not
    continued.
    """
    store.open("sam", "one").append("sam", 0, Drafts().some(1))
    path = where.path / "epoch-000001"
    path.write_bytes(path.read_bytes().replace(b'"host":"', b'"host":"other-'))
    with pytest.raises(PartitionBusy, match="on other-"):
        store.open("sam", "two")
    two = store.open("sam", "two", take_over=True)
    assert two.append("sam", 1, Drafts(now() + 1000).some(1)).number == 2
    assert len(list(where.path.glob("*.open"))) == 2


def test_p7_taking_over_an_empty_file_never_shares_its_name(store: FileStore, where: Partition) -> None:
    """The old owner of a file without commits and the new owner at the same commit number write to different files."""
    one = store.open("sam", "one")
    two = store.open("sam", "two", take_over=True)
    with pytest.raises(Fenced):
        one.append("sam", 0, Drafts().some(1))
    assert two.append("sam", 0, Drafts(now() + 1000).some(1)).number == 1
    assert check(where).commits == 1


def test_p7_a_fenced_roll_publishes_nothing(store: FileStore, where: Partition) -> None:
    """An old owner that wants to begin a new file loses the compare-and-swap of the manifest."""
    small = FileStore(store.root, now, segment_bytes_max=1)
    one = small.open("sam", "one")
    drafts = Drafts()
    one.append("sam", 0, drafts.some(1))
    two = small.open("sam", "two", take_over=True)
    with pytest.raises(Fenced):
        one.append("sam", 1, drafts.some(1))
    two.append("sam", 1, drafts.some(1))
    assert check(where).commits == 2


@pytest.mark.parametrize("moment", split(range(1, 40), 6, label="take over", part="storage"))
def test_p7_a_take_over_at_any_step_of_an_append_loses_nothing_acknowledged(moment: int) -> None:
    """If a take-over happens before any operation of an append, the new owner has each acknowledged commit."""
    disk = FaultyDisk()
    root = Path("/sim")
    store = FileStore.create(root, now, "sim", disk=disk, segment_bytes_max=1)
    store.register("sam")
    old = store.open("sam", "old")
    drafts = Drafts()
    old.append("sam", 0, drafts.some(1))
    taken: list[FileLog] = []
    begin = len(disk.log)
    real = disk.step

    def step(operation: str, path: Path) -> int | None:
        if len(disk.log) == begin + moment and not taken:
            taken.append(old)
            taken[:] = [store.open("sam", "new", take_over=True)]
        return real(operation, path)

    disk.step = step  # type: ignore[method-assign]
    seq = 1
    try:
        while not taken:
            old.append("sam", seq, drafts.some(1))
            seq += 1
    except Fenced:
        pass
    (new,) = taken
    assert new.head("sam").seq in (seq, seq + 1)
    with pytest.raises(Fenced):
        old.append("sam", seq, drafts.some(1))
    new.append("sam", new.head("sam").seq, drafts.some(1))
    assert check(store.partition(old.partition)).ok


@pytest.mark.parametrize("checksum", [True, False])
def test_a_configuration_that_was_changed_is_refused(store: FileStore, checksum: bool) -> None:
    """Another number of shards would look for agents in wrong shards, and a file without a checksum is not everlog's:
    both are refused.
    """
    path = store.root / "everlog.json"
    fields = {**json.loads(path.read_text()), "shards": 7}
    if not checksum:
        del fields["crc32c"]
    path.write_text(json.dumps(fields))
    with pytest.raises(CorruptLog, match="wrong checksum"):
        FileStore(store.root, now)


def test_a_newer_format_is_refused(store: FileStore, where: Partition) -> None:
    """A store of a later everlog is refused with an error that names the format."""
    store.open("sam", "one").close()
    path = store.root / "everlog.json"
    content = path.read_text()
    path.write_text(content.replace('"format": 1', '"format": 2'))
    with pytest.raises(NewerFormat):
        FileStore(store.root, now)
