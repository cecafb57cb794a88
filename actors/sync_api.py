"""The blocking form of the Python API, for scripts and notebooks.

    with everlog.open("~/.everlog") as system:
        print(system.agent("sam").send("Hi, I sail").text)

An event loop runs in a thread of its own; each method here runs the asynchronous method of the same name in that loop
and waits for it. In a thread that already runs an event loop a blocking call would stop that loop, so the call raises
UsageError before anything is sent. A notebook is the exception: its cells may block.

Used by users' programs through the package `everlog`.
"""

import asyncio
import functools
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.event_writer import CommitListener
from everlog.actors.agent_ref import AgentRef, ArchivalMemory
from everlog.actors.agent_system import AgentSystem, SendOutcome
from everlog.actors.api import open_system
from everlog.actors.loop_thread import LoopThread
from everlog.actors.memory.shared_block_service import SharedBlockService
from everlog.actors.memory.source_service import Sources
from everlog.actors.runtime import Run
from everlog.events import Record, UsageError

P = ParamSpec("P")
T = TypeVar("T")


class SyncProxy:
    """Wrapper of an asynchronous object, with the thread whose loop runs the object's methods."""

    def __init__(self, wrapped: Any, loop: LoopThread) -> None:
        self._wrapped = wrapped
        self._loop = loop

    def _check_usable(self, name: str) -> None:
        """Raise UsageError if the call `name` would block a running event loop, or if the system was closed."""
        check_no_loop(name)
        if self._loop.has_ended:
            raise UsageError(f"`{name}` was called after its system was closed: open it again. Nothing was sent.")


def _blocking(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SyncProxy, P], T]:
    """Make a method that runs the coroutine of `method`, and waits for its result."""

    @functools.wraps(method)
    def call(self: SyncProxy, /, *args: P.args, **kwargs: P.kwargs) -> T:
        self._check_usable(method.__name__)
        return self._loop.run(method(self._wrapped, *args, **kwargs))

    return call


def _direct(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[SyncProxy, P], T]:
    """Make a method that calls `method`, which blocks by itself."""

    @functools.wraps(method)
    def call(self: SyncProxy, /, *args: P.args, **kwargs: P.kwargs) -> T:
        self._check_usable(method.__name__)
        return method(self._wrapped, *args, **kwargs)

    return call


def _until_answered(method: Callable[Concatenate[Any, P], Run]) -> Callable[Concatenate[SyncProxy, P], SendOutcome]:
    """Make a method that waits until a command is done, and returns its `SendOutcome`."""

    @functools.wraps(method)
    def call(self: SyncProxy, /, *args: P.args, **kwargs: P.kwargs) -> SendOutcome:
        async def whole() -> SendOutcome:
            answer = method(self._wrapped, *args, **kwargs)
            records = await answer
            return SendOutcome(self._wrapped.agent_id, answer.event_id, records, answer.value, None)

        self._check_usable(method.__name__)
        return self._loop.run(whole())

    return call


