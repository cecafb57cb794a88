"""Shared memory blocks: what they are, what an edit makes of one, what an agent that follows one is told. Pure.

A shared block is a stream of its own (`everlog.store.base.block_streams`); its version is the seq of the newest edit
that was not erased. An agent that follows it has a copy in its own log, by value. Its edits go to the block's stream,
each with the version that it was made on.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Literal, Protocol

import msgspec

from everlog.events import RANDOM_BITS, BlockRemoved, FunctionError, MemoryEdited, Record, event_of, is_erased, uuid7

BlockOperation = Literal["created", "appended", "replaced", "removed", "set", "changed", "deleted"]

LIMIT_MAX = 100_000
"""The largest limit of a shared block, in characters: every edit holds the whole value."""
GONE = "The shared block that this was a copy of is gone: this is what it said last, and it cannot be edited."
"""The description of a copy whose shared block was deleted, or is not in this store."""


class SharedBlock(msgspec.Struct, frozen=True):
    """A shared block as it is."""

    name: str
    version: int
    """The seq of the newest edit, from 1."""
    value: str
    limit: int
    """Characters, inclusive."""
    description: str = ""
    read_only: bool = False
    """Agents see it and cannot edit it; people can."""
    author: str = ""
    """The agent that made the newest edit; empty for a person."""
    at: int = 0
    """When that was, microseconds UTC."""
    deleted: bool = False


class BlockEdit(msgspec.Struct, frozen=True, kw_only=True):
    """An edit that is asked for. The same `id` is carried out once."""

    name: str
    operation: BlockOperation
    id: str
    """UUIDv7; of an agent's edit it is derived from the key of the call."""
    content: str = ""
    """What is added or put in place; of `set` the whole value."""
    old: str = ""
    """The text that is replaced or removed."""
    base: int | None = None
    """The version that it was made on; None: whichever there is."""
    author: str = ""
    limit: int | None = None
    """Another limit; None: the one that it has. So are the next two."""
    description: str | None = None
    read_only: bool | None = None
    seen: SharedBlock | None = None
    """What the agent's own copy says; where nothing outside is to be touched, the edit is made to that."""


class BlockEditOutcome(msgspec.Struct, frozen=True):
    """What became of an edit."""

    newest: SharedBlock | None
    """The block after it, or as it is where it was refused; None where there is none."""
    error: str = ""
    """Why it was refused, in words for whoever asked; empty: it was made, and is in the log."""
    merged: bool = False
    """It was made on a newer version than the one that it was meant for."""
    busy: bool = False
    """It was not made, and can be asked for again later."""
    unknown: bool = False
    """Nobody can say whether it was made."""


class BlockClient(Protocol):
    """The shared blocks of a store, as agents reach them."""

    async def newest(self, known: Mapping[str, int]) -> Mapping[str, SharedBlock | None]:
        """The named blocks as they are; None where there is none. `known`: versions that there are at the least.

        Raises StoreError.
        """
        ...

    async def edit(self, edit: BlockEdit) -> BlockEditOutcome:
        """Carry an edit out, and give its outcome once it is durable."""
        ...


def folded(name: str, records: Sequence[Record], before: SharedBlock | None = None) -> SharedBlock | None:
    """The block after these records of its stream, in order; `before` is what the records before them made of it."""
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
    """`content` on a line of its own after `value`."""
    return f"{value}\n{content}" if value else content


def remove_text(value: str, old: str) -> str:
    """`value` without any `old`, and without the lines that this leaves empty."""
    kept = "\n".join(line.replace(old, "") for line in value.split("\n") if line != old)
    return kept.replace(old, "")


def event_after(edit: BlockEdit, now: SharedBlock | None, authors: Sequence[str] = ()) -> MemoryEdited | BlockRemoved:
    """What an edit leaves in the stream of a block that is `now` so.

    `authors`: who edited it after the version that the edit was made on. Raises FunctionError, in words for the model
    or the person, where the edit cannot be.
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
    """Whether what was seen as this version is not what it says: it was a block of that name in another store."""
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
    """What the log of an agent that follows a shared block is told of it: the block as it is, by value."""
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
    """The id of an agent's edit: the same for the same call and the same edit in it. `at`: when its reply arrived."""
    digest = sha256(f"{key}#{number}".encode()).digest()
    return uuid7(at, int.from_bytes(digest[:10]) & ((1 << RANDOM_BITS) - 1))


class IsolatedBlocks:
    """Shared blocks for an agent that is run again and must not touch what others see: edits are made to its copies."""

    def __init__(self) -> None:
        self._own: dict[str, SharedBlock] = {}

    async def newest(self, known: Mapping[str, int]) -> Mapping[str, SharedBlock | None]:
        """What was made of the copies here; nothing newer of others."""
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
