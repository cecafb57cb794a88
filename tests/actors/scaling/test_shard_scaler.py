"""The task that lets shards follow their load, over hosts that report what a test says."""

import asyncio
import errno
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from everlog.actors.agent.commands import Command, MoveAgent
from everlog.actors.hosting.cluster_status import HostStatus
from everlog.actors.hosting.metrics import AgentWork
from everlog.actors.ports.ports import Ports
from everlog.actors.scaling.scaling_plan import COOL_S, GROW_S, HOT_S, LOOK_S
from everlog.actors.scaling.shard_scaler import ShardScaler
from everlog.actors.sharding.shard_mover import ShardMover, misplaced, shards_for
from everlog.events import Busy, EverlogError, StoreError
from everlog.events.times import MICROSECONDS
from everlog.store import FileStore, MemoryStore, partition_of, shard_name, shard_of
from tests.contract.log_contract import Drafts
from tests.support.agents.journal_world import in_place
from tests.support.agents.virtual_time_runtime import run_plain
from tests.support.store.faulty_disk import Broken, FaultyDisk

NAMES = [f"agent {number}" for number in range(40)]


class Clock:
    """A clock that a test turns on."""

    us = 0

    def now(self) -> int:
        return self.us


class Cluster:
    """A scaler over shards whose processes use what `work` says, in processors."""

    def __init__(self, setting: str = "2:8", store: Any = None) -> None:
        self.clock = Clock()
        self.store = MemoryStore(2, self.clock.now) if store is None else store
        self.store.register_many(NAMES, shared=True)
        self.work: dict[str, float] = {}
        self.busiest: dict[str, tuple[str, float]] = {}
        self.cpu: dict[str, int] = {}
        self.silent = False
        self.answers: list[EverlogError] = []
        self.notes: list[str] = []
        self.arrived: list[str] = []
        ports = Ports(clock=self.clock, note=self.notes.append, aside=in_place, sleep=self.sleep)
        self.mover = ShardMover(self.store, self.send, ports, self.note_arrived)
        self.scaler = ShardScaler(
            setting, self.store, self.measure, self.send, self.mover, self.note_arrived, ports=ports
        )

    async def sleep(self, _: float) -> None:
        """Return at once."""

    async def note_arrived(self, agents: Sequence[str]) -> None:
        self.arrived.extend(agents)

    async def send(self, commands: Sequence[tuple[str, Command]]) -> Sequence[EverlogError | None]:
        return [self.move(name, command) for name, command in commands]

    def move(self, name: str, command: Command) -> EverlogError | None:
        assert isinstance(command, MoveAgent)
        if self.answers:
            return self.answers.pop()
        try:
            log = self.store.open(name, "test")
            try:
                self.store.begin_move(log, name, command.to or shard_of(name, self.store.shards))
            finally:
                log.close()
        except EverlogError as error:
            return error
        return None

    async def measure(self, number: int) -> Sequence[HostStatus | None]:
        if self.silent:
            return [None]
        found = []
        for shard in map(shard_name, range(number)):
            if shard in self.work:
                agent, share = self.busiest.get(shard, ("", 0.0))
                found.append(
                    HostStatus(
                        place=shard,
                        placement="shared",
                        node="n",
                        pid=1,
                        cpu_us=self.cpu[shard],
                        busiest=agent,
                        busiest_share=share,
                    )
                )
        return found

    async def live(self, seconds: float) -> None:
        """Let time pass, with a look every LOOK_S seconds; wait for the mover."""
        for _ in range(int(seconds / LOOK_S)):
            self.clock.us += LOOK_S * MICROSECONDS
            for shard, work in self.work.items():
                self.cpu[shard] = self.cpu.get(shard, 0) + round(work * LOOK_S * MICROSECONDS)
            await self.scaler.look()
            if self.mover._task is not None:
                await self.mover._task

    @property
    def seen(self) -> Any:
        found = self.scaler.status
        assert found is not None
        return found


