"""The blocking form of the Python API, for scripts and notebooks.

    with everlog.open("~/.everlog") as system:
        print(system.agent("sam").ask("Hi, I sail"))

An event loop runs in a thread of its own; each method here runs the asynchronous method of the same name in that loop
and waits for it. Every public name of the asynchronous API has its counterpart here; a test compares the two. In a
thread that already runs an event loop a blocking call would stop that loop, so the call raises UsageError before
anything is sent. A notebook is the exception: its cells may block.

Used by users' programs through the package `everlog`.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self

from everlog.actors.agent.commands import OpenReport
from everlog.actors.agent.event_writer import CommitListener
from everlog.actors.agent_memory import ArchivalMemory
from everlog.actors.agent_ref import AgentRef
from everlog.actors.agent_state import AgentState
from everlog.actors.agent_system import AgentSystem
from everlog.actors.api import RuntimeName, ServiceOptions, open_system
from everlog.actors.derived_memories import AgentMemories
from everlog.actors.functions.extras import NO_GRANTS, Grants
from everlog.actors.functions.tools import Tool
from everlog.actors.loop_thread import LoopThread
from everlog.actors.memory_views import MemoryViews
from everlog.actors.ports.agent_constants import IDLE_S
from everlog.actors.ports.ports import Ports
from everlog.actors.reply import Reply
from everlog.actors.runtime import Placement, Run
from everlog.actors.short_tracebacks import shorten
from everlog.actors.store_services import DocumentSources, SharedBlocks
from everlog.actors.sync_proxy import SyncProxy, blocking, check_no_loop, iterated, next_of, wrapped_in
from everlog.events import EverlogError, Record

P = ParamSpec("P")


def _started(method: Callable[Concatenate[Any, P], Run]) -> "Callable[Concatenate[SyncProxy, P], SyncRun]":
    """Make a method that sends a command, waits for its first record, and returns a `SyncRun`."""

    @functools.wraps(method)
    def call(self: SyncProxy, /, *args: P.args, **kwargs: P.kwargs) -> SyncRun:
        self._check_usable(method.__name__)
        return SyncRun(method(self._wrapped, *args, **kwargs), self._loop)

    return call


class SyncRun(SyncProxy):
    """Blocking form of `Run`: what follows from one command, which was sent.

    Iterate over the records as each becomes durable, or wait for the `reply()`. A turn continues while the
    system is open, also if the caller does not wait for it.
    """

    def __init__(self, wrapped: Run, loop: LoopThread) -> None:
        super().__init__(wrapped, loop)
        self._coming = aiter(wrapped)
        self._received = self._wait(next_of(self._coming))

    def __iter__(self) -> Iterator[Record]:
        while self._received:
            yield self._received[0]
            self._check_usable("next")
            self._received = self._wait(next_of(self._coming))

    def reply(self) -> Reply:
        """Wait for the end, and return the `Reply`."""
        for _ in self:
            pass
        self._check_usable("reply")
        return self._wait(self._wrapped.reply())

    def text_parts(self) -> Iterator[str]:
        """Yield the messages of the answer; `SyncAgent.stream_text` yields them while the model writes."""
        messages = (record.text or "" for record in self if record.type == "message_sent")
        for number, text in enumerate(messages):
            yield f"\n{text}" if number else text

    @property
    def agent_id(self) -> str:
        """Name of the agent."""
        return str(self._wrapped.agent_id)

    @property
    def event_id(self) -> str:
        """Id of the command. The first event that the command appends has the same id."""
        return str(self._wrapped.event_id)

    @property
    def records(self) -> Sequence[Record]:
        """Records received so far."""
        records: Sequence[Record] = self._wrapped.records
        return records

    @property
    def value(self) -> Any:
        """Value of the command after its end; for a message, its record."""
        return self._wrapped.value


class SyncArchivalMemory(SyncProxy):
    """Blocking form of `ArchivalMemory`."""

    insert = blocking(ArchivalMemory.insert)
    insert_many = blocking(ArchivalMemory.insert_many)
    update = blocking(ArchivalMemory.update)
    delete = blocking(ArchivalMemory.delete)
    search = blocking(ArchivalMemory.search)


class SyncMemoryViews(SyncProxy):
    """Blocking form of `MemoryViews`."""

    list = blocking(MemoryViews.list)
    count = blocking(MemoryViews.count)
    total_tokens = blocking(MemoryViews.total_tokens)
    search = blocking(MemoryViews.search)
    format = blocking(MemoryViews.format)
    summarized = blocking(MemoryViews.summarized)
    tree = blocking(MemoryViews.tree)


class SyncAgentMemories(SyncMemoryViews):
    """Blocking form of `AgentMemories`."""

    add = blocking(AgentMemories.add)
    derive = blocking(AgentMemories.derive)
    note_fact = blocking(AgentMemories.note_fact)
    end_fact = blocking(AgentMemories.end_fact)
    name_entity = blocking(AgentMemories.name_entity)
    withdraw = blocking(AgentMemories.withdraw)
    make_plan = blocking(AgentMemories.make_plan)
    change_plan = blocking(AgentMemories.change_plan)
    choose_generation = blocking(AgentMemories.choose_generation)


class SyncAgent(SyncProxy):
    """Blocking form of `AgentRef`.

    `ask` waits for the answer. `send`, `heartbeat`, `resume`, `retry`, `approve`, `refuse` and `warn_memory_pressure`
    return a `SyncRun` as soon as the first record is durable. Every method raises UsageError in a running event loop
    and after the system was closed.
    """

    ask = blocking(AgentRef.ask)
    stream_text = iterated(AgentRef.stream_text)
    send = _started(AgentRef.send)
    heartbeat = _started(AgentRef.heartbeat)
    resume = _started(AgentRef.resume)
    retry = _started(AgentRef.retry)
    approve = _started(AgentRef.approve)
    refuse = _started(AgentRef.refuse)
    warn_memory_pressure = _started(AgentRef.warn_memory_pressure)
    cancel = blocking(AgentRef.cancel)
    undo_turns = blocking(AgentRef.undo_turns)
    edit_last_thought = blocking(AgentRef.edit_last_thought)
    summarize = blocking(AgentRef.summarize)
    undo_summary = blocking(AgentRef.undo_summary)
    search = blocking(AgentRef.search)
    configure = blocking(AgentRef.configure)
    import_messages = blocking(AgentRef.import_messages)
    set_timer = blocking(AgentRef.set_timer)
    cancel_timer = blocking(AgentRef.cancel_timer)
    add_block = blocking(AgentRef.add_block)
    update_block = blocking(AgentRef.update_block)
    remove_block = blocking(AgentRef.remove_block)
    attach_source = blocking(AgentRef.attach_source)
    detach_source = blocking(AgentRef.detach_source)
    attach_block = blocking(AgentRef.attach_block)
    detach_block = blocking(AgentRef.detach_block)
    move = blocking(AgentRef.move)
    delete = blocking(AgentRef.delete)
    rename = blocking(AgentRef.rename)
    unload = blocking(AgentRef.unload)

    def notify(self, on_commit: CommitListener) -> None:
        """Call `on_commit`, in the event loop's thread, with the records of each commit received from now on."""
        self._wrapped.notify(on_commit)

    @property
    def agent_id(self) -> str:
        """Name of the agent."""
        return str(self._wrapped.agent_id)

    @property
    def opened(self) -> OpenReport:
        """Report of the last opening or configuration."""
        report: OpenReport = self._wrapped.opened
        return report

    @property
    def archive(self) -> SyncArchivalMemory:
        """The agent's archival memory."""
        return SyncArchivalMemory(self._wrapped.archive, self._loop)

    @property
    def memories(self) -> SyncAgentMemories:
        """All that the agent remembers: messages, stored texts, and what was derived."""
        return SyncAgentMemories(self._wrapped.memories, self._loop)


