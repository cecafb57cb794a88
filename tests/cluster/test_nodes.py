"""Hosts, nodes and heads that end under load: every message once, answered once, and how soon after."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.actors.loopback import serving
from tests.cluster.books import judge
from tests.cluster.conftest import ends
from tests.cluster.hurting import (
    Sender,
    World,
    a_node_is_killed,
    a_node_stands_still,
    hosts_are_killed,
    world,
)
from tests.cluster.nodes import Nodes, cluster_of
from tests.cluster.senders import SHARDS, Load, pays

pytestmark = pytest.mark.ray

TEST_S = 240


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    """A head and two workers, each with room for all hosts."""
    with cluster_of(workers=2, slots=2 * SHARDS) as running:
        yield running


def hurt(nodes: Nodes, folder: Path, load: Load, *ways: Any) -> None:
    """Hurt the cluster in one way after the other. A worker that is lost is made good first."""

    async def scenario(world: World) -> None:
        for way in ways:
            while len(nodes.workers) < 2:
                await asyncio.to_thread(nodes.add)
            await world.under_load(way)

    async def main() -> None:
        async with world(nodes, folder, load) as made:
            await asyncio.wait_for(scenario(made), TEST_S)

    asyncio.run(main())


def test_a_host_and_then_a_node_are_killed(nodes: Nodes, tmp_path: Path) -> None:
    """With senders at work: nothing acknowledged is lost or doubled, no effect happens twice, everybody is back."""
    hurt(nodes, tmp_path, Load(shared=24, paying=6, dedicated=2), hosts_are_killed, a_node_is_killed)


@pytest.mark.long
def test_hosts_and_nodes_are_killed_again_and_again(nodes: Nodes, tmp_path: Path) -> None:
    """The same with a hundred agents in shards and four alone, twice."""
    ways = [hosts_are_killed, a_node_is_killed] * 2
    hurt(nodes, tmp_path, Load(shared=100, paying=30, dedicated=4), *ways)


@pytest.mark.long
def test_a_node_that_stood_still_writes_nothing_when_it_goes_on(nodes: Nodes, tmp_path: Path) -> None:
    """Its hosts were given up and others took over: they stop themselves, and nothing of theirs is acknowledged."""
    hurt(nodes, tmp_path, Load(shared=100, paying=30, dedicated=4), a_node_stands_still)


@pytest.mark.long
def test_a_restarted_head_is_a_new_cluster(nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hosts of the old one stop themselves, whoever asks joins the new one, and agents come back from the log."""
    store, paid, load = tmp_path / "store", tmp_path / "paid", Load(shared=100, paying=30, dedicated=4)
    with serving((200, "")) as endpoint:
        pays(endpoint)
        monkeypatch.setenv("RAY_ADDRESS", nodes.address)
        first = Sender(store, paid, endpoint.url, load)
        try:
            first.hear("ready")
            first.hear("answered")
            hosts = [pid for node in nodes.workers for pid in nodes.hosts(node)]
            began = time.monotonic()
            nodes.kill_head()
        finally:
            first.die()
        assert hosts
        nodes.begin(workers=2)
        monkeypatch.setenv("RAY_ADDRESS", nodes.address)
        second = Sender(store, paid, endpoint.url, load)
        try:
            second.hear("ready")
            print(f"the head was killed: {time.monotonic() - began:.1f} s until all agents answered in a new cluster")
            assert second.end() == (0, "")
        finally:
            second.die()
        assert all(ends(pid) for pid in hosts)
        print(judge(store, paid, load))
