"""Write the shared blocks of a store: one owner for each block, and one sync for all waiting edits.

Edits of a block that arrive together are appended together, each as a commit of its own, and reported when they are
durable. Reading needs no owner: a block that was read is cached, and read again now and then, because another process
may have edited it. Used by `local_system.py`, by the local runtime, and by the cluster's actor for shared blocks.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from everlog.actors.memory.shared_block_rules import BlockEdit, BlockEditOutcome, SharedBlock, event_after, folded
from everlog.actors.ports.effects import Ids
from everlog.actors.ports.log_warnings import note_opening
from everlog.actors.ports.ports import Ports
from everlog.events import (
    Event,
    FunctionError,
    MemoryEdited,
    PartitionBusy,
    Record,
    RecordsErased,
    StoreError,
    UnknownAgent,
    draft,
    event_of,
    place,
    time_of,
)
from everlog.events.times import MICROSECONDS
from everlog.projections import DERIVER
from everlog.store import ID_MEMORY_S, Append, Commit, Log, LogReader, Store, seal_if_due, stream_of_block

BLOCK_CACHE_US = MICROSECONDS
"""Microseconds for which a cached block counts as current; edits by this process are visible at once."""
WAITING_MAX = 4096
"""Most edits of one block that may wait."""
EDITS_TOGETHER_MAX = 256
"""Most edits that are appended together."""
BUSY_WAIT_S = 0.05
"""Seconds between two attempts to own a block that another process owns."""
BUSY_TRIES = 60
OWNER = "everlog shared"
"""Command that a block's log shows as its owner's."""
ID_KNOWN_US = ID_MEMORY_S * MICROSECONDS // 2
"""Age in microseconds from which the log no longer recognizes an id. An older edit gets a new id, and its own is
recorded as the cause.
"""


class _Block:
    """Cached state of one block."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.stream = stream_of_block(name)
        self.log: Log | None = None
        """Log of the block while this process owns it."""
        self.warnings: Sequence[str] = ()
        """Warnings about the log since it was opened, until an edit reports them."""
        self.read_at = -BLOCK_CACHE_US
        self.forget()

    def forget(self) -> None:
        """Reset to the state before the first record."""
        self.seq = 0
        """Seq up to which the stream was read."""
        self.shared: SharedBlock | None = None
        self.made: dict[str, int] = {}
        """Seq of each edit, by edit id."""
        self.authors: list[tuple[int, str]] = []
        """Seq and author of each edit, in order."""

    @property
    def version(self) -> int:
        return self.shared.version if self.shared else 0

    def read(self, reader: LogReader) -> None:
        """Read the records since the last read."""
        head = reader.head(self.stream).seq
        if head == self.seq:
            return
        records = list(reader.read(self.stream, self.seq + 1, head))
        erased = any(record.type == RecordsErased.kind for record in records)
        if erased and self.seq:
            self.forget()
            records = list(reader.read(self.stream, 1, head))
        self.take(records)
        if erased and reader.erasing(self.stream):  # the words still exist, but not for long: read them again
            self.seq = -1

    def take(self, records: Sequence[Record]) -> None:
        """Apply records, in order."""
        self.shared = folded(self.name, records, self.shared)
        for record in records:
            self.seq = record.seq
            self.made[record.event_id] = record.seq
            if record.cause is not None:
                self.made[record.cause] = record.seq
            self.authors.append((record.seq, _author(record)))

    def authors_since(self, version: int | None) -> list[str]:
        """Return the authors of the edits after a version."""
        return [author for seq, author in self.authors if version is not None and seq > version]


def _author(record: Record) -> str:
    """Return the author of an edit; empty for a person."""
    event = event_of(record)
    return event.author if isinstance(event, MemoryEdited) else ""


PendingEdits = list[tuple[BlockEdit, "asyncio.Future[BlockEditOutcome]"]]