class SyncAgentState(SyncProxy):
    """Blocking form of `AgentState`. Close it after use, or use it in a `with` block."""

    rows = blocking(AgentState.rows)
    memory = blocking(AgentState.memory)
    context = blocking(AgentState.context)
    request = blocking(AgentState.request)
    counts = blocking(AgentState.counts)
    search = blocking(AgentState.search)
    search_messages = blocking(AgentState.search_messages)
    search_archive = blocking(AgentState.search_archive)
    close = blocking(AgentState.close)

    @property
    def agent_id(self) -> str:
        """Name of the agent."""
        return str(self._wrapped.agent_id)

    @property
    def seq(self) -> int:
        """Moment: the state after this record."""
        return int(self._wrapped.seq)

    @property
    def head(self) -> int:
        """Seq of the agent's last record, when the view was opened."""
        return int(self._wrapped.head)

    @property
    def is_past(self) -> bool:
        """True if the view was opened for a past moment."""
        return bool(self._wrapped.is_past)

    @property
    def memories(self) -> SyncMemoryViews:
        """All that the agent remembered at the moment: messages, stored texts, and what was derived."""
        return SyncMemoryViews(self._wrapped.memories, self._loop)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SyncSharedBlocks(SyncProxy):
    """Blocking form of `SharedBlocks`."""

    names = blocking(SharedBlocks.names)
    show = blocking(SharedBlocks.show)
    history = blocking(SharedBlocks.history)
    attached_agents = blocking(SharedBlocks.attached_agents)
    create = blocking(SharedBlocks.create)
    set = blocking(SharedBlocks.set)
    append = blocking(SharedBlocks.append)
    change = blocking(SharedBlocks.change)
    delete = blocking(SharedBlocks.delete)


