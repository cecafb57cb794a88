"""A cluster of one event loop: hosts and supervisors that live in nodes, nodes that die at any moment, messages that
take time. What Ray does for us is played here, from a seed; what runs in the nodes is the real code.
"""

import asyncio
import contextvars
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import Any

from actors.commands import Command, Done, Heard, Means
from actors.hosting.host import Host
from actors.hosting.lending import lent_system
from actors.hosting.standing import standings
from actors.hosting.supervisor import Placed, Supervisor
from actors.hosting.timers import Due
from events import ClusterError, Draft, EverlogError, HostLost, PartitionBusy
from store import Commit, MemoryStore
from store.memory import MemoryLog
from tests.virtual import WallClock
from tests.world import CountingIds

NODE: contextvars.ContextVar["Node | None"] = contextvars.ContextVar("NODE", default=None)
Task = asyncio.Task[Any]


class Node:
    """A process: its tasks, which are cancelled when it dies and never heard again."""

    def __init__(self) -> None:
        self.dead = False
        self.tasks: dict[Task, None] = {}
        """In the order in which they were made: nothing here depends on where an object lies in memory."""
        self.context = contextvars.copy_context()
        self.context.run(NODE.set, self)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> Task:
        return asyncio.get_running_loop().create_task(work, context=self.context.copy())

    def kill(self) -> None:
        """No task of it goes on; what they do while they are cancelled, nobody sees."""
        self.dead = True
        for task in list(self.tasks):
            task.cancel()
        if self.tasks:
            asyncio.get_running_loop().call_soon(self.kill)


def follow_tasks() -> None:
    """From now on the event loop notes the node of each task."""

    def factory(loop: Any, work: Any, *, context: contextvars.Context | None = None) -> Task:
        task: Task = asyncio.Task(work, loop=loop, context=context)
        node = (context or contextvars.copy_context()).get(NODE)
        if node is not None:
            node.tasks[task] = None
            task.add_done_callback(lambda _: node.tasks.pop(task, None))
            if node.dead:
                loop.call_soon(task.cancel)
        return task

    asyncio.get_running_loop().set_task_factory(factory)


class HostNode(Node):
    """The process of one host, and what Ray's actor around it does."""

    def __init__(self, cluster: "Cluster", agent_id: str, means: Means, fence: int) -> None:
        super().__init__()
        self.cluster = cluster
        self.agent_id = agent_id
        cluster.pids += 1
        self.pid = cluster.pids
        self.clock = WallClock(cluster.chance.choice([0, 0, -1_500_000, 900_000]))
        self.left = False
        self.lost = asyncio.Event()
        """It answers nobody any more; it may live on without knowing it."""
        self.ready = asyncio.Event()
        self.calls: dict[asyncio.Queue[Any], None] = {}
        self.host = Host(
            agent_id, self._system, means=means, idle_s=cluster.idle_s, fence=fence, tell_timers=self._tell,
            on_idle=self._leave, note=cluster.note,
        )  # fmt: skip

    def _system(self, lent: Means) -> Any:
        store: Any = NodeStore(self.cluster, self)
        return lent_system(store, lent, self.cluster.ask, clock=self.clock, ids=self.cluster.ids)

    def lose(self) -> None:
        """Nobody can reach it."""
        self.lost.set()
        for call in self.calls:
            if self.cluster.chance.random() < 0.5:  # what it said last may be on its way, or not
                while not call.empty():
                    call.get_nowait()
            call.put_nowait(HostLost(f"{self.pid} is gone"))

    def kill(self) -> None:
        if not self.lost.is_set():
            self.lose()
        super().kill()

    def _tell(self, agent_id: str, timers: Sequence[Due]) -> None:
        self.cluster.message(self, lambda supervisor: supervisor.schedule.know(agent_id, timers))

    async def release(self) -> bool:
        self.left = self.left or await self.host.passivate()
        return self.left

    async def _leave(self) -> None:
        if await self.release():
            self.cluster.message(self, self._left)

    def _left(self, supervisor: Supervisor) -> None:
        if supervisor.left(self.agent_id, str(self.pid)) is not None:
            self.kill()

    async def perform(self, command: Command, seen: int, heard: asyncio.Queue[Any]) -> None:
        """Carry a command out and put what follows from it into `heard`; an error is a value."""
        await self.cluster.jitter()
        try:
            if self.left:
                raise HostLost("it has let go")
            async for item in self.host.perform(command, seen):
                heard.put_nowait(item)
        except EverlogError as error:
            heard.put_nowait(error)


