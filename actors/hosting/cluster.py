"""Agents as Ray actors: the one file that imports Ray. What an actor does is in `host`, `supervisor` and `gateway`.

Ray's names are hints on where to knock; who owns a log says the epoch in it. A host has no state beside the log, and is
killed as soon as it has let go of its agent.
"""

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import ray
from ray.exceptions import RayActorError, RayError, RayTaskError

from actors.commands import Command, Done, Fire, Heard, Means, Resume, Watch
from actors.constants import ACTIVATIONS_MAX, ANSWER_S, CALLS_MAX, CLOSE_S, IDLE_S, OBJECT_STORE_BYTES, START_S
from actors.effects import Answer
from actors.real import RealClock, RealIds
from actors.setup import OFFLINE
from actors.system import System, model_for
from events import ClusterError, EverlogError, HostLost, ModelError
from store import FileStore

from .addresses import answers, host_name, namespace
from .failing import dead_cluster, first_line, lost, no_room, not_answering, not_connected, not_started, note
from .footprint import thin
from .gateway import GatewayActor
from .host import Host
from .lending import lent_system
from .packing import pack, unpack
from .places import Carried, Place, Placed, dedicated, one_by_one
from .standing import read_in_thread, standings, unfinished
from .supervisor import Supervisor
from .timers import Due

Wire = Heard | EverlogError
"""What comes back from a host: an error is a value, so that it arrives as it was raised."""


