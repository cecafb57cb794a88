"""The claim of a cluster on a store in a bucket, and the right of its hosts to take the logs of earlier hosts."""

import asyncio
from collections.abc import Callable

import pytest

from everlog.actors.cluster.cluster_claim import LOOK_S, WAIT_S, ClusterClaim
from everlog.actors.cluster.placement import FenceRight
from everlog.actors.memory.shared_block_rules import BlockEdit, BlockEditOutcome, BlockOperation
from everlog.actors.memory.shared_block_writer import SharedBlockWriter
from everlog.actors.ports.ports import Ports
from everlog.events import ClusterError, Fenced, PartitionBusy, StoreError
from everlog.events.times import MICROSECONDS
from everlog.store import FileStore, HostMark
from everlog.store.object.bucket_side_files import BucketSideFiles
from everlog.store.object.object_disk import ObjectDisk
from everlog.store.object.obstore_bucket import ObstoreBucket
from everlog.store.stores.claims import BEAT_S, EXPIRES_S, Claim
from everlog.testing import CountingIds
from tests.contract.log_contract import NOW, Drafts
from tests.contract.test_bucket_logs import ROOT, memory_bucket
from tests.support.agents.virtual_time_runtime import run_plain
from tests.support.virtual_time import WallClock


async def at_once(work: Callable[[], str]) -> str:
    return work()


class Head:
    """The head of a cluster, which claims the store in a bucket. Its clocks tell another time than those of others."""

    def __init__(self, bucket: ObstoreBucket, name: str, skew_s: int = 0) -> None:
        self.notes: list[str] = []
        self.clock = WallClock(skew_s * MICROSECONDS)
        path = ROOT / "claims" / "cluster"
        claim = Claim(BucketSideFiles(bucket, ROOT, lambda _: None), path, name, f"the one of {name}", self._now_s)
        self.claim = ClusterClaim(
            name, claim, clock=self.clock, now_us=self.clock.now, note=self.notes.append, aside=at_once
        )
        self.running: asyncio.Task[None] | None = None

    def _now_s(self) -> float:
        return self.clock.now() / MICROSECONDS

    def begin(self) -> None:
        self.running = asyncio.ensure_future(self.claim.run())

    async def stand_still(self) -> None:
        """Do nothing from now on, as a process that died or was stopped."""
        assert self.running is not None
        self.running.cancel()
        await asyncio.wait([self.running])


def now_s() -> float:
    return asyncio.get_running_loop().time()


def test_a_new_cluster_waits_until_the_old_one_counts_as_dead() -> None:
    """The hosts of a new cluster start when the claim of a dead one has not changed for a while, and may take the logs
    of all its hosts, whatever the clocks say; the old cluster starts none when it wakes.
    """

    async def main() -> None:
        bucket = memory_bucket()
        old, new = Head(bucket, "old", 5000), Head(bucket, "new", -3000)
        old.begin()
        assert (await old.claim.right()).alone
        await asyncio.sleep(BEAT_S / 2)
        await old.stand_still()
        new.begin()
        began = now_s()
        right = await new.claim.right()
        assert EXPIRES_S <= now_s() - began <= EXPIRES_S + 2 * LOOK_S
        assert right.covers(PartitionBusy("held", cluster="old", start=2**60))
        old.begin()
        with pytest.raises(ClusterError, match="the one of new"):
            await old.claim.right()
        assert old.notes == [
            "another cluster runs the agents of this store now: the one of new; no host is started here"
        ]
        await old.stand_still()
        await new.stand_still()

    run_plain(main)


def test_a_cluster_beside_a_living_one_starts_nothing() -> None:
    """While the holder of the claim lives, another cluster is refused with the holder's name: once after a wait, then
    at once.
    """

    async def main() -> None:
        bucket = memory_bucket()
        one, two = Head(bucket, "one"), Head(bucket, "two")
        one.begin()
        await one.claim.right()
        two.begin()
        for wait_s in (WAIT_S, 0.0):
            began = now_s()
            with pytest.raises(ClusterError, match=r"the one of one\. Nothing was started here"):
                await two.claim.right()
            assert wait_s <= now_s() - began <= wait_s + LOOK_S
        assert (await one.claim.right()).alone
        await one.stand_still()
        await two.stand_still()

    run_plain(main)


def test_a_cluster_that_ends_leaves_the_claim() -> None:
    """After an orderly end of a cluster the next one starts hosts at once."""

    async def main() -> None:
        bucket = memory_bucket()
        one, two = Head(bucket, "one"), Head(bucket, "two")
        one.begin()
        await one.claim.right()
        await one.stand_still()
        await one.claim.free()
        began = now_s()
        assert (await two.claim.right()).alone
        assert now_s() == began

    run_plain(main)