class SyncSources(SyncProxy):
    """Blocking form of `DocumentSources`."""

    names = blocking(DocumentSources.names)
    documents = blocking(DocumentSources.documents)
    attached = blocking(DocumentSources.attached)
    load = blocking(DocumentSources.load)


class SyncSystem(SyncProxy):
    """Blocking form of `AgentSystem`.

    Every method raises UsageError in a running event loop and after the system was closed.
    """

    agent = wrapped_in(SyncAgent, AgentSystem.agent)
    view = wrapped_in(SyncAgentState, AgentSystem.view)
    create_many = iterated(AgentSystem.create_many)
    send_many = iterated(AgentSystem.send_many)
    cancel = blocking(AgentSystem.cancel)
    fork = blocking(AgentSystem.fork)
    rename = blocking(AgentSystem.rename)
    rerun = blocking(AgentSystem.rerun)
    compare = blocking(AgentSystem.compare)
    delete = blocking(AgentSystem.delete)
    erase = blocking(AgentSystem.erase)
    unload = blocking(AgentSystem.unload)
    plan_erasure = blocking(AgentSystem.plan_erasure)
    agents = blocking(AgentSystem.agents)
    search = blocking(AgentSystem.search)
    sql = blocking(AgentSystem.sql)
    export = blocking(AgentSystem.export)
    restore = blocking(AgentSystem.restore)

    @property
    def shared(self) -> SyncSharedBlocks:
        """The memory blocks that agents share."""
        return SyncSharedBlocks(self._wrapped.shared, self._loop)

    @property
    def sources(self) -> SyncSources:
        """Collections of documents that agents can search."""
        return SyncSources(self._wrapped.sources, self._loop)


@contextmanager
def open(  # noqa: A001 - `everlog.open`, as `gzip.open`
    store: str | Path,
    *,
    runtime: RuntimeName | None = None,
    tools: Sequence[Tool] = (),
    base_url: str = "",
    grants: Grants = NO_GRANTS,
    idle_s: float = IDLE_S,
    timers: bool = True,
    placement: Placement = "dedicated",
    shards: int | None = None,
    services: ServiceOptions | None = None,
    ports: Ports | None = None,
    exact_names: bool = False,
) -> Iterator[SyncSystem]:
    """Open the agents of the store in the folder `store` while the block runs; every call blocks.

    The parameters are those of `open_system`. Raises UsageError in a running event loop, and the errors of
    `open_system`.
    """
    check_no_loop("open")
    opening = open_system(
        store, runtime=runtime, tools=tools, base_url=base_url, grants=grants, idle_s=idle_s, timers=timers,
        placement=placement, shards=shards, services=services, ports=ports, exact_names=exact_names,
    )  # fmt: skip
    with blocking_system(opening) as system:
        yield system


@contextmanager
def blocking_system(opening: AbstractAsyncContextManager[AgentSystem]) -> Iterator[SyncSystem]:
    """Enter `opening` in the event loop of a thread while the block runs, and yield the blocking form of its system."""
    with ExitStack() as stack:
        try:
            loop = stack.enter_context(LoopThread())
            system = stack.enter_context(loop.holding(opening))
        except EverlogError as error:
            shorten(error)
            raise
        yield SyncSystem(system, loop)