class SharedBlockWriter:
    """Owner of the shared blocks of one store, in this process. All coroutines run on one event loop."""

    def __init__(
        self,
        store: Store,
        ports: Ports,
        *,
        keeps: bool = False,
        may_fence: Callable[[PartitionBusy], bool] = lambda _: False,
    ) -> None:
        """Own blocks on demand; with `keeps`, a block that was read or edited stays owned until `close` or `unload`.
        `may_fence` returns True if the owner of a block is an earlier writer, which was declared dead.
        """
        self._store = store
        self._clock, self._ids, self._sleep, self._note = ports.clock, ports.ids, ports.sleep, ports.note
        self._keeps = keeps
        self._may_fence = may_fence
        self._blocks: dict[str, _Block] = {}
        self._waiting: dict[str, PendingEdits] = {}
        self._tasks: dict[str, asyncio.Task[Any]] = {}

    async def newest(self, known: Mapping[str, int]) -> Mapping[str, SharedBlock | None]:
        """Return the newest versions, see `BlockClient`."""
        return {name: self._newest(name, version) for name, version in known.items()}

    def _newest(self, name: str, version: int) -> SharedBlock | None:
        block = self._block(name)
        if block.log is None and self._keeps:
            try:
                self._take_ownership(block)
            except (PartitionBusy, UnknownAgent):  # its owner may edit it at any time: read each time
                self._look(block)
        elif block.log is None and (
            block.version < version or not 0 <= self._clock.now() - block.read_at < BLOCK_CACHE_US
        ):
            self._look(block)
        return block.shared

    async def edit(self, edit: BlockEdit) -> BlockEditOutcome:
        """Make an edit, see `BlockClient`. Edits of one block are made in the order of arrival."""
        queue = self._waiting.setdefault(edit.name, [])
        if len(queue) >= WAITING_MAX:
            return BlockEditOutcome(
                self._block(edit.name).shared, f"{WAITING_MAX} edits of {edit.name!r} wait. Try again later.", busy=True
            )
        outcome: asyncio.Future[BlockEditOutcome] = asyncio.get_running_loop().create_future()
        queue.append((edit, outcome))
        task = self._tasks.get(edit.name)
        if task is None:
            task = self._tasks[edit.name] = asyncio.get_running_loop().create_task(self._work_off(edit.name))
        either: list[asyncio.Future[Any]] = [outcome, task]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not outcome.done():
            task.result()  # raises an unexpected error of the task
        return await outcome

    async def unload(self, name: str) -> bool:
        """Release a block, so that another process can own it. Return False while edits of it wait."""
        if name in self._tasks:
            return False
        self._close_block(self._block(name))
        return True

    async def close(self) -> None:
        """Finish the waiting edits, and release every block."""
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()))
        for block in self._blocks.values():
            self._close_block(block)

    def _block(self, name: str) -> _Block:
        if name not in self._blocks:
            self._blocks[name] = _Block(name)
        return self._blocks[name]

    def _look(self, block: _Block) -> None:
        try:
            block.read(self._store.reader(block.stream))
        except UnknownAgent:
            block.forget()
        block.read_at = self._clock.now()

    async def _work_off(self, name: str) -> None:
        """Make the waiting edits, as many together as there are, until none waits."""
        block = self._block(name)
        try:
            await asyncio.sleep(0)  # lets edits that are sent at the same moment arrive first
            while waiting := self._waiting.pop(name, None):
                for start in range(0, len(waiting), EDITS_TOGETHER_MAX):
                    await self._append_edits(block, waiting[start : start + EDITS_TOGETHER_MAX])
                await asyncio.sleep(0)
        finally:
            del self._tasks[name]
            if not self._keeps:
                with suppress(StoreError):  # edits are on disk; the next owner of the log seals it
                    self._close_block(block)

    async def _append_edits(self, block: _Block, waiting: PendingEdits) -> None:
        edits = [edit for edit, _ in waiting]
        try:
            await self._owned_block(block, create=any(self._refusal(block, edit) is None for edit in edits))
        except StoreError as error:
            outcomes = [BlockEditOutcome(block.shared, f"It cannot be edited now: {error}", busy=True)] * len(edits)
        except UnknownAgent:
            outcomes = [refused for edit in edits if (refused := self._refusal(block, edit)) is not None]
        else:
            outcomes = self._append_together(block, edits)
        for (_, outcome), edited in zip(waiting, outcomes, strict=True):
            if not outcome.done():
                outcome.set_result(edited)

    @staticmethod
    def _refusal(block: _Block, edit: BlockEdit) -> BlockEditOutcome | None:
        """Return the refusal of an edit that needs a block; None if the edit creates one."""
        try:
            event_after(edit, None)
        except FunctionError as error:
            return BlockEditOutcome(block.shared, str(error))
        return None

    async def _owned_block(self, block: _Block, *, create: bool) -> None:
        """Own a block; another owner is waited for. Raise UnknownAgent for an unknown block, StoreError."""
        if create and block.log is None:
            self._store.register(block.stream)
        for left in reversed(range(BUSY_TRIES)):
            try:
                self._take_ownership(block)
            except PartitionBusy:
                if not left:
                    raise
                await self._sleep(BUSY_WAIT_S)
            else:
                return

    def _take_ownership(self, block: _Block) -> None:
        if block.log is not None:
            return
        self._store.partition_of(block.stream)  # UnknownAgent for an unknown block, on every attempt
        try:
            log = self._store.open(block.stream, OWNER)
        except PartitionBusy as busy:
            if not self._may_fence(busy):
                raise
            log = self._store.open(block.stream, OWNER, take_over=True)
        read = False
        try:
            block.read(log)
            read = True
        finally:
            if not read:
                log.close()
        block.log = log
        block.warnings = note_opening(self._note, block.stream, log)

    def _close_block(self, block: _Block) -> None:
        log, block.log = block.log, None
        if log is None:
            return
        block.read_at = self._clock.now()
        try:
            seal_if_due(log, DERIVER)
        finally:
            log.close()

    def _append_together(self, block: _Block, edits: Sequence[BlockEdit]) -> list[BlockEditOutcome]:
        """Append edits together. Return the outcome of each."""
        assert block.log is not None
        plan = _Plan(block, self._clock.now(), self._ids)
        for edit in edits:
            plan.add(edit)
        if plan.appends:
            try:
                results = block.log.append_group(plan.appends)
            except StoreError as error:
                return self._lost(block, edits, error)
            # The cached state follows the durable records, never the plan: the append may have failed halfway.
            for result in results:
                if not isinstance(result, Commit):
                    return self._lost(block, edits, result)
                block.take(result.records)
            seal_if_due(block.log, DERIVER)
        warnings, block.warnings = block.warnings, ()
        return [
            BlockEditOutcome(block.shared, error, merged=merged and not error, warnings=warnings)
            for error, merged in plan.outcomes
        ]

    def _lost(self, block: _Block, edits: Sequence[BlockEdit], error: StoreError) -> list[BlockEditOutcome]:
        """Report edits as unknown after a failed append, and drop the cached state: the log may differ from it."""
        log, block.log = block.log, None
        if log is not None:
            log.close()
        block.forget()
        block.read_at = -BLOCK_CACHE_US
        why = f"Whether it was made cannot be said now: {error}"
        return [BlockEditOutcome(None, why, unknown=True)] * len(edits)


