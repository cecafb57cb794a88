"""A simulated cluster with clients and failures, from a seed."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.agent_ref import AgentRef
from everlog.actors.ports.effects import ModelResponse
from everlog.actors.ports.ports import Ports
from everlog.events import ClusterError, HostLost, ModelError, PartitionBusy, Record
from everlog.events.times import moment
from tests.support import virtual_time
from tests.support.agent_world import SECOND, say
from tests.support.agents import fast_stand_ins
from tests.support.agents.virtual_time_runtime import open_ref, ref_of
from tests.support.cluster.sim_cluster import Cluster, SimRuntime
from tests.support.cluster.sim_nodes import follow_tasks

AGENTS = ("ada", "ben")
SETTLED_S = 600
"""Seconds after the last failure within which all pending work is finished."""


@dataclass
class Hearing:
    """The records that one caller got for an input."""

    records: list[Record] = field(default_factory=list)
    done: bool = False
    failed: bool = False


@dataclass
class Said:
    """One input of a client with its id, and all attempts to send it."""

    agent_id: str
    event_id: str
    text: str
    hearings: list[Hearing] = field(default_factory=list)


class Client:
    """A caller that sends inputs to all agents."""

    def __init__(self, number: int, cluster: Cluster) -> None:
        self.number = number
        self.cluster = cluster
        self.runtime: Any = SimRuntime(cluster)
        self.said: list[Said] = []
        self.told_of_losses = 0

    def ref(self, agent_id: str) -> AgentRef:
        ports = Ports(clock=self.cluster.clock, ids=self.cluster.ids)
        return ref_of(agent_id, self.runtime, ports)

    async def live(self, count: int, settings: Settings) -> None:
        """Open every agent, then perform `count` random actions."""
        chance, ends = self.cluster.chance, []
        for agent_id in AGENTS:
            opening = self.ref(agent_id)
            await self.until(lambda opened=opening: open_ref(opened, settings))
        for _ in range(count):
            await asyncio.sleep(chance.choice([0, 0, 0.3, 3, 40]) * chance.random())
            ends.append(asyncio.create_task(self.act(chance.choice(AGENTS))))
            if chance.random() < 0.7:
                await ends[-1]
        await asyncio.gather(*ends)

    async def until(self, attempt: Callable[[], Awaitable[Any]]) -> Any:
        """Repeat the attempt until it succeeds; these errors may happen in between."""
        while True:
            try:
                return await attempt()
            except (HostLost, ClusterError, PartitionBusy) as error:
                self.told_of_losses += isinstance(error, HostLost)
            await asyncio.sleep(1 + self.cluster.chance.random())

    async def act(self, agent_id: str) -> None:
        chance, ref = self.cluster.chance, self.ref(agent_id)
        what, name = chance.random(), chance.choice(["tea", "mail"])
        if what < 0.75:
            await self.say(agent_id)
        elif what < 0.9:
            every = chance.choice([0, 0, 20, 60, 600])
            due = self.cluster.clock.now() + chance.choice([-100, 0, 3, 70, 400]) * SECOND
            await self.until(
                lambda: ref.set_timer(name, f"[steps=2] {name}", due_at=moment(due), every=timedelta(seconds=every))
            )
        elif what < 0.95:
            await self.until(lambda: ref.cancel_timer(name))
        else:
            with suppress(ModelError):
                await self.until(ref.resume)

    async def say(self, agent_id: str) -> None:
        chance = self.cluster.chance
        words = [f"{self.number}.{len(self.said)}", f"[steps={chance.randint(1, 4)}]"]
        words += [f"[fail={chance.randint(1, 2)}]"] if chance.random() < 0.15 else []
        words += [f"[pause={chance.randint(1, 4)}]"] if chance.random() < 0.1 else []
        said = Said(agent_id, self.cluster.ids.new(self.cluster.clock.now()), " ".join(words))
        self.said.append(said)
        how = chance.random()
        if how < 0.1:  # leaves before the end
            task = asyncio.create_task(self.hear(said))
            await asyncio.sleep(chance.random() * 3)
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled() and isinstance(task.exception(), (HostLost, ClusterError, PartitionBusy)):
                return
        elif how < 0.3:  # sends it twice, a little apart
            await asyncio.gather(self.until(lambda: self.hear(said)), self.until(lambda: self.hear(said, 2)))
        else:
            await self.until(lambda: self.hear(said))

    async def hear(self, said: Said, after_s: float = 0) -> None:
        """Send the input, and record the answer."""
        await asyncio.sleep(after_s * self.cluster.chance.random())
        preview_for = Hearing()
        said.hearings.append(preview_for)
        try:
            async for record in self.ref(said.agent_id).send(said.text, event_id=said.event_id):
                preview_for.records.append(record)
        except ModelError:
            preview_for.failed = True
        preview_for.done = True


async def trouble(cluster: Cluster) -> None:
    """Cause random failures of a cluster, until the task is cancelled."""
    chance = cluster.chance
    pace = chance.choice([2, 10, 60])
    while True:
        await asyncio.sleep(chance.random() * pace)
        node = chance.choice(list(cluster.nodes.values())) if cluster.nodes else None
        match chance.choice(["kill", "lose", "supervisor", "release", "machine", "move", "drain", "successor"]):
            case "kill" if node is not None:
                node.kill()
            case "lose" if node is not None and not node.lost.is_set():
                node.lose()  # it still runs, and only the fence keeps it from writing
                asyncio.get_running_loop().call_later(chance.random() * 30, node.kill)
            case "supervisor":
                await cluster.restart()
            case "machine" if pace > 2:  # all nodes die at the same instant
                for each in list(cluster.nodes.values()):
                    each.kill()
            case "move" if cluster.moves:
                await cluster.move(chance.choice(AGENTS))
            case "drain":  # perhaps a second time while the first is in progress
                cluster.drain()
            case "successor" if cluster.prepared:
                chance.choice(list(cluster.prepared.values())).kill()
            case "release" if node is not None and not node.lost.is_set():
                node.spawn(node._leave())


class World:
    """One simulated cluster with its clients."""

    def __init__(self, seed: int, *, real: bool = False) -> None:
        self.chance = random.Random(seed)
        self.seed = seed
        self.real = real
        self.cluster: Cluster
        self.clients: list[Client] = []
        self.settings = Settings()
        self.prepared: list[int] = []
        """Processes that still wait to take over at the end."""

    async def think(self) -> None:
        await self.cluster.jitter(self.chance.choice([0, 0.1, 2, 20]))

    async def ask(self, name: str, base_url: str, request: bytes, agent_id: str, *_: object, **__: object) -> Any:
        await self.think()
        return ModelResponse(say("Yes."), 1000)

    async def live(self) -> None:
        follow_tasks()
        cluster = self.cluster = Cluster(self.chance, self.ask)
        cluster.apart = self.seed % 2 == 1
        cluster.shares = set(self.chance.choice([(), AGENTS, AGENTS[1:]]))
        cluster.moves = self.chance.random() < 0.3
        self.clients = [Client(number, cluster) for number in range(self.chance.randint(1, 3))]
        befalls = asyncio.create_task(trouble(cluster))
        count = 4 if self.real else 10
        await asyncio.gather(*[client.live(count, self.settings) for client in self.clients])
        befalls.cancel()
        await asyncio.wait([befalls])
        await self.calm_down()
        self.ended_at = cluster.clock.now()
        living = [node for node in cluster.nodes.values() if not node.dead]
        self.active = [name for node in living for name, host in node.hosts.items() if host.active]
        self.prepared = list(cluster.prepared)
        await cluster.stop()

    async def calm_down(self) -> None:
        """Let pending work end without further failures; if the supervisor has given up restarting a host, resume its
        agents.
        """
        cluster = self.cluster
        cluster.before_append = cluster.after_append = cluster.failing_starts = 0
        if cluster.node.dead:
            await cluster.restart()
        await asyncio.sleep(SETTLED_S)
        if any("in a row" in note for note in cluster.notes):
            for agent_id in AGENTS:
                with suppress(ModelError):
                    await self.clients[0].until(self.clients[0].ref(agent_id).resume)
            await asyncio.sleep(SETTLED_S)

    def system(self) -> LocalSystem:
        """Return a system that reads the final logs."""
        return LocalSystem(self.cluster.store)

    def log(self, agent_id: str) -> list[Record]:
        return list(self.cluster.store.reader(agent_id).read(agent_id))


def simulate(seed: int, *, real: bool = False, collect: bool = False) -> World:
    """Simulate and check the world of a seed."""
    from tests.support.cluster.sim_checks import check

    world = World(seed, real=real)
    if real:
        virtual_time.run(world.live, collect=collect)
    else:
        with fast_stand_ins.plain(world.think):
            virtual_time.run(world.live, collect=collect)
    check(world)
    return world
