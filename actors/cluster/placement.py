"""Define where hosts run, as the supervisor sees it: hosted partitions, a table of their hosts, the operations on
hosts, and how a host moves.

The operations are implemented by `RayHostProvider` and by tests. Used by the supervisor and its queues, and by the
runtime. Imports no Ray.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from everlog.actors.agent.commands import Command, SessionCapabilities, StreamItem
from everlog.actors.cluster.ray_address import host_name
from everlog.events import ClusterError, EverlogError, HostLost, PartitionBusy
from everlog.store import HostMark, partition_of

TAKE_OVER_S = 120
"""Seconds after which the prepared process of a next host ends if it has not taken over: its supervisor has died."""


class HostedPartition(msgspec.Struct, frozen=True):
    """Partition that a host runs: dedicated to one agent, or shared by many."""

    name: str
    """Name of the partition: agent-<h> or shard-<n>."""
    agent_id: str = ""
    """Agent of a dedicated partition; empty if it is shared."""

    def __str__(self) -> str:
        return repr(self.agent_id) if self.agent_id else self.name

    @property
    def host_names(self) -> tuple[str, str]:
        """Names of the actor of its host: when a host hands over to the next one, each has one of them."""
        name = host_name(self.agent_id) if self.agent_id else self.name
        return name, f"next:{name}"  # in front: an agent's name may end with anything


PartitionLookup = Callable[[Collection[str]], Awaitable[Mapping[str, HostedPartition]]]
"""Returns the partition of each agent now. Raises UnknownAgent, StoreError."""


class HostHandle(msgspec.Struct, frozen=True):
    """Host that was found or started."""

    key: str
    """Identity of this one process of the host."""
    pid: int
    handle: Any
    """Reference by which `HostProvider` calls the host."""
    node: str = ""
    """Id of the node of the cluster that the host runs on."""


class FenceRight(msgspec.Struct, frozen=True):
    """Right of a host to take the logs of earlier hosts.

    A host is started only when the one before it has died or was declared dead. But a log may be held by a host that is
    still earlier, because the one before never opened it.
    """

    mark: HostMark
    """Mark of this host."""
    alone: bool = False
    """True if the hosts of all other clusters have died or were declared dead."""

    def covers(self, busy: PartitionBusy) -> bool:
        """Return True if the owner of a log is such an earlier host, not another process or a later host."""
        if busy.cluster == self.mark.cluster:
            return busy.start < self.mark.start
        return self.alone and bool(busy.cluster)


class HostLookup(msgspec.Struct, frozen=True):
    """Hosts of many agents."""

    place_of: Mapping[str, str]
    """Name of the partition by agent."""
    placed: Mapping[str, HostHandle | EverlogError]
    """Host by name of the partition, or the error why there is none now."""


CommandErrors = Sequence[tuple[str, EverlogError | None]]
"""Agents whose command has ended, each with its error; None if it was carried out."""


class HostState:
    """State of a partition whose host runs, died or is being started."""

    __slots__ = ("deaths", "lock", "placed", "since", "used", "users")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0
        """Number of tasks that are about to find, start or move the host."""
        self.placed: HostHandle | None = None
        self.since = 0
        """Start of the host, microseconds UTC."""
        self.used = 0
        """Time of the last request for the host, microseconds UTC."""
        self.deaths = 0
        """Number of deaths and failed starts in a row."""


class HostTable:
    """States of the partitions of a store."""

    def __init__(self) -> None:
        self._known: dict[HostedPartition, HostState] = {}

    def state(self, place: HostedPartition) -> HostState:
        """Return the state of a partition; a new one if nothing is known of it."""
        return self._known.setdefault(place, HostState())

    def placed(self, place: HostedPartition) -> HostHandle | None:
        """Return the host of a partition; None if there is none."""
        known = self._known.get(place)
        return known.placed if known is not None else None

    @property
    def hosts(self) -> Sequence[HostHandle]:
        """Hosts that run."""
        return [known.placed for known in self._known.values() if known.placed is not None]

    def take_all(self) -> Sequence[HostHandle]:
        """Return the hosts that run, and forget them."""
        hosts = self.hosts
        for known in self._known.values():
            known.placed = None
        return hosts

    def leaving(self, leaves: Callable[[HostHandle], bool]) -> Iterator[tuple[HostedPartition, HostState]]:
        """Yield the partitions whose host `leaves`, and those whose host is being started: it may be one that does."""
        for place, known in list(self._known.items()):
            if known.lock.locked() or (known.placed is not None and leaves(known.placed)):
                yield place, known

    def left(self, place: HostedPartition, key: str) -> HostHandle | None:
        """Remove a host that unloaded its idle agents. Return it; None if `key` is that of another host."""
        known = self._known.get(place)
        if known is None or known.placed is None or known.placed.key != key:
            return None
        placed, known.placed, known.deaths = known.placed, None, 0
        self.forget(place, known)
        return placed

    def forget(self, place: HostedPartition, known: HostState) -> None:
        """Drop the state of a partition if it holds nothing."""
        if not (known.users or known.placed or known.deaths):
            self._known.pop(place, None)

    def deaths(self, place: HostedPartition) -> int:
        """Return the number of deaths and failed starts in a row."""
        known = self._known.get(place)
        return known.deaths if known is not None else 0

    def reset_deaths(self, place: HostedPartition) -> None:
        """Reset the count of deaths in a row, because the host of one agent has carried something out."""
        known = self._known.get(place)
        if known is not None and place.agent_id:
            known.deaths = 0


class HostProvider(Protocol):
    """Runs the hosts of a supervisor."""

    async def find(self, place: HostedPartition) -> HostHandle | None:
        """Return the host of a partition that runs and answers; None if there is none."""
        ...

    async def start(self, place: HostedPartition) -> HostHandle:
        """Start a host, and wait until it answers. Raises ClusterError.

        Earlier hosts of the partition are presumed dead but may still be writing: the new host may fence them.
        """
        ...

    async def is_alive(self, placed: HostHandle) -> bool:
        """Return True if the host answers."""
        ...

    async def death(self, placed: HostHandle) -> None:
        """Wait until the host is dead."""
        ...

    async def prepare(self, place: HostedPartition, placed: HostHandle) -> HostHandle | None:
        """Start the process of the next host while `placed` carries out commands. It carries out none before
        `take_over`.

        Return None if `placed` has not been used lately, so that the next host can wait until it is needed. Raises
        ClusterError.
        """
        ...

    async def take_over(self, prepared: HostHandle) -> HostHandle | None:
        """Have a prepared process be the host of its partition. Return the host; None if the process has died. To be
        called after the host before it has ended.
        """
        ...

    async def discard(self, prepared: HostHandle) -> None:
        """End a prepared process that is not needed."""
        ...

    async def retire(self, placed: HostHandle) -> bool:
        """Have the host refuse new commands, finish turns for a short time and unload its agents; then end it. Return
        True if agents were at work: their callers need the next host at once.
        """
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


class HostMove(msgspec.Struct, frozen=True):
    """Host that has left its node."""

    was_busy: bool
    """True if agents were at work."""
    following: HostHandle | None
    """Host that has taken over; None if the next one must be started."""


async def move_host(
    hosts: HostProvider,
    place: HostedPartition,
    known: HostState,
    *,
    leaves: Callable[[HostHandle], bool],
    note: Callable[[str], None],
) -> HostMove | None:
    """Have a host leave, and a process that was prepared before take over. Return None if the host has gone, or is one
    that stays.

    A message that arrives meanwhile waits for the hand-over, but not for the start of a process.
    """
    placed, prepared = known.placed, None
    try:
        if placed is not None and leaves(placed):
            # Not under the lock: the host carries out commands until the next one can take over.
            try:
                prepared = await hosts.prepare(place, placed)
            except ClusterError as error:
                note(f"{place} leaves its node before its next host has started: {error}")
        async with known.lock:  # who needs the host meanwhile waits here, and gets the next one
            placed = known.placed
            if placed is None or not leaves(placed):
                return None
            known.placed, known.deaths = None, 0
            was_busy = await hosts.retire(placed)
            if prepared is not None and leaves(placed):  # else the supervisor has ended meanwhile
                known.placed, prepared = await hosts.take_over(prepared), None
            return HostMove(was_busy, known.placed)
    finally:
        if prepared is not None:
            await hosts.discard(prepared)


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
