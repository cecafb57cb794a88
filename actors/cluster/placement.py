"""Where hosts live, as the supervisor sees it: places, and what can be done to the host in one."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from everlog.actors.agent.commands import Command, SessionCapabilities, StreamItem
from everlog.actors.cluster.ray_address import host_name
from everlog.events import EverlogError, HostLost
from everlog.store import partition_of


class HostedPartition(msgspec.Struct, frozen=True):
    """What a host runs: a partition. It is dedicated to one agent, or shared by many."""

    name: str
    """Of the partition: agent-<h> or shard-<n>."""
    agent_id: str = ""
    """Whose it is; empty if it is shared."""

    def __str__(self) -> str:
        return repr(self.agent_id) if self.agent_id else self.name

    @property
    def host_name(self) -> str:
        """Where to knock for its host."""
        return host_name(self.agent_id) if self.agent_id else self.name


class HostHandle(msgspec.Struct, frozen=True):
    """A host that was found or made."""

    key: str
    """Names this one life of it."""
    pid: int
    handle: Any
    """What `HostProvider` calls it by."""
    machine: str = ""
    """What the machine is called that it runs on."""

    @property
    def owner(self) -> str:
        """Its machine and its process, as the logs that it holds tell of it: see `PartitionBusy.owner`."""
        return f"{self.machine}/{self.pid}"


class HostLookup(msgspec.Struct, frozen=True):
    """The places of many agents."""

    place_of: Mapping[str, str]
    """By agent: the name of its place."""
    placed: Mapping[str, HostHandle | EverlogError]
    """By name of a place: its host, or why there is none now."""


CommandErrors = Sequence[tuple[str, EverlogError | None]]
"""Agents whose command was carried out, told as soon as it was, each with the error that it raised, if any."""


class HostProvider(Protocol):
    """Where hosts live."""

    async def find(self, place: HostedPartition) -> HostHandle | None:
        """The host of the place that lives and answers; None if there is none."""
        ...

    async def start(self, place: HostedPartition, fence: str) -> HostHandle:
        """Make a host and wait until it answers. `fence`: the owner before, which is dead to everybody but perhaps
        itself: it may be fenced if it still holds the log; empty for none. Raises ClusterError.
        """
        ...

    async def is_alive(self, placed: HostHandle) -> bool:
        """Whether it answers."""
        ...

    async def death(self, placed: HostHandle) -> None:
        """Wait until it is dead."""
        ...

    def perform(self, placed: HostHandle, agent_id: str, command: Command) -> AsyncIterator[StreamItem]:
        """Have it carry out a command. Raises HostLost, or what the command raises."""
        ...

    def perform_many(self, placed: HostHandle, commands: Sequence[tuple[str, Command]]) -> AsyncIterator[CommandErrors]:
        """Have it carry out a command for each of some agents, in one call. Raises HostLost."""
        ...

    async def recover(self, placed: HostHandle, capabilities: Mapping[str, SessionCapabilities]) -> None:
        """Have the host of a shared place finish all that is unfinished there, as many agents at once as it can hold.

        `capabilities`: what its agents were lent. Returns when that is done; raises HostLost, ClusterError,
        PartitionBusy.
        """
        ...


async def one_by_one(
    perform: Callable[[HostHandle, str, Command], AsyncIterator[StreamItem]],
    placed: HostHandle,
    commands: Sequence[tuple[str, Command]],
) -> AsyncIterator[CommandErrors]:
    """`HostProvider.perform_many` where a host has one agent: its commands, one after the other. Raises HostLost."""
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
    """The place of an agent that has a host for itself."""
    return HostedPartition(partition_of(agent_id), agent_id)
