"""Define where hosts run, as the supervisor sees it: hosted partitions, and the operations on their hosts.

Implemented by `RayHostProvider` and by tests; used by the supervisor and its queues, and by the runtime. Imports no
Ray.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from everlog.actors.agent.commands import Command, SessionCapabilities, StreamItem
from everlog.actors.cluster.ray_address import host_name
from everlog.events import EverlogError, HostLost
from everlog.store import partition_of


class HostedPartition(msgspec.Struct, frozen=True):
    """Partition that a host runs: dedicated to one agent, or shared by many."""

    name: str
    """Name of the partition: agent-<h> or shard-<n>."""
    agent_id: str = ""
    """Agent of a dedicated partition; empty if it is shared."""

    def __str__(self) -> str:
        return repr(self.agent_id) if self.agent_id else self.name

    @property
    def host_name(self) -> str:
        """Name of the actor of its host."""
        return host_name(self.agent_id) if self.agent_id else self.name


class HostHandle(msgspec.Struct, frozen=True):
    """Host that was found or started."""

    key: str
    """Identity of this one process of the host."""
    pid: int
    handle: Any
    """Reference by which `HostProvider` calls the host."""
    machine: str = ""
    """Name of the machine that the host runs on."""

    @property
    def owner(self) -> str:
        """Machine and process, as the logs that the host owns name them; see `PartitionBusy.owner`."""
        return f"{self.machine}/{self.pid}"


class HostLookup(msgspec.Struct, frozen=True):
    """Hosts of many agents."""

    place_of: Mapping[str, str]
    """Name of the partition by agent."""
    placed: Mapping[str, HostHandle | EverlogError]
    """Host by name of the partition, or the error why there is none now."""


CommandErrors = Sequence[tuple[str, EverlogError | None]]
"""Agents whose command has ended, each with its error; None if it was carried out."""


class HostProvider(Protocol):
    """Runs the hosts of a supervisor."""

    async def find(self, place: HostedPartition) -> HostHandle | None:
        """Return the host of a partition that runs and answers; None if there is none."""
        ...

    async def start(self, place: HostedPartition, fence: str) -> HostHandle:
        """Start a host, and wait until it answers. Raises ClusterError.

        `fence`: owner of the log before, which is presumed dead but may still be writing: the new host may fence it if
        it still holds the log. Empty: no owner may be fenced.
        """
        ...

    async def is_alive(self, placed: HostHandle) -> bool:
        """Return True if the host answers."""
        ...

    async def death(self, placed: HostHandle) -> None:
        """Wait until the host is dead."""
        ...

    def perform(self, placed: HostHandle, agent_id: str, command: Command) -> AsyncIterator[StreamItem]:
        """Have the host carry out a command, and yield what follows. Raises HostLost, or the error of the command."""
        ...

    def perform_many(self, placed: HostHandle, commands: Sequence[tuple[str, Command]]) -> AsyncIterator[CommandErrors]:
        """Have the host carry out one command for each of some agents, in one call. Raises HostLost."""
        ...

    async def recover(self, placed: HostHandle, capabilities: Mapping[str, SessionCapabilities]) -> None:
        """Have the host of a shared partition finish all unfinished turns, of as many agents at once as it can hold.

        `capabilities`: those that callers gave its agents. Returns when that is done. Raises HostLost, ClusterError,
        PartitionBusy.
        """
        ...


async def one_by_one(
    perform: Callable[[HostHandle, str, Command], AsyncIterator[StreamItem]],
    placed: HostHandle,
    commands: Sequence[tuple[str, Command]],
) -> AsyncIterator[CommandErrors]:
    """Carry out commands one after the other: `HostProvider.perform_many` for a host of one agent. Raises HostLost."""
    for agent_id, command in commands:
        error: EverlogError | None = None
        try:
            async for _ in perform(placed, agent_id, command):
                pass
        except HostLost:
            raise
        except EverlogError as failed:
            error = failed
        yield [(agent_id, error)]


def dedicated(agent_id: str) -> HostedPartition:
    """Return the partition of an agent with a host of its own."""
    return HostedPartition(partition_of(agent_id), agent_id)
