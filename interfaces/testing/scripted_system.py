"""Run agents in memory for a test: ordinary agents, hosts and log files, with a scripted model and a clock by hand.

    with everlog.testing.system(ScriptedModel(["Hello!"])) as system:
        assert system.agent("sam").ask("Hi").text == "Hello!"

Part of `everlog.testing`. Nothing here may touch the disk, the network, the wall clock or chance; the code of agents is
the same as everywhere else, so that a test shows what a real system does.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import msgspec

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.commands import SessionCapabilities
from everlog.actors.agent_ref import AgentRef
from everlog.actors.agent_system import AgentSystem
from everlog.actors.functions.extras import NO_GRANTS, Grants
from everlog.actors.functions.tools import Tool
from everlog.actors.gateway.gateway import Gateway
from everlog.actors.gateway.gateway_limits import GatewayLimits
from everlog.actors.hosting.local_runtime import LocalRuntime, local_runtime
from everlog.actors.loop_thread import LoopThread
from everlog.actors.ports.agent_constants import IDLE_S
from everlog.actors.ports.effects import FunctionRunner, Model
from everlog.actors.ports.function_threads import PROCESS_THREADS
from everlog.actors.ports.ports import Ports
from everlog.actors.replay.verify_agents import verify
from everlog.actors.sync_api import SyncAgent, SyncSystem
from everlog.actors.sync_proxy import blocking, check_no_loop, iterated, wrapped_in
from everlog.events import BadInput, ModelReply, Record, UnknownAgent, UsageError, event_of
from everlog.events.times import MICROSECONDS
from everlog.interfaces.testing.in_place_functions import InPlaceFunctions
from everlog.interfaces.testing.manual_clock import CountingIds, ManualClock, ManualTime, in_place
from everlog.interfaces.testing.scripted_reply import ScriptedCall
from everlog.store import FileStore, MemoryDisk

ROOT = Path("/everlog-in-memory")
"""Folder of the store on its disk in memory. There is no such folder on the machine."""

ONE_ATTEMPT = GatewayLimits(attempts_max=1)
"""Limits of a test's gateway: a failure of the model is the failure of the turn, and one line of the script."""


