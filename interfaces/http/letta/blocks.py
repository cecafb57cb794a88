"""Memory blocks for clients of Letta: those of an agent, and shared ones, which Letta calls blocks without an agent.

A shared block has a name that is its label, with `#2` and so on if there are several of one label.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from everlog.actors.memory.shared_block_rules import SharedBlock
from everlog.actors.ports.agent_constants import BLOCK_CHARS
from everlog.events import BadInput
from everlog.interfaces.http.core.routes import HttpCall, not_found
from everlog.interfaces.http.letta.agent_states import (
    LettaAgent,
    LettaBlock,
    agent_state,
    agent_states,
    blocks_of,
    shared_block_id,
)
from everlog.interfaces.http.letta.letta_calls import (
    LettaPageQuery,
    agent_ref,
    agent_stream,
    alone,
    ordered,
    page_of,
    refused,
    viewed,
)
from everlog.interfaces.http.letta.translation.agent_settings import LettaBlockBody
from everlog.interfaces.http.letta.translation.letta_ids import place_in
from everlog.interfaces.http.runs.agent_digests import stream_of_digest
from everlog.interfaces.http.runs.sdk_repeats import repeat_of

NUMBER = "#"
"""Sign between the label of a shared block and the number of the block among those of the label."""
BLOCKS_MAX = 1000


class LettaBlockQuery(LettaPageQuery, frozen=True, kw_only=True):
    """Selection of shared blocks."""

    label: str | None = None
    label_search: str | None = None
    value_search: str | None = None
    description_search: str | None = None


class LettaBlockChange(msgspec.Struct, frozen=True, kw_only=True):
    """Change of a memory block; what is left out stays."""

    value: str | None = None
    limit: int | None = None
    description: str | None = None
    read_only: bool | None = None
    label: str | None = None
    metadata: dict[str, object] | None = None
    tags: list[str] | None = None


class FoundBlock(NamedTuple):
    """Block of an id."""

    shared: str
    """Name of a shared block in the store; empty: it is an agent's own."""
    stream: str = ""
    """Agent that has it."""
    label: str = ""


async def list_agent_blocks(call: HttpCall) -> Sequence[LettaBlock]:
    """List the memory blocks of an agent."""
    blocks = await viewed(call, await agent_stream(call), blocks_of)
    return page_of(ordered(blocks, call.query, lambda block: block.label), call.query, lambda block: block.id)


async def show_agent_block(call: HttpCall) -> LettaBlock:
    """Return a memory block of an agent, by its label."""
    return await _labelled(call, await agent_stream(call), call.params["label"])


async def update_agent_block(call: HttpCall) -> LettaBlock:
    """Change a memory block of an agent, by its label. A shared block changes for all agents that have it."""
    stream, label = await agent_stream(call), call.params["label"]
    block = await _labelled(call, stream, label)
    shared = await shared_of_id(call, block.id)
    await _change(call, FoundBlock(shared, stream, label), call.body)
    return await _labelled(call, stream, label)


async def attach_block(call: HttpCall) -> LettaAgent:
    """Put a shared block into the core memory of an agent."""
    stream = await agent_stream(call)
    name, label = await shared_block_named(call, call.params["block_id"])
    await (await agent_ref(call, stream)).attach_block(name, label)
    return await agent_state(call, stream)


async def detach_block(call: HttpCall) -> LettaAgent:
    """Remove a block from the core memory of an agent. A shared one stays for others."""
    stream = await agent_stream(call)
    agent = await agent_ref(call, stream)
    found = await _found(call, call.params["block_id"])
    if found.shared:
        await agent.detach_block(found.shared)
    elif found.stream == stream:
        await agent.remove_block(found.label)
    else:
        raise not_found(f"block {call.params['block_id'][:80]!r} of this agent")
    return await agent_state(call, stream)


async def list_blocks(call: HttpCall) -> Sequence[LettaBlock]:
    """List the shared blocks."""
    query: LettaBlockQuery = call.query
    found = []
    for name in await call.service.system.shared.names():
        block = await _shown(call, name) if call.names.owns(name) else None
        if block is not None and _is_wanted(query, block):
            found.append(block)
    return page_of(ordered(found, query, lambda block: (block.label, block.id)), query, lambda block: block.id)


def _is_wanted(query: LettaBlockQuery, block: LettaBlock) -> bool:
    sought = (
        (query.label_search, block.label), (query.value_search, block.value),
        (query.description_search, block.description or ""),
    )  # fmt: skip
    return query.label in {None, block.label} and all(
        part.casefold() in text.casefold() for part, text in sought if part
    )


async def create_block(call: HttpCall) -> LettaBlock:
    """Create a shared block. A repeat of the request returns the block that the first try created."""
    body: LettaBlockBody = call.body
    check_attributes(body.metadata, body.tags)
    async with alone(call, f"block {call.names.inner(body.label)}"):
        return await _new(call, body)


