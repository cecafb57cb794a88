"""Rules of shared memory blocks: apply an edit to a block, and make the copy for an agent. Pure.

A shared block is a stream of its own (`everlog.store.base.block_streams`); its version is the seq of the newest edit
that was not erased. An agent to which it is attached has a copy in its own log, by value. The agent's edits go to the
block's stream, each with the version on which it was based. Used by `shared_block_writer.py`, `block_sync.py`, and
reruns (`IsolatedBlocks`). `id_of` must always give the same id for the same call and edit.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Literal, Protocol

import msgspec

from everlog.events import BlockRemoved, FunctionError, MemoryEdited, Record, derived_id, event_of, is_erased
from everlog.events.times import moment

BlockOperation = Literal["created", "appended", "replaced", "removed", "set", "changed", "deleted"]

LIMIT_MAX = 100_000
"""Largest limit of a shared block, in characters: every edit holds the whole value."""
GONE = "The shared block that this was a copy of is gone: this is what it said last, and it cannot be edited."
"""Description of a copy whose shared block was deleted, or is not in this store."""


class SharedBlock(msgspec.Struct, frozen=True):
    """A shared block at its newest version."""

    name: str
    version: int
    """Seq of the newest edit, from 1."""
    value: str
    limit: int
    """Characters, inclusive."""
    description: str = ""
    read_only: bool = False
    """True: agents see the block and cannot edit it; people can."""
    author: str = ""
    """Agent that made the newest edit; empty for a person."""
    at: int = 0
    """Time of the newest edit, microseconds UTC."""
    deleted: bool = False

    @property
    def time(self) -> datetime:
        """Time of the newest edit, UTC."""
        return moment(self.at)


class BlockEdit(msgspec.Struct, frozen=True, kw_only=True):
    """A requested edit. Idempotent by `id`."""

    name: str
    operation: BlockOperation
    id: str
    """UUIDv7; the id of an agent's edit is derived from the key of the call."""
    content: str = ""
    """Text to add or to insert; for `set` the whole value."""
    old: str = ""
    """Text to replace or to remove."""
    base: int | None = None
    """Version on which the edit is based; None: any version."""
    author: str = ""
    by: str = ""
    """Id of the key with which the edit was asked for over HTTP."""
    limit: int | None = None
    """New limit; None: unchanged. The same holds for the next two fields."""
    description: str | None = None
    read_only: bool | None = None
    seen: SharedBlock | None = None
    """The agent's own copy. If nothing outside may be changed, as in a rerun, the edit is made to this copy."""


class BlockEditOutcome(msgspec.Struct, frozen=True):
    """Outcome of an edit."""

    newest: SharedBlock | None
    """Block after the edit, or unchanged after a refusal; None if there is no block."""
    error: str = ""
    """Reason of a refusal, in words for the caller; empty: the edit was made, and is in the log."""
    merged: bool = False
    """True if the edit was made to a newer version than the one on which it was based."""
    busy: bool = False
    """True if the edit was not made and can be sent again later."""
    unknown: bool = False
    """True if the outcome is not known: the edit may or may not have been made."""
    warnings: Sequence[str] = ()
    """Warnings about the block's log, which its owner opened for this edit; the owner has noted them too."""


class BlockClient(Protocol):
    """Client for the shared blocks of a store."""

    async def newest(self, known: Mapping[str, int]) -> Mapping[str, SharedBlock | None]:
        """Return the named blocks, None for one that does not exist. `known`: versions that exist at least.

        Raises StoreError.
        """
        ...

    async def edit(self, edit: BlockEdit) -> BlockEditOutcome:
        """Make an edit, and return its outcome once it is durable."""
        ...


def folded(name: str, records: Sequence[Record], before: SharedBlock | None = None) -> SharedBlock | None:
    """Return the block after these records of its stream, in order; `before`: the block before them."""
    for record in records:
        erased = is_erased(record.payload)
        event = None if erased else event_of(record)
        if isinstance(event, MemoryEdited):
            before = SharedBlock(
                name, record.seq, event.text, event.limit, event.description, event.read_only, event.author,
                record.recorded_at,
            )  # fmt: skip
        elif record.type == BlockRemoved.kind and before is not None:
            before = msgspec.structs.replace(before, version=record.seq, deleted=True, author="", at=record.recorded_at)
    return before


def append_line(value: str, content: str) -> str:
    """Return `value` with `content` on a line of its own at the end."""
    return f"{value}\n{content}" if value else content


def remove_text(value: str, old: str) -> str:
    """Return `value` without any `old`, and without lines that this leaves empty."""
    kept = "\n".join(line.replace(old, "") for line in value.split("\n") if line != old)
    return kept.replace(old, "")


