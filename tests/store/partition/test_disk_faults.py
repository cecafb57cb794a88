"""P10, exhaustively: a full disk, a broken disk, too many open files and a read-only remount, from every operation on.

A user makes a store, registers, opens, appends over several segments, seals, closes and opens again. At each operation
in turn the disk fails, keeps failing for a while, and is repaired. There is no manual repair of the log: the user opens
the log again and sends the same events again.
"""

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import pytest

from everlog.events import Draft, Poisoned, StoreError
from everlog.store import FileLog, FileStore, check
from tests.contract.log_contract import NOW, Drafts
from tests.support.seeds import few_and_all, pick
from tests.support.store.faulty_disk import Broken, FaultyDisk
from tests.support.store.memory_disk_store import AGENT, ROOT, partition_on, store_on

CHANGES = frozenset({"create", "write", "make_dirs", "link"})
EVERYTHING = CHANGES | {"open", "read", "names", "exists", "is_locked", "remove", "truncate", "sync", "sync_dir"}
WRONG = {
    "ENOSPC": (Broken(errno.ENOSPC, CHANGES | {"sync", "sync_dir"}), "Make room"),
    "EIO": (Broken(errno.EIO, EVERYTHING), "Check the system's log"),
    "EMFILE": (Broken(errno.EMFILE, frozenset({"create", "open", "read", "names", "sync_dir", "is_locked"})), "ulimit"),
    "EROFS": (Broken(errno.EROFS, CHANGES | {"open", "remove", "truncate"}), "Mount it for writing"),
}
"""The kind of failure, the failing operations, and a part of the cure that the error must name."""
APPENDS = 4


class User:
    """A user who does one step after another; when a step fails, the disk is repaired, and the step is done again."""

    def __init__(self, disk: FaultyDisk, cure: str = "") -> None:
        self.disk = disk
        self.cure = cure
        self.store: FileStore | None = None
        self.log: FileLog | None = None
        drafts = Drafts()
        self.appends = [("sam" if number % 3 else "ann", drafts.some(2)) for number in range(APPENDS)]
        self.acknowledged: list[str] = []
        self.failures = 0

    def steps(self) -> Iterator[Callable[[], None]]:
        """Yield the actions of a user in one or two processes."""
        yield self.open
        yield lambda: self.append(0)
        yield lambda: self.append(1)
        yield self.seal
        yield lambda: self.append(2)
        yield self.close
        yield self.open
        yield lambda: self.append(3)
        yield self.close

    def open(self) -> None:
        if self.log is None:
            self.store = FileStore.create(ROOT, lambda: NOW, "sim", disk=self.disk, segment_bytes_max=1)
            self.store.register(AGENT)
            self.log = self.store.open(AGENT, "user")

    def append(self, number: int) -> None:
        self.open()
        assert self.log is not None
        agent_id, drafts = self.appends[number]
        commit = self.log.append(agent_id, self.log.head(agent_id).seq, drafts)
        assert [record.event_id for record in commit.records] == [draft.event_id for draft in drafts]
        self.acknowledged += ids_of(drafts)

    def seal(self) -> None:
        self.open()
        assert self.log is not None
        self.log.seal()

    def close(self) -> None:
        if self.log is not None:
            self.log.close()
            self.log = None

    def live(self) -> None:
        """Do all steps, each until it succeeds."""
        for step in self.steps():
            try:
                step()
            except StoreError as error:
                self.failures += 1
                self.assert_told(error)
                self.fail_again(step)
                self.assert_nothing_is_lost_or_half_there()
                self.disk.broken = None
                self.close()
                step()

    def fail_again(self, step: Callable[[], None]) -> None:
        """Check that retries on the broken disk do no harm: each fails with a clean error, or works."""
        self.assert_fails_cleanly(step)
        self.close()
        self.assert_fails_cleanly(step)

    def assert_fails_cleanly(self, step: Callable[[], None]) -> None:
        before = len(self.acknowledged)
        try:
            step()
        except StoreError as error:
            self.assert_told(error)
        else:
            del self.acknowledged[before:]  # the user will send the append once more

    def assert_told(self, error: StoreError) -> None:
        """Check that the error is a plain StoreError that names a path, the system's message and the cure."""
        assert type(error) in (StoreError, Poisoned), repr(error)
        assert str(ROOT) in str(error)
        assert self.cure in str(error)
        assert self.disk.broken is not None
        assert os.strerror(self.disk.broken.code) in str(error)

    def assert_nothing_is_lost_or_half_there(self) -> None:
        """Check that after a kill or a power loss now, the log has whole commits: the acknowledged ones, and at most
        one more.
        """
        whole = [ids_of(drafts) for _, drafts in self.appends]
        for disk in (self.disk.killed(), self.disk.power_loss()):
            found = ids_on(disk)
            assert found[: len(self.acknowledged)] == self.acknowledged
            assert found in [list(chain(*whole[:count])) for count in range(APPENDS + 1)]


def ids_of(drafts: Sequence[Draft]) -> list[str]:
    """Return the ids of drafts in the form of a table's column."""
    return [draft.event_id.replace("-", "") for draft in drafts]


def ids_on(disk: FaultyDisk) -> list[str]:
    """Return all event ids on a disk, in commit order; none without a store."""
    disk.broken = None
    if not disk.exists(ROOT / "everlog.json") or AGENT not in store_on(disk).agents():
        return []
    ids = store_on(disk).reader(AGENT).table().column("event_id").combine_chunks()
    return [value.hex() for value in ids.storage.to_pylist()]


def broken_from(operation: int, name: str) -> User:
    """Run a user on a disk that fails from an operation on."""
    disk = FaultyDisk()
    disk.broken, cure = WRONG[name]
    disk.breaks_at = operation
    user = User(disk, cure)
    user.live()
    for after in (disk.killed(), disk.power_loss()):
        assert ids_on(after) == [i for _, drafts in user.appends for i in ids_of(drafts)]
        assert check(partition_on(after)).ok
    return user


@pytest.mark.parametrize("count", few_and_all(10, part="storage"))
@pytest.mark.parametrize("name", WRONG)
def test_p10_every_disk_failure_is_clean_and_heals(name: str, count: int | None) -> None:
    """From any operation on, errors name path and cure, no commit is incomplete or lost, and no manual step is
    needed.
    """
    healthy = User(FaultyDisk())
    healthy.live()
    failures = 0
    for operation in pick(range(len(healthy.disk.log)), count, label=f"faults {name}"):
        try:
            failures += broken_from(operation, name).failures
        except AssertionError as error:
            raise AssertionError(f"{name} from operation {operation} {healthy.disk.log[operation]} on") from error
    assert failures > (20 if count is None else 0)
