"""The Python API: agents that are talked to, wherever they run.

    async with open_system("~/.everlog") as system:
        agent = await system.agent("sam")
        async for record in agent.send("Hi, I sail"):
            if record.type == "message_sent":
                print(record.text)

Everything that can fail raises an EverlogError, and what was acknowledged before stays in the log.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, Protocol

import msgspec

from events import BadInput, ClusterError, Event, Heartbeat, HostLost, Record, SystemAlert, UsageError, UserMessage
from store import FileStore, name_of

from . import commands
from .agent import Listener
from .commands import Command, Done, Heard, Means, Opened
from .constants import IDLE_S, MICROSECONDS, RESENDS_MAX
from .decide import PRESSURE_WARNING
from .effects import Clock, Ids, Model
from .extras import NO_GRANTS, Grants
from .hosting.addresses import prepare, running, to_join
from .hosting.gateway import Gateway
from .hosting.lending import lent_system
from .hosting.local import LocalRuntime
from .importing import Imported, Said
from .real import RealClock, RealIds
from .setup import Settings
from .system import System, View, model_for
from .tools import Tool

RuntimeName = Literal["auto", "local", "ray"]
RUNTIMES: Sequence[RuntimeName] = ("auto", "local", "ray")


class Runtime(Protocol):
    """Where agents run."""

    def perform(self, agent_id: str, command: Command, seen: int = 0) -> AsyncIterator[Heard]:
        """Have the agent's host carry out a command; it goes on when nobody listens any more.

        `seen`: the last seq that was heard of this command, when it is sent again. Raises EverlogError; HostLost when
        the host is gone and nobody knows how far it came.
        """
        ...

    async def release(self, agent_id: str) -> bool:
        """Let go of an agent, so that another process can have it; False if it is at work."""
        ...

    async def close(self) -> None:
        """Stop talking to hosts; those in this process let go of their agents."""
        ...


class Answer:
    """What follows from a command: iterate over it as it happens, or await it for all of it at once.

    `async for record in answer` gives each Record as it becomes durable; `await answer` the list of them. Nothing is
    sent before either is done. When it has ended, `value` is what the command gives back.
    """

    def __init__(self, heard: AsyncIterator[Heard], listen: Listener | None) -> None:
        self._heard = heard
        self._listen = listen
        self._used = False
        self.value: Any = None

    async def __aiter__(self) -> AsyncIterator[Record]:
        if self._used:
            raise UsageError("An answer is heard once; send again for another.")
        self._used = True
        async for heard in self._heard:
            if isinstance(heard, Done):
                self.value = heard.value
                continue
            if self._listen is not None:
                self._listen(heard)
            for record in heard:
                yield record

    def __await__(self) -> Generator[Any, None, list[Record]]:
        return self._all().__await__()

    async def _all(self) -> list[Record]:
        return [record async for record in self]


class AgentRef:
    """An agent to talk to. It may run here or far away, and be let go of in between: it is its log."""

    def __init__(
        self, agent_id: str, runtime: Runtime, *, means: Means | None, clock: Clock, ids: Ids, listen: Listener | None
    ) -> None:
        self.agent_id = agent_id
        self.opened: Opened
        """How it was when it was opened, or set up last."""
        self._runtime = runtime
        self._means = means
        self._clock = clock
        self._ids = ids
        self._listen = listen

    def send(self, said: str | Event, *, name: str = "", event_id: str | None = None) -> Answer:
        """Say something, or give another input. The same `event_id`, a UUIDv7, counts once, however often it is sent.

        `name`: who of several users says it. Raises ModelError if the model failed (what was said is kept), UsageError,
        StoreError, HostLost.
        """
        event = UserMessage(text=said, name=name) if isinstance(said, str) else said
        return self._do(commands.Say(id=event_id or self._new_id(), means=self._means, event=event))

    def heartbeat(self, text: str = "") -> Answer:
        """Run the agent once without a user."""
        return self.send(Heartbeat(text=text, reason="manual"))

    def resume(self) -> Answer:
        """Finish the turns that are not finished."""
        return self._do(commands.Resume(id=self._new_id(), means=self._means))

    def watch(self) -> Answer:
        """What happens without being asked for here: timed heartbeats, and what comes of them. It never ends.

        The agent stays in memory meanwhile. Raises HostLost where its process dies: watch it again.
        """
        return Answer(self._watched(), self._listen)

    def warn(self) -> Answer:
        """Warn the agent of memory pressure by hand."""
        return self.send(SystemAlert(text=PRESSURE_WARNING, source="memory_pressure"))

    def retry(self) -> Answer:
        """Hide the newest turn that a user opened, and what came after it, and say the same again."""
        return self._do(commands.Retry(id=self._new_id(), means=self._means))

    async def hide(self, turns: int = 1) -> Sequence[int]:
        """Hide the newest turns, 1 or more, from the context; their numbers. Nothing is deleted."""
        hidden: Sequence[int] = await self._value(commands.Hide(id=self._new_id(), means=self._means, turns=turns))
        return hidden

    async def rethink(self, text: str) -> None:
        """Put other words in the place of the agent's last monologue."""
        await self._value(commands.Rethink(id=self._new_id(), means=self._means, text=text))

    async def summarize(self) -> bool:
        """Summarize the oldest part of the context now; False if there is nothing to summarize."""
        return bool(await self._value(commands.Summarize(id=self._new_id(), means=self._means)))

    async def expand(self) -> bool:
        """Take the newest summary back; False if there is none."""
        return bool(await self._value(commands.Expand(id=self._new_id(), means=self._means)))

    async def configure(self, settings: Settings) -> Opened:
        """Set the agent up anew."""
        self.opened = await self._value(commands.Configure(id=self._new_id(), means=self._means, settings=settings))
        return self.opened

    async def take_in(self, said: Sequence[Said]) -> Imported:
        """Import a past conversation: one commit, no turn."""
        imported: Imported = await self._value(commands.TakeIn(id=self._new_id(), means=self._means, said=said))
        return imported

    async def set_timer(self, name: str, text: str = "", *, due_at: int | None = None, every_s: int = 0) -> str:
        """Have heartbeats sent at `due_at` (microseconds UTC; None: after `every_s`), then every `every_s` seconds.

        Gives back the timer's name; an empty one is chosen. `every_s` 0 is once. One of the same name is replaced.
        """
        if not isinstance(every_s, int) or (due_at is None and not every_s):
            raise BadInput("A timer has a time (`due_at`), or a number of seconds between its heartbeats (`every_s`).")
        at = self._clock.now() + every_s * MICROSECONDS if due_at is None else due_at
        command = commands.SetTimer(
            id=self._new_id(), means=self._means, timer=name, text=text, due_at=at, every_s=every_s
        )
        return str(await self._value(command))

    async def cancel_timer(self, name: str) -> bool:
        """Send no more heartbeats for this timer; False if there is none of that name."""
        return bool(await self._value(commands.CancelTimer(id=self._new_id(), means=self._means, timer=name)))

    async def delete(self) -> None:
        """End the agent: its name can be created again, its records stay until they are erased."""
        await self._value(commands.Delete(id=self._new_id(), means=self._means))

    async def release(self) -> bool:
        """Let go of it now, so that another process can have it; False if it is at work."""
        return await self._runtime.release(self.agent_id)

    async def open(
        self, settings: Settings, *, create: bool, take_over: bool, command: str, as_it_is: bool = False
    ) -> None:
        """Bring it into memory; `System.agent` does so."""
        wanted = commands.Open(
            id=self._new_id(), means=self._means or Means(), settings=settings, create=create, take_over=take_over,
            as_it_is=as_it_is, command=command,
        )  # fmt: skip
        self.opened = await self._value(wanted)

    def _new_id(self) -> str:
        return self._ids.new(self._clock.now())

    def _do(self, command: Command) -> Answer:
        return Answer(self._sent(command), self._listen)

    async def _watched(self) -> AsyncIterator[Heard]:
        since = self.opened.head  # a timer may have gone off before anybody could watch
        while True:
            command = commands.Watch(id=self._new_id(), means=self._means)
            async for heard in self._runtime.perform(self.agent_id, command, since):
                if isinstance(heard, Done):
                    since = heard.value  # what happens until it is watched again is told then
                else:
                    yield heard

    async def _value(self, command: Command) -> Any:
        answer = self._do(command)
        await answer
        return answer.value

    async def _sent(self, command: Command) -> AsyncIterator[Heard]:
        """What a command leads to. Where its host died it is sent again: its id makes it count once."""
        seen, sent = 0, 0
        while True:
            sent += 1
            try:
                async for heard in self._runtime.perform(self.agent_id, command, seen):
                    if not isinstance(heard, Done):
                        heard = [record for record in heard if record.seq > seen]
                        seen = max((record.seq for record in heard), default=seen)
                    yield heard
                return
            except HostLost:
                if not command.repeats or sent > RESENDS_MAX:
                    raise