async def _new(call: HttpCall, body: LettaBlockBody) -> LettaBlock:
    shared, repeat = call.service.system.shared, repeat_of(call.request.headers)
    taken = await shared.names()
    limit = body.limit or max(BLOCK_CHARS, len(body.value))
    for number in range(1, BLOCKS_MAX + 1):
        name = call.names.inner(body.label if number == 1 else f"{body.label}{NUMBER}{number}")
        if name in taken:
            before = await _read(call, name)
            if before is not None and not before.deleted:
                since = call.service.ports.clock.now() - (repeat.span_us if repeat else 0)
                if repeat is not None and before.at >= since and before.value == body.value:
                    return _shape(call, before)
                continue
        made = await shared.create(
            name, body.value, limit=limit, description=body.description or "", read_only=bool(body.read_only)
        )
        return _shape(call, made)
    raise refused(f"There are {BLOCKS_MAX} shared blocks of the label {body.label[:80]!r}.", 409)


async def show_block(call: HttpCall) -> LettaBlock:
    """Return a block, by its id."""
    found = await _found(call, call.params["block_id"])
    return await _block(call, found)


async def update_block(call: HttpCall) -> LettaBlock:
    """Change a block, by its id."""
    found = await _found(call, call.params["block_id"])
    await _change(call, found, call.body)
    return await _block(call, found)


async def delete_block(call: HttpCall) -> LettaBlock:
    """Delete a block. A shared one stays with its agents as a copy that they cannot edit."""
    found = await _found(call, call.params["block_id"])
    block = await _block(call, found)
    if found.shared:
        await call.service.system.shared.delete(found.shared)
    else:
        await (await agent_ref(call, found.stream)).remove_block(found.label)
    return block


async def list_block_agents(call: HttpCall) -> Sequence[LettaAgent]:
    """List the agents that have a block."""
    found = await _found(call, call.params["block_id"])
    streams = [found.stream]
    if found.shared:
        attached = (await call.service.system.shared.attached_agents()).get(found.shared, ())
        streams = [one.agent for one in attached if call.names.owns(one.agent)]
    states = await agent_states(call, sorted(streams))
    return page_of(states, call.query, lambda agent: agent.id)


async def shared_block_named(call: HttpCall, block_id: str) -> tuple[str, str]:
    """Return the name in the store and the label of a shared block. Raises the refusal of any other id."""
    name = await shared_of_id(call, block_id)
    if not name:
        await _found(call, block_id)
        raise refused(f"{block_id} is an agent's own block: only blocks that were created alone can be shared.")
    return name, label_of(call, name)


async def shared_of_id(call: HttpCall, block_id: str) -> str:
    """Return the name in the store of a shared block of the caller; empty: the id is of no such block."""
    names = [name for name in await call.service.system.shared.names() if call.names.owns(name)]
    return next((name for name in names if shared_block_id(name) == block_id), "")


def label_of(call: HttpCall, name: str) -> str:
    """Return the label of a shared block."""
    return call.shown(name).partition(NUMBER)[0]


def check_attributes(metadata: object, tags: object) -> None:
    """Raise the refusal of attributes that blocks do not have."""
    if metadata or tags:
        raise refused("Blocks have a label, a value, a limit, a description and `read_only`: no metadata and no tags.")


async def _labelled(call: HttpCall, stream: str, label: str) -> LettaBlock:
    for block in await viewed(call, stream, blocks_of):
        if block.label == label:
            return block
    raise not_found(f"memory block {label[:80]!r} of the agent")


async def _found(call: HttpCall, block_id: str) -> FoundBlock:
    shared = await shared_of_id(call, block_id)
    if shared:
        return FoundBlock(shared)
    place = place_in("block", block_id)
    stream = await stream_of_digest(call, place.digest) if place is not None else None
    if stream is not None:
        for block in await viewed(call, stream, blocks_of):
            if block.id == block_id:
                return FoundBlock("", stream, block.label)
    raise not_found(f"block {block_id[:80]!r}")


async def _block(call: HttpCall, found: FoundBlock) -> LettaBlock:
    if not found.shared:
        return await _labelled(call, found.stream, found.label)
    block = await _shown(call, found.shared)
    if block is None:
        raise not_found("such block")
    return block


async def _read(call: HttpCall, name: str) -> SharedBlock | None:
    try:
        return await call.service.system.shared.show(name)
    except BadInput:  # every edit of the block was erased
        return None


async def _shown(call: HttpCall, name: str) -> LettaBlock | None:
    block = await _read(call, name)
    return None if block is None or block.deleted else _shape(call, block)


def _shape(call: HttpCall, block: SharedBlock) -> LettaBlock:
    return LettaBlock(
        id=shared_block_id(block.name), label=label_of(call, block.name), value=block.value, limit=block.limit,
        description=block.description or None, read_only=block.read_only,
    )  # fmt: skip


async def _change(call: HttpCall, found: FoundBlock, change: LettaBlockChange) -> None:
    check_attributes(change.metadata, change.tags)
    label = found.label or label_of(call, found.shared)
    if change.label not in {None, label}:
        raise refused("The label of a block cannot be changed.")
    attributes = {"limit": change.limit, "description": change.description, "read_only": change.read_only}
    if not found.shared:
        agent = await agent_ref(call, found.stream)
        await agent.update_block(found.label, change.value, **attributes)  # type: ignore[arg-type]
        return
    shared = call.service.system.shared
    if any(given is not None for given in attributes.values()):
        await shared.change(found.shared, **attributes)  # type: ignore[arg-type]
    if change.value is not None:
        await shared.set(found.shared, change.value)