def test_busy_shards_are_split_and_their_agents_moved() -> None:
    """Shards that stay busy become twice as many, each agent is where it belongs, and people can read why."""

    async def main() -> None:
        cluster = Cluster()
        cluster.work = {"shard-000": 0.9, "shard-001": 0.9}
        await cluster.live(GROW_S + 5 * LOOK_S)
        assert (cluster.store.shards, cluster.seen.shards, cluster.seen.resizes) == (4, 4, 1)
        assert not misplaced(cluster.store)
        assert cluster.seen.last == "changed from 2 to 4 shards: shard-000 used more than 0.7 of a processor for 120 s"
        assert cluster.notes == [cluster.seen.last]

    run_plain(main)


def test_shards_without_a_process_are_joined() -> None:
    """Eight shards that nothing uses become two, one halving after the other."""

    async def main() -> None:
        cluster = Cluster()
        cluster.store.set_shards(8)
        await cluster.live(3600)
        assert cluster.store.shard_numbers.all() == (2, 8, 4, 2)

    run_plain(main)


def test_hosts_that_do_not_answer_change_nothing() -> None:
    """While a host is silent nothing is decided, however long that takes."""

    async def main() -> None:
        cluster = Cluster()
        cluster.store.set_shards(8)
        cluster.silent = True
        await cluster.live(7200)
        assert cluster.store.shards == 8

    run_plain(main)


def test_a_number_that_a_person_has_set_stays_for_a_while() -> None:
    """A change by a person within the range holds for COOL_S seconds at least, whatever the load is."""

    async def main() -> None:
        cluster = Cluster()
        cluster.work = {"shard-000": 0.9, "shard-001": 0.9}
        await cluster.live(GROW_S - LOOK_S)
        cluster.store.set_shards(3)
        await cluster.live(COOL_S)
        assert cluster.store.shards == 3
        await cluster.live(2 * LOOK_S)
        assert cluster.store.shards == 6

    run_plain(main)


def hot(cluster: Cluster) -> str:
    """Make an agent hot, in a store with four shards, and return its name."""
    cluster.store.set_shards(4)
    name = next(
        name for name in NAMES if len(shards_for(cluster.store, name)) >= 2 and shard_of(name, 4) != "shard-000"
    )
    home = shard_of(name, 4)
    for other in NAMES:
        log = cluster.store.open(other, "test")
        cluster.store.begin_move(log, other, shard_of(other, 4))
        log.close()
    cluster.work = {home: 0.9, "shard-000": 0.05}
    cluster.busiest = {home: (name, 0.6)}
    return name


def test_a_hot_agent_is_moved_and_a_new_look_of_the_mover_leaves_it_there() -> None:
    """A hot agent goes to an idle shard that no number gives its name, so it is not out of place there."""

    async def main() -> None:
        cluster = Cluster("4:4")
        name = hot(cluster)
        await cluster.live(HOT_S + 3 * LOOK_S)
        there = cluster.store.partition_of(name)
        assert there != shard_of(name, 4)
        assert (cluster.seen.moves, cluster.arrived) == (1, [name])
        assert f"moved {name!r} to {there}: " in cluster.seen.last
        cluster.mover.begin()
        assert cluster.mover._task is not None
        await cluster.mover._task
        assert cluster.store.partition_of(name) == there
        assert not misplaced(cluster.store)
        cluster.store.set_shards(1)
        assert name in misplaced(cluster.store)

    run_plain(main)


def test_a_hot_agent_that_is_at_work_is_tried_again_later() -> None:
    """An agent that cannot be moved now is no fault, and is moved after the next HOT_S seconds."""

    async def main() -> None:
        cluster = Cluster("4:4")
        name = hot(cluster)
        cluster.answers = [Busy("at work", retry_after_s=1)]
        await cluster.live(HOT_S + 3 * LOOK_S)
        assert (cluster.seen.moves, cluster.seen.fault, cluster.answers) == (0, "", [])
        await cluster.live(HOT_S + 3 * LOOK_S)
        assert cluster.store.partition_of(name) != shard_of(name, 4)

    run_plain(main)


