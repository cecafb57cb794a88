"""Run agents in a Ray cluster: the supervisor's actor, and the runtime that reaches it and the hosts from other
processes.

Used by `open_system` for the runtime `ray`, and by `local_daemon`. Command streams go from the caller to the host
directly; the supervisor only says where the host is.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import msgspec

from everlog.actors.agent.commands import Command, SessionCapabilities, StreamItem
from everlog.actors.cluster import ray_api
from everlog.actors.cluster.archive_actor import archive_client_of
from everlog.actors.cluster.cluster_errors import left_cluster_error, value_or_error
from everlog.actors.cluster.gateway_client import GatewayClient
from everlog.actors.cluster.pickling import pack
from everlog.actors.cluster.placement import FenceRight, HostedPartition, HostHandle, HostLookup
from everlog.actors.cluster.ray_placement import (
    LOOK_S,
    RayHostProvider,
    actors_of,
    answer_of,
    claim_of,
    cluster_status,
    in_time,
    shard_statuses,
    stream_command,
    stream_commands,
)
from everlog.actors.cluster.shared_block_actor import ClusterBlockClient
from everlog.actors.cluster.structured_log import StructuredLogger
from everlog.actors.cluster.supervisor import Supervisor
from everlog.actors.gateway.gateway_status import GatewayStatus
from everlog.actors.hosting.cluster_status import ClusterStatus, SupervisorStatus
from everlog.actors.hosting.command_batch import BatchCommand, BatchOutcome, ItemT, errors_of, merge_streams
from everlog.actors.hosting.metrics import ProcessMetrics
from everlog.actors.hosting.pending_work import pending_work, read_in_thread, unfinished
from everlog.actors.hosting.timer_schedule import DueTimer
from everlog.actors.ports.agent_constants import ACTIVATIONS_MAX, CLOSE_S, COMMANDS_PER_CALL_MAX, IDLE_S
from everlog.actors.ports.ports import Ports, discard_note
from everlog.actors.ports.real_clock import RealClock
from everlog.actors.scaling.scaling_plan import VARIABLE
from everlog.actors.scaling.shard_scaler import ShardScaler
from everlog.actors.sharding.shard_mover import ShardMover, ShardMoves
from everlog.events import EverlogError, HostLost
from everlog.store import (
    FileStore,
    block_of,
    check_storage,
    is_block,
    is_shared,
    restrict_process,
    store_address,
    store_folder,
)


class SupervisorActor:
    """Ray actor of the supervisor, one for each store and cluster. Ray restarts it when it dies."""

    def __init__(self, root: str, idle_s: float) -> None:
        restrict_process()
        clock = RealClock()
        self._root = root
        self._store = store = FileStore(store_folder(root), clock.now)
        self._note = note = StructuredLogger("supervisor", ray_api.own_node(), clock=clock, environment=os.environ)
        self._claim = claim_of(store, note)
        self._places = RayHostProvider(root, idle_s, self._claim)
        ports = Ports(clock=clock, note=note)
        self._supervisor = Supervisor(
            self._places, self._places_of, ports=ports,
            activations_max=ACTIVATIONS_MAX, unfinished=lambda agents: unfinished(store, note, agents),
        )  # fmt: skip
        self._runtime: RayRuntime | None = None
        """Way to the hosts of agents, made for the first message between agents."""
        self._claiming = asyncio.get_running_loop().create_task(self._claim.run())
        self._mover = ShardMover(store, self.send_letters, ports, self._take_up)
        self._scaler = ShardScaler(
            os.environ.get(VARIABLE, ""), store, partial(shard_statuses, root), self.send_letters, self._mover,
            self._take_up, ports=ports,
        )  # fmt: skip
        self._begun = asyncio.get_running_loop().create_task(self._begin())
        self._metering = asyncio.get_running_loop().create_task(self._meter())

    async def _places_of(self, agents: Collection[str]) -> Mapping[str, HostedPartition]:
        """Look many agents up in a thread: in a bucket each look is a request."""
        found = await asyncio.to_thread(self._store.partitions_of, agents) if agents else {}
        return {a: HostedPartition(name, "" if is_shared(name) else a) for a, name in found.items()}

    async def _begin(self) -> None:
        """Take up what the logs say. Reading them takes a while; agents are available meanwhile."""
        await self._supervisor.begin(read_in_thread(pending_work(self._store, self._note)))
        self._mover.begin()  # a supervisor before this one may have died over it
        await self._scaler.run()

    async def _meter(self) -> None:
        """Update the metrics of the supervisor, and of the gateway if there is one, for ever."""
        meters = ProcessMetrics(ray_api.MAKERS)
        while True:
            await asyncio.sleep(LOOK_S)
            meters.supervisor(self._figures)
            gateway = ray_api.find_actor(self._root, "gateway")
            seen = await in_time(gateway.status.remote()) if gateway is not None else None
            if isinstance(seen, GatewayStatus):
                meters.gateway(seen)

    async def place(
        self, agent_id: str, capabilities: SessionCapabilities | None, lost: str
    ) -> HostHandle | EverlogError:
        """Call `Supervisor.place`, and return an error as a value."""
        return await value_or_error(self._supervisor.place(agent_id, capabilities, lost))

    async def place_many(
        self, agents: Sequence[str], capabilities: SessionCapabilities | None, lost: Mapping[str, str]
    ) -> HostLookup | EverlogError:
        """Call `Supervisor.place_many`, and return an error as a value."""
        return await value_or_error(self._supervisor.place_many(agents, capabilities, lost))

    async def right(self) -> FenceRight | EverlogError:
        """Return the right of a process of the cluster that owns logs as a host does. Return an error as a value."""
        return await value_or_error(self._claim.right())

    async def know_many(self, timers: Mapping[str, Sequence[DueTimer]]) -> None:
        """Take the timers of agents from their host."""
        for agent_id, due in timers.items():
            self._supervisor.schedule.know(agent_id, due)

    async def send_letters(self, letters: Sequence[tuple[str, Command]]) -> Sequence[EverlogError | None]:
        """Have agents take messages of other agents. Return the error of each, or None."""
        if self._runtime is None:
            self._runtime = RayRuntime(self._root, ray_api.find_actor(self._root, "supervisor"), self._note)
        return await errors_of(self._runtime.perform_many, letters)

    async def move_to_shards(self, begin: bool) -> ShardMoves:
        """Call `ShardMover.begin` if `begin`. Return the progress."""
        if begin:
            self._mover.begin()
        return self._mover.status

    async def _take_up(self, agents: Sequence[str]) -> None:
        """Have the turns finished that a dead host had left unfinished when the agents moved away from its shard."""
        for place in set((await self._places_of(agents)).values()):
            self._supervisor.recoveries.add(place, sure=False)

    async def left(self, place: HostedPartition, key: str) -> None:
        """End the process of a host that has unloaded its agents."""
        self._supervisor.left(place, key)
        for handle in actors_of(self._root, place):
            if ray_api.key_of(handle) == key:
                ray_api.kill(handle)

    async def unload(self, agent_id: str) -> bool:
        """Have the host of an agent unload it and the agents next to it. Return False if one is at work."""
        place = (await self._places_of([agent_id]))[agent_id]
        placed = self._supervisor.placed(place)
        if placed is not None:
            with suppress(ray_api.RayError):
                if not await placed.handle.unload.remote():
                    return False
            await self.left(place, placed.key)
        return True

    async def drain(self, node: str) -> int | EverlogError:
        """Move the hosts of a node elsewhere; see `RayRuntime.drain`. Return an error as a value."""
        try:
            drained = self._places.begin_drain(node)
        except EverlogError as error:
            return error
        return await self._supervisor.drain(lambda placed: placed.node == drained)

    async def status(self) -> tuple[SupervisorStatus, Sequence[HostHandle]]:
        """Return the figures of the supervisor, and the hosts that run."""
        return self._figures, self._supervisor.hosts

    @property
    def _figures(self) -> SupervisorStatus:
        return msgspec.structs.replace(self._supervisor.status, scaling=self._scaler.status)

    async def close(self) -> None:
        """Have every host unload its agents. Hosts that do not finish in CLOSE_S seconds are ended."""
        self._begun.cancel()
        await self._mover.stop()
        hosts = [placed.handle for placed in await self._supervisor.end()]
        closing = [asyncio.wrap_future(handle.close.remote().future()) for handle in hosts]
        if closing:
            await asyncio.wait(closing, timeout=CLOSE_S)
        for handle in hosts:
            ray_api.kill(handle)
        self._claiming.cancel()
        await self._claim.free()


class RayRuntime:
    """Runtime of agents in the Ray cluster that this process has joined."""

    def __init__(self, root: str, supervisor: Any, note: Callable[[str], None] = discard_note) -> None:
        self._root = root
        self._supervisor = supervisor
        self._places: dict[str, str] = {}
        """Name of the partition of each agent that was looked up."""
        self._placed: dict[str, HostHandle] = {}
        """Hosts by name of their partition."""
        self._lost: dict[str, str] = {}
        """Keys of lost hosts by name of their partition."""
        self._packed_capabilities: tuple[SessionCapabilities | None, SessionCapabilities | None] | None = None
        self._stream_tasks: set[asyncio.Task[Any]] = set()
        """Tasks that wait for the next item of a host's stream."""
        self.ask = GatewayClient(root).ask
        """Function that sends a request through the cluster's gateway."""
        self.archive = archive_client_of(root, note)
        """Client of the cluster's archive."""
        self.blocks = ClusterBlockClient(root, note)
        """Client of the store's shared blocks, which are edited in a process of the cluster."""
        self._left = False
        """True if this process has left the cluster."""
        self.address = ray_api.address()
        """Address at which other processes can join the cluster."""

    async def perform(self, agent_id: str, command: Command, seen: int = 0) -> AsyncIterator[StreamItem]:
        """Carry out a command; see `Runtime.perform`."""
        command = msgspec.structs.replace(command, capabilities=self._packed(command.capabilities))
        reached = await self._reach([agent_id], command.capabilities)
        placed = reached[agent_id]
        if isinstance(placed, EverlogError):
            raise placed
        try:
            async for received in merge_streams([self._host_stream(stream_command(placed, agent_id, command, seen))]):
                yield received
        except HostLost:
            self._forget(agent_id, placed)
            raise

    def check_capabilities(self, capabilities: SessionCapabilities | None) -> None:
        """Raise BadInput for functions that cannot be sent; see `Runtime.check_capabilities`."""
        self._packed(capabilities)

    async def perform_many(self, orders: Sequence[BatchCommand]) -> AsyncIterator[Sequence[BatchOutcome]]:
        """Carry out many commands; see `Runtime.perform_many`. Each host gets one call for up to COMMANDS_PER_CALL_MAX
        commands.
        """
        capabilities = self._packed(orders[0].command.capabilities) if orders else None
        reached = await self._reach(list({order.agent_id for order in orders}), capabilities)
        at: dict[str, tuple[HostHandle, list[BatchCommand]]] = {}
        for order in orders:
            placed = reached[order.agent_id]
            if isinstance(placed, EverlogError):
                yield [BatchOutcome(order.number, [], error=placed)]
            else:
                lending = msgspec.structs.replace(order.command, capabilities=capabilities)
                at.setdefault(placed.key, (placed, []))[1].append(msgspec.structs.replace(order, command=lending))
        agent_of = {order.number: order.agent_id for order in orders}
        async for outcomes in merge_streams(self._performed_many(placed, mine) for placed, mine in at.values()):
            for outcome in outcomes:
                if isinstance(outcome.error, HostLost):
                    agent_id = agent_of[outcome.number]
                    host = reached[agent_id]
                    if isinstance(host, HostHandle):
                        self._forget(agent_id, host)
            yield outcomes

    async def _performed_many(
        self, placed: HostHandle, orders: Sequence[BatchCommand]
    ) -> AsyncIterator[Sequence[BatchOutcome]]:
        for start in range(0, len(orders), COMMANDS_PER_CALL_MAX):
            async for outcomes in self._host_stream(
                stream_commands(placed, orders[start : start + COMMANDS_PER_CALL_MAX])
            ):
                yield outcomes

    async def _host_stream(self, stream: AsyncIterator[ItemT]) -> AsyncIterator[ItemT]:
        """Yield the items of a host's stream, in a task of `merge_streams`.

        `close` cancels these tasks before this process leaves the cluster: Ray ends a process that still waits for a
        host then.
        """
        task = asyncio.current_task()
        assert task is not None
        self._stream_tasks.add(task)
        try:
            async for item in stream:
                yield item
        except asyncio.CancelledError:
            if self._left:
                raise left_cluster_error() from None
            raise
        finally:
            self._stream_tasks.discard(task)

    def _packed(self, capabilities: SessionCapabilities | None) -> SessionCapabilities | None:
        if self._packed_capabilities is None or self._packed_capabilities[0] is not capabilities:
            self._packed_capabilities = capabilities, pack(capabilities, ray_api.cloudpickle)
        return self._packed_capabilities[1]

    async def _reach(
        self, agents: Sequence[str], capabilities: SessionCapabilities | None
    ) -> Mapping[str, HostHandle | EverlogError]:
        """Return the host of each agent, or the error why there is none now. Raises ClusterError."""
        # Taken before the supervisor is asked: another task may lose one of these hosts meanwhile, and forget it.
        known = {agent_id: self._placed.get(self._places.get(agent_id, "")) for agent_id in agents}
        reached: dict[str, HostHandle | EverlogError] = {a: placed for a, placed in known.items() if placed is not None}
        unknown = [agent_id for agent_id in agents if agent_id not in reached]
        if unknown:
            found: HostLookup = await answer_of(self._supervisor.place_many.remote(unknown, capabilities, self._lost))
            self._places.update(found.place_of)
            self._placed.update({name: host for name, host in found.placed.items() if isinstance(host, HostHandle)})
            reached.update({agent_id: found.placed[found.place_of[agent_id]] for agent_id in unknown})
        return reached

    def _forget(self, agent_id: str, placed: HostHandle) -> None:
        """Forget a host that was lost or has unloaded the agent. The next command looks up the agent's partition
        again.
        """
        name = self._places.pop(agent_id, "")
        if self._placed.get(name) is placed:
            del self._placed[name]
            self._lost[name] = placed.key

    async def ready(self) -> None:
        """Wait until the supervisor runs. Raises ClusterError."""
        await answer_of(self._supervisor.__ray_ready__.remote())

    async def status(self) -> ClusterStatus:
        """Return the figures of the cluster; see `StatusSource.status`. Raises ClusterError."""
        supervisor, hosts = await answer_of(self._supervisor.status.remote())
        return await cluster_status(self._root, self.address, supervisor, hosts)

    async def unload(self, agent_id: str) -> bool:
        """Unload an agent, or a shared block; see `Runtime.unload`."""
        if is_block(agent_id):
            return await self.blocks.unload(block_of(agent_id))
        self._placed.pop(self._places.pop(agent_id, ""), None)
        return bool(await answer_of(self._supervisor.unload.remote(agent_id)))

    async def drain(self, node: str) -> int:
        """Move the hosts of a node elsewhere, and start none there any more. Return their number. `node`: its address,
        host name or the beginning of its id; empty: the node of this process. Raises BadInput, ClusterError.
        """
        return int(await answer_of(self._supervisor.drain.remote(node or ray_api.own_node_id())))

    async def move_to_shards(self, *, begin: bool = True) -> ShardMoves:
        """Have the supervisor begin to move agents; see `ShardingRuntime.move_to_shards`. Raises ClusterError."""
        found: ShardMoves = await answer_of(self._supervisor.move_to_shards.remote(begin))
        return found

    async def close(self) -> None:
        """Stop listening to hosts, which continue on their own. Commands in progress raise ClusterError."""
        self._left = True
        self._placed.clear()
        for task in list(self._stream_tasks):
            task.cancel()
        await asyncio.gather(*self._stream_tasks, return_exceptions=True)

    async def stop(self) -> None:
        """Have every host of the store unload its agents, and end the supervisor."""
        with suppress(ray_api.RayError, TimeoutError):
            await asyncio.wait_for(self._supervisor.close.remote(), 2 * CLOSE_S)
        ray_api.kill(self._supervisor)


