"""A store in a cluster of several nodes, its agents, senders, and functions that damage the cluster."""

import asyncio
import json
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Self

from everlog.actors.agent_system import AgentSystem
from everlog.actors.api import open_system
from tests.cluster.conftest import ends, stop_actors
from tests.cluster.load_senders import SHARDS, Bills, Load, payer, pays
from tests.cluster.local_nodes import Nodes
from tests.cluster.process_kills import kill
from tests.cluster.store_audit import judge
from tests.soak.test_killed_processes import start
from tests.support.models.loopback_server import serving

SENDERS = 3
WARM_S = 1.0
"""Seconds of load before the cluster is damaged."""
ALONE_S = 3
"""Seconds for which hosts on a surviving node continue."""


class World:
    """A store in a cluster that this process has joined."""

    def __init__(self, system: AgentSystem, load: Load, nodes: Nodes, paid: Path) -> None:
        self.system = system
        self.load = load
        self.nodes = nodes
        self.paid = paid

    async def hosts(self) -> dict[str, int]:
        """Return the process id of each host, by partition."""
        status = await self.system.runtime.status()  # type: ignore[attr-defined]
        return {host.place: host.pid for host in status.hosts}

    async def under_load(self, hurt: Callable[["World"], Awaitable[Any]]) -> Any:
        """Damage the cluster while senders send, wait until every agent answers again, and print the time that this
        took.

        If `hurt` returns a function, it is called before the senders end. At the end all messages and effects are
        compared with the logs.
        """
        end = asyncio.Event()
        shares = [self.load.agents[number::SENDERS] for number in range(SENDERS)]
        senders = [asyncio.ensure_future(self.load.keep_on(self.system, share, end)) for share in shares]
        try:
            await asyncio.sleep(WARM_S)
            began = time.monotonic()
            after = await hurt(self)
            await self.load.recovered(self.system)
            seconds = time.monotonic() - began
            if after is not None:
                await asyncio.to_thread(after)
            end.set()
            await asyncio.gather(*senders)
        finally:
            for sender in senders:
                sender.cancel()
            await asyncio.gather(*senders, return_exceptions=True)
        print(f"{hurt.__name__}: {seconds:.1f} s; {judge(self.system.store.root, self.paid, self.load)}")


@asynccontextmanager
async def world(nodes: Nodes, folder: Path, load: Load, store: str = "") -> AsyncIterator[World]:
    """Open a world whose agents, shared and dedicated ones, have been created. `store`: its address; empty: it is in
    `folder`.
    """
    paid, store = folder / "paid", store or str(folder / "store")
    with serving((200, "")) as endpoint:
        pays(endpoint)
        options: dict[str, Any] = {"base_url": endpoint.url, "tools": [payer(paid)]}
        async with open_system(store, runtime="ray", placement="shared", shards=SHARDS, **options) as system:
            try:
                await load.create(system)
                yield World(system, load, nodes, paid)
            finally:
                nodes.remember()
                stop_actors(system.store.root)


async def hosts_are_killed(world: World) -> None:
    """Send SIGKILL to the host of a shard and to a dedicated host."""
    hosts = await world.hosts()
    kill(*(hosts[place] for place in ("shard-001", "alone 0") if place in hosts))


async def a_node_is_killed(world: World) -> None:
    """Send SIGKILL to a worker's raylet, and check that its hosts end."""
    node = world.nodes.node_of((await world.hosts())["shard-000"])
    hosts = world.nodes.hosts(node)
    world.nodes.kill(node)
    assert hosts
    assert all(ends(pid) for pid in hosts)


async def all_of_a_node_is_killed(world: World) -> None:
    """Send SIGKILL to all processes of the worker with the most hosts: its raylet, its hosts and all others."""
    node = max(world.nodes.workers, key=lambda node: len(world.nodes.hosts(node)))
    assert world.nodes.hosts(node)
    kill(*world.nodes.kill(node))


async def a_node_stands_still(world: World) -> Callable[[], None]:
    """Send SIGSTOP to all processes of a worker. Return a function that sends SIGCONT, first to the hosts alone, and
    checks that they end.
    """
    node = world.nodes.node_of((await world.hosts())["shard-000"])
    hosts = world.nodes.hosts(node)
    family = world.nodes.stop(node)
    assert hosts

    def go_on() -> None:
        world.nodes.go_on(hosts)
        by_themselves = [pid for pid in hosts if ends(pid, ALONE_S * 1000)]
        world.nodes.go_on(family)
        assert all(ends(pid) for pid in hosts)
        print(f"of {len(hosts)} hosts {len(by_themselves)} ended by themselves")

    return go_on


class Waits:
    """Times that messages waited for their answers."""

    def __init__(self) -> None:
        self._said: dict[str, float] = {}
        self.seconds: list[float] = []

    def tell(self, what: str, known: str, *_: object) -> None:
        """Note that a message was sent, or was answered."""
        if what == "said":
            self._said[known] = time.monotonic()
        else:
            self.seconds.append(time.monotonic() - self._said[known])


class Sender:
    """A process that talks to the agents; its messages are known even if it is killed."""

    def __init__(self, store: str | Path, paid: Path, url: str, load: Load) -> None:
        """Start the process; `store` is a folder or an address."""
        counts = (len(load.shared), sum(name in load.paying for name in load.shared), len(load.dedicated))
        self.load = load
        self.process: subprocess.Popen[str] = start(
            "-m", "tests.cluster.load_senders", str(store), str(paid), url, *map(str, counts)
        )
        assert self.process.stdin
        left: Bills = {known: said for known, said in load.said.items() if known not in load.answered}
        self.process.stdin.write("".join(f"{json.dumps([known, *said])}\n" for known, said in left.items()) + "\n")
        self.process.stdin.flush()

    def hear(self, until: str = "") -> None:
        """Read the process's lines until one of kind `until`, or to the end."""
        assert self.process.stdout
        for line in self.process.stdout:
            if not line.startswith('["'):  # a line of Ray
                continue
            kind, *words = json.loads(line)
            if kind == "said":
                self.load.said[words[0]] = words[1], words[2]
            if kind == "answered":
                self.load.answered.add(words[0])
            if kind == until:
                return

    def end(self) -> tuple[int, str]:
        """Let the process finish its round. Return its exit status and its stderr."""
        assert self.process.stdin
        assert self.process.stderr
        self.process.stdin.close()
        self.hear()
        return self.process.wait(), self.process.stderr.read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Kill the process if it is alive, and read its last lines."""
        if self.process.poll() is None:
            self.process.kill()
            self.hear()
            self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream
            with suppress(BrokenPipeError):  # the killed process did not read all of its input
                stream.close()