class HostActor:
    """The Ray actor of one agent. Its constructor cannot fail: what can fail waits for the first command."""

    def __init__(self, root: str, agent_id: str, idle_s: float, fence: int) -> None:
        thin()
        self._root = root
        self._agent_id = agent_id
        self._left = False
        self._clock, self._ids = RealClock(), RealIds()
        self._lent = False
        """Whether callers have lent it anything, or nothing: what the supervisor remembers is older."""
        self._host = Host(
            agent_id, self._system, idle_s=idle_s, fence=fence, tell_timers=self._tell_timers,
            on_idle=self._leave, note=note,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"host of {self._agent_id}"

    async def ready(self) -> int:
        """The process id; 0 once it has let go of its agent."""
        return 0 if self._left else os.getpid()

    async def perform(self, command: Command, seen: int = 0) -> AsyncIterator[Wire]:
        """`Host.perform`, with errors as values."""
        if self._left:
            yield HostLost(f"the host of {self._agent_id!r} has let go of it")
            return
        try:
            async for heard in self._host.perform(self._unpacked(command), seen):
                yield heard
        except EverlogError as error:
            yield error

    def _unpacked(self, command: Command) -> Command:
        """The command with what it lends in a form that can be used. Raises BadInput where it cannot."""
        remembered = isinstance(command, (Resume, Fire))
        if command.means is None or (remembered and self._lent):
            return msgspec.structs.replace(command, means=None)
        self._lent = self._lent or not remembered
        return msgspec.structs.replace(command, means=unpack(command.means))

    async def death(self) -> None:
        """Never returns: who waits for it hears of the end of this process."""
        await asyncio.Event().wait()

    async def release(self) -> bool:
        """Let go of the agent for good, unless it is at work."""
        self._left = self._left or await self._host.passivate()
        return self._left

    async def close(self) -> None:
        """Let go of the agent for good, now."""
        self._left = True
        await self._host.close()

    async def modules(self) -> list[str]:
        """What this process has imported."""
        return sorted(sys.modules)

    async def _leave(self) -> None:
        if await self.release():
            key = ray.get_runtime_context().get_actor_id()
            _supervisor_of(self._root).left.remote(self._agent_id, key)

    def _tell_timers(self, agent_id: str, timers: Sequence[Due]) -> None:
        _supervisor_of(self._root).know.remote(agent_id, list(timers))

    def _system(self, lent: Means) -> System:
        store = FileStore(Path(self._root), self._clock.now)
        return lent_system(store, lent, self._ask, clock=self._clock, ids=self._ids)

    async def _ask(self, name: str, base_url: str, request: bytes) -> Answer:
        if name == OFFLINE:
            return await model_for(name).ask(request)
        gateway = _actor(self._root, "gateway", GatewayActor, max_restarts=-1, max_task_retries=3, get_if_exists=True)
        try:
            answer: Answer | ModelError = await gateway.ask.remote(name, base_url, request)
        except RayError as error:
            raise ModelError(f"The gateway is gone ({first_line(error)}). Try again.", kind="unreachable") from error
        if isinstance(answer, ModelError):
            raise answer
        return answer


class RayPlaces:
    """Where the supervisor finds and makes hosts."""

    def __init__(self, root: str, idle_s: float) -> None:
        self._root = root
        self._idle_s = idle_s

    async def find(self, place: Place) -> Placed | None:
        """The host of that name, if it answers; one that has let go of its agent is waited for until it is dead."""
        try:
            handle = ray.get_actor(host_name(place.agent_id), namespace=namespace(self._root))
        except ValueError:
            return None
        with suppress(RayError):
            try:
                pid = await asyncio.wait_for(handle.ready.remote(), ANSWER_S)
            except TimeoutError:
                raise not_answering(place.agent_id) from None
            if pid:
                return Placed(_key_of(handle), pid, handle)
        with suppress(RayError):
            ray.kill(handle)
            await handle.death.remote()
        return None

    async def start(self, place: Place, fence: int) -> Placed:
        """A new actor, once its process runs. Raises ClusterError."""
        slot = {"resources": {"agent_slot": 1}} if "agent_slot" in ray.cluster_resources() else {}
        name = host_name(place.agent_id)
        try:  # Ray does not start it again: the supervisor does, and tells it whom to fence
            handle = _actor(self._root, name, HostActor, place.agent_id, self._idle_s, fence, max_restarts=0, **slot)
            pid = await asyncio.wait_for(handle.ready.remote(), START_S)
        except TimeoutError as error:
            ray.kill(handle)
            raise no_room(place.agent_id) from error
        except (RayError, ValueError) as error:
            raise not_started(place.agent_id, error) from error
        return Placed(_key_of(handle), pid, handle)

    async def lives(self, placed: Placed) -> bool:
        """Whether it answers and still has its agent. One that hangs is ended."""
        try:
            return bool(await asyncio.wait_for(placed.handle.ready.remote(), ANSWER_S))
        except TimeoutError:
            ray.kill(placed.handle)
            return False
        except RayError:
            return False

    async def death(self, placed: Placed) -> None:
        """Wait until Ray says that it is dead."""
        with suppress(RayError):
            await placed.handle.death.remote()

    def perform(self, placed: Placed, agent_id: str, command: Command) -> AsyncIterator[Heard]:
        """Have it carry out a command. Raises HostLost, or what the command raises."""
        return _performed(placed, command, 0)

    def perform_many(self, placed: Placed, commands: Sequence[tuple[str, Command]]) -> AsyncIterator[Carried]:
        """A command for the one agent of a host. Raises HostLost."""
        return one_by_one(self.perform, placed, commands)

    async def recover(self, placed: Placed, lent: Mapping[str, Means]) -> None:
        """For shared places, of which there are none."""
        raise NotImplementedError


async def _performed(placed: Placed, command: Command, seen: int) -> AsyncIterator[Heard]:
    stream = placed.handle.perform.remote(command, seen)
    try:
        async for reference in stream:
            heard: Wire = await reference
            if isinstance(heard, EverlogError):
                raise heard
            yield heard
            if isinstance(heard, Done):
                return
    except RayActorError as error:
        raise lost(placed.pid) from error
    except RayTaskError:
        raise  # no error that anybody expected: our bug
    except RayError as error:
        raise dead_cluster(error) from error
    finally:
        if isinstance(command, Watch):  # all else goes on when nobody listens
            ray.cancel(stream)


class SupervisorActor:
    """The Ray actor that keeps agents running; one for each store and cluster. Ray starts it again when it dies."""

    def __init__(self, root: str, idle_s: float) -> None:
        clock, ids = RealClock(), RealIds()
        self._root = root
        self._store = store = FileStore(Path(root), clock.now)
        self._supervisor = Supervisor(
            RayPlaces(root, idle_s), dedicated, clock=clock, ids=ids, activations_max=ACTIVATIONS_MAX,
            unfinished=lambda agents: unfinished(store, note, agents), note=note,
        )  # fmt: skip
        self._begun = asyncio.get_running_loop().create_task(self._begin())

    async def _begin(self) -> None:
        """Take up what the logs say. Reading them takes a while, and agents can be had meanwhile."""
        await self._supervisor.begin(read_in_thread(standings(self._store, note)))

    async def place(self, agent_id: str, means: Means | None, lost: str) -> Placed | EverlogError:
        """`Supervisor.place`, with errors as values."""
        try:
            return await self._supervisor.place(agent_id, means, lost)
        except EverlogError as error:
            return error

    async def know(self, agent_id: str, timers: Sequence[Due]) -> None:
        """A host tells what the timers of its agent are."""
        self._supervisor.schedule.know(agent_id, timers)

    async def left(self, agent_id: str, key: str) -> None:
        """A host has let go of its agent: its process is of no more use."""
        self._supervisor.left(dedicated(agent_id), key)
        with suppress(ValueError):  # it has ended already
            handle = ray.get_actor(host_name(agent_id), namespace=namespace(self._root))
            if _key_of(handle) == key:
                ray.kill(handle)

    async def release(self, agent_id: str) -> bool:
        """Have the host of an agent let go of it; False if it is at work."""
        placed = self._supervisor.placed(dedicated(agent_id))
        if placed is not None:
            with suppress(RayError):
                if not await placed.handle.release.remote():
                    return False
            await self.left(agent_id, placed.key)
        return True

    async def close(self) -> None:
        """Have every host let go of its agent; those that do not in time are ended all the same."""
        hosts = [placed.handle for placed in await self._supervisor.end()]
        closing = [asyncio.wrap_future(handle.close.remote().future()) for handle in hosts]
        if closing:
            await asyncio.wait(closing, timeout=CLOSE_S)
        for handle in hosts:
            ray.kill(handle)


class RayRuntime:
    """Agents in the Ray cluster that this process has joined."""

    def __init__(self, root: str, supervisor: Any) -> None:
        self._root = root
        self._supervisor = supervisor
        self._placed: dict[str, Placed] = {}
        self._lost: dict[str, str] = {}
        self._lent: tuple[Means | None, Means | None] | None = None
        self.address = str(ray.get_runtime_context().gcs_address)
        """Where others can join the cluster."""

    async def perform(self, agent_id: str, command: Command, seen: int = 0) -> AsyncIterator[Heard]:
        """See `api.Runtime`."""
        command = msgspec.structs.replace(command, means=self._packed(command.means))
        placed = await self._place(agent_id, command.means)
        try:
            async for heard in _performed(placed, command, seen):
                yield heard
        except HostLost:
            self._placed.pop(agent_id, None)
            self._lost[agent_id] = placed.key
            raise

    def _packed(self, means: Means | None) -> Means | None:
        if self._lent is None or self._lent[0] is not means:
            self._lent = means, pack(means, ray.cloudpickle)
        return self._lent[1]

    async def _place(self, agent_id: str, means: Means | None) -> Placed:
        if agent_id not in self._placed:
            found = await self._asked(self._supervisor.place.remote(agent_id, means, self._lost.get(agent_id, "")))
            self._placed[agent_id] = found
        return self._placed[agent_id]

    async def _asked(self, reference: Any) -> Any:
        """An answer of the supervisor. Raises ClusterError."""
        try:
            found = await reference
        except RayTaskError:
            raise  # no error that anybody expected: our bug
        except RayError as error:
            raise dead_cluster(error) from error
        if isinstance(found, EverlogError):
            raise found
        return found

    async def ready(self) -> None:
        """Wait until the supervisor runs. Raises ClusterError."""
        await self._asked(self._supervisor.__ray_ready__.remote())

    async def release(self, agent_id: str) -> bool:
        """See `api.Runtime`."""
        self._placed.pop(agent_id, None)
        return bool(await self._asked(self._supervisor.release.remote(agent_id)))

    async def close(self) -> None:
        """Hosts go on by themselves."""
        self._placed.clear()

    async def stop(self) -> None:
        """Have every host of the store let go of its agent, and end the supervisor."""
        with suppress(RayError, TimeoutError):
            await asyncio.wait_for(self._supervisor.close.remote(), 2 * CLOSE_S)
        ray.kill(self._supervisor)


@asynccontextmanager
async def joined(store: FileStore, address: str, *, idle_s: float = IDLE_S) -> AsyncIterator[RayRuntime]:
    """Agents of the store in the cluster at `address`; empty: in one that is started here, for as long as the block.

    Where this process has joined one already it is that one. Raises ClusterError, saying what to do.
    """
    root = str(store.root.resolve())
    own = not ray.is_initialized()
    if own:
        connect(root, address)
    try:
        runtime = RayRuntime(root, _supervisor_of(root, idle_s))
        try:
            yield runtime
        finally:
            if own and not address:
                await runtime.stop()
    finally:
        if own:
            ray.shutdown()


def connect(root: str, address: str) -> None:
    """Join the cluster at `address`, or start one if it is empty. Raises ClusterError."""
    if address and address != "auto" and not answers(address):
        raise ClusterError(
            f"No Ray cluster answers at {address} (RAY_ADDRESS). Start it, clear RAY_ADDRESS, or use --runtime local."
        )
    logging.getLogger("ray").setLevel(logging.ERROR)
    started: dict[str, Any] = {"include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
    try:
        ray.init(
            address or "local", namespace=namespace(root), log_to_driver=False, logging_level="ERROR",
            configure_logging=False, **({} if address else started),
        )  # fmt: skip
    except (RayError, RuntimeError, ConnectionError, ValueError, OSError) as error:
        raise not_connected(address, ray.__version__, error) from error


def _supervisor_of(root: str, idle_s: float = IDLE_S) -> Any:
    """The supervisor of a store, made if there is none."""
    return _actor(root, "supervisor", SupervisorActor, idle_s, max_restarts=-1, max_task_retries=3, get_if_exists=True)


def _actor(root: str, name: str, content: type, *arguments: Any, **options: Any) -> Any:
    """An actor of the store in `root`, which outlives whoever made it."""
    options = {"name": name, "namespace": namespace(root), "max_concurrency": CALLS_MAX, **options}
    made = ray.remote(content).options(lifetime="detached", num_cpus=0, enable_task_events=False, **options)
    return made.remote(root, *arguments)


def _key_of(handle: Any) -> str:
    return str(handle._actor_id.hex())  # noqa: SLF001 - Ray has no public name for it
