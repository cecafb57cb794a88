"""A supervisor over hosts that a test lets die."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from typing import Any

from everlog.actors.agent.commands import Command, CommandResult, SessionCapabilities, StreamItem
from everlog.actors.cluster.placement import CommandErrors, HostedPartition, HostHandle, PartitionLookup, dedicated
from everlog.actors.cluster.supervisor import Supervisor
from everlog.actors.hosting.pending_work import PendingWork
from everlog.actors.ports.ports import Ports
from everlog.events import ClusterError, EverlogError, HostLost
from everlog.testing import CountingIds
from tests.support.virtual_time import WallClock


class Places:
    """Hosts as the test controls them. A host is represented by its key."""

    def __init__(self) -> None:
        self.living: dict[HostedPartition, HostHandle] = {}
        self.deaths: dict[str, asyncio.Event] = {}
        self._numbers = itertools.count(1)
        self.started: list[str] = []
        self.fail = 0
        self.performed: list[str] = []
        self.capabilities: list[SessionCapabilities | None] = []
        self.calls: list[int] = []
        """Number of commands in each batched call."""
        self.deadly = False
        self.wrong: dict[str, EverlogError] = {}
        self.retired: list[str] = []
        self.retiring = self.retiring_most = 0
        """Hosts that leave at once, now and at most."""
        self.busy: set[HostedPartition] = set()
        self.used: set[HostedPartition] = set()
        """Partitions whose next host is prepared before the present one leaves."""
        self.prepared: dict[str, HostedPartition] = {}
        """Partitions of the prepared processes that live, by key."""
        self.node = "here"
        """Node on which hosts are started."""

    async def find(self, place: HostedPartition) -> HostHandle | None:
        return self.living.get(place)

    async def start(self, place: HostedPartition) -> HostHandle:
        self.started.append(place.agent_id or place.name)
        number = next(self._numbers)
        await asyncio.sleep(1)
        if self.fail:
            self.fail -= 1
            raise ClusterError("no room")
        assert place not in self.living
        placed = HostHandle(f"key-{number}", number, None, node=self.node)
        self.living[place], self.deaths[placed.key] = placed, asyncio.Event()
        return placed

    async def prepare(self, place: HostedPartition, placed: HostHandle) -> HostHandle | None:
        if place not in self.used:
            return None
        number = next(self._numbers)
        await asyncio.sleep(1)
        if self.fail:
            self.fail -= 1
            raise ClusterError("no room")
        self.prepared[f"key-{number}"] = place
        return HostHandle(f"key-{number}", 0, None, node=self.node)

    async def take_over(self, prepared: HostHandle) -> HostHandle | None:
        place = self.prepared.pop(prepared.key, None)
        if place is None:
            return None
        assert place not in self.living
        placed = HostHandle(prepared.key, int(prepared.key.removeprefix("key-")), None, node=prepared.node)
        self.living[place], self.deaths[placed.key] = placed, asyncio.Event()
        return placed

    async def discard(self, prepared: HostHandle) -> None:
        self.prepared.pop(prepared.key, None)

    def die(self, *places: HostedPartition) -> None:
        for place in places:
            self.deaths[self.living.pop(place).key].set()

    async def is_alive(self, placed: HostHandle) -> bool:
        return placed in self.living.values()

    async def death(self, placed: HostHandle) -> None:
        await self.deaths[placed.key].wait()

    async def retire(self, placed: HostHandle) -> bool:
        place = next(place for place, other in self.living.items() if other == placed)
        self.retiring += 1
        self.retiring_most = max(self.retiring_most, self.retiring)
        await asyncio.sleep(1)
        self.retiring -= 1
        self.retired.append(place.agent_id or place.name)
        if place in self.living:
            self.die(place)
        return place in self.busy

    async def work(self, placed: HostHandle) -> None:
        await asyncio.sleep(1)
        if self.deadly and placed in self.living.values():
            self.die(next(place for place, other in self.living.items() if other == placed))
        if placed not in self.living.values():
            raise HostLost("gone")

    async def perform(self, placed: HostHandle, agent_id: str, command: Command) -> AsyncIterator[StreamItem]:
        await self.work(placed)
        self.performed.append(type(command).__name__)
        self.capabilities.append(command.capabilities)
        yield CommandResult()

    async def perform_many(
        self, placed: HostHandle, commands: Sequence[tuple[str, Command]]
    ) -> AsyncIterator[CommandErrors]:
        await self.work(placed)
        self.calls.append(len(commands))
        self.performed += [type(command).__name__ for _, command in commands]
        self.capabilities += [command.capabilities for _, command in commands]
        yield [(agent_id, self.wrong.get(agent_id)) for agent_id, _ in commands]

    async def recover(self, placed: HostHandle, lent: Mapping[str, SessionCapabilities]) -> None:
        await self.work(placed)
        self.performed.append(f"recover {sorted(lent)}")


def looked_up(place_of: Callable[[str], HostedPartition]) -> PartitionLookup:
    """Return a lookup of many agents that asks for one after the other."""

    async def places_of(agents: Collection[str]) -> Mapping[str, HostedPartition]:
        return {agent_id: place_of(agent_id) for agent_id in agents}

    return places_of


async def read(*pending_batches: PendingWork) -> AsyncIterator[Sequence[PendingWork]]:
    """Yield the pending work as the logs would give it."""
    yield pending_batches


class Run:
    """A running supervisor with its hosts and its notes, ended at the end of the block."""

    def __init__(self, *pending_batches: PendingWork, **options: Any) -> None:
        self.places = Places()
        self.notes: list[str] = []
        ports = Ports(clock=WallClock(), ids=CountingIds(), note=self.notes.append)
        place_of = options.pop("place_of", dedicated)
        self.supervisor = Supervisor(self.places, looked_up(place_of), ports=ports, **{"activations_max": 2, **options})
        self._standings = pending_batches

    async def __aenter__(self) -> tuple[Supervisor, Places, list[str]]:
        await self.supervisor.begin(read(*self._standings))
        return self.supervisor, self.places, self.notes

    async def __aexit__(self, *_: object) -> None:
        await self.supervisor.end()


def names(count: int) -> list[str]:
    return [f"agent-{n}" for n in range(count)]
