"""Hosts and nodes that are killed under load: every acknowledged message once, answered once, and how soon that is."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from actors.api import AgentSystem, open_system
from tests.actors.loopback import serving
from tests.cluster.conftest import ends, stop_actors
from tests.cluster.deaths import kill
from tests.cluster.nodes import Nodes, cluster_of
from tests.cluster.senders import Load, judge, payer, pays

pytestmark = pytest.mark.ray

SENDERS = 3
SHARDS = 4
WARM_S = 1.0
"""So long the load runs before anybody is hurt."""


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    """A head and two workers, each with room for all hosts."""
    with cluster_of(workers=2, slots=2 * SHARDS) as running:
        yield running


class World:
    """A store in the cluster, its agents, and senders that talk to them all the time."""

    def __init__(self, system: AgentSystem, load: Load, nodes: Nodes, paid: Path) -> None:
        self.system = system
        self.load = load
        self.nodes = nodes
        self.paid = paid

    async def hosts(self) -> dict[str, int]:
        """The process of each place."""
        status = await self.system.runtime.status()  # type: ignore[attr-defined]
        return {host.place: host.pid for host in status.hosts}

    async def under_load(self, hurt: Callable[[], Awaitable[object]]) -> str:
        """Hurt the cluster while senders send, wait until every agent answers again, and look at the books."""
        end = asyncio.Event()
        shares = [self.load.agents[number::SENDERS] for number in range(SENDERS)]
        senders = [asyncio.ensure_future(self.load.keep_on(self.system, share, end)) for share in shares]
        try:
            await asyncio.sleep(WARM_S)
            await hurt()
            seconds = await self.load.recovered(self.system)
            end.set()
            await asyncio.gather(*senders)
        finally:
            for sender in senders:  # who asks Ray for anything when it has been left ends this process
                sender.cancel()
            await asyncio.gather(*senders, return_exceptions=True)
        return f"recovered after {seconds:.1f} s; {judge(self.system, self.load, self.paid)}"


@asynccontextmanager
async def world(nodes: Nodes, folder: Path, load: Load) -> AsyncIterator[World]:
    """The agents are made, in shards and alone."""
    paid = folder / "paid"
    with serving((200, "")) as endpoint:
        pays(endpoint)
        options = {"base_url": endpoint.url, "tools": [payer(paid)]}
        async with open_system(folder / "store", runtime="ray", placement="shared", shards=SHARDS, **options) as system:
            await load.create(system)
            nodes.remember()
            try:
                yield World(system, load, nodes, paid)
            finally:
                nodes.remember()
                stop_actors(folder / "store")


async def kill_a_host(world: World) -> None:
    """SIGKILL for one host of a shard, and for one that has a single agent."""
    hosts = await world.hosts()
    kill(hosts["shard-001"], *(pid for place, pid in list(hosts.items())[:8] if place == "alone 0"))


async def kill_a_node(world: World) -> None:
    """SIGKILL for a worker's raylet, while a new worker joins; no host of it may outlive it."""
    node = world.nodes.node_of((await world.hosts())["shard-000"])
    hosts = world.nodes.hosts(node)
    world.nodes.kill(node)
    assert all(ends(pid) for pid in hosts)


def run(scenario: Awaitable[None], seconds: float = 120) -> None:
    async def main() -> None:
        try:
            await asyncio.wait_for(scenario, seconds)
        except BaseException:
            import os
            import traceback

            os.write(
                os.open("/tmp/chaos_tb.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), traceback.format_exc().encode()
            )
            raise

    asyncio.run(main())


def test_a_host_and_then_a_node_are_killed(nodes: Nodes, tmp_path: Path) -> None:
    """With senders at work: nothing acknowledged is lost or doubled, no effect happens twice, everybody is back."""

    async def scenario() -> None:
        async with world(nodes, tmp_path, Load(shared=24, paying=6, dedicated=2)) as hurt:
            print("a host was killed:", await hurt.under_load(lambda: kill_a_host(hurt)))
            print("a node was killed:", await hurt.under_load(lambda: kill_a_node(hurt)))

    run(scenario())
