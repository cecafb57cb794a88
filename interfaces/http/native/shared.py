"""Shared memory blocks: create, edit, attach and delete them, and read them at any moment."""

from typing import Any

from everlog.actors.memory.shared_block_rules import SharedBlock
from everlog.actors.store_services import SharedBlocks
from everlog.events import BadInput
from everlog.events.times import moment
from everlog.interfaces.http.core.moments import moment_of
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import HttpCall, JsonResponse, not_found
from everlog.interfaces.wire.runs import Changed
from everlog.interfaces.wire.shared import (
    AppendToBlock,
    AttachBlock,
    BlockFollower,
    BlockHistoryShape,
    BlockVersionShape,
    CreateSharedBlock,
    EditSharedBlock,
    SharedBlockRow,
    SharedBlockShape,
    SharedBlocksShape,
)
from everlog.store import stream_of_block


async def list_shared_blocks(call: HttpCall) -> SharedBlocksShape:
    """List the shared blocks with the agents to which they are attached, deleted ones too."""
    shared, names = _shared(call), call.names
    attached = await shared.attached_agents()
    found = []
    for name in await shared.names():
        if not names.owns(name):
            continue
        try:
            block = await shared.show(name)
        except BadInput:  # every edit of the block was erased
            continue
        followers = [
            BlockFollower(agent=names.outer(one.agent), label=one.label)
            for one in attached.get(name, ())
            if names.owns(one.agent)
        ]
        found.append(SharedBlockRow(block=_shape(call, block), followers=followers))
    return SharedBlocksShape(blocks=found)


async def create_shared_block(call: HttpCall) -> Any:
    """Create a shared block, or one that was deleted again."""
    body: CreateSharedBlock = call.body
    name = call.names.inner(body.block)
    made = await _shared(call).create(
        name, body.value, limit=body.limit, description=body.description, read_only=body.read_only,
        event_id=await _edit_id(call, name),
    )  # fmt: skip
    return JsonResponse(_shape(call, made), 201)


async def show_shared_block(call: HttpCall) -> SharedBlockShape:
    """Return a shared block, as of a version or a time."""
    name = await _name(call)
    return _shape(call, await _shared(call).show(name, as_of=moment_of(call.query.as_of)))


async def edit_shared_block(call: HttpCall) -> SharedBlockShape:
    """Change a shared block. With `base`, only if it still has that version: else 412, with both texts."""
    body: EditSharedBlock = call.body
    attributes = (body.limit, body.description, body.read_only)
    if body.value is None and (body.base is not None or all(given is None for given in attributes)):
        raise Refusal(400, "bad-input", "Nothing to change: give a `value`, or attributes. `base` is of a `value`.")
    name, shared = await _name(call), _shared(call)
    edit_id = await _edit_id(call, name)
    if any(given is not None for given in attributes):
        if body.value is not None:
            raise Refusal(400, "bad-input", "Change the value and the attributes in two requests, an edit each.")
        limit, description, read_only = attributes
        made = await shared.change(
            name, limit=limit, description=description, read_only=read_only, event_id=edit_id
        )  # fmt: skip
    else:
        made = await shared.set(name, body.value or "", base=body.base, event_id=edit_id)
    return _shape(call, made)


async def append_to_shared_block(call: HttpCall) -> SharedBlockShape:
    """Add a line to a shared block."""
    body: AppendToBlock = call.body
    name = await _name(call)
    return _shape(call, await _shared(call).append(name, body.text, event_id=await _edit_id(call, name)))


async def delete_shared_block(call: HttpCall) -> SharedBlockShape:
    """Delete a shared block. Its edits stay in the log; agents keep a copy that they cannot edit."""
    name = await _name(call)
    return _shape(call, await _shared(call).delete(name, event_id=await _edit_id(call, name)))


async def show_block_history(call: HttpCall) -> BlockHistoryShape:
    """Return every edit of a shared block."""
    name = await _name(call)
    versions = [
        BlockVersionShape(
            version=one.version, edited=moment(one.at), operation=one.operation, author=_author(call, one.author),
            value=one.value, limit=one.limit, description=one.description, read_only=one.read_only,
        )
        for one in await _shared(call).history(name)
    ]  # fmt: skip
    return BlockHistoryShape(block=call.params["block"], versions=versions)


async def attach_shared_block(call: HttpCall) -> Changed:
    """Put a shared block into the core memory of an agent."""
    body: AttachBlock = call.body
    name = await _name(call)
    label = body.label or call.params["block"]
    return Changed(changed=await (await call.agent()).attach_block(name, label))


async def detach_shared_block(call: HttpCall) -> Changed:
    """Remove a shared block from the core memory of an agent. The block itself stays."""
    return Changed(changed=await (await call.agent()).detach_block(call.names.inner(call.params["block"])))


def _shared(call: HttpCall) -> SharedBlocks:
    return call.service.system.shared.signed(call.caller.key_id)


async def _name(call: HttpCall) -> str:
    """Return the name in the store of the block that the path names. Raises the refusal of one that does not exist."""
    name = call.names.inner(call.params["block"])
    if name not in await _shared(call).names():
        raise not_found(f"shared block {call.params['block'][:80]!r}")
    return name


async def _edit_id(call: HttpCall, name: str) -> str:
    """Return the id of the edit of this request."""
    stream = stream_of_block(name)
    if name not in await _shared(call).names():
        return call.new_ids(stream).id
    return (await call.command_ids(stream)).id


def _author(call: HttpCall, author: str) -> str | None:
    """Return the agent that made an edit, under the name that the caller says; None: a person, or an agent that is not
    the caller's.
    """
    return call.names.outer(author) if author and call.names.owns(author) else None


def _shape(call: HttpCall, block: SharedBlock) -> SharedBlockShape:
    return SharedBlockShape(
        block=call.shown(block.name), version=block.version, value=block.value, limit=block.limit,
        description=block.description, read_only=block.read_only, author=_author(call, block.author),
        edited=moment(block.at), deleted=block.deleted,
    )  # fmt: skip