def event_after(edit: BlockEdit, now: SharedBlock | None, authors: Sequence[str] = ()) -> MemoryEdited | BlockRemoved:
    """Return the event of an edit, for the stream of a block whose current state is `now`.

    `authors`: authors of the edits after the version on which this edit was based. Raises FunctionError, in words for
    the model or the person, if the edit is not possible.
    """
    if edit.operation == "created":
        if now is not None and not now.deleted:
            raise FunctionError(f"There is a shared block {edit.name!r} already.")
        now = None
    elif now is None or now.deleted:
        raise FunctionError(_missing(edit.name, now))
    elif now.read_only and edit.author:
        raise FunctionError(f"The shared block {edit.name!r} can be read and not edited.")
    if edit.operation == "deleted":
        return BlockRemoved(label=edit.name)
    value = _value_after(edit, now, authors)
    limit = edit.limit if edit.limit is not None else now.limit if now else 0
    if not 1 <= limit <= LIMIT_MAX:
        raise FunctionError(f"The limit of a shared block is from 1 to {LIMIT_MAX:,} characters, not {limit:,}.")
    if len(value) > limit:
        raise FunctionError(
            f"Edit failed: Exceeds {limit} character limit (requested {len(value)}). The shared block {edit.name!r} is "
            "full: shorten it first, or keep this elsewhere."
        )
    return MemoryEdited(
        text=value,
        label=edit.name,
        operation=edit.operation,
        limit=limit,
        description=(now.description if now else "") if edit.description is None else edit.description,
        read_only=bool(now and now.read_only) if edit.read_only is None else edit.read_only,
        author=edit.author,
    )


def _value_after(edit: BlockEdit, now: SharedBlock | None, authors: Sequence[str]) -> str:
    if now is None or edit.operation in ("created", "set"):
        if now is not None and edit.base is not None and (edit.base != now.version or _another(edit.seen, now)):
            raise FunctionError(_edited_value(edit, now, authors, "rewriting it would undo that"))
        return edit.content
    if edit.operation == "appended":
        return append_line(now.value, edit.content)
    if edit.operation == "changed":
        return now.value
    if edit.old not in now.value:
        raise FunctionError(_edited_value(edit, now, authors, f"{edit.old!r} no longer stands there"))
    return (
        remove_text(now.value, edit.old) if edit.operation == "removed" else now.value.replace(edit.old, edit.content)
    )


def _another(seen: SharedBlock | None, now: SharedBlock) -> bool:
    """Return True if the same version had another text: it was a block of that name in another store."""
    return seen is not None and seen.version == now.version and seen.value != now.value


def _missing(name: str, now: SharedBlock | None) -> str:
    why = "is no longer there: it was deleted" if now else "is not in this store"
    return f"The shared block {name!r} {why}. What your memory holds is a copy of what it said, and cannot be edited."


def _edited_value(edit: BlockEdit, now: SharedBlock, authors: Sequence[str], why: str) -> str:
    who = ", ".join(dict.fromkeys(repr(author) if author else "a person" for author in authors)) or "somebody"
    return (
        f"Edit failed: the shared block {edit.name!r} was changed meanwhile by {who}, and {why}. Nothing was edited. "
        f"It now reads:\n{now.value}"
    )


def copy_of(label: str, shared: SharedBlock) -> MemoryEdited:
    """Return the event that copies a shared block, by value, into the log of an agent."""
    return MemoryEdited(
        text=shared.value,
        label=label,
        operation="copied",
        limit=shared.limit,
        origin=shared.name,
        origin_version=shared.version,
        description=GONE if shared.deleted else shared.description,
        read_only=shared.read_only or shared.deleted,
    )


def id_of(key: str, number: int, at: int) -> str:
    """Return the id of an agent's edit: the same for the same call and edit. `at`: time at which the reply arrived."""
    digest = sha256(f"{key}#{number}".encode()).digest()
    return derived_id(at, digest[:10])


class IsolatedBlocks:
    """Shared blocks for an agent that is run again and must not change what others see: it edits its own copies."""

    def __init__(self) -> None:
        self._own: dict[str, SharedBlock] = {}

    async def newest(self, known: Mapping[str, int]) -> Mapping[str, SharedBlock | None]:
        """Return the copies that were edited here; newer versions of others are ignored."""
        return {name: self._own[name] for name in known if name in self._own}

    async def edit(self, edit: BlockEdit) -> BlockEditOutcome:
        """Make an edit to the agent's own copy."""
        now = self._own.get(edit.name, edit.seen)
        try:
            event = event_after(edit, now)
        except FunctionError as error:
            return BlockEditOutcome(now, str(error))
        assert isinstance(event, MemoryEdited), "agents delete no shared blocks"
        version = now.version + 1 if now else 1
        made = SharedBlock(
            edit.name, version, event.text, event.limit, event.description, event.read_only, event.author
        )
        self._own[edit.name] = made
        return BlockEditOutcome(made)