class AgentSystem:
    """The agents of one store, wherever they run."""

    def __init__(self, runtime: Runtime, store: FileStore, *, means: Means | None, clock: Clock, ids: Ids) -> None:
        self.runtime = runtime
        self.store = store
        self._reading = System(store, tools=means.tools if means else (), clock=clock, ids=ids)
        self._means = means
        self._clock = clock
        self._ids = ids

    async def agent(
        self,
        name: str,
        settings: Settings | None = None,
        *,
        create: bool = True,
        take_over: bool = False,
        as_it_is: bool = False,
        listen: Listener | None = None,
        command: str = "everlog",
    ) -> AgentRef:
        """The agent of that name, in memory and set up; made if it does not exist, unless `create` is False.

        `as_it_is`: for what runs no turn; the agent is not set up anew, with other functions perhaps.

        `listen` is told every commit that an answer of it brings; `command` is what a person reads in another process
        while the agent is busy here. Raises UnknownAgent, PartitionBusy, BadInput, StoreError.
        """
        agent = AgentRef(
            name_of(name), self.runtime, means=self._means, clock=self._clock, ids=self._ids, listen=listen
        )
        await agent.open(settings or Settings(), create=create, take_over=take_over, as_it_is=as_it_is, command=command)
        return agent

    async def release(self, name: str) -> bool:
        """Let go of an agent, so that another process can have it; False if it is at work."""
        return await self.runtime.release(name_of(name))

    def agents(self) -> list[str]:
        """Names of all agents with a log, sorted."""
        return self._reading.agents()

    def look(self, name: str) -> View:
        """An agent for reading, as it is now: its projections, as of any moment. Starts nothing; close it."""
        return self._reading.look(name_of(name))


