"""`everlog block`: add, change and remove memory blocks of an agent. Each change is one event.

Called by `cli.command_run`.
"""

import asyncio
from argparse import Namespace
from collections.abc import Awaitable, Callable

from everlog.actors.agent_ref import AgentRef
from everlog.actors.ports.agent_constants import BLOCK_CHARS
from everlog.interfaces.common.bootstrap import agents_of, open_view, system_of
from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.input_text import check_text, given_text
from everlog.interfaces.common.open_store import without_take_over
from everlog.interfaces.output import json_shapes
from everlog.store import name_of


def add(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `block add`."""
    value = given_text(args) or ""
    limit = BLOCK_CHARS if args.limit is None else args.limit
    description = check_text(args.description or "")

    async def work(agent: AgentRef) -> bool:
        await agent.add_block(args.label, value, limit=limit, description=description, read_only=bool(args.read_only))
        return True

    return _edit_agent(args, world, work, "Added")


def set_(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `block set`."""
    value = given_text(args)
    description = None if args.description is None else check_text(args.description)
    if value is None and args.limit is None and description is None and args.read_only is None:
        args.fail("nothing to change: give TEXT, --file, --limit, --description or --read-only")

    async def work(agent: AgentRef) -> bool:
        return await agent.update_block(
            args.label, value, limit=args.limit, description=description, read_only=args.read_only
        )

    return _edit_agent(args, world, work, "Changed")


def remove(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `block remove`."""

    async def work(agent: AgentRef) -> bool:
        await agent.remove_block(args.label)
        return True

    return _edit_agent(args, world, work, "Removed")


def _edit_agent(
    args: Namespace, world: CommandEnvironment, work: Callable[[AgentRef], Awaitable[bool]], what: str
) -> int:
    """Await `work` on an existing agent, and print the result."""
    with open_view(system_of(args, world), args.name, notify=False) as view, without_take_over():
        changed = asyncio.run(_perform(args, world, work))
    if args.json:
        print(json_shapes.line({"agent": view.agent_id, "block": args.label, "changed": changed}))
    else:
        print(
            sanitize(
                f"{what} {args.label}." if changed else f"{args.label} has these values already; nothing was changed."
            )
        )
    return 0


async def _perform(args: Namespace, world: CommandEnvironment, work: Callable[[AgentRef], Awaitable[bool]]) -> bool:
    async with agents_of(args, world) as system:
        agent = await system.agent(
            name_of(args.name), create=False, keep_configuration=True, command=f"everlog {args.command}"
        )
        return await work(agent)
