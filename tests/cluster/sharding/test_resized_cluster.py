"""The number of shards of a cluster's store changes while its agents talk and processes are killed."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from everlog.actors.api import open_system
from everlog.actors.cluster.ray_runtime import RayRuntime
from everlog.actors.sharding.shard_mover import misplaced
from everlog.store import check, shard_of
from tests.cluster.load_senders import Load
from tests.cluster.process_kills import kill, titled

pytestmark = [pytest.mark.ray, pytest.mark.long, pytest.mark.cluster]
AGENTS = 40
TEST_S = 300
"""Seconds after which the test is ended: hosts are started, killed and started again."""


def test_shards_go_from_two_to_four_to_one_under_load(folder: Path) -> None:
    """Each message is in the log once and was answered, each agent is in its shard, and no log is damaged, although the
    supervisor and a shard are killed meanwhile.
    """
    asyncio.run(asyncio.wait_for(resized(folder), TEST_S))


async def resized(folder: Path) -> None:
    async with open_system(folder, runtime="ray", shards=2) as system:
        assert isinstance(system.runtime, RayRuntime)
        load = Load(AGENTS, 0, 0)
        await load.create(system)
        end = asyncio.Event()
        talks = [
            asyncio.ensure_future(load.keep_on(system, load.shared[start::4], end))  # each in a round of its own
            for start in range(4)
        ]
        for number, victim in ((4, "ray::SupervisorActor"), (1, "ray::host of shard-000")):
            system.store.set_shards(number)
            await system.runtime.move_to_shards()
            for pid in titled(victim)[:1]:
                kill(pid)
            while misplaced(system.store):  # noqa: ASYNC110 - processes of the cluster have to work
                await asyncio.sleep(0.2)
        end.set()
        await asyncio.gather(*talks)
        store = system.store
        assert {store.partition_of(name) for name in load.shared} == {shard_of("", 1)}
        for name in load.shared:
            records = list(store.reader(name).read(name))
            assert [record.seq for record in records] == list(range(1, len(records) + 1))
            heard = Counter(record.event_id for record in records if record.type == "user_message")
            assert heard == Counter(known for known, (agent, _) in load.said.items() if agent == name)
        assert load.answered == set(load.said)
        print(f"{len(load.said)} messages, {dict(load.failures)} sent again")
    assert all(check(store.partition(place), deep=True).ok for place in store.partitions())
