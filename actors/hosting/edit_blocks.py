"""Edit the memory blocks of an open agent for a person: one event for each edit, between two turns.

Used by `edit_commands`. The id of the event is that of the command, so that a repeated command finds its event and
changes nothing.
"""

from collections.abc import Mapping
from typing import Any

from everlog.actors.agent.agent import Agent
from everlog.actors.agent.commands import AddBlock, ChangeBlock, RemoveBlock
from everlog.actors.prompt.setting_limits import check_block, check_blocks
from everlog.events import BadInput, BlockRemoved, EditConflict, Event, MemoryEdited, Record

KINDS = AddBlock | ChangeBlock | RemoveBlock


class _Nothing(BadInput):
    """The block has the wanted values already."""


async def change(agent: Agent, command: KINDS) -> bool:
    """Carry out an edit. Return True if it changed anything; a repeated command changes nothing. Raises BadInput."""
    _check(command)
    kind = BlockRemoved if isinstance(command, RemoveBlock) else MemoryEdited

    async def write() -> Record:
        rows = {row["label"]: row for row in await agent.rows("core_memory")}
        event = _event(command, rows)
        return (await agent.commit([event], turn=agent.turn, step=0, ids=[command.id]))[0]

    try:
        await agent.once(command.id, write, kind)
    except _Nothing:
        return False
    return True


def _event(command: KINDS, rows: Mapping[str, Mapping[str, Any]]) -> Event:
    """Return the event of an edit of the current blocks. Raises BadInput."""
    if isinstance(command, AddBlock):
        return _add_rows(command, rows)
    if command.label not in rows:
        raise BadInput(
            f"There is no memory block {command.label[:80]!r}; there are {', '.join(rows) or 'none'}. Nothing "
            "was changed."
        )
    if isinstance(command, RemoveBlock):
        return BlockRemoved(label=command.label)
    return _replace_rows(command, rows[command.label])


def _add_rows(command: AddBlock, rows: Mapping[str, Mapping[str, Any]]) -> MemoryEdited:
    if command.label in rows:
        raise BadInput(
            f"There is a memory block {command.label!r} already; `everlog block set` gives it another value."
        )
    check_blocks(len(rows) + 1)
    return MemoryEdited(
        text=command.value,
        label=command.label,
        operation="created",
        limit=command.limit,
        description=command.description,
        read_only=command.read_only,
    )


def _replace_rows(command: ChangeBlock, row: Mapping[str, Any]) -> MemoryEdited:
    if row["origin"]:
        raise BadInput(
            f"{command.label!r} follows the shared block {row['origin']!r}: change that one, or remove this."
        )
    if command.base is not None and command.base != row["seq"]:
        raise EditConflict(
            f"The memory block {command.label!r} was changed by record {row['seq']}, and the edit was made from record "
            f"{command.base}. Nothing was changed: look at both texts, and edit again.",
            seq=row["seq"], current=row["value"], wanted=command.value or "",
        )  # fmt: skip
    names = ("value", "limit", "description", "read_only")
    left = {name: row[name] if (given := getattr(command, name)) is None else given for name in names}
    if all(left[name] == row[name] for name in names):
        raise _Nothing(f"The memory block {command.label!r} is so already.")
    check_block(command.label, left["value"], left["limit"], left["description"])
    return MemoryEdited(
        text=left["value"],
        label=command.label,
        operation="changed" if left["value"] == row["value"] else "set",
        limit=left["limit"],
        description=left["description"],
        read_only=left["read_only"],
    )


_TYPES = {"value": str, "limit": int, "description": str, "read_only": bool}


def _check(command: KINDS) -> None:
    """Raise BadInput for a value of another type, and for a block that can never exist."""
    for name, kind in _TYPES.items():
        value = getattr(command, name, None)
        if value is not None and type(value) is not kind:
            raise BadInput(f"`{name}` of a memory block is {kind.__name__}, not {value!r}. Nothing was changed.")
    if isinstance(command, AddBlock):
        check_block(command.label, command.value, command.limit, command.description)