class NodeLog(MemoryLog):
    """A log that a node has open. When the node dies it is neither closed nor written to any more."""

    node: HostNode

    def append(self, agent_id: str, expected_seq: int, drafts: Sequence[Draft]) -> Commit:
        cluster = self.node.cluster
        if self.node.dead or cluster.strikes(self.node, cluster.before_append):
            raise asyncio.CancelledError
        commit = super().append(agent_id, expected_seq, drafts)
        if cluster.strikes(self.node, cluster.after_append):
            raise asyncio.CancelledError
        cluster.acknowledged[agent_id, self.epoch].add(self.node.pid)
        return commit

    def close(self) -> None:
        if not self.node.dead:
            super().close()


class NodeStore:
    """The store as one node sees it."""

    def __init__(self, cluster: "Cluster", node: HostNode) -> None:
        self._cluster = cluster
        self._node = node

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster.store, name)

    def open(self, agent_id: str, command: str, *, take_over: bool = False) -> NodeLog:
        """A live owner, though nobody hears of it, keeps its partition; that of a dead one is free."""
        if self._node.dead:
            raise asyncio.CancelledError
        owner = self._cluster.owners.get(agent_id)
        shared = self._cluster.store._partition(self._cluster.store.partition_of(agent_id))
        held = bool(shared.owner) and owner is not None and not owner.dead
        if held and not take_over:
            assert owner is not None
            assert owner.lost.is_set(), "two hosts of one agent live"
            raise PartitionBusy(f"{agent_id} is open in process {owner.pid}", owner.pid)
        log = NodeLog(command=command, shared=shared, take_over=True)
        log.node = self._node
        self._cluster.owners[agent_id] = self._node
        return log


class SimPlaces:
    """Where a supervisor finds and makes hosts."""

    def __init__(self, cluster: "Cluster") -> None:
        self._cluster = cluster
        self._starting = 0

    async def find(self, agent_id: str) -> Placed | None:
        await self._cluster.jitter()
        node = self._cluster.nodes.get(agent_id)
        if node is None or node.lost.is_set():
            return None
        await either(node.ready.wait(), node.lost.wait())
        if node.left:
            node.kill()
        return None if node.lost.is_set() else Placed(str(node.pid), node.pid, node)

    async def start(self, agent_id: str, means: Means, fence: int) -> Placed:
        cluster = self._cluster
        self._starting += 1
        cluster.most_starting = max(cluster.most_starting, self._starting)
        try:
            await cluster.jitter(cluster.start_s)
            if cluster.chance.random() < cluster.failing_starts:
                raise ClusterError("no room")
            old = cluster.nodes.get(agent_id)
            if old is not None and not old.lost.is_set():
                raise ClusterError("the name is taken")
            node = cluster.nodes[agent_id] = HostNode(cluster, agent_id, means, fence)
            cluster.started += 1
            asyncio.get_running_loop().call_later(cluster.chance.random() * cluster.start_s, node.ready.set)
            await either(node.ready.wait(), node.lost.wait())
        finally:
            self._starting -= 1
        return Placed(str(node.pid), node.pid, node)

    async def lives(self, placed: Placed) -> bool:
        await self._cluster.jitter()
        return not (placed.handle.lost.is_set() or placed.handle.left)

    async def death(self, placed: Placed) -> None:
        await placed.handle.lost.wait()
        await self._cluster.jitter()

    def perform(self, placed: Placed, command: Command, seen: int = 0) -> AsyncIterator[Heard]:
        return self._cluster.performed(placed.handle, command, seen)


async def either(*works: Coroutine[Any, Any, Any]) -> None:
    """Until one of them is done."""
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
            SimPlaces(cluster), clock=cluster.clock, ids=cluster.ids, activations_max=cluster.activations_max,
            note=cluster.note,
        )  # fmt: skip
        store: Any = cluster.store
        self.spawn(self.supervisor.begin(standings(store, cluster.note)))