def test_a_bucket_that_does_not_answer_costs_the_claim_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the bucket does not answer, a cluster counts as the holder for as long as no other can have taken the
    claim; then it waits.
    """

    async def main() -> None:
        bucket = memory_bucket()
        head = Head(bucket, "one")
        head.begin()
        await head.claim.right()
        with monkeypatch.context() as out:
            out.setattr(bucket, "get_tagged", _unreachable)
            await asyncio.sleep(EXPIRES_S - BEAT_S)
            assert (await head.claim.right()).alone
            await asyncio.sleep(BEAT_S + 1)
            asked = asyncio.ensure_future(head.claim.right())
            await asyncio.sleep(100)
            assert not asked.done()
            assert "could not be kept" in head.notes[0]
        assert (await asked).alone
        await head.stand_still()

    run_plain(main)


def _unreachable(_: str) -> None:
    raise StoreError("the service does not answer")


def test_a_right_reaches_earlier_hosts_only() -> None:
    """A host may take the log of a host that was started before it, never that of a later host or of a command; hosts
    of other clusters only if they are known to be dead. Numbers rise also when the clock goes back.
    """

    async def main() -> None:
        claim = ClusterClaim("mine", None, clock=(clock := WallClock()), now_us=clock.now, note=print)
        first = await claim.right()
        clock.skew = -3600 * MICROSECONDS
        second = await claim.right()
        by_first, by_second = (PartitionBusy("", cluster="mine", start=right.mark.start) for right in (first, second))
        assert (second.covers(by_first), first.covers(by_second), second.covers(by_second)) == (True, False, False)
        other = PartitionBusy("", cluster="other", start=1)
        assert (second.covers(other), second.covers(PartitionBusy("", pid=7, owner="here/7"))) == (False, False)
        alone = FenceRight(second.mark, alone=True)
        assert (alone.covers(other), alone.covers(by_second), alone.covers(PartitionBusy(""))) == (True, False, False)

    run_plain(main)


def _host(bucket: ObstoreBucket, cluster: str, start: int) -> FileStore:
    return FileStore(ROOT, lambda: NOW, disk=ObjectDisk(bucket, ROOT), mark=HostMark(cluster, start))


def test_a_log_goes_from_host_to_host() -> None:
    """A log whose host died can be taken although the next host died before it opened the log; the first one writes
    nothing when it wakes, and the second one gets nothing when it comes late.
    """
    bucket, drafts = memory_bucket(), Drafts()
    FileStore.create(ROOT, lambda: NOW, "tests", disk=ObjectDisk(bucket, ROOT)).register("sam")
    first, second, third = (_host(bucket, "mine", start) for start in (1, 2, 3))
    woken = first.open("sam", "host")
    kept = list(woken.append("sam", 0, drafts.some(2)).records)
    with pytest.raises(PartitionBusy) as held:
        third.open("sam", "host")
    assert FenceRight(HostMark("mine", 3)).covers(held.value)
    log = third.open("sam", "host", take_over=True)
    kept += log.append("sam", 2, drafts.some(1)).records
    with pytest.raises(Fenced):
        woken.append("sam", 2, drafts.some(1))
    with pytest.raises(PartitionBusy) as held:
        second.open("sam", "host")
    assert not FenceRight(HostMark("mine", 2)).covers(held.value)
    with pytest.raises(PartitionBusy) as held:
        _host(bucket, "other", 1).open("sam", "host")
    assert FenceRight(HostMark("other", 1), alone=True).covers(held.value)
    assert list(third.reader("sam").read("sam")) == kept


def test_blocks_go_from_process_to_process() -> None:
    """A shared block whose writer died on another machine is edited by the next writer of the cluster; a process
    without a right is told who has it.
    """

    async def main() -> None:
        bucket, ids, now = memory_bucket(), CountingIds(), WallClock().now
        FileStore.create(ROOT, lambda: NOW, "tests", disk=ObjectDisk(bucket, ROOT))
        right = FenceRight(HostMark("mine", 2))
        edited: list[BlockEditOutcome] = []
        processes: list[tuple[FileStore, Callable[[PartitionBusy], bool], BlockOperation]] = [
            (_host(bucket, "mine", 1), right.covers, "created"),
            (_host(bucket, "", 0), lambda _: False, "appended"),
            (_host(bucket, "mine", 2), right.covers, "appended"),
        ]
        for store, may_fence, operation in processes:
            ports = Ports(clock=WallClock(), ids=ids, sleep=asyncio.sleep)
            writer = SharedBlockWriter(store, ports, keeps=True, may_fence=may_fence)
            edit = BlockEdit(
                name="team",
                operation=operation,
                id=ids.new(now()),
                content="x",
                limit=100 if operation == "created" else None,
            )
            edited.append(await writer.edit(edit))
        assert [(outcome.error[:21], outcome.busy) for outcome in edited] == [
            ("", False), ("It cannot be edited now"[:21], True), ("", False),
        ]  # fmt: skip
        assert edited[2].newest is not None and edited[2].newest.version == 2

    run_plain(main)
