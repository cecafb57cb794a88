"""Where the supervisor finds and makes hosts when they are Ray's actors.

Names are hints on where to knock; who owns a log says the epoch in it.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from everlog.actors.agent.commands import Command, CommandResult, SessionCapabilities, StreamItem, WatchAgent
from everlog.actors.cluster import ray_api
from everlog.actors.cluster.cluster_errors import (
    dead_cluster,
    lost_error,
    no_room,
    not_answering_error,
    not_started_error,
)
from everlog.actors.cluster.host_actors import DedicatedActor, SharedActor, WireItem
from everlog.actors.cluster.outcome_codec import unpacked
from everlog.actors.cluster.placement import CommandErrors, HostedPartition, HostHandle
from everlog.actors.hosting.command_batch import BatchCommand, BatchOutcome
from everlog.actors.ports.agent_constants import ANSWER_S, START_S
from everlog.events import ClusterError, EverlogError
from everlog.store import StoreIdentity, check_one_store, seen_by

SLOT = "agent_slot"
"""What a node offers to hosts, where it offers anything in particular."""


class RayHostProvider:
    """Ray's actors. See `places.Places` for what each method promises."""

    def __init__(self, root: str, idle_s: float) -> None:
        self._root = root
        self._idle_s = idle_s

    async def find(self, place: HostedPartition) -> HostHandle | None:
        """The host of that name, if it answers; one that has let go of its agents is waited for until it is dead."""
        handle = ray_api.find_actor(self._root, place.host_name)
        if handle is None:
            return None
        with suppress(ray_api.RayError):
            try:
                placed = await asyncio.wait_for(self._placed(handle), ANSWER_S)
            except TimeoutError:
                raise not_answering_error(str(place)) from None
            if placed.pid:
                return placed
        with suppress(ray_api.RayError):
            ray_api.kill(handle)
            await handle.death.remote()
        return None

    async def start(self, place: HostedPartition, fence: str) -> HostHandle:
        """A new actor, once its process runs. Ray does not start it again: the supervisor does.

        Raises ClusterError, also where the node on which it is does not see the store as this process does.
        """
        handle = None
        try:
            handle = self._made(place, fence)
            return await asyncio.wait_for(self._placed(handle), START_S)
        except TimeoutError as error:
            ray_api.kill(handle)
            raise no_room(str(place)) from error
        except ClusterError:
            ray_api.kill(handle)
            raise
        except (ray_api.RayError, ValueError) as error:
            raise not_started_error(str(place), error) from error

    async def _placed(self, handle: Any) -> HostHandle:
        """A host once it can be asked for agents. Raises ClusterError where it sees another store, RayError."""
        sight: StoreIdentity = await handle.sight.remote()
        check_one_store([seen_by(Path(self._root)), sight])
        return HostHandle(ray_api.key_of(handle), await handle.ready.remote(), handle, sight.node)

    def _made(self, place: HostedPartition, fence: str) -> Any:
        options: dict[str, Any] = {"max_restarts": 0}
        if SLOT in ray_api.resources():
            options["resources"] = {SLOT: 1}
        if place.agent_id:
            arguments = (place, self._idle_s, fence)
            return ray_api.make_actor(self._root, place.host_name, DedicatedActor, *arguments, **options)
        options["scheduling_strategy"] = "SPREAD"  # each of them can make a node busy
        return ray_api.make_actor(self._root, place.host_name, SharedActor, place, self._idle_s, fence, **options)

    async def is_alive(self, placed: HostHandle) -> bool:
        """Whether it answers and still has its agents. One that hangs is ended."""
        try:
            return bool(await asyncio.wait_for(placed.handle.ready.remote(), ANSWER_S))
        except TimeoutError:
            ray_api.kill(placed.handle)
            return False
        except ray_api.RayError:
            return False

    async def death(self, placed: HostHandle) -> None:
        """Wait until Ray says that it is dead."""
        with suppress(ray_api.RayError):
            await placed.handle.death.remote()

    def perform(self, placed: HostHandle, agent_id: str, command: Command) -> AsyncIterator[StreamItem]:
        """Have it carry out a command. Raises HostLost, or what the command raises."""
        return stream_command(placed, agent_id, command, 0)

    async def perform_many(
        self, placed: HostHandle, commands: Sequence[tuple[str, Command]]
    ) -> AsyncIterator[CommandErrors]:
        """Have it carry out many commands. Raises HostLost, ClusterError."""
        orders = [BatchCommand(number, agent_id, command) for number, (agent_id, command) in enumerate(commands)]
        async for outcomes in stream_commands(placed, orders):
            yield [(commands[outcome.number][0], outcome.error) for outcome in outcomes]

    async def recover(self, placed: HostHandle, capabilities: Mapping[str, SessionCapabilities]) -> None:
        """Have a shared host finish what is unfinished. Raises HostLost, ClusterError, PartitionBusy."""
        try:
            failed: EverlogError | None = await placed.handle.recover.remote(capabilities)
        except ray_api.RayActorError as error:
            raise lost_error(placed.pid) from error
        except ray_api.RayTaskError:
            raise  # no error that anybody expected: our bug
        except ray_api.RayError as error:
            raise dead_cluster(error) from error
        if failed is not None:
            raise failed


async def stream_command(placed: HostHandle, agent_id: str, command: Command, seen: int) -> AsyncIterator[StreamItem]:
    """What a host says of a command, as it does. Raises HostLost, ClusterError, or what the command raises."""
    stream = placed.handle.perform.remote(agent_id, command, seen)
    try:
        async for reference in stream:
            heard: WireItem = await reference
            if isinstance(heard, EverlogError):
                raise heard
            yield heard
            if isinstance(heard, CommandResult):
                return
    except ray_api.RayActorError as error:
        raise lost_error(placed.pid) from error
    except ray_api.RayTaskError:
        raise  # no error that anybody expected: our bug
    except ray_api.RayError as error:
        raise dead_cluster(error) from error
    finally:
        if isinstance(command, WatchAgent):  # all else goes on when nobody listens
            ray_api.cancel(stream)


async def stream_commands(placed: HostHandle, orders: Sequence[BatchCommand]) -> AsyncIterator[Sequence[BatchOutcome]]:
    """What a host says of many commands, as it does: one call. Where it dies, the rest of them are HostLost.

    Raises ClusterError.
    """
    left = {order.number for order in orders}
    try:
        async for reference in placed.handle.perform_many.remote(orders):
            outcomes = unpacked(await reference)
            left.difference_update(outcome.number for outcome in outcomes)
            yield outcomes
    except ray_api.RayActorError:
        yield [BatchOutcome(number, [], error=lost_error(placed.pid)) for number in sorted(left)]
    except ray_api.RayTaskError:
        raise  # no error that anybody expected: our bug
    except ray_api.RayError as error:
        raise dead_cluster(error) from error
