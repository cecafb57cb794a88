"""Run the shared blocks of a cluster in a Ray actor, the one process there that edits them; and its client.

Used by the host actors and by `ray_runtime`, through `ClusterBlockClient`.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from everlog.actors.cluster import ray_api
from everlog.actors.cluster.cluster_errors import first_line
from everlog.actors.cluster.placement import FenceRight
from everlog.actors.cluster.structured_log import StructuredLogger
from everlog.actors.memory.shared_block_rules import BlockEdit, BlockEditOutcome, SharedBlock
from everlog.actors.memory.shared_block_writer import SharedBlockWriter
from everlog.actors.ports.ports import Ports, discard_note
from everlog.actors.ports.real_clock import RealClock
from everlog.events import ClusterError, EverlogError, StoreError
from everlog.store import FileStore, restrict_process, store_folder

NewestBlocks = Mapping[str, SharedBlock | None]


class BlockRequest(msgspec.Struct, frozen=True):
    """Request to the actor: an edit, or the newest versions of blocks."""

    edit: BlockEdit | None = None
    known: Mapping[str, int] = {}


BlockResponse = BlockEditOutcome | NewestBlocks | StoreError
"""Answer of the actor. An error is a value, so that its type survives the way between processes."""


class SharedBlockActor:
    """Ray actor of shared blocks, one for each store and cluster, made at the first request. Ray restarts it when it
    dies.

    The actor owns the log of every block that was requested, so its copy of a block is current. The constructor cannot
    fail, whatever its node sees of the store.
    """

    def __init__(self, root: str) -> None:
        restrict_process()
        self._root = root
        self._opened: SharedBlockWriter | None = None
        self._opening = asyncio.Lock()

    async def ready(self) -> int:
        """Return the process id."""
        return os.getpid()

    async def ask_many(self, wanted: Sequence[BlockRequest]) -> list[BlockResponse]:
        """Answer each request, in order. Edits of one block that arrive together share one sync."""
        return list(await asyncio.gather(*map(self._ask, wanted)))

    async def unload(self, name: str) -> bool:
        """Give a block's log up, so that another process can own it. Return False while edits of the block wait."""
        return self._opened is None or await self._opened.unload(name)

    async def _ask(self, wanted: BlockRequest) -> BlockResponse:
        try:
            writer = await self._writer()
            return await (writer.newest(wanted.known) if wanted.edit is None else writer.edit(wanted.edit))
        except StoreError as error:
            return error

    async def _writer(self) -> SharedBlockWriter:
        """Return the writer of the store's blocks. It may take their logs from the actor's earlier processes, as a host
        may. Raises StoreError.
        """
        async with self._opening:
            if self._opened is None:
                right = await self._right()
                clock = RealClock()
                note = StructuredLogger("blocks", ray_api.own_node(), clock=clock, environment=os.environ)
                store = await asyncio.to_thread(
                    lambda: FileStore(store_folder(self._root), clock.now, mark=right.mark)
                )  # fmt: skip
                ports = Ports(clock=clock, note=note)
                self._opened = SharedBlockWriter(store, ports, keeps=True, may_fence=right.covers)
        return self._opened

    async def _right(self) -> FenceRight:
        supervisor = ray_api.find_actor(self._root, "supervisor")
        found: FenceRight | EverlogError = ClusterError("The cluster's supervisor is gone. Try again.")
        if supervisor is not None:
            with suppress(ray_api.RayError):
                found = await supervisor.right.remote()
        if isinstance(found, EverlogError):
            raise StoreError(str(found))
        return found


class ClusterBlockClient:
    """Client of the shared blocks in the cluster that this process has joined; see `BlockClient`.

    Requests of the same moment go together in one call. If the actor does not answer, blocks are read from the store.
    """

    def __init__(self, root: str, note: Callable[[str], None] = discard_note) -> None:
        """Create the client. `note` is called with warnings about a block's log that the actor opened for an edit."""
        self._root = root
        self._note = note
        self._actor: Any = None
        self._reading: SharedBlockWriter | None = None
        self._waiting: list[tuple[BlockRequest, asyncio.Future[BlockResponse]]] = []
        self._calls: set[asyncio.Task[None]] = set()

    async def newest(self, known: Mapping[str, int]) -> NewestBlocks:
        """Return the newest versions of the named blocks. Raises StoreError."""
        try:
            found: NewestBlocks = await self._ask(BlockRequest(known=known))
        except _NoAnswer:
            return await self._read().newest(known)
        return found

    async def edit(self, edit: BlockEdit) -> BlockEditOutcome:
        """Carry out an edit, and return its outcome. The outcome is unknown if the actor does not answer."""
        try:
            edited: BlockEditOutcome = await self._ask(BlockRequest(edit=edit))
        except _NoAnswer as error:
            return BlockEditOutcome(None, f"Whether it was made cannot be said now: {error}", unknown=True)
        for warning in edited.warnings:
            self._note(warning)
        return edited

    async def unload(self, name: str) -> bool:
        """Have the actor give a block's log up. Return False while edits of the block wait."""
        actor = ray_api.find_actor(self._root, "blocks")
        try:
            return actor is None or bool(await actor.unload.remote(name))
        except ray_api.RayError:  # a dead actor owns nothing
            return True

    async def _ask(self, wanted: BlockRequest) -> Any:
        answer: asyncio.Future[BlockResponse] = asyncio.get_running_loop().create_future()
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._send)
        self._waiting.append((wanted, answer))
        result = await answer
        if isinstance(result, StoreError):
            raise result
        return result

    def _send(self) -> None:
        """Send all waiting requests in one call."""
        waiting, self._waiting = self._waiting, []
        call = asyncio.get_running_loop().create_task(self._call(waiting))
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)

    async def _call(self, waiting: "list[tuple[BlockRequest, asyncio.Future[BlockResponse]]]") -> None:
        try:
            if self._actor is None:
                self._actor = ray_api.make_actor(
                    self._root, "blocks", SharedBlockActor, max_restarts=-1, max_task_retries=3, get_if_exists=True
                )
            answers: Sequence[BlockResponse] = await self._actor.ask_many.remote([wanted for wanted, _ in waiting])
        except (ray_api.RayError, ValueError) as error:
            self._actor = None
            answers = [_NoAnswer(f"the process of the shared blocks is gone ({first_line(error)})")] * len(waiting)
        for (_, future), answer in zip(waiting, answers, strict=True):
            if not future.done():
                future.set_result(answer)

    def _read(self) -> SharedBlockWriter:
        """Return a writer that is used for reading only, and therefore owns no log."""
        if self._reading is None:
            clock = RealClock()
            self._reading = SharedBlockWriter(FileStore(store_folder(self._root), clock.now), Ports(clock=clock))
        return self._reading


class _NoAnswer(StoreError):
    """The actor did not answer."""
