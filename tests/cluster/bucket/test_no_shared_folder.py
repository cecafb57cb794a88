"""A cluster whose nodes share a bucket and no folder: each node has its own home and temporary files."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.bucket.separate_machines import Machines
from tests.cluster.hurt_cluster import hosts_are_killed, world
from tests.cluster.load_senders import SHARDS, Load
from tests.cluster.local_nodes import Nodes, cluster_of
from tests.support.store.bucket_server import make_bucket, s3_server, settings

pytestmark = [pytest.mark.ray, pytest.mark.long, pytest.mark.nodes]

TEST_S = 240
URL = "s3://bucket/agents"


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    """Run a service with a bucket; yield machines that know it. This process has a home of its own, too."""
    with s3_server() as address, settings(address, tmp_path / "caller") as values:
        make_bucket(address, "bucket")
        yield Machines(tmp_path / "machines", {name: value for name, value in values.items() if name != "HOME"})


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


def test_hosts_are_killed_where_no_folder_is_shared(nodes: Nodes, machines: Machines, tmp_path: Path) -> None:
    """Under load hosts are killed: no acknowledged message is lost or doubled, every agent answers again, and no node
    touches a file of another.
    """

    async def main() -> None:
        load = Load(shared=4, paying=2, dedicated=2)
        async with world(nodes, tmp_path, load, URL) as made:
            await asyncio.wait_for(made.under_load(hosts_are_killed), TEST_S)
            check_apart(machines, nodes)

    asyncio.run(main())