class _Plan:
    """Edits to append to the log of a block, each based on the result of the one before it."""

    def __init__(self, block: _Block, now: int, ids: Ids) -> None:
        self._block = block
        self._now = now
        self._ids = ids
        self._shared = block.shared
        self._head = block.seq
        self._authors: list[str] = []
        self._append_together: set[str] = set()
        self.appends: list[Append] = []
        self.outcomes: list[tuple[str, bool]] = []
        """For each edit: the reason of its refusal, or empty; and True if the edit was merged."""

    def add(self, edit: BlockEdit) -> None:
        """Add the next edit."""
        if edit.id in self._block.made or edit.id in self._append_together:
            self.outcomes.append(("", False))  # redelivered, after a crash or a lost call
            return
        authors = [*self._block.authors_since(edit.base), *self._authors]
        try:
            event = event_after(edit, self._shared, authors)
        except FunctionError as error:
            self.outcomes.append((str(error), False))
            return
        merged = edit.base is not None and self._shared is not None and self._shared.version != edit.base
        self.outcomes.append(("", merged))
        self._write(edit, event)

    def _write(self, edit: BlockEdit, event: Event) -> None:
        at = time_of(edit.id)
        fresh = at is not None and 0 <= self._now - at < ID_KNOWN_US
        name = edit.id if fresh else self._ids.new(self._now)
        event = msgspec.structs.replace(event, by=edit.by) if edit.by else event
        written = draft(event, event_id=name, recorded_at=self._now, turn=0, step=0, cause=None if fresh else edit.id)
        self.appends.append(Append(self._block.stream, self._head, [written]))
        self._head += 1
        self._append_together.add(edit.id)
        self._authors.append(edit.author)
        placed = place(written, self._block.stream, self._head, 0)
        self._shared = folded(self._block.name, [placed], self._shared)