@asynccontextmanager
async def joined(store: FileStore, address: str, *, idle_s: float = IDLE_S, listen: str = "",
                 note: Callable[[str], None] = discard_note) -> AsyncIterator[RayRuntime]:  # fmt: skip
    """Run agents of the store in the cluster at `address` while the block runs; empty: in a new cluster on this
    machine, which is reached from other machines at `listen` if that is not empty.

    If this process has joined a cluster already, that cluster is used. `note` gets warnings about the logs of shared
    blocks that an edit of this process made the cluster open. Raises ClusterError with a remedy, and
    StoreError for storage on which logs are not safe.
    """
    check_storage(store.root)
    root = store_address(store.root)
    own = not ray_api.connected()
    if own:
        ray_api.connect(root, address, listen)
    try:
        runtime = RayRuntime(root, supervisor_of(root, idle_s), note)
        try:
            yield runtime
        finally:
            await runtime.close()
            if own and not address:
                await runtime.stop()
    finally:
        if own:
            ray_api.disconnect()


def supervisor_of(root: str, idle_s: float = IDLE_S) -> Any:
    """Return the supervisor of a store, started if there is none: on the head, so that no lost worker ends it."""
    return ray_api.make_actor(
        root, "supervisor", SupervisorActor, idle_s, max_restarts=-1, max_task_retries=3, get_if_exists=True,
        resources={ray_api.HEAD: 0.001},
    )  # fmt: skip
