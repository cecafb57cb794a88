"""The nodes of a simulated cluster: processes with hosts in them, and the store as each sees it."""

import asyncio
import contextvars
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from everlog.actors.agent.commands import Command, SessionCapabilities
from everlog.actors.cluster.placement import FenceRight, HostedPartition
from everlog.actors.cluster.supervisor import Supervisor
from everlog.actors.hosting.agent_factory import HostLink, session_system
from everlog.actors.hosting.host import Host
from everlog.actors.hosting.timer_schedule import DueTimer
from everlog.actors.ports.ports import Ports
from everlog.events import Draft, EverlogError, HostLost, PartitionBusy
from everlog.store import Commit, HostMark
from everlog.store.stores.memory_store import MemoryLog
from tests.support.virtual_time import WallClock

if TYPE_CHECKING:
    from tests.support.cluster.sim_cluster import Cluster

NODE: contextvars.ContextVar["Node | None"] = contextvars.ContextVar("NODE", default=None)
Task = asyncio.Task[Any]


class Node:
    """A process: its tasks are cancelled when it dies."""

    def __init__(self) -> None:
        self.dead = False
        self.tasks: dict[Task, None] = {}
        """The tasks in order of creation, so that nothing depends on addresses of objects."""
        self.context = contextvars.copy_context()
        self.context.run(NODE.set, self)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> Task:
        return asyncio.get_running_loop().create_task(work, context=self.context.copy())

    def kill(self) -> None:
        """Stop all its tasks; effects of their cancellation are dropped."""
        self.dead = True
        for task in list(self.tasks):
            task.cancel()
        if self.tasks:
            asyncio.get_running_loop().call_soon(self.kill)


def follow_tasks() -> None:
    """Let the event loop record the node of each task from now on."""

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


SHARED = HostedPartition("shard-000")
"""Shard of the agents without a dedicated host."""


class HostNode(Node):
    """The process of one partition, which stands in for Ray's actor: it has a host for each of its agents."""

    def __init__(self, cluster: "Cluster", place: HostedPartition) -> None:
        super().__init__()
        self.cluster = cluster
        self.place = place
        leave = self._leave if place.agent_id else None
        cluster.pids += 1
        self.pid = cluster.pids
        right = FenceRight(HostMark("sim", self.pid))
        self._link = HostLink(may_fence=right.covers, notify_timers=self._tell, on_idle=leave)
        self.clock = WallClock(cluster.chance.choice([0, 0, -1_500_000, 900_000]))
        self._ports = Ports(clock=self.clock, ids=cluster.ids, note=cluster.note)
        self.left = False
        self.lost = asyncio.Event()
        """Set when the node is unreachable; its process may still run."""
        self.ready = asyncio.Event()
        self.calls: dict[asyncio.Queue[Any], None] = {}
        self.hosts: dict[str, Host] = {}

    def host(self, agent_id: str) -> Host:
        """Return the host of an agent of this partition. Raises HostLost for another agent."""
        if self.left or self.cluster.place_of(agent_id) != self.place:
            raise HostLost("it has let go")
        if agent_id not in self.hosts:
            self.hosts[agent_id] = Host(
                agent_id, self._system, idle_s=self.cluster.idle_s, ports=self._ports, link=self._link
            )  # fmt: skip
        return self.hosts[agent_id]

    def _system(self, lent: SessionCapabilities) -> Any:
        store: Any = NodeStore(self.cluster, self)
        return session_system(store, lent, self.cluster.ask, ports=self._ports)

    def lose(self) -> None:
        """Make the node unreachable: it answers no caller, but may still run."""
        self.lost.set()
        for call in self.calls:
            if self.cluster.chance.random() < 0.5:  # its last messages may still arrive, or not
                while not call.empty():
                    call.get_nowait()
            call.put_nowait(HostLost(f"{self.pid} is gone"))

    def kill(self) -> None:
        if not self.lost.is_set():
            self.lose()
        super().kill()

    def _tell(self, agent_id: str, timers: Sequence[DueTimer]) -> None:
        self.cluster.message(self, lambda supervisor: supervisor.schedule.know(agent_id, timers))

    async def unload(self) -> bool:
        for host in list(self.hosts.values()):
            if not await host.passivate():
                return self.left
        self.left = self.left or not any(host.active or host._used() for host in self.hosts.values())
        return self.left

    async def close(self) -> None:
        """Unload all agents, now."""
        await asyncio.gather(*(host.close() for host in self.hosts.values()))

    async def _leave(self) -> None:
        if await self.unload():
            self.cluster.message(self, self._left)

    def _left(self, supervisor: Supervisor) -> None:
        if supervisor.left(self.place, str(self.pid)) is not None:
            self.kill()

    async def perform(self, agent_id: str, command: Command, seen: int, heard: asyncio.Queue[Any]) -> None:
        """Carry a command out and put its records and its result into `heard`, with an error as a value."""
        await self.cluster.jitter()
        try:
            async for item in self.host(agent_id).perform(command, seen):
                heard.put_nowait(item)
        except EverlogError as error:
            heard.put_nowait(error)


class NodeLog(MemoryLog):
    """The log of a node. When the node has died, the log is neither closed nor written to."""

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

    def open(self, agent_id: str, command: str, *, take_over: bool = False, expected: str | None = None) -> NodeLog:
        """Return the partition's log for this node. A living owner keeps its partition, even if it is unreachable; a
        dead owner's partition is free, if a node can know that it is dead.
        """
        if self._node.dead:
            raise asyncio.CancelledError
        owner = self._cluster.owners.get(agent_id)
        shared = self._cluster.store._opener.at(self._cluster.store.partition_of(agent_id))
        held = bool(shared.owner) and owner is not None and (self._cluster.apart or not owner.dead)
        if held and not take_over:
            assert owner is not None
            assert owner.lost.is_set(), "two hosts of one agent live"
            raise PartitionBusy(f"{agent_id} is open in process {owner.pid}", cluster="sim", start=owner.pid)
        log = NodeLog(command=command, shared=shared, take_over=True)
        log.node = self._node
        self._cluster.owners[agent_id] = self._node
        return log
