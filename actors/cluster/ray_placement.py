"""Find and start hosts as Ray actors, for the supervisor.

Used by the supervisor's actor and by `RayRuntime`.

The name of an actor only says where to look for a host; the epoch in a log says which process owns it.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from everlog.actors.agent.commands import Command, CommandResult, SessionCapabilities, StreamItem, WatchAgent
from everlog.actors.cluster import ray_api
from everlog.actors.cluster.cluster_claim import ClusterClaim
from everlog.actors.cluster.cluster_errors import (
    dead_cluster,
    lost_error,
    no_room,
    not_answering_error,
    not_started_error,
)
from everlog.actors.cluster.host_actors import DedicatedActor, WireItem
from everlog.actors.cluster.outcome_codec import unpacked
from everlog.actors.cluster.placement import CommandErrors, FenceRight, HostedPartition, HostHandle
from everlog.actors.cluster.shared_actor import SharedActor
from everlog.actors.gateway.gateway_status import GatewayStatus
from everlog.actors.hosting.cluster_status import (
    ArchiveStatus,
    ClusterStatus,
    HostStatus,
    NodeStatus,
    SupervisorStatus,
)
from everlog.actors.hosting.command_batch import BatchCommand, BatchOutcome
from everlog.actors.ports.agent_constants import ANSWER_S, CLOSE_S, START_S
from everlog.actors.ports.real_clock import RealClock, monotonic_us
from everlog.events import BadInput, ClusterError, EverlogError
from everlog.events.times import MICROSECONDS
from everlog.store import FileStore, StoreIdentity, check_one_store, shard_name, store_folder, store_identity, url_of
from everlog.store.base.store_constants import CLAIMS
from everlog.store.stores.claims import Claim
from everlog.store.stores.side_files import side_files_of

SLOT = "agent_slot"
"""Name of the Ray resource of which each dedicated host takes 1, if the nodes offer it."""


LEAVE_GRACE_S = 1
"""Seconds that the turns of a host have to end when its node is drained; then the next host finishes them. New messages
wait meanwhile.
"""
PREPARE_S = 10
"""Seconds that the process of the next host may take to start when a node is drained. If it takes longer, because all
nodes are full for example, the host leaves all the same, and the next one starts when there is room.
"""
LOOK_S = 2
"""Seconds without an answer after which a host's figures are left out."""
NODE_ID = "ray.io/node-id"
"""Label that Ray gives to each node."""