def _iterated(
    method: Callable[Concatenate[Any, P], AsyncIterator[T]],
) -> Callable[Concatenate[SyncProxy, P], Iterator[T]]:
    """Make a method that returns a blocking iterator over the items of an asynchronous one."""

    @functools.wraps(method)
    def call(self: SyncProxy, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        self._check_usable(method.__name__)
        return _items(self._loop, method(self._wrapped, *args, **kwargs))

    return call


def _items(loop: LoopThread, items: AsyncIterator[T]) -> Iterator[T]:
    """Yield the items one by one, and close the asynchronous iterator when the caller stops iterating."""

    async def following() -> list[T]:
        try:
            return [await anext(items)]
        except StopAsyncIteration:
            return []

    async def close() -> None:
        if isinstance(items, AsyncGenerator):
            await items.aclose()

    try:
        while found := loop.run(following()):
            yield found[0]
    finally:
        loop.run(close())


class SyncArchivalMemory(SyncProxy):
    """Blocking form of `ArchivalMemory`."""

    insert = _blocking(ArchivalMemory.insert)
    insert_many = _blocking(ArchivalMemory.insert_many)
    update = _blocking(ArchivalMemory.update)
    delete = _blocking(ArchivalMemory.delete)
    search = _blocking(ArchivalMemory.search)


class SyncAgent(SyncProxy):
    """Blocking form of `AgentRef`.

    `send`, `heartbeat`, `resume`, `retry` and `warn` wait until the turn has ended, and return a `SendOutcome` with the
    `text`, the `records` and the `value`. Every method raises UsageError in a running event loop and after the system
    was closed.
    """

    send = _until_answered(AgentRef.send)
    heartbeat = _until_answered(AgentRef.heartbeat)
    resume = _until_answered(AgentRef.resume)
    retry = _until_answered(AgentRef.retry)
    warn = _until_answered(AgentRef.warn)
    cancel = _blocking(AgentRef.cancel)
    undo = _blocking(AgentRef.undo)
    rethink = _blocking(AgentRef.rethink)
    summarize = _blocking(AgentRef.summarize)
    expand = _blocking(AgentRef.expand)
    configure = _blocking(AgentRef.configure)
    import_messages = _blocking(AgentRef.import_messages)
    set_timer = _blocking(AgentRef.set_timer)
    cancel_timer = _blocking(AgentRef.cancel_timer)
    add_block = _blocking(AgentRef.add_block)
    update_block = _blocking(AgentRef.update_block)
    remove_block = _blocking(AgentRef.remove_block)
    attach_source = _blocking(AgentRef.attach_source)
    detach_source = _blocking(AgentRef.detach_source)
    attach_block = _blocking(AgentRef.attach_block)
    detach_block = _blocking(AgentRef.detach_block)
    move = _blocking(AgentRef.move)
    delete = _blocking(AgentRef.delete)
    unload = _blocking(AgentRef.unload)

    def notify(self, on_commit: CommitListener) -> None:
        """Call `on_commit`, in the event loop's thread, with the records of each commit received from now on."""
        self._wrapped.notify(on_commit)

    @property
    def agent_id(self) -> str:
        """The agent's name."""
        return str(self._wrapped.agent_id)

    @property
    def archive(self) -> SyncArchivalMemory:
        """The agent's archival memory."""
        return SyncArchivalMemory(self._wrapped.archive, self._loop)

    def stream(self, *args: Any, **kwargs: Any) -> Iterator[Record]:
        """Send a message, with the arguments of `send`. Return an iterator over the records as each becomes durable."""
        self._check_usable("stream")
        return _items(self._loop, aiter(self._wrapped.send(*args, **kwargs)))


class SyncSharedBlocks(SyncProxy):
    """Blocking form of `SharedBlockService`."""

    names = _direct(SharedBlockService.names)
    show = _direct(SharedBlockService.show)
    history = _direct(SharedBlockService.history)
    attached_agents = _direct(SharedBlockService.attached_agents)
    create = _blocking(SharedBlockService.create)
    set = _blocking(SharedBlockService.set)
    append = _blocking(SharedBlockService.append)
    change = _blocking(SharedBlockService.change)
    delete = _blocking(SharedBlockService.delete)


class SyncSystem(SyncProxy):
    """Blocking form of `AgentSystem`.

    Every method raises UsageError in a running event loop and after the system was closed.
    """

    create_many = _iterated(AgentSystem.create_many)
    send_many = _iterated(AgentSystem.send_many)
    cancel = _blocking(AgentSystem.cancel)
    fork = _blocking(AgentSystem.fork)
    rerun = _blocking(AgentSystem.rerun)
    compare = _blocking(AgentSystem.compare)
    delete = _blocking(AgentSystem.delete)
    unload = _blocking(AgentSystem.unload)
    agents = _direct(AgentSystem.agents)
    sql = _direct(AgentSystem.sql)
    view = _direct(AgentSystem.view)
    export = _direct(AgentSystem.export)
    restore = _direct(AgentSystem.restore)

    def agent(self, name: str, settings: Settings | None = None, **options: Any) -> SyncAgent:
        """Open an agent, create it if it does not exist, and return a handle on it.

        The options are those of `AgentSystem.agent`.
        """
        self._check_usable("agent")
        return SyncAgent(self._loop.run(self._wrapped.agent(name, settings, **options)), self._loop)

    @property
    def shared(self) -> SyncSharedBlocks:
        """The memory blocks that agents share."""
        return SyncSharedBlocks(self._wrapped.shared, self._loop)

    @property
    def sources(self) -> Sources:
        """Service that loads, lists and removes documents. Its methods block."""
        sources: Sources = self._wrapped.sources
        return sources


@contextmanager
def open(store: str | Path, **options: Any) -> Iterator[SyncSystem]:  # noqa: A001 - `everlog.open`, as `gzip.open`
    """Open the agents of the store in the folder `store` while the block runs; every call blocks.

    `options` are those of `open_system`. Raises UsageError in a running event loop, and the errors of `open_system`.
    """
    check_no_loop("open")
    with ExitStack() as stack:
        loop = stack.enter_context(LoopThread())
        system = stack.enter_context(loop.holding(open_system(store, **options)))
        yield SyncSystem(system, loop)


def check_no_loop(name: str) -> None:
    """Raise UsageError if an event loop runs in this thread: the blocking call `name` would stop that loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    if not in_notebook():
        raise UsageError(
            f"`{name}` blocks, and an event loop runs here: use `async with everlog.open_system(...)` and `await` its "
            "methods instead. Nothing was sent."
        )


def in_notebook() -> bool:
    """Return True in a notebook's kernel, whose event loop runs while a cell runs."""
    kernel = sys.modules.get("ipykernel.kernelapp")
    return kernel is not None and bool(kernel.IPKernelApp.initialized())
