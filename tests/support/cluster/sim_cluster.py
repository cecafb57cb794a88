"""A cluster simulated in one event loop from a seed: nodes that die at any moment, with hosts and supervisors, and
messages that take time. It stands in for Ray; the code that runs in the nodes is real.
"""

import asyncio
import contextvars
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from typing import Any

from everlog.actors.agent.commands import Command, CommandResult, ResumeTurns, SessionCapabilities, StreamItem
from everlog.actors.cluster.placement import TAKE_OVER_S, CommandErrors, HostedPartition, HostHandle, dedicated
from everlog.actors.cluster.supervisor import Supervisor
from everlog.actors.hosting.pending_work import PendingWork, pending_work
from everlog.actors.ports.ports import Ports
from everlog.events import ClusterError, EverlogError, HostLost, ModelError
from everlog.store import MemoryStore
from everlog.testing import CountingIds
from tests.support.agents.supervisor_world import looked_up
from tests.support.cluster.sim_nodes import SHARED, HostNode, Node
from tests.support.virtual_time import WallClock


class SimPlaces:
    """Hosts of the simulated cluster, for a supervisor."""

    def __init__(self, cluster: "Cluster") -> None:
        self._cluster = cluster
        self._starting = 0

    async def find(self, place: HostedPartition) -> HostHandle | None:
        await self._cluster.jitter()
        for pid in [pid for pid, node in self._cluster.prepared.items() if node.place == place]:
            self._cluster.end_prepared(pid)
        node = self._cluster.nodes.get(place)
        if node is None or node.lost.is_set():
            return None
        await either(node.ready.wait(), node.lost.wait())
        if node.left:
            node.kill()
        return None if node.lost.is_set() else HostHandle(str(node.pid), node.pid, node)

    async def start(self, place: HostedPartition) -> HostHandle:
        cluster = self._cluster
        self._starting += 1
        cluster.most_starting = max(cluster.most_starting, self._starting)
        try:
            await cluster.jitter(cluster.start_s)
            if cluster.chance.random() < cluster.failing_starts:
                raise ClusterError("no room")
            old = cluster.nodes.get(place)
            if old is not None and not old.lost.is_set():
                raise ClusterError("the name is taken")
            node = cluster.nodes[place] = HostNode(cluster, place)
            cluster.started += 1
            asyncio.get_running_loop().call_later(cluster.chance.random() * cluster.start_s, node.ready.set)
            await either(node.ready.wait(), node.lost.wait())
        finally:
            self._starting -= 1
        return HostHandle(str(node.pid), node.pid, node)

    async def prepare(self, place: HostedPartition, placed: HostHandle) -> HostHandle | None:
        cluster = self._cluster
        await cluster.jitter(cluster.start_s)
        if cluster.chance.random() < cluster.failing_starts:
            raise ClusterError("no room")
        if cluster.chance.random() < 0.2:
            return None
        node = HostNode(cluster, place)
        cluster.prepared[node.pid] = node
        asyncio.get_running_loop().call_later(
            TAKE_OVER_S, cluster.end_prepared, node.pid, context=contextvars.Context()
        )
        await cluster.jitter(cluster.start_s)
        return HostHandle(str(node.pid), 0, node)

    async def take_over(self, prepared: HostHandle) -> HostHandle | None:
        node: HostNode = prepared.handle
        await self._cluster.jitter()
        if node.lost.is_set():
            return None
        del self._cluster.prepared[node.pid]
        self._cluster.handed_over += 1
        self._cluster.nodes[node.place] = node
        node.ready.set()
        await self._cluster.jitter()
        return HostHandle(str(node.pid), node.pid, node)

    async def discard(self, prepared: HostHandle) -> None:
        await self._cluster.jitter()
        self._cluster.end_prepared(prepared.handle.pid)

    async def is_alive(self, placed: HostHandle) -> bool:
        await self._cluster.jitter()
        return not (placed.handle.lost.is_set() or placed.handle.left)

    async def death(self, placed: HostHandle) -> None:
        await placed.handle.lost.wait()
        await self._cluster.jitter()

    async def retire(self, placed: HostHandle) -> bool:
        node: HostNode = placed.handle
        busy = any(host.busy for host in node.hosts.values())
        node.left = True
        leaving = node.spawn(node.close())
        await either(asyncio.wait([leaving]), node.lost.wait())
        node.kill()
        return busy

    def perform(self, placed: HostHandle, agent_id: str, command: Command) -> AsyncIterator[StreamItem]:
        return self._cluster.performed(placed.handle, agent_id, command, 0)

    async def perform_many(
        self, placed: HostHandle, commands: Sequence[tuple[str, Command]]
    ) -> AsyncIterator[CommandErrors]:
        carried: asyncio.Queue[tuple[str, EverlogError | None]] = asyncio.Queue()

        async def one(agent_id: str, command: Command) -> None:
            try:
                async for _ in self.perform(placed, agent_id, command):
                    pass
                carried.put_nowait((agent_id, None))
            except EverlogError as error:
                carried.put_nowait((agent_id, error))

        works = [asyncio.ensure_future(one(*each)) for each in commands]
        try:
            for _ in commands:
                yield [await carried.get()]
        finally:
            for work in works:
                work.cancel()

    async def recover(self, placed: HostHandle, lent: Mapping[str, SessionCapabilities]) -> None:
        """Resume the unfinished turns of a shard's agents, one agent after the other."""
        cluster: Any = self._cluster
        for standing in pending_work(cluster.store, cluster.note):
            if standing.unfinished and cluster.place_of(standing.agent_id) == placed.handle.place:
                command = ResumeTurns(id=cluster.ids.new(cluster.clock.now()), capabilities=lent.get(standing.agent_id))
                try:
                    async for _ in self.perform(placed, standing.agent_id, command):
                        pass
                except ModelError:
                    pass


