"""`everlog shared`: create, edit, attach and delete memory blocks that several agents have in their core memory.

Called by `cli.command_run`.
"""

import asyncio
from argparse import Namespace
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from everlog.actors.agent_ref import AgentRef
from everlog.actors.memory.shared_block_rules import SharedBlock
from everlog.actors.memory.shared_block_service import BlockVersion, SharedBlockService
from everlog.actors.memory.shared_block_writer import SharedBlockWriter
from everlog.actors.ports.agent_constants import BLOCK_CHARS
from everlog.actors.store_services import SharedBlocks
from everlog.events import BadInput
from everlog.interfaces.common import time_text
from everlog.interfaces.common.as_of import moment_of_option
from everlog.interfaces.common.bootstrap import agents_of, open_view, ports_of, system_of
from everlog.interfaces.common.error_output import escape_line, sanitize
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.input_text import check_text, given_text, required_text
from everlog.interfaces.common.open_store import store_of, without_take_over
from everlog.interfaces.common.server_choice import server_of
from everlog.interfaces.output import json_shapes
from everlog.store import name_of, typed

if TYPE_CHECKING:
    from everlog.interfaces.client.remote_documents import RemoteBlockService

BlockResultT = TypeVar("BlockResultT")


def create(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `shared create`."""
    text = (given_text(args) or "").strip()
    limit = BLOCK_CHARS if args.limit is None else args.limit
    made = asyncio.run(
        _edit_block(
            args,
            world,
            lambda blocks: blocks.create(
                args.block,
                text,
                limit=limit,
                description=check_text(args.description or ""),
                read_only=bool(args.read_only),
            ),
        )
    )
    return _print_block(args, made, "Created")


def set_(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `shared set`."""
    text = required_text(args).strip()
    _check_block_exists(args, world)
    made = asyncio.run(_edit_block(args, world, lambda blocks: blocks.set(args.block, text, base=args.base)))
    return _print_block(args, made, "Updated")


def describe(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `shared describe`."""
    if args.limit is None and args.description is None and args.read_only is None:
        args.fail("nothing to change: give --limit, --description, --read-only or --no-read-only")
    description = None if args.description is None else check_text(args.description)
    _check_block_exists(args, world)
    made = asyncio.run(
        _edit_block(
            args,
            world,
            lambda blocks: blocks.change(
                args.block, limit=args.limit, description=description, read_only=args.read_only
            ),
        )
    )
    return _print_block(args, made, "Changed")


def delete(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `shared delete`."""
    _check_block_exists(args, world)
    made = asyncio.run(_edit_block(args, world, lambda blocks: blocks.delete(args.block)))
    return _print_block(args, made, "Deleted")


async def _edit_block(
    args: Namespace, world: CommandEnvironment, edit: Callable[[SharedBlocks], Awaitable[SharedBlock]]
) -> SharedBlock:
    async with agents_of(args, world) as system:
        return await edit(system.shared)


def _check_block_exists(args: Namespace, world: CommandEnvironment) -> None:
    """Raise BadInput if the block does not exist, StoreError if the store does not exist. Creates neither."""
    reading(args, world).show(args.block)


def _print_block(args: Namespace, block: SharedBlock, what: str) -> int:
    if args.json:
        print(json_shapes.line(_shape(block)))
    else:
        print(escape_line(f"{what} the shared block {block.name}: version {block.version}, {_size(block)}."))
    return 0


def listed(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `shared list`."""
    blocks = reading(args, world)
    attached_agents = blocks.attached_agents()
    found = []
    for name in blocks.names():
        try:
            block = blocks.show(name)
        except BadInput:  # every edit of the block was erased
            continue
        follows = [{"agent": one.agent, "label": one.label} for one in attached_agents.get(name, ())]
        found.append((block, follows))
    if args.json:
        print(json_shapes.line([{**_shape(block), "followers": follows} for block, follows in found]))
        return 0
    for block, follows in found:
        who = ", ".join(one["agent"] for one in follows) or "no agents"
        print(escape_line(f"{block.name}  version {block.version}, {_size(block)}{_flags(block)}  {who}"))
    if not found:
        print("This store has no shared blocks; `everlog shared create` creates one.")
    return 0


def show(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `shared show`."""
    block = reading(args, world).show(args.block, as_of=moment_of_option(args.as_of, world))
    if args.json:
        print(json_shapes.line(_shape(block)))
        return 0
    by = block.author or "a person"
    when = time_text.relative(block.at, world.clock.now())
    print(escape_line(f"{block.name}  version {block.version}, {_size(block)}{_flags(block)}, edited {when} by {by}"))
    if block.description:
        print(sanitize(block.description))
    print(sanitize(block.value))
    return 0


def history(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `shared history`."""
    versions = reading(args, world).history(args.block)
    if args.json:
        print(json_shapes.line([_version(version) for version in versions]))
        return 0
    for version in versions:
        head = f"{version.version}  {time_text.clock(version.at)}  {version.operation}  {version.author or 'a person'}"
        print(sanitize(head))
        for line in version.value.split("\n") if version.value else ():
            print(sanitize(f"    {line}"))
    return 0


def attach(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `shared attach`."""
    changed = _of_agent(args, world, lambda agent: agent.attach_block(args.block, check_text(args.label)))
    name, label = name_of(args.name), args.label or args.block
    if args.json:
        print(
            json_shapes.line({"agent": name, "block": args.block, "label": label, "attached": True, "changed": changed})
        )
    else:
        print(escape_line(f"{args.block} is {'now' if changed else 'already'} attached to {name}, as {label}."))
    return 0


def detach(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `shared detach`."""
    name = name_of(args.name)
    if not _of_agent(args, world, lambda agent: agent.detach_block(args.block)):
        raise BadInput(
            f"The shared block {args.block!r} is not attached to {name!r}. "
            f"`everlog memory {typed(name)}` shows its blocks."
        )
    if args.json:
        print(json_shapes.line({"agent": name, "block": args.block, "attached": False, "changed": True}))
    else:
        print(escape_line(f"Detached {args.block} from {name}. The block itself stays."))
    return 0


def _of_agent(args: Namespace, world: CommandEnvironment, work: Callable[[AgentRef], Awaitable[bool]]) -> bool:
    with open_view(system_of(args, world), name_of(args.name), notify=False), without_take_over():
        return asyncio.run(_run_owned(args, world, work))


async def _run_owned(
    args: Namespace, world: CommandEnvironment, work: Callable[[AgentRef], Awaitable[BlockResultT]]
) -> BlockResultT:
    async with agents_of(args, world) as system:
        agent = await system.agent(
            name_of(args.name), create=False, keep_configuration=True, command=f"everlog {args.command}"
        )
        return await work(agent)


def reading(args: Namespace, world: CommandEnvironment) -> "SharedBlockService | RemoteBlockService":
    """Return the shared blocks for reading, without owning any log."""
    server = server_of(args)
    if server is not None:
        return server.blocks()
    store = store_of(args, world)
    return SharedBlockService(store, SharedBlockWriter(store, ports_of(world)), clock=world.clock, ids=world.ids)


def _size(block: SharedBlock) -> str:
    return f"{len(block.value):,} of {block.limit:,} characters"


def _flags(block: SharedBlock) -> str:
    return ", deleted" if block.deleted else ", read-only" if block.read_only else ""


def _shape(block: SharedBlock) -> json_shapes.JsonObject:
    """Return a block in JSON."""
    return {
        "block": block.name, "version": block.version, "value": block.value, "limit": block.limit,
        "description": block.description, "read_only": block.read_only, "author": block.author or None,
        "edited": time_text.iso(block.at), "deleted": block.deleted,
    }  # fmt: skip


def _version(version: BlockVersion) -> json_shapes.JsonObject:
    return {
        "version": version.version, "edited": time_text.iso(version.at), "operation": version.operation,
        "author": version.author or None, "value": version.value, "limit": version.limit,
        "description": version.description, "read_only": version.read_only,
    }  # fmt: skip
