"""Hosts, nodes and heads that end under load: every message is recorded and answered once. The time until recovery is
printed.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from everlog.actors.api import open_system
from everlog.actors.reply import SendOutcome
from everlog.events import BadInput, ClusterError
from tests.cluster.conftest import ends, stop_actors
from tests.cluster.hurt_cluster import (
    Sender,
    Waits,
    World,
    a_node_is_killed,
    a_node_stands_still,
    hosts_are_killed,
    world,
)
from tests.cluster.load_senders import SHARDS, Load, pays
from tests.cluster.local_nodes import Nodes, cluster_of
from tests.cluster.store_audit import judge
from tests.contract.contract_agents import alive, log, texts
from tests.support.models.loopback_server import serving

pytestmark = pytest.mark.ray

TEST_S = 240
SETTLED_S = 10
"""Seconds after which hosts that have room have started."""
DRAINED_AGENTS = 500
LONGEST_S = 20
"""Longest wait of a message during a drain, on a busy machine. The goal of 5 s is for a quiet one."""


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    """Run a head and two workers, each with room for all hosts."""
    with cluster_of(workers=2, slots=2 * SHARDS) as running:
        yield running


def hurt(nodes: Nodes, folder: Path, load: Load, *ways: Any) -> None:
    """Damage the cluster in one way after the other, and replace lost workers before each."""

    async def scenario(world: World) -> None:
        for way in ways:
            while len(nodes.workers) < 2:
                await asyncio.to_thread(nodes.add)
            await world.under_load(way)

    async def main() -> None:
        async with world(nodes, folder, load) as made:
            await asyncio.wait_for(scenario(made), TEST_S)

    asyncio.run(main())


@pytest.mark.long
@pytest.mark.nodes
def test_a_host_and_then_a_node_are_killed(nodes: Nodes, tmp_path: Path) -> None:
    """Under load, no acknowledged message is lost or doubled, no effect happens twice, and every agent answers
    again.
    """
    hurt(nodes, tmp_path, Load(shared=24, paying=6, dedicated=2), hosts_are_killed, a_node_is_killed)


@pytest.mark.long
@pytest.mark.nodes
def test_hosts_and_nodes_are_killed_again_and_again(nodes: Nodes, tmp_path: Path) -> None:
    """The same holds for a hundred shared and four dedicated agents, twice."""
    ways = [hosts_are_killed, a_node_is_killed] * 2
    hurt(nodes, tmp_path, Load(shared=100, paying=30, dedicated=4), *ways)


@pytest.mark.long
@pytest.mark.nodes
def test_a_stopped_node_writes_nothing_when_it_resumes(nodes: Nodes, tmp_path: Path) -> None:
    """Hosts on a stopped node are replaced; when they resume, they end themselves, and none of their writes is
    acknowledged.
    """
    hurt(nodes, tmp_path, Load(shared=100, paying=30, dedicated=4), a_node_stands_still)


@pytest.fixture
def narrow() -> Iterator[Nodes]:
    """Run a cluster with room for one host."""
    with cluster_of(workers=1, slots=1) as running:
        yield running


@pytest.mark.long
@pytest.mark.nodes
@alive
async def test_a_cluster_without_a_free_slot(narrow: Nodes, tmp_path: Path) -> None:
    """Agents whose shard has a host answer, the others wait, and the status shows the waiting hosts; with more room all
    are answered.
    """
    names = [f"agent {number}" for number in range(9)]
    async with open_system(tmp_path / "store", runtime="ray", placement="shared", shards=3) as system:
        try:
            runtime: Any = system.runtime
            made: list[SendOutcome] = []
            making = asyncio.ensure_future(_all(made, system.create_many(names)))
            await asyncio.sleep(SETTLED_S)
            status = await runtime.status()
            assert (len(status.hosts), status.supervisor.starting, making.done()) == (1, 2, False)
            for _ in range(2):
                await asyncio.to_thread(narrow.add)
            await making
            said: list[SendOutcome] = []
            await _all(said, system.send_many([(name, "One") for name in names]))
            assert {sent.error for sent in made + said} == {None}
            assert [texts(log(system, name), "user_message") for name in names] == [["One"]] * len(names)
        finally:
            narrow.remember()
            stop_actors(tmp_path / "store")


async def _all(found: list[SendOutcome], outcomes: AsyncIterator[SendOutcome]) -> None:
    async for sent in outcomes:
        found.append(sent)


@pytest.mark.long
@pytest.mark.nodes
def test_a_restarted_head_is_a_new_cluster(nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hosts of the old head end themselves, new commands join the new cluster, and the agents continue from their
    logs.
    """
    store, paid, load = tmp_path / "store", tmp_path / "paid", Load(shared=100, paying=30, dedicated=4)
    with serving((200, "")) as endpoint:
        pays(endpoint)
        monkeypatch.setenv("RAY_ADDRESS", nodes.address)
        with Sender(store, paid, endpoint.url, load) as first:
            first.hear("ready")
            first.hear("answered")
            hosts = [pid for node in nodes.workers for pid in nodes.hosts(node)]
            began = time.monotonic()
            nodes.kill_head()
        assert hosts
        nodes.begin(workers=2)
        monkeypatch.setenv("RAY_ADDRESS", nodes.address)
        with Sender(store, paid, endpoint.url, load) as second:
            second.hear("ready")
            print(f"the head was killed: {time.monotonic() - began:.1f} s until all agents answered in a new cluster")
            assert second.end() == (0, "")
        assert all(ends(pid) for pid in hosts)
        print(judge(store, paid, load))


@pytest.mark.long
@pytest.mark.nodes
def test_a_node_is_drained_under_load(nodes: Nodes, tmp_path: Path) -> None:
    """The hosts of a drained node leave it, no host is started there any more, every message is recorded and answered
    once, and none waits long. The other node cannot be drained then, nor can the head.
    """
    waits = Waits()
    load = Load(shared=DRAINED_AGENTS, paying=0, dedicated=4, tell=waits.tell)

    async def drained(made: World) -> None:
        runtime: Any = made.system.runtime
        await load.recovered(made.system)
        node = nodes.node_of((await made.hosts())["shard-000"])
        hosts, before = nodes.hosts(node), max(waits.seconds)
        waits.seconds.clear()
        began = time.monotonic()
        moved = await runtime.drain(node.node_id)
        seconds = time.monotonic() - began
        await load.recovered(made.system)
        print(f"{moved} hosts moved in {seconds:.1f} s; longest wait of {len(waits.seconds)} messages "
              f"{max(waits.seconds):.1f} s, before the drain {before:.1f} s")  # fmt: skip
        assert moved == len(hosts) > 0
        assert nodes.hosts(node) == []
        status = await runtime.status()
        assert (len(status.hosts) + status.silent, status.supervisor.deaths) == (SHARDS + 4, 0)
        other = next(worker for worker in nodes.workers if worker is not node)
        with pytest.raises(ClusterError, match="No other node"):
            await runtime.drain(other.node_id)
        with pytest.raises(BadInput, match="head cannot be drained"):
            await runtime.drain(nodes.head.node_id)
        with pytest.raises(BadInput, match="0 nodes of the cluster are called 'nowhere'"):
            await runtime.drain("nowhere")

    async def main() -> None:
        async with world(nodes, tmp_path, load) as made:
            await asyncio.wait_for(made.under_load(drained), TEST_S)

    asyncio.run(main())
    assert max(waits.seconds) < LONGEST_S
