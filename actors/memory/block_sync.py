"""Keep an agent and its shared blocks in step: copy newer versions into its log, apply its edits to the blocks.

Used by `model_step.py` (copies), `turn_runner.py` (edits) and `hosting/edit_commands.py` (attach, detach). The id of an
edit follows from the key of its call: only so does a retry after a crash find the edit instead of making it twice.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from everlog.actors.memory.core_memory import PendingEdit
from everlog.actors.memory.shared_block_rules import (
    GONE,
    BlockClient,
    BlockEdit,
    BlockEditOutcome,
    SharedBlock,
    copy_of,
    id_of,
)
from everlog.actors.prompt.context import MemoryBlock
from everlog.actors.prompt.setting_limits import check_blocks, check_label
from everlog.events import BadInput, BlockRemoved, Event, MemoryEdited, Record


async def newer(blocks: Sequence[MemoryBlock], shared: BlockClient) -> list[MemoryEdited]:
    """Return the events to commit before the next call: for each attached shared block, a version the agent lacks.

    Nothing is queried if no shared block is attached. Raises StoreError.
    """
    followed = [block for block in blocks if block.origin]
    if not followed:
        return []
    known: dict[str, int] = {}
    for block in followed:
        known[block.origin] = max(block.origin_version, known.get(block.origin, 0))
    found = await shared.newest(known)
    return [event for block in followed if (event := _newer_copy(block, found)) is not None]


def _newer_copy(block: MemoryBlock, found: Mapping[str, SharedBlock | None]) -> MemoryEdited | None:
    """Return the newest version if the agent's copy differs. A block that is gone keeps its text and is marked once.

    The whole copy is compared, because the version alone proves nothing: an agent that was restored elsewhere may find
    another block of that name.
    """
    if block.origin not in found:
        return None
    newest = found[block.origin]
    if newest is not None:
        copy = copy_of(block.label, newest)
        return None if _same(block, copy) else copy
    if block.description == GONE:
        return None
    return MemoryEdited(
        text=block.value, label=block.label, operation="copied", limit=block.limit, origin=block.origin,
        origin_version=0, description=GONE, read_only=True,
    )  # fmt: skip


def _same(block: MemoryBlock, copy: MemoryEdited) -> bool:
    said = (block.origin_version, block.value, block.limit, block.description, block.read_only)
    return said == (copy.origin_version, copy.text, copy.limit, copy.description, copy.read_only)


class AppliedEdits(msgspec.Struct, frozen=True):
    """Outcome of the edits of one call."""

    copies: Sequence[MemoryEdited]
    """Current blocks, for the agent's log."""
    error: str = ""
    """Error of the call; empty: all of its edits were made."""
    merged: Sequence[str] = ()
    """Labels of blocks that were changed meanwhile, and to which the edits were made nevertheless."""
    unknown: bool = False


async def apply_edits(
    pending_edits: Sequence[PendingEdit], shared: BlockClient, *, author: str, key: str, at: int
) -> AppliedEdits:
    """Apply the edits of one call to their shared blocks, one after the other, until one is refused."""
    newest: dict[str, MemoryEdited] = {}
    versions: dict[str, int] = {}
    merged: list[str] = []
    for number, edit in enumerate(pending_edits):
        block = edit.block
        # The id follows from the call's key, so a retry after a crash finds the edit instead of making it twice.
        edited = await shared.edit(_edit_of(edit, author, id_of(key, number, at), versions.get(block.label)))
        if edited.newest is not None and edited.newest.version != block.origin_version and not edited.newest.deleted:
            newest[block.label] = copy_of(block.label, edited.newest)
        if edited.error:
            return AppliedEdits(list(newest.values()), _edit_message(edited, number), merged, edited.unknown)
        if edited.newest is not None:
            versions[block.label] = edited.newest.version
        if edited.merged:
            merged.append(block.label)
    return AppliedEdits(list(newest.values()), merged=merged)


def _edit_of(edit: PendingEdit, author: str, edit_id: str, version: int | None) -> BlockEdit:
    """Make the edit for a block. `version`: the block's version after the preceding edits of the same call."""
    block = edit.block
    base = block.origin_version if version is None else version
    seen = SharedBlock(block.origin, block.origin_version, block.value, block.limit, block.description, block.read_only)
    return BlockEdit(
        name=block.origin, operation=edit.operation, id=edit_id, content=edit.content, old=edit.old, base=base,
        author=author, seen=seen,
    )  # fmt: skip


def _edit_message(edited: BlockEditOutcome, before: int) -> str:
    done = f" The {before} edit{'s' * (before > 1)} before it in this call stay." if before else ""
    return edited.error + done


class BlockAgent(Protocol):
    """Interface of the agent that this module uses."""

    blocks: BlockClient

    @property
    def turn(self) -> int: ...

    async def rows(self, name: str, as_of: int | None = None) -> Sequence[Mapping[str, Any]]: ...

    async def known(self, event_id: str | None, *kinds: type[Event]) -> Sequence[Record]: ...

    async def once(
        self, event_id: str | None, write: Callable[[], Awaitable[Record]], *kinds: type[Event]
    ) -> Record: ...

    async def commit(
        self, events: Sequence[Event], *, turn: int | None, step: int, ids: Sequence[str] = ()
    ) -> Sequence[Record]: ...


async def follow(agent: BlockAgent, name: str, label: str, command_id: str) -> bool:
    """Attach a shared block to the agent as the memory block `label`. Return False if it is attached already.

    Raises BadInput if there is no such block, or if the label is taken or invalid.
    """
    if any(row["label"] == label and row["origin"] == name for row in await agent.rows("core_memory")):
        return bool(await agent.known(command_id, MemoryEdited))  # perhaps by this very command

    check_label(label)

    async def write() -> Record:
        shared = (await agent.blocks.newest({name: 0})).get(name)
        if shared is None or shared.deleted:
            raise BadInput(f"There is no shared block {name!r} in this store; `everlog shared list` lists them.")
        rows = await agent.rows("core_memory")
        check_blocks(len(rows) + 1)
        if any(row["label"] == label for row in rows):
            raise BadInput(
                f"The agent has a memory block {label!r} of its own. Give this one another label (--block-label)."
            )
        return (await agent.commit([copy_of(label, shared)], turn=agent.turn, step=0, ids=[command_id]))[0]

    await agent.once(command_id, write, MemoryEdited)
    return True


async def unfollow(agent: BlockAgent, name: str, command_id: str) -> bool:
    """Detach a shared block from the agent's core memory, under every label. Return False if it is not there."""

    async def labels() -> list[str]:
        return [row["label"] for row in await agent.rows("core_memory") if row["origin"] == name]

    if not await labels():
        return bool(await agent.known(command_id, BlockRemoved))

    async def write() -> Record:
        removed = [BlockRemoved(label=label) for label in await labels()]
        if not removed:
            raise BadInput(f"The agent does not follow {name!r}.")
        return (await agent.commit(removed, turn=agent.turn, step=0, ids=[command_id]))[0]

    await agent.once(command_id, write, BlockRemoved)
    return True