def test_an_agent_that_a_person_has_moved_stays() -> None:
    """An agent that has had a log of its own, or that was moved because of its load before, may go nowhere."""
    store = MemoryStore(2, lambda: 0)
    store.set_shards(4)
    store.register_many(NAMES, shared=True)
    assert all(shards_for(store, name) for name in NAMES if len({shard_of(name, 2), shard_of(name, 4)}) < 4)
    by_hand, by_load = NAMES[:2]
    for name, way in (
        (by_hand, (partition_of(by_hand), shard_of(by_hand, 4))),
        (by_load, (max(shards_for(store, by_load)), shard_of(by_load, 4))),
    ):
        for to in way:
            log = store.open(name, "test")
            store.begin_move(log, name, to)
            log.close()
        assert store.partition_of(name) == shard_of(name, 4)
        assert shards_for(store, name) == set()


def test_without_a_range_nothing_is_measured() -> None:
    """Without a setting the task ends at once, and has no figures; a setting that cannot be used is a fault."""

    async def main() -> None:
        off, wrong = Cluster(""), Cluster("16")
        await off.scaler.run()
        await wrong.scaler.run()
        assert off.scaler.status is None
        assert off.notes == []
        assert "such as 2:16" in wrong.seen.fault
        assert len(wrong.notes) == 1

    run_plain(main)


def test_a_full_disk_leaves_the_number_and_the_next_look_tries_again() -> None:
    """If the disk is full at any step of a change, the number is the old one or the new one, and it is changed as soon
    as there is room.
    """

    async def main() -> None:
        for operation in ("create", "write", "sync", "link", "sync_dir"):
            disk = FaultyDisk()
            store = FileStore.create(Path("/sim"), lambda: 0, "sim", shards=2, disk=disk)
            cluster = Cluster(store=store)
            cluster.work = {"shard-000": 0.9, "shard-001": 0.9}
            disk.make_dirs(Path("/sim/shards"))
            await cluster.live(GROW_S)
            disk.fail(operation, errno.ENOSPC)
            with pytest.raises(StoreError, match="No space left"):
                await cluster.live(3 * LOOK_S)
            assert FileStore(Path("/sim"), lambda: 0, disk=disk).shards in (2, 4)
            await cluster.live(COOL_S + GROW_S)
            assert store.shards >= 4
            assert not misplaced(store)

    run_plain(main)


def test_agents_that_a_full_disk_keeps_in_place_are_moved_when_there_is_room() -> None:
    """If the disk is full when the agents move, they stay where they are and keep their records; the reason is told,
    and the next look of the mover moves them.
    """

    async def main() -> None:
        disk = FaultyDisk()
        cluster = Cluster(store=FileStore.create(Path("/sim"), lambda: 0, "sim", shards=2, disk=disk))
        store = cluster.store
        drafts = Drafts()
        for name in NAMES:
            log = store.open(name, "test")
            log.append(name, 0, [drafts.one("a word")])
            log.close()
        before = store.assigned()
        store.set_shards(4)
        disk.broken, disk.breaks_at = Broken(errno.ENOSPC, frozenset({"write"})), len(disk.log)
        cluster.mover.begin()
        await asyncio.wait([cluster.mover._task])  # type: ignore[list-item]
        assert store.assigned() == before
        assert "No space left" in cluster.mover.status.faults[0]
        disk.broken = None
        cluster.mover.begin()
        await asyncio.wait([cluster.mover._task])  # type: ignore[list-item]
        assert not misplaced(store)
        for name in NAMES:
            assert sum(record.text == "a word" for record in store.reader(name).read(name)) == 1

    run_plain(main)


def test_the_busiest_agent_is_that_of_the_newest_records() -> None:
    """The share of the busiest agent is that of the records counted, old ones are forgotten, and memory is bounded."""
    work = AgentWork()
    assert work.busiest == ("", 0)
    work.add(["ann"] * 3 + ["bob"])
    assert work.busiest == ("ann", 0.75)
    for start in range(0, 100 * AgentWork.RECORDS_MAX, 100):
        work.add([f"agent {number}" for number in range(start, start + 100)])
        assert len(work._records) <= AgentWork.RECORDS_MAX + 100
    work.add(["bob"] * AgentWork.RECORDS_MAX)
    agent, share = work.busiest
    assert agent == "bob"
    assert 0.5 < share <= 1
