"""The shared blocks of a cluster as a Ray actor: the one process there that edits them; and the way to it."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from everlog.actors.cluster import ray_api
from everlog.actors.cluster.cluster_errors import first_line
from everlog.actors.memory.shared_block_rules import BlockEdit, BlockEditOutcome, SharedBlock
from everlog.actors.memory.shared_block_writer import SharedBlockWriter
from everlog.actors.ports.ports import Ports
from everlog.actors.ports.real_clock import RealClock
from everlog.events import StoreError
from everlog.store import FileStore

NewestBlocks = Mapping[str, SharedBlock | None]


class BlockRequest(msgspec.Struct, frozen=True):
    """What is asked of the actor: an edit, or blocks as they are."""

    edit: BlockEdit | None = None
    known: Mapping[str, int] = {}


BlockResponse = BlockEditOutcome | NewestBlocks | StoreError
"""What it answers; an error is a value, so that it arrives as it was raised."""


class SharedBlockActor:
    """One for each store and cluster, made when a shared block is first asked for. Ray starts it again when it dies.

    It owns every block that was asked for, so what it knows of them is what they are. Its constructor cannot fail,
    whatever its node sees of the store.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._opened: SharedBlockWriter | None = None

    async def ready(self) -> int:
        """The process id."""
        return os.getpid()

    async def ask_many(self, wanted: Sequence[BlockRequest]) -> list[BlockResponse]:
        """An answer for each, in order; edits of one block that come together are one sync."""
        return list(await asyncio.gather(*map(self._ask, wanted)))

    async def unload(self, name: str) -> bool:
        """Let go of a block, so that another process can own it; False while edits of it wait."""
        return self._opened is None or await self._opened.unload(name)

    async def _ask(self, wanted: BlockRequest) -> BlockResponse:
        try:
            if wanted.edit is not None:
                return await self._sharing().edit(wanted.edit)
            return await self._sharing().newest(wanted.known)
        except StoreError as error:
            return error

    def _sharing(self) -> SharedBlockWriter:
        """Raises StoreError."""
        if self._opened is None:
            clock = RealClock()
            self._opened = SharedBlockWriter(FileStore(Path(self._root), clock.now), Ports(clock=clock), keeps=True)
        return self._opened


class ClusterBlockClient:
    """The way to the shared blocks of the cluster that this process has joined. See `blocks.Blocks`.

    What is asked in the same moment is one call. Where the actor does not answer, blocks are read in the store.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._actor: Any = None
        self._reading: SharedBlockWriter | None = None
        self._waiting: list[tuple[BlockRequest, asyncio.Future[BlockResponse]]] = []
        self._calls: set[asyncio.Task[None]] = set()

    async def newest(self, known: Mapping[str, int]) -> NewestBlocks:
        """The named blocks as they are. Raises StoreError."""
        try:
            found: NewestBlocks = await self._ask(BlockRequest(known=known))
        except _Away:
            return await self._read().newest(known)
        return found

    async def edit(self, edit: BlockEdit) -> BlockEditOutcome:
        """Carry an edit out."""
        try:
            edited: BlockEditOutcome = await self._ask(BlockRequest(edit=edit))
        except _Away as error:
            return BlockEditOutcome(None, f"Whether it was made cannot be said now: {error}", unknown=True)
        return edited

    async def unload(self, name: str) -> bool:
        """Have the actor let go of a block; False while edits of it wait."""
        actor = ray_api.find_actor(self._root, "blocks")
        try:
            return actor is None or bool(await actor.unload.remote(name))
        except ray_api.RayError:  # it is dead, and owns nothing
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
        """One call for all that wait."""
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
            answers = [_Away(f"the process of the shared blocks is gone ({first_line(error)})")] * len(waiting)
        for (_, future), answer in zip(waiting, answers, strict=True):
            if not future.done():
                future.set_result(answer)

    def _read(self) -> SharedBlockWriter:
        """For reading alone: it owns nothing."""
        if self._reading is None:
            clock = RealClock()
            self._reading = SharedBlockWriter(FileStore(Path(self._root), clock.now), Ports(clock=clock))
        return self._reading


class _Away(StoreError):
    """The actor did not answer."""