class RayHostProvider:
    """Hosts that are Ray actors. See `HostProvider` for the promise of each method."""

    def __init__(self, root: str, idle_s: float, claim: ClusterClaim) -> None:
        self._root = root
        self._idle_s = idle_s
        self._claim = claim
        self.drained: set[str] = set()
        """Ids of nodes on which no host is started any more."""

    async def find(self, place: HostedPartition) -> HostHandle | None:
        """Return the host of the partition if it answers. Its other actors are ended: one that has unloaded its agents
        for good, and one that was prepared and never took over.
        """
        found: HostHandle | None = None
        others, is_silent = [], False
        for handle in actors_of(self._root, place):
            if found is None:
                with suppress(ray_api.RayError):
                    try:
                        placed = await asyncio.wait_for(self._placed(handle), ANSWER_S)
                    except TimeoutError:  # it hangs, or was prepared and waits for room: the other may be the host
                        is_silent = True
                    else:
                        if placed.pid:
                            found = placed
                            continue
            others.append(handle)
        if is_silent and found is None:
            raise not_answering_error(str(place))
        for handle in others:  # a half-dead actor would keep its name, and a new one of this name could not be made
            await _end(handle)
        return found

    async def start(self, place: HostedPartition) -> HostHandle:
        """Start an actor, and wait until its process runs. Ray does not restart it: the supervisor does.

        Raises ClusterError, also if the actor's node sees another store than this process, or if another cluster runs
        the agents of the store.
        """
        return await self._started(place, place.host_names[0], START_S)

    async def prepare(self, place: HostedPartition, placed: HostHandle) -> HostHandle | None:
        """Start the actor of the next host under the name that `placed` does not have; see `HostProvider.prepare`."""
        try:
            if not await asyncio.wait_for(placed.handle.is_used.remote(), ANSWER_S):
                return None
        except (ray_api.RayError, TimeoutError):  # it is dead or hangs: `retire` ends it
            return None
        own, name = place.host_names
        handle = ray_api.find_actor(self._root, own)
        if handle is None or ray_api.key_of(handle) != placed.key:
            name = own
        for handle in actors_of(self._root, place):
            if ray_api.key_of(handle) != placed.key:  # a supervisor that died had prepared it
                await _end(handle)
        sealing = None if place.agent_id else placed.handle.seal.remote()
        prepared = await self._started(place, name, PREPARE_S, waits=True)
        if sealing is not None:
            with suppress(ray_api.RayError, TimeoutError):
                await asyncio.wait_for(sealing, ANSWER_S)
        return prepared

    async def take_over(self, prepared: HostHandle) -> HostHandle | None:
        """Have a prepared actor be the host; see `HostProvider.take_over`. Its name may be either of the two."""
        with suppress(ray_api.RayError, TimeoutError):
            pid = await asyncio.wait_for(prepared.handle.take_over.remote(), ANSWER_S)
            return msgspec.structs.replace(prepared, pid=pid)
        await self.discard(prepared)
        return None

    async def discard(self, prepared: HostHandle) -> None:
        """End a prepared actor."""
        await _end(prepared.handle)

    async def _started(self, place: HostedPartition, name: str, wait_s: float, *, waits: bool = False) -> HostHandle:
        """Make an actor, and wait at most `wait_s` seconds until its process runs. Raises ClusterError."""
        right = await self._claim.right()
        handle = None
        try:
            handle = self._made(place, name, right, waits)
            return await asyncio.wait_for(self._placed(handle), wait_s)
        except TimeoutError as error:
            ray_api.kill(handle)
            raise no_room(str(place)) from error
        except ClusterError:
            ray_api.kill(handle)
            raise
        except (ray_api.RayError, ValueError) as error:
            raise not_started_error(str(place), error) from error

    async def _placed(self, handle: Any) -> HostHandle:
        """Return a host once it is ready. Raises ClusterError if it sees another store, RayError."""
        asked = handle.sight.remote(), handle.node.remote()
        sight: StoreIdentity = await asked[0]
        check_one_store([await asyncio.to_thread(store_identity, store_folder(self._root)), sight])
        pid = await handle.ready.remote()
        return HostHandle(ray_api.key_of(handle), pid, handle, await asked[1])

    def _made(self, place: HostedPartition, name: str, right: FenceRight, waits: bool) -> Any:
        options: dict[str, Any] = {"max_restarts": 0}
        if SLOT in ray_api.resources():
            options["resources"] = {SLOT: 1}
        if self.drained:
            options["label_selector"] = {NODE_ID: f"!in({','.join(sorted(self.drained))})"}
        arguments = (place, self._idle_s, right, waits)
        if place.agent_id:
            return ray_api.make_actor(self._root, name, DedicatedActor, *arguments, **options)
        options["scheduling_strategy"] = "SPREAD"  # a single shard can keep a node busy
        return ray_api.make_actor(self._root, name, SharedActor, *arguments, **options)

    async def is_alive(self, placed: HostHandle) -> bool:
        """Return True if the host answers and still has its agents. A host that hangs is ended."""
        try:
            return bool(await asyncio.wait_for(placed.handle.ready.remote(), ANSWER_S))
        except TimeoutError:
            ray_api.kill(placed.handle)
            return False
        except ray_api.RayError:
            return False

    async def death(self, placed: HostHandle) -> None:
        """Wait until Ray reports the host's death."""
        with suppress(ray_api.RayError):
            await placed.handle.death.remote()

    async def retire(self, placed: HostHandle) -> bool:
        """End a host gracefully; see `HostProvider.retire`. Its name is free afterwards."""
        was_busy = True
        with suppress(ray_api.RayError, TimeoutError):
            was_busy = await asyncio.wait_for(placed.handle.leave.remote(LEAVE_GRACE_S), LEAVE_GRACE_S + CLOSE_S)
        ray_api.kill(placed.handle)
        await self.death(placed)
        return was_busy

    def begin_drain(self, wanted: str) -> str:
        """Start no host any more on the node with that id, the beginning of one, address or host name. Return the id.
        Raises BadInput, ClusterError.
        """
        alive = [node for node in ray_api.nodes() if node["Alive"]]
        self.drained &= {node["NodeID"] for node in alive}  # one that has gone comes back with another id
        found = [node for node in alive if wanted in _names_of(node) or node["NodeID"].startswith(wanted)]
        if len(found) != 1 or not wanted:
            known = ", ".join(f"{node['NodeID'][:8]} ({node['NodeManagerAddress']})" for node in alive)
            raise BadInput(
                f"{len(found)} nodes of the cluster are called {wanted!r}: name one by the beginning of its id. There "
                f"are {known}."
            )
        node = found[0]
        if ray_api.HEAD in node["Resources"]:
            raise BadInput("The head cannot be drained: the supervisor runs there. `everlog down` ends the cluster.")
        others = [other for other in alive if other["NodeID"] not in {node["NodeID"], *self.drained}]
        if not any(SLOT in other["Resources"] or SLOT not in node["Resources"] for other in others):
            raise ClusterError(
                f"No other node of the cluster offers {SLOT}, so the agents of {wanted} have no other place. Nothing "
                "was changed. Add a node first."
            )
        self.drained.add(node["NodeID"])
        return str(node["NodeID"])

    def perform(self, placed: HostHandle, agent_id: str, command: Command) -> AsyncIterator[StreamItem]:
        """Have the host carry out a command, and yield what follows. Raises HostLost, or the error of the command."""
        return stream_command(placed, agent_id, command, 0)

    async def perform_many(
        self, placed: HostHandle, commands: Sequence[tuple[str, Command]]
    ) -> AsyncIterator[CommandErrors]:
        """Have the host carry out many commands. Raises HostLost, ClusterError."""
        orders = [BatchCommand(number, agent_id, command) for number, (agent_id, command) in enumerate(commands)]
        async for outcomes in stream_commands(placed, orders):
            yield [(commands[outcome.number][0], outcome.error) for outcome in outcomes]

    async def recover(self, placed: HostHandle, capabilities: Mapping[str, SessionCapabilities]) -> None:
        """Have a shared host finish its unfinished turns. Raises HostLost, ClusterError, PartitionBusy."""
        try:
            failed: EverlogError | None = await placed.handle.recover.remote(capabilities)
        except ray_api.RayActorError as error:
            raise lost_error(placed.pid) from error
        except ray_api.RayTaskError:
            raise  # an unexpected exception in the actor: a bug of everlog
        except ray_api.RayError as error:
            raise dead_cluster(error) from error
        if failed is not None:
            raise failed


