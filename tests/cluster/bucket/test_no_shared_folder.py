"""A cluster whose nodes share a bucket and no folder: each node has its own home and temporary files. Hosts, nodes and
heads die; the longest wait of a message is printed.
"""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from everlog.store import folder_of
from tests.cluster.bucket.separate_machines import Machines
from tests.cluster.conftest import ends
from tests.cluster.hurt_cluster import ALONE_S, Sender, Waits, all_of_a_node_is_killed, hosts_are_killed, world
from tests.cluster.load_senders import SHARDS, Load, pays
from tests.cluster.local_nodes import Nodes, cluster_of
from tests.cluster.process_kills import kill
from tests.cluster.store_audit import judge
from tests.support.models.loopback_server import serving
from tests.support.store.bucket_server import make_bucket, s3_server, settings

pytestmark = [pytest.mark.ray, pytest.mark.long, pytest.mark.nodes]

TEST_S = 240


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    """Run a service with a bucket; yield machines that know it. This process has a home of its own, too."""
    with s3_server() as address, settings(address, tmp_path / "caller") as values:
        make_bucket(address, "bucket")
        yield Machines(tmp_path / "machines", {name: value for name, value in values.items() if name != "HOME"})


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Return the address of a new store: the service keeps what earlier tests of this process have put there."""
    return f"s3://bucket/{tmp_path.name}"


@pytest.fixture
def nodes(machines: Machines) -> Iterator[Nodes]:
    """Run a head and two workers, each with room for all hosts."""
    with cluster_of(2, 2 * SHARDS, machines.environment) as running:
        yield running


def check_apart(machines: Machines, nodes: Nodes) -> None:
    """Check that no process of a node has touched or holds a file of another one."""
    for number, node in enumerate(nodes.all_nodes):
        if node is not nodes.head and node not in nodes.workers:
            continue  # it was killed
        assert machines.held(number, nodes.family(node)) == [], number
    assert machines.touched() == []


def test_hosts_are_killed_where_no_folder_is_shared(nodes: Nodes, machines: Machines, url: str, tmp_path: Path) -> None:
    """Under load hosts are killed: no acknowledged message is lost or doubled, every agent answers again, and no node
    touches a file of another.
    """

    async def main() -> None:
        load = Load(shared=4, paying=2, dedicated=2)
        async with world(nodes, tmp_path, load, url) as made:
            await asyncio.wait_for(made.under_load(hosts_are_killed), TEST_S)
            check_apart(machines, nodes)

    asyncio.run(main())


def test_a_node_dies_where_no_folder_is_shared(nodes: Nodes, machines: Machines, url: str, tmp_path: Path) -> None:
    """Under load all processes of a node die: each message is recorded and answered once, and every agent answers again
    from the other node, which touches no file of the dead one.
    """

    async def main() -> None:
        waits = Waits()
        load = Load(shared=4, paying=2, dedicated=2, tell=waits.tell)
        async with world(nodes, tmp_path, load, url) as made:
            await asyncio.wait_for(made.under_load(all_of_a_node_is_killed), TEST_S)
            check_apart(machines, nodes)
        print(f"longest wait of {len(waits.seconds)} messages: {max(waits.seconds):.1f} s")

    asyncio.run(main())


def test_a_new_cluster_takes_over_from_a_dead_one(
    nodes: Nodes, machines: Machines, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under load the head and a node die, and the other node stands still: in a new cluster on other machines every
    agent answers again, each message is recorded and answered once, and the hosts that stood still end when they wake.
    """
    paid, load = tmp_path / "paid", Load(shared=4, paying=2, dedicated=2)
    with serving((200, "")) as endpoint:
        pays(endpoint)
        with Sender(url, paid, endpoint.url, load) as first:
            first.hear("ready")
            first.hear("answered")
            node = max(nodes.workers, key=lambda node: len(nodes.hosts(node)))
            hosts, began = nodes.hosts(node), time.monotonic()
            family = nodes.stop(node)
            kill(*nodes.kill_head())
        nodes.begin(workers=2)
        monkeypatch.setenv("RAY_ADDRESS", nodes.address)
        with Sender(url, paid, endpoint.url, load) as second:
            second.hear("ready")
            print(f"the cluster died: {time.monotonic() - began:.1f} s until all agents answered in a new one")
            nodes.go_on(hosts)
            by_themselves = [pid for pid in hosts if ends(pid, ALONE_S * 1000)]
            nodes.go_on(family)
            assert hosts
            assert all(ends(pid) for pid in hosts)
            print(f"of {len(hosts)} hosts that stood still {len(by_themselves)} ended by themselves")
            assert second.end() == (0, "")
        check_apart(machines, nodes)
        print(judge(folder_of(url), paid, load))
