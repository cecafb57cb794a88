"""Manage the shared memory blocks of a store, for people: show them, list their agents, edit them.

Used by `AgentSystem`, by the synchronous API, and by the commands for shared blocks.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from copy import copy
from datetime import datetime
from typing import Any, Self

import msgspec

from everlog.actors.memory.fleet_sql import LIVING, fleet_rows
from everlog.actors.memory.shared_block_rules import BlockClient, BlockEdit, BlockOperation, SharedBlock, folded
from everlog.actors.ports.agent_constants import BLOCK_CHARS
from everlog.actors.ports.effects import Clock, Ids
from everlog.actors.ports.moments import seq_of
from everlog.events import BadInput, BlockRemoved, EditConflict, MemoryEdited, StoreError, UnknownAgent, event_of
from everlog.events.times import moment
from everlog.store import LogReader, Store, block_of, stream_of_block

_ATTACHED = f"SELECT origin, agent_id, label FROM core_memory WHERE origin <> '' AND {LIVING} ORDER BY ALL"


class BlockVersion(msgspec.Struct, frozen=True):
    """One edit of a shared block."""

    version: int
    at: int
    """Microseconds UTC."""
    operation: str
    """Operation of the edit; `erased` if the log no longer has it."""
    author: str
    """Agent that made the edit; empty for a person."""
    value: str
    limit: int
    description: str = ""
    read_only: bool = False

    @property
    def time(self) -> datetime:
        """Time of the edit, UTC."""
        return moment(self.at)


class BlockSubscription(msgspec.Struct, frozen=True):
    """An agent with a shared block in its core memory."""

    agent: str
    label: str


class SharedBlockService:
    """Shared blocks of one store. Methods that read block until they are done, and own nothing."""

    def __init__(self, store: Store, blocks: BlockClient, *, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._blocks = blocks
        self._clock = clock
        self._ids = ids
        self._by = ""

    def signed(self, by: str) -> Self:
        """Return this service with edits that name a key in the log. `by`: id of the key; empty: none."""
        other = copy(self)
        other._by = by  # noqa: SLF001 - its own class
        return other

    def names(self) -> list[str]:
        """Return the names of all shared blocks, deleted ones too, sorted."""
        return self._store.blocks()

    def show(self, name: str, *, as_of: int | datetime | None = None) -> SharedBlock:
        """Return a block, now or as of a version or a time. Raise BadInput if there was none."""
        stream, reader = self._reader(name)
        upto = None if as_of is None else seq_of(reader, stream, as_of)
        found = folded(block_of(stream), list(reader.read(stream, 1, upto)))
        if found is None:
            raise BadInput(f"The shared block {name!r} had no text at that moment, or the text was erased.")
        return found

    def history(self, name: str) -> list[BlockVersion]:
        """Return every edit of a block, in order. Raise BadInput for an unknown block."""
        stream, reader = self._reader(name)
        found = []
        for record in reader.read(stream):
            event = event_of(record)
            if isinstance(event, MemoryEdited):
                version_fields: Any = (
                    event.operation,
                    event.author,
                    event.text,
                    event.limit,
                    event.description,
                    event.read_only,
                )
            elif record.type in (MemoryEdited.kind, BlockRemoved.kind):
                version_fields = ("deleted" if isinstance(event, BlockRemoved) else "erased", "", "", 0, "", False)
            else:
                continue
            found.append(BlockVersion(record.seq, record.recorded_at, *version_fields))
        return found

    def attached_agents(self) -> Mapping[str, Sequence[BlockSubscription]]:
        """Return the agents that have each block attached, by block name, without deleted agents.

        One query over the logs of all agents.
        """
        found: dict[str, list[BlockSubscription]] = defaultdict(list)
        for row in fleet_rows(self._store, _ATTACHED):
            found[row["origin"]].append(BlockSubscription(row["agent_id"], row["label"]))
        return found

    async def create(
        self, name: str, value: str = "", *, limit: int = BLOCK_CHARS, description: str = "", read_only: bool = False,
        event_id: str = "",
    ) -> SharedBlock:  # fmt: skip
        """Create a block, or one that was deleted again. Raise BadInput if the block exists, StoreError.

        `event_id` of each edit: UUIDv7 that makes it idempotent; empty: a new id.
        """
        if not name.isprintable():
            raise BadInput(
                f"A shared block's name is one line without control characters, not {name[:80]!r}. Nothing was made."
            )
        return await self._edit(
            name, "created", event_id, content=value, limit=limit, description=description, read_only=read_only
        )

    async def set(self, name: str, value: str, *, base: int | None = None, event_id: str = "") -> SharedBlock:
        """Rewrite a block; `base`: only if it still has that version. Raise EditConflict, BadInput, StoreError."""
        return await self._edit(name, "set", event_id, content=value, base=base)

    async def append(self, name: str, content: str, *, event_id: str = "") -> SharedBlock:
        """Add a line to a block. Raises BadInput, StoreError."""
        return await self._edit(name, "appended", event_id, content=content)

    async def change(
        self, name: str, *, limit: int | None = None, description: str | None = None, read_only: bool | None = None,
        event_id: str = "",
    ) -> SharedBlock:  # fmt: skip
        """Change the attributes of a block; None: unchanged. Raise BadInput, StoreError."""
        return await self._edit(name, "changed", event_id, limit=limit, description=description, read_only=read_only)

    async def delete(self, name: str, *, event_id: str = "") -> SharedBlock:
        """Delete a block. Its log stays; agents keep their copy of it, and cannot edit it. Raise BadInput."""
        return await self._edit(name, "deleted", event_id)

    async def _edit(
        self, name: str, operation: BlockOperation, event_id: str, **what: str | int | bool | None
    ) -> SharedBlock:
        name = block_of(stream_of_block(name))
        edit_id = event_id or self._ids.new(self._clock.now())
        edit = BlockEdit(name=name, operation=operation, id=edit_id, by=self._by, **what)  # type: ignore[arg-type]
        made = await self._blocks.edit(edit)
        if made.error:
            now = made.newest
            if edit.base is not None and now is not None and not now.deleted and now.version != edit.base:
                raise EditConflict(made.error, seq=now.version, current=now.value, wanted=edit.content)
            raise (StoreError if made.busy or made.unknown else BadInput)(made.error)
        assert made.newest is not None, "an edit was made"
        return made.newest

    def _reader(self, name: str) -> tuple[str, LogReader]:
        stream = stream_of_block(name)
        try:
            return stream, self._store.reader(stream)
        except UnknownAgent:
            known = ", ".join(map(repr, self.names())) or "none"
            raise BadInput(f"There is no shared block {name!r} in this store; its shared blocks: {known}.") from None