def actors_of(root: str, place: HostedPartition) -> Sequence[Any]:
    """Return the actors that have the names of a partition's host, dead or alive; usually one or none."""
    found = (ray_api.find_actor(root, name) for name in place.host_names)
    return [handle for handle in found if handle is not None]


async def _end(handle: Any) -> None:
    """End an actor, and wait until it is dead: then its name is free."""
    with suppress(ray_api.RayError):
        ray_api.kill(handle)
        await handle.death.remote()


def claim_of(store: FileStore, note: Callable[[str], None]) -> ClusterClaim:
    """Return the claim of the cluster that this supervisor's actor is in. Ray starts the actor again under its id."""
    key, path = ray_api.own_key(), store.root / CLAIMS / "cluster"
    who = f"the one at {ray_api.address()}, whose head is {os.uname().nodename}"
    claim = None
    if url_of(store.root):  # in a folder, locks tell who lives
        claim = Claim(side_files_of(path), path, key, who, lambda: monotonic_us() / MICROSECONDS)
    return ClusterClaim(key, claim, clock=RealClock(), now_us=monotonic_us, note=note)


def _names_of(node: Mapping[str, Any]) -> tuple[str, str]:
    return node["NodeManagerAddress"], node["NodeManagerHostname"]


async def cluster_status(
    root: str, address: str, supervisor: SupervisorStatus, hosts: Sequence[HostHandle]
) -> ClusterStatus:
    """Return the figures of the cluster, from the supervisor's and from those of each host and service that answers."""
    services = [ray_api.find_actor(root, name) for name in ("gateway", "archive")]
    asked = [placed.handle.status.remote() for placed in hosts]
    asked += [service.status.remote() for service in services if service is not None]
    answers = await asyncio.gather(*(in_time(reference) for reference in asked))
    statuses = [answer for answer in answers if isinstance(answer, HostStatus)]
    return ClusterStatus(
        at=RealClock().now(),
        address=address,
        hosts=statuses,
        nodes=[_node_status(node, statuses) for node in ray_api.nodes()],
        supervisor=supervisor,
        gateway=next((a for a in answers if isinstance(a, GatewayStatus)), None),
        archive=next((a for a in answers if isinstance(a, ArchiveStatus)), None),
        silent=len(hosts) - len(statuses),
    )