class ScriptedSystem(AgentSystem):
    """The agents of a test: an `AgentSystem` in memory, whose time a test moves."""

    runtime: LocalRuntime

    def __init__(
        self, *args: Any, model: Model, clock: ManualClock, ids: CountingIds, notes: list[str], **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self.ids = ids
        self.model = model
        """The model of all agents."""
        self.clock = clock
        self.notes = notes
        """Notes that a person would have read, so far."""

    @property
    def disk(self) -> MemoryDisk:
        """The disk of the store."""
        disk = self.store.disk
        assert isinstance(disk, MemoryDisk)
        return disk

    async def agent(self, name: str, settings: Settings | None = None, **options: Any) -> AgentRef:
        """Open an agent as `AgentSystem.agent` does. A new agent has the scripted model unless `settings` name one."""
        return await super().agent(name, self._scripted([name], settings), **options)

    async def create_many(self, names: Any, settings: Settings | None = None, **options: Any) -> AsyncIterator[Any]:
        """Create many agents as `AgentSystem.create_many` does."""
        wanted = list(names)
        async for created in super().create_many(wanted, self._scripted(wanted, settings), **options):
            yield created

    def _scripted(self, names: Sequence[str], settings: Settings | None) -> Settings | None:
        """Return the settings with the scripted model, if they name none and one of the agents is new."""
        if (settings is None or settings.model is None) and not all(map(self._is_known, names)):
            return msgspec.structs.replace(settings or Settings(), model=self.model.name)
        return settings

    def _is_known(self, name: str) -> bool:
        try:
            self.store.partition_of(self.store.latest(name))
        except UnknownAgent:
            return False
        return True

    async def advance(self, seconds: float | timedelta) -> None:
        """Move the clock on, and fire each timer at its time. Return when the turns of the timers have ended.

        `seconds`: 0 or more, or a timedelta. Agents that are idle for long enough are unloaded on the way. Raises
        BadInput for a negative time.
        """
        moved = seconds.total_seconds() if isinstance(seconds, timedelta) else seconds
        if moved < 0:
            raise BadInput(f"A clock is moved on, not back: {moved} seconds is less than 0.")
        end = self.clock.at + round(moved * MICROSECONDS)
        await self._settle()
        while (at := self._next_at()) is not None and at <= end:
            self.clock.wake_next(at)
            await self._settle()
        self.clock.wake_next(end)
        await self._settle()

    def _next_at(self) -> int | None:
        """Return the next time at which something wakes: a sleeper of the clock, or a timer of an agent."""
        return min((at for at in (self.clock.next_at, self.runtime.next_timer_at) if at is not None), default=None)

    async def _settle(self) -> None:
        """Let tasks run until no timer is due, and none is being fired."""
        await yield_to_tasks()
        while self.runtime.firing or (self.runtime.next_timer_at or self.clock.at + 1) <= self.clock.at:
            await yield_to_tasks()

    def log(self, name: str) -> list[Record]:
        """Return all records of an agent, oldest first. Raises UnknownAgent."""
        with self._reading.view(self.store.latest(name)) as view:
            return list(view.reader.read(view.agent_id))

    def calls(self, name: str) -> list[ScriptedCall]:
        """Return all function calls of an agent's model, oldest first, messages to the user included.

        The calls of the recorded start-up are left out: no model made them. Arguments that are not a JSON object are
        under the key `raw`. Raises UnknownAgent.
        """
        events = [event_of(record) for record in self.log(name) if record.type == ModelReply.kind]
        return [
            ScriptedCall(one.name, _arguments(one.arguments))
            for event in events
            if isinstance(event, ModelReply) and event.context_sha256
            for one in event.calls
        ]

    def assert_verified(self, name: str) -> None:
        """Replay an agent: render every recorded request again, execute every reply again, and compare both with the
        log, as `everlog verify` does. Raises AssertionError with each fault, UnknownAgent.
        """
        with self._reading.view(self.store.latest(name)) as view:
            faults = verify(view, self._reading.tools).faults
        if faults:
            raise AssertionError(f"the log of {name!r} does not verify:\n" + "\n".join(map(str, faults)))


class SyncScriptedSystem(SyncSystem):
    """Blocking form of `ScriptedSystem`: a `SyncSystem` in memory, whose time a test moves."""

    agent = wrapped_in(SyncAgent, ScriptedSystem.agent)
    create_many = iterated(ScriptedSystem.create_many)
    advance = blocking(ScriptedSystem.advance)

    @property
    def unwrapped(self) -> ScriptedSystem:
        """The asynchronous form. Its coroutines belong to the event loop of this system."""
        wrapped: ScriptedSystem = self._wrapped
        return wrapped

    @property
    def model(self) -> Any:
        """The model of all agents."""
        return self._wrapped.model

    @property
    def clock(self) -> ManualClock:
        """The clock; `advance` moves it."""
        clock: ManualClock = self._wrapped.clock
        return clock

    @property
    def notes(self) -> list[str]:
        """Notes that a person would have read, so far."""
        return list(self._wrapped.notes)

    def log(self, name: str) -> list[Record]:
        """Return all records of an agent, oldest first. Raises UnknownAgent."""
        self._check_usable("log")
        records: list[Record] = self._wait(in_place(self._wrapped.log, name))
        return records

    def calls(self, name: str) -> list[ScriptedCall]:
        """Return all function calls of an agent's model as `ScriptedSystem.calls` does."""
        self._check_usable("calls")
        calls: list[ScriptedCall] = self._wait(in_place(self._wrapped.calls, name))
        return calls

    def assert_verified(self, name: str) -> None:
        """Check an agent's log as `ScriptedSystem.assert_verified` does."""
        self._check_usable("assert_verified")
        self._wait(in_place(self._wrapped.assert_verified, name))


class ScriptedSystemContext:
    """A system that is not open yet: `with` opens its blocking form, `async with` the asynchronous one."""

    def __init__(self, opening: Callable[[], AbstractAsyncContextManager[ScriptedSystem]]) -> None:
        self._opening = opening
        self._sync: AbstractContextManager[SyncScriptedSystem] | None = None
        self._async: AbstractAsyncContextManager[ScriptedSystem] | None = None

    def __enter__(self) -> SyncScriptedSystem:
        check_no_loop("with everlog.testing.system(...)")
        self._check_unused()
        self._sync = _blocking_form(self._opening())
        return self._sync.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._sync is not None
        self._sync.__exit__(kind, error, trace)

    async def __aenter__(self) -> ScriptedSystem:
        self._check_unused()
        self._async = self._opening()
        return await self._async.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._async is not None
        await self._async.__aexit__(kind, error, trace)

    def _check_unused(self) -> None:
        if self._sync is not None or self._async is not None:
            raise UsageError("This system of a test was opened already: call everlog.testing.system(...) for each.")


def system(
    model: Model,
    *,
    tools: Sequence[Tool] = (),
    grants: Grants = NO_GRANTS,
    clock: ManualClock | None = None,
    restart_of: ScriptedSystem | SyncScriptedSystem | None = None,
    shards: int = 1,
    idle_s: float = IDLE_S,
    limits: GatewayLimits = ONE_ATTEMPT,
    function_threads: bool = False,
) -> ScriptedSystemContext:
    """Return a system in memory for `with` (blocking) or `async with`. Agents, hosts and log are the real ones.

    - `model`: usually a `ScriptedModel`; it answers for every model name.
    - `tools`, `grants`, `idle_s`: as for `open_system`.
    - `clock`: None: a new one, which stands at 2026-01-01 00:00:00 UTC.
    - `restart_of`: an earlier system, which was closed: the new one has its store, its ids and, without `clock`, its
      clock, as the next process would. None: an empty store.
    - `shards`: number of shared partitions of a new store.
    - `limits`: limits of the gateway. By default it sends each request once; with `GatewayLimits(attempts_max=3)` it
      retries, and the clock moves on by the waits.
    - `function_threads`: run plain functions in threads, as a real system does. By default they run in the event loop,
      and a time limit counts the seconds by which the function moves the clock.

    Searches compare words only: no vectors are computed.
    """
    before = restart_of.unwrapped if isinstance(restart_of, SyncScriptedSystem) else restart_of
    world = _World(
        disk=MemoryDisk() if before is None else before.disk,
        clock=clock or (ManualClock() if before is None else before.clock),
        ids=CountingIds() if before is None else before.ids,
    )
    session = SessionCapabilities(tools=tuple(tools), grants=grants)
    functions = PROCESS_THREADS if function_threads else InPlaceFunctions(world.clock)
    return ScriptedSystemContext(partial(_opened, model, session, world, functions, shards, idle_s, limits))


class _World(NamedTuple):
    """Parts of a test that outlive a process."""

    disk: MemoryDisk
    clock: ManualClock
    ids: CountingIds


@asynccontextmanager
async def _opened(
    model: Model,
    session: SessionCapabilities,
    world: _World,
    functions: FunctionRunner,
    shards: int,
    idle_s: float,
    limits: GatewayLimits,
) -> AsyncIterator[ScriptedSystem]:
    disk, clock, ids = world
    notes: list[str] = []
    ports = Ports(
        clock=clock, ids=ids, sleep=clock.sleep, aside=in_place, functions=functions, note=notes.append
    )  # fmt: skip
    store = FileStore.create(ROOT, clock.now, ids.new(clock.now()), shards_new=shards, disk=disk)
    gateway = Gateway(
        lambda *_: model, limits, clock=clock, chance=lambda: 0.0, root=store.root, time=ManualTime(clock)
    )
    local = local_runtime(store, gateway.ask, None, ports=ports, idle_s=idle_s, timers=True)
    capabilities = session if session.same != SessionCapabilities().same else None
    try:
        yield ScriptedSystem(
            local, store, model=model, clock=clock, ids=ids, notes=notes, capabilities=capabilities, ports=ports,
            ask=gateway.ask, archive=None, limits=limits,
        )  # fmt: skip
    finally:
        # In this order: until hosts are closed, their turns call the gateway.
        await local.close()
        await gateway.close()


@contextmanager
def _blocking_form(opening: AbstractAsyncContextManager[ScriptedSystem]) -> Iterator[SyncScriptedSystem]:
    with LoopThread() as loop, loop.holding(opening) as inner:
        yield SyncScriptedSystem(inner, loop)


YIELDS = 20
"""Times that a task lets all others run before it looks at what they did. More only costs time."""


async def yield_to_tasks() -> None:
    """Let all tasks that can run take a few steps."""
    for _ in range(YIELDS):
        await asyncio.sleep(0)


def _arguments(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError:
        return {"raw": text}