class Cluster:
    """Everything, from a seed. `chance` decides what happens; the clients share it."""

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
        self.pids = self.started = self.most_starting = 0
        self.nodes: dict[str, HostNode] = {}
        self.owners: dict[str, HostNode] = {}
        self.acknowledged: dict[tuple[str, int], set[int]] = defaultdict(set)
        """By agent and epoch: which processes acknowledged in it."""
        self.notes: list[str] = []
        self.node = SupervisorNode(self)
        self.up = asyncio.Event()
        self.up.set()
        self._delivered: dict[HostNode, float] = {}

    def note(self, text: str) -> None:
        self.notes.append(text)

    async def jitter(self, seconds: float | None = None) -> None:
        """A message is on its way."""
        longest = self.delay_s if seconds is None else seconds
        await asyncio.sleep(self.chance.random() * longest if longest else 0)

    def strikes(self, node: HostNode, probability: float) -> bool:
        """Whether the node dies just now."""
        if self.chance.random() >= probability:
            return False
        node.kill()
        return True

    def message(self, node: HostNode, deliver: Callable[[Supervisor], None]) -> None:
        """A host tells the supervisor something; messages of one host arrive in the order in which it sent them."""
        loop = asyncio.get_running_loop()

        def arrive() -> None:
            if node.lost.is_set():
                return
            if self.node.dead:  # sent again until one is there
                loop.call_later(1, arrive)
            else:
                self.node.context.copy().run(deliver, self.node.supervisor)

        at = max(loop.time() + self.chance.random() * self.delay_s, self._delivered.get(node, 0) + 1e-6)
        self._delivered[node] = at
        loop.call_at(at, arrive, context=contextvars.Context())

    async def performed(self, node: HostNode, command: Command, seen: int) -> AsyncIterator[Heard]:
        """What a host says, as its caller hears it. Raises HostLost, or what the command raises."""
        await self.jitter()
        if node.lost.is_set():
            raise HostLost(f"{node.pid} is gone")
        call: asyncio.Queue[Any] = asyncio.Queue()
        node.calls[call] = None
        work = node.spawn(node.perform(command, seen, call))
        work.add_done_callback(
            lambda _: work.cancelled() or work.exception() is None or call.put_nowait(work.exception())
        )
        try:
            while True:
                heard = await call.get()
                if isinstance(heard, BaseException):
                    raise heard
                yield heard
                if isinstance(heard, Done):
                    return
        finally:
            node.calls.pop(call, None)

    async def place(self, agent_id: str, means: Means | None, lost: str) -> Placed:
        """`Supervisor.place` of the supervisor that lives; asked again when it dies meanwhile."""
        while True:
            await self.jitter()
            await self.up.wait()
            asked = self.node.spawn(self._asked(self.node.supervisor.place(agent_id, means, lost)))
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
        """The supervisor dies, and another one begins."""
        self.node.kill()
        self.up.clear()
        await self.jitter(5)
        self.node = SupervisorNode(self)
        self.up.set()

    async def stop(self) -> None:
        """The end of everything."""
        self.node.kill()
        for node in self.nodes.values():
            node.kill()
        await asyncio.sleep(60)


class SimRuntime:
    """A client's way to the hosts."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._placed: dict[str, Placed] = {}
        self._lost: dict[str, str] = {}
        self.losses = 0
        """How often a host was lost while it had a command of ours."""

    async def perform(self, agent_id: str, command: Command, seen: int = 0) -> AsyncIterator[Heard]:
        if agent_id not in self._placed:
            placed = await self._cluster.place(agent_id, command.means, self._lost.get(agent_id, ""))
            self._placed[agent_id] = placed
        placed = self._placed[agent_id]
        try:
            async for heard in self._cluster.performed(placed.handle, command, seen):
                yield heard
        except HostLost:
            self._placed.pop(agent_id, None)
            self._lost[agent_id] = placed.key
            self.losses += 1
            raise

    async def release(self, agent_id: str) -> bool:
        return True

    async def close(self) -> None:
        pass