async def answer_of(reference: Any) -> Any:
    """Return an answer of the supervisor. Raises ClusterError, or the error that is the answer."""
    try:
        found = await reference
    except ray_api.RayTaskError:
        raise  # an unexpected exception in the actor: a bug of everlog
    except ray_api.RayError as error:
        raise dead_cluster(error) from error
    if isinstance(found, EverlogError):
        raise found
    return found


async def shard_statuses(root: str, number: int) -> Sequence[HostStatus | None]:
    """Return the figures of the first `number` shards that have a process; None for one that does not answer. They are
    found by name: a supervisor that has just started knows no host yet. A shard has two while one hands over.
    """
    places = [HostedPartition(shard_name(shard)) for shard in range(number)]
    handles = await asyncio.to_thread(lambda: [handle for place in places for handle in actors_of(root, place)])
    answers = await asyncio.gather(*map(_status_if_alive, handles))
    return [status for answer in answers for status in answer]


async def _status_if_alive(handle: Any) -> Sequence[HostStatus | None]:
    """Return a list of the figures of a shard's process; of None if it does not answer; an empty one if it is dead."""
    try:
        return [await asyncio.wait_for(handle.status.remote(), LOOK_S)]
    except ray_api.RayActorError:
        return []
    except (ray_api.RayError, TimeoutError):
        return [None]


async def in_time(reference: Any) -> Any:
    """Return the answer of an actor; None if it fails, or does not arrive in LOOK_S seconds."""
    with suppress(ray_api.RayError, TimeoutError):
        return await asyncio.wait_for(reference, LOOK_S)
    return None


def _node_status(seen: Mapping[str, Any], hosts: Sequence[HostStatus]) -> NodeStatus:
    """Return the figures of a node, from Ray's description and the hosts on the node."""
    offers = seen.get("Resources", {})
    mine = [host for host in hosts if host.node == seen["NodeManagerAddress"]]
    slots = int(offers.get(SLOT, 0))
    return NodeStatus(
        node=seen["NodeManagerAddress"],
        lives=bool(seen["Alive"]),
        hosts=len(mine),
        slots_used=min(len(mine), slots),
        slots=slots,
        memory_used_bytes=sum(host.memory_bytes for host in mine),
        memory_bytes=int(offers.get("memory", 0)),
    )


async def stream_command(placed: HostHandle, agent_id: str, command: Command, seen: int) -> AsyncIterator[StreamItem]:
    """Yield the stream of a command from a host. Raises HostLost, ClusterError, or the error of the command."""
    stream = placed.handle.perform.remote(agent_id, command, seen)
    try:
        async for reference in stream:
            received: WireItem = await reference
            if isinstance(received, EverlogError):
                raise received
            yield received
            if isinstance(received, CommandResult):
                return
    except ray_api.RayActorError as error:
        raise lost_error(placed.pid) from error
    except ray_api.RayTaskError:
        raise  # an unexpected exception in the actor: a bug of everlog
    except ray_api.RayError as error:
        raise dead_cluster(error) from error
    finally:
        if isinstance(command, WatchAgent):  # all other commands continue without a listener
            ray_api.cancel(stream)


async def stream_commands(placed: HostHandle, orders: Sequence[BatchCommand]) -> AsyncIterator[Sequence[BatchOutcome]]:
    """Yield the outcomes of many commands, sent to a host in one call. If the host dies, the rest of them are HostLost.

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
        raise  # an unexpected exception in the actor: a bug of everlog
    except ray_api.RayError as error:
        raise dead_cluster(error) from error