async def either(*works: Coroutine[Any, Any, Any]) -> None:
    """Wait until one of the works is done, and cancel the others."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


class SupervisorNode(Node):
    """The process of a supervisor."""

    def __init__(self, cluster: "Cluster") -> None:
        super().__init__()
        self.supervisor = Supervisor(
            SimPlaces(cluster), looked_up(cluster.place_of),
            ports=Ports(clock=cluster.clock, ids=cluster.ids, note=cluster.note),
            activations_max=cluster.activations_max, unfinished=cluster.unfinished,
        )  # fmt: skip
        self.spawn(self.supervisor.begin(cluster.pending_batches()))


class Cluster:
    """The simulated cluster. `chance` decides all events; the clients use it too."""

    def __init__(self, chance: random.Random, ask: Callable[[str, str, bytes], Awaitable[Any]]) -> None:
        self.chance = chance
        self.ask = ask
        self.clock, self.ids, self.store = WallClock(), CountingIds(), MemoryStore()
        self.idle_s: float = chance.choice([0.3, 3, 30, 300])
        self.start_s: float = chance.choice([0.1, 1, 10])
        self.delay_s: float = chance.choice([0, 0.01, 0.2])
        self.activations_max = chance.choice([1, 2, 4])
        self.failing_starts = chance.choice([0, 0, 0.1, 0.4])
        self.before_append, self.after_append = chance.choice([(0, 0), (0.01, 0.03), (0.03, 0.08)])
        self.apart = False
        """True if no node can know that the owner of a log is dead, as for a log in a bucket and another machine."""
        self.pids = self.started = self.most_starting = 0
        self.shares: set[str] = set()
        """Agents of the shared partition."""
        self.moves = False
        """True if agents are moved."""
        self.nodes: dict[HostedPartition, HostNode] = {}
        self.prepared: dict[int, HostNode] = {}
        """Processes by id that wait until they take over."""
        self.handed_over = 0
        """Number of processes that have taken over."""
        self.owners: dict[str, HostNode] = {}
        self.acknowledged: dict[tuple[str, int], set[int]] = defaultdict(set)
        """Process ids that acknowledged an append, by agent and epoch."""
        self.notes: list[str] = []
        self.node = SupervisorNode(self)
        self.up = asyncio.Event()
        self.up.set()
        self._delivered: dict[HostNode, float] = {}

    def note(self, text: str) -> None:
        self.notes.append(text)

    def end_prepared(self, pid: int) -> None:
        """End a process that waits to take over."""
        node = self.prepared.pop(pid, None)
        if node is not None:
            node.kill()

    def drain(self) -> None:
        """Ask the supervisor to move all hosts, and do not wait for it."""
        self.node.spawn(self.node.supervisor.drain(lambda _: True))

    def place_of(self, agent_id: str) -> HostedPartition:
        return SHARED if agent_id in self.shares else dedicated(agent_id)

    async def move(self, agent_id: str) -> None:
        """Move the agent to the other placement, if its host unloads it now."""
        node = self.nodes.get(self.place_of(agent_id))
        if node is None or node.lost.is_set() or not node.ready.is_set():
            return
        host = node.hosts.get(agent_id)
        if host is None or await host.passivate():
            self.shares ^= {agent_id}

    async def pending_batches(self) -> AsyncIterator[Sequence[PendingWork]]:
        """Read the logs, which takes a while."""
        store: Any = self.store
        found = list(pending_work(store, self.note))
        await self.jitter()
        yield found

    async def unfinished(self, agents: Sequence[str]) -> Collection[str]:
        """Return which of the agents have unfinished turns in their logs."""
        store: Any = self.store
        await self.jitter()
        return {standing.agent_id for standing in pending_work(store, self.note, agents) if standing.unfinished}

    async def jitter(self, seconds: float | None = None) -> None:
        """Delay by the travel time of a message."""
        longest = self.delay_s if seconds is None else seconds
        await asyncio.sleep(self.chance.random() * longest if longest else 0)

    def strikes(self, node: HostNode, probability: float) -> bool:
        """Kill the node with this probability. Return True if it was killed."""
        if self.chance.random() >= probability:
            return False
        node.kill()
        return True

    def message(self, node: HostNode, deliver: Callable[[Supervisor], None]) -> None:
        """Deliver a message of a host to the supervisor; messages of one host arrive in the order of sending."""
        loop = asyncio.get_running_loop()

        def arrive() -> None:
            if node.lost.is_set():
                return
            if self.node.dead:  # try again until there is a supervisor
                loop.call_later(1, arrive)
            else:
                self.node.context.copy().run(deliver, self.node.supervisor)

        at = max(loop.time() + self.chance.random() * self.delay_s, self._delivered.get(node, 0) + 1e-6)
        self._delivered[node] = at
        loop.call_at(at, arrive, context=contextvars.Context())

    async def performed(self, node: HostNode, agent_id: str, command: Command, seen: int) -> AsyncIterator[StreamItem]:
        """Yield a host's answer as its caller gets it. Raises HostLost, or the command's error."""
        await self.jitter()
        if node.lost.is_set():
            raise HostLost(f"{node.pid} is gone")
        call: asyncio.Queue[Any] = asyncio.Queue()
        node.calls[call] = None
        work = node.spawn(node.perform(agent_id, command, seen, call))
        work.add_done_callback(
            lambda _: work.cancelled() or work.exception() is None or call.put_nowait(work.exception())
        )
        try:
            while True:
                heard = await call.get()
                if isinstance(heard, BaseException):
                    raise heard
                yield heard
                if isinstance(heard, CommandResult):
                    return
        finally:
            node.calls.pop(call, None)

    async def place(self, agent_id: str, capabilities: SessionCapabilities | None, lost: str) -> HostHandle:
        """Call `Supervisor.place` of the running supervisor, and again if it dies meanwhile."""
        while True:
            await self.jitter()
            await self.up.wait()
            asked = self.node.spawn(self._asked(self.node.supervisor.place(agent_id, capabilities, lost)))
            await asyncio.wait([asked])
            if not asked.cancelled():
                found = asked.result()
                if isinstance(found, EverlogError):
                    raise found
                return found

    async def _asked(self, work: Awaitable[Any]) -> Any:
        try:
            return await work
        except EverlogError as error:
            return error

    async def restart(self) -> None:
        """Kill the supervisor and start another one."""
        self.node.kill()
        self.up.clear()
        await self.jitter(5)
        self.node = SupervisorNode(self)
        self.up.set()

    async def stop(self) -> None:
        """Kill all nodes."""
        self.node.kill()
        for node in [*self.nodes.values(), *self.prepared.values()]:
            node.kill()
        await asyncio.sleep(60)


class SimRuntime:
    """A client's connection to the hosts."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._placed: dict[str, HostHandle] = {}
        self._lost: dict[str, str] = {}
        self.losses = 0
        """Number of times that a host was lost during a command of this client."""

    async def perform(self, agent_id: str, command: Command, seen: int = 0) -> AsyncIterator[StreamItem]:
        if agent_id not in self._placed:
            placed = await self._cluster.place(agent_id, command.capabilities, self._lost.get(agent_id, ""))
            self._placed[agent_id] = placed
        placed = self._placed[agent_id]
        try:
            async for heard in self._cluster.performed(placed.handle, agent_id, command, seen):
                yield heard
        except HostLost:
            self._placed.pop(agent_id, None)
            self._lost[agent_id] = placed.key
            self.losses += 1
            raise

    async def unload(self, agent_id: str) -> bool:
        return True

    async def close(self) -> None:
        pass
