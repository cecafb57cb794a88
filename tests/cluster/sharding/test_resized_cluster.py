"""The number of shards of a cluster's store changes while its agents talk and processes are killed."""

import asyncio
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from everlog.actors.agent_system import AgentSystem
from everlog.actors.api import open_system
from everlog.actors.cluster import ray_runtime
from everlog.actors.cluster.ray_runtime import RayRuntime, SupervisorActor
from everlog.actors.scaling import scaling_plan, shard_scaler
from everlog.actors.sharding.shard_mover import misplaced
from everlog.store import check, shard_of
from tests.cluster.load_senders import Load
from tests.cluster.process_kills import kill, titled

pytestmark = [pytest.mark.ray, pytest.mark.long, pytest.mark.cluster]
AGENTS = 40
HOT_SHARE = 20
"""Messages to a hot agent for one to each other agent: with about as many others in its shard, half of the work and
more is its own.
"""
IDLE_S = 3
"""Seconds after which an idle shard's process ends, where that matters."""
TEST_S = 300
"""Seconds after which the test is ended: hosts are started, killed and started again."""


def test_shards_go_from_two_to_four_to_one_under_load(folder: Path) -> None:
    """Each message is in the log once and was answered, each agent is in its shard, and no log is damaged, although the
    supervisor and a shard are killed meanwhile.
    """
    asyncio.run(asyncio.wait_for(resized(folder), TEST_S))


def assert_heard_once(system: AgentSystem, load: Load) -> None:
    """Check that each log has each message to its agent once and no gap, and that all messages were answered."""
    for name in load.shared:
        records = list(system.store.reader(name).read(name))
        assert [record.seq for record in records] == list(range(1, len(records) + 1))
        heard = Counter(record.event_id for record in records if record.type == "user_message")
        assert heard == Counter(known for known, (agent, _) in load.said.items() if agent == name)
    assert load.answered == set(load.said)


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
        assert_heard_once(system, load)
        print(f"{len(load.said)} messages, {dict(load.failures)} sent again")
    assert all(check(store.partition(place), deep=True).ok for place in store.partitions())


def test_the_number_of_shards_follows_the_load(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the agents of a single shard are busy, there are two and then four shards without a command of a person, the
    agents are moved to them. If all rest until their processes end, there is one again. `status` tells why, and no
    message is lost or doubled.
    """
    monkeypatch.setattr(ray_runtime, "SupervisorActor", quick_supervisor("1:4"))
    asyncio.run(asyncio.wait_for(followed(folder), TEST_S))


def test_a_hot_agent_leaves_its_shard(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a single shard is busy, it is split; if one agent then makes most of the work of its shard, it is moved to the
    shard that is idle, though the number of shards gives its name the other. It is not taken back, `status` tells why
    it was moved, and no message is lost or doubled.
    """
    monkeypatch.setattr(ray_runtime, "SupervisorActor", quick_supervisor("1:2", HOT_S=4))
    asyncio.run(asyncio.wait_for(relieved(folder), TEST_S))


def quick_supervisor(within: str, **quicker: float) -> type[SupervisorActor]:
    """Return the class of a supervisor that finds shards busy sooner. `within` is the range of their number, `quicker`
    has more constants of `scaling_plan`.
    """

    class QuickSupervisor(SupervisorActor):
        """A supervisor that finds shards busy sooner."""

        def __init__(self, *arguments: Any) -> None:
            os.environ[scaling_plan.VARIABLE] = within
            quick = {"LOOK_S": 1, "GROW_S": 4, "SHRINK_S": 4, "COOL_S": 5, "GROW_LOAD": 0.02, "SHRINK_LOAD": 0}
            for name, value in {**quick, **quicker}.items():
                setattr(scaling_plan, name, value)
            shard_scaler.LOOK_S = 1
            shard_scaler.SHRINK_S = 4
            super().__init__(*arguments)

    return QuickSupervisor


async def followed(folder: Path) -> None:
    async with open_system(folder, runtime="ray", shards=1, idle_s=IDLE_S) as system:
        assert isinstance(system.runtime, RayRuntime)
        load = Load(AGENTS, 0, 0)
        await load.create(system)
        end = asyncio.Event()
        talks = [asyncio.ensure_future(load.keep_on(system, load.shared[start::4], end)) for start in range(4)]
        while system.store.shards < 4 or misplaced(system.store):  # noqa: ASYNC110 - hosts have to work
            await asyncio.sleep(0.2)
        supervisor = (await system.runtime.status()).supervisor
        assert supervisor is not None
        assert supervisor.scaling is not None
        assert (supervisor.scaling.resizes, supervisor.scaling.fault) == (2, "")
        assert supervisor.scaling.last.startswith("changed from 2 to 4 shards: shard-00")
        end.set()
        await asyncio.gather(*talks)
        while system.store.shards > 1 or misplaced(system.store):  # noqa: ASYNC110 - hosts have to end
            await asyncio.sleep(0.2)
        assert_heard_once(system, load)


async def relieved(folder: Path) -> None:
    async with open_system(folder, runtime="ray", shards=1) as system:
        assert isinstance(system.runtime, RayRuntime)
        store, load = system.store, Load(HOT_SHARE, 0, 0)
        await load.create(system)
        # Every name was given shard-000 by the number 1, so that an agent moves by load to shard-001 alone.
        beside = [name for name in load.shared if shard_of(name, 2) == "shard-000"]
        hot = beside[0]

        async def talk(agents: list[str], until: Callable[[], bool]) -> None:
            end = asyncio.Event()
            talks = [asyncio.ensure_future(load.keep_on(system, agents[start::4], end)) for start in range(4)]
            while not until():  # noqa: ASYNC110 - processes of the cluster have to work
                await asyncio.sleep(0.2)
            end.set()
            await asyncio.gather(*talks)

        await talk([*load.shared, *[hot] * HOT_SHARE], lambda: store.shards == 2 and not misplaced(store))
        assert store.partition_of(hot) == "shard-000"
        await talk([*beside, *[hot] * HOT_SHARE], lambda: store.partition_of(hot) == "shard-001")
        assert misplaced(store) == []
        await load.round(system, [*load.shared, *[hot] * HOT_SHARE])
        supervisor = (await system.runtime.status()).supervisor
        assert supervisor is not None
        assert supervisor.scaling is not None
        found = supervisor.scaling
        assert (found.resizes, found.moves, found.fault) == (1, 1, "")
        assert found.last.startswith(f"moved {hot!r} to shard-001: it made most of the work of shard-000")
        assert store.partition_of(hot) == "shard-001"
        assert_heard_once(system, load)
        print(f"{len(load.said)} messages, {dict(load.failures)} sent again; {found.last}")
    assert all(check(store.partition(place), deep=True).ok for place in store.partitions())