@asynccontextmanager
async def open_system(
    store: str | Path,
    *,
    runtime: RuntimeName | None = None,
    tools: Sequence[Tool] = (),
    base_url: str = "",
    grants: Grants = NO_GRANTS,
    idle_s: float = IDLE_S,
    models: Callable[[str, str], Model] | None = None,
    clock: Clock | None = None,
    ids: Ids | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    note: Callable[[str], None] | None = None,
    timers: bool = True,
) -> AsyncIterator[AgentSystem]:
    """The agents of the store in the folder `store`, which is made if there is none, while the block runs.

    `runtime`: `local` is this process; `ray` joins a running cluster, or starts one here for as long as the block
    runs; `auto` joins a cluster if one runs and is local otherwise; None is EVERLOG_RUNTIME, else `auto`. `tools`,
    `base_url` and `grants` are lent to the agents and never kept in a log. An agent that nobody uses for `idle_s`
    seconds is let go of. `timers`: whether, in `local`, timers of agents that are
    opened here go off meanwhile. `note` is told what a person should know. `models`, `clock`, `ids` and `sleep` are for
    `local`: what a test brings. Raises StoreError, ClusterError, BadInput.
    """
    clock, ids = clock or RealClock(), ids or RealIds()
    place = place_of(runtime, _folder(store))
    files = FileStore.create(_folder(store), clock.now, ids.new(clock.now()))
    lent = Means(tools=tuple(tools), base_url=base_url, grants=grants)
    means = lent if lent.same != Means().same else None
    note = note or (lambda _: None)
    if place == "ray":
        address = to_join(files.root)
        served = base_url or os.environ.get("OPENAI_BASE_URL", "")  # of this process: the cluster may have another
        means = msgspec.structs.replace(lent, base_url=served) if means or served else None
        if not address:
            note("starting Ray on this machine; `everlog up` keeps it running between commands")
        prepare(files.root, address)
        async with _cluster().joined(files, address, idle_s=idle_s) as cluster:
            yield AgentSystem(cluster, files, means=means, clock=clock, ids=ids)
        return
    gateway = Gateway(models or model_for)
    local = LocalRuntime(
        lambda lent: lent_system(files, lent, gateway.ask, clock=clock, ids=ids),
        clock=clock, sleep=sleep, idle_s=idle_s, note=note,
        timers=timers,
    )  # fmt: skip
    try:
        yield AgentSystem(local, files, means=means, clock=clock, ids=ids)
    finally:
        await local.close()
        await gateway.close()


def _cluster() -> ModuleType:
    """The file that imports Ray. Raises ClusterError where Ray is not installed."""
    try:
        from .hosting import cluster
    except ImportError as error:
        raise ClusterError(
            f"Ray cannot be imported ({error}): install it (the requirement is in pyproject.toml), or run agents in "
            "this process with --runtime local."
        ) from error
    return cluster


def _folder(store: str | Path) -> Path:
    return Path(store).expanduser()


def place_of(asked: RuntimeName | None, root: Path) -> str:
    """`local` or `ray`, as it was asked for the store in `root`. Raises BadInput for any other word."""
    wanted = asked or os.environ.get("EVERLOG_RUNTIME") or "auto"
    if wanted not in RUNTIMES:
        raise BadInput(f"There is no runtime {wanted!r} (--runtime, EVERLOG_RUNTIME): it is auto, local or ray.")
    if wanted != "auto":
        return wanted
    return "ray" if running(root) else "local"
