"""P7 on a simulated disk: two owners, switched at every pair of their operations.

The first owner runs to its i-th operation; the second opens with take-over and runs to its j-th; then the first runs to
its end, and then the second. So the switch happens in every state: while an owner takes its epoch, recovers, cuts,
begins a file, or appends.
"""

import itertools
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from everlog.events import Fenced, PartitionBusy, StoreError
from everlog.store import FileLog, check
from tests.contract.log_contract import NOW, Drafts
from tests.support.seeds import pick
from tests.support.store.faulty_disk import FaultyDisk
from tests.support.store.memory_disk_store import AGENT, append, begun, fill, open_files, partition_on, store_on

SECOND = 1_000_000
APPENDS = 2
KINDS = ["a clean end", "a torn tail", "a live owner", "small segments", "sealing"]
PAIRS = 25
"""Number of pairs that the ordinary suite tries for each kind."""


class Owner(threading.Thread):
    """A thread that opens the log and appends; before one of its operations it waits until it is released."""

    def __init__(self, work: Callable[["Owner"], None], stop: int) -> None:
        super().__init__()
        self.work = work
        self.stop = stop
        self.operations = 0
        self.standing = threading.Event()
        self.going = threading.Event()
        self.log: FileLog | None = None
        self.sent: list[str] = []
        self.acknowledged: list[str] = []
        self.refused: StoreError | None = None

    def run(self) -> None:
        try:
            self.work(self)
        except StoreError as error:
            self.refused = error
        finally:
            self.standing.set()

    def step(self) -> None:
        """Count an operation; wait if it is the one to stop at."""
        self.operations += 1
        if self.operations == self.stop:
            self.standing.set()
            self.going.wait()

    def begin(self) -> None:
        """Start the thread, and wait until it waits or has ended."""
        self.start()
        self.standing.wait()

    def end(self) -> None:
        self.going.set()
        self.join()


def work_on(disk: FaultyDisk, kind: str, at: int, *, take_over: bool) -> Callable[[Owner], None]:
    """Return the work of an owner: open the log and append to it; `at` is the time of the ids."""

    def work(owner: Owner) -> None:
        drafts = Drafts(at)
        owner.log = store_on(disk, segment_of(kind)).open(AGENT, "test", take_over=take_over)
        for _ in range(APPENDS):
            mine = drafts.some(1)
            owner.sent += [draft.event_id for draft in mine]
            owner.acknowledged += [record.event_id for record in append(owner.log, "sam", mine)]
            if kind == "sealing":
                owner.log.seal()

    return work


def segment_of(kind: str) -> int:
    return 1 if kind in ("small segments", "sealing") else 10**6


def meet(kind: str, first_stop: int, second_stop: int) -> tuple[Owner, Owner]:
    """Switch between two owners at these operations, and check that no acknowledged record is lost."""
    disk, store = begun(segment_of(kind))
    before = [record.event_id for commit in fill(store, [("sam", 1), ("sam", 2)], Drafts()) for record in commit]
    if kind == "a torn tail":
        disk = disk.killed()
        open_files(disk)[-1][1].content += b"torn"
    if kind == "a live owner":
        records = append(store.open(AGENT, "holder"), "sam", Drafts(NOW + SECOND // 2).some(1))
        before += [record.event_id for record in records]
    first = Owner(work_on(disk, kind, NOW + SECOND, take_over=kind == "a live owner"), first_stop)
    second = Owner(work_on(disk, kind, NOW + 2 * SECOND, take_over=True), second_stop)
    step = disk.step

    def watched(operation: str, path: Path) -> int | None:
        thread = threading.current_thread()
        if isinstance(thread, Owner):
            thread.step()
        return step(operation, path)

    disk.step = watched  # type: ignore[method-assign]
    first.begin()
    second.begin()
    first.end()
    second.end()
    found = [record.event_id for record in store_on(disk).reader(AGENT).read("sam")]
    assert found[: len(before)] == before
    assert [i for i in found if i in first.acknowledged] == first.acknowledged
    assert [i for i in found if i in second.acknowledged] == second.acknowledged
    assert set(found) <= {*before, *first.sent, *second.sent}
    assert check(partition_on(disk)).ok
    assert_newest_is_served(disk, first, second)
    return first, second


def assert_newest_is_served(disk: FaultyDisk, first: Owner, second: Owner) -> None:
    """Check that a refused owner is fenced or finds the log busy, and that the owner of the newest epoch continues."""
    for owner in (first, second):
        assert owner.refused is None or isinstance(owner.refused, Fenced | PartitionBusy), owner.refused
    newest = max(partition_on(disk).numbers("epoch-"))
    (served,) = [owner for owner in (first, second) if owner.log is not None and owner.log.epoch == newest]
    assert served.acknowledged == served.sent
    assert len(served.sent) == APPENDS
    assert append(served.log, "sam", Drafts(NOW + 3 * SECOND).some(1))


def meet_at_pairs(kind: str, pairs_max: int | None = None) -> None:
    """Run each pair of operations, or `pairs_max` of them, which the commit draws."""
    lengths = [owner.operations for owner in meet(kind, 0, 0)]
    pairs = list(itertools.product(*(range(1, length + 1) for length in lengths)))
    for first, second in pick(pairs, pairs_max, label=f"owners {kind}"):
        try:
            meet(kind, first, second)
        except AssertionError as error:
            raise AssertionError(f"{kind}, the first at {first}, the second at {second}: {error}") from error


@pytest.mark.parametrize("kind", KINDS)
def test_p7_two_owners_that_meet_lose_nothing(kind: str) -> None:
    """At many pairs of operations, the acknowledged records of both owners are there, and the newest owner
    continues.
    """
    meet_at_pairs(kind, PAIRS)


@pytest.mark.long
@pytest.mark.storage
@pytest.mark.parametrize("kind", KINDS)
def test_p7_two_owners_that_meet_anywhere_lose_nothing(kind: str) -> None:
    """The same holds at every pair."""
    meet_at_pairs(kind)
