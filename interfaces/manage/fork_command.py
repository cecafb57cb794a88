"""The commands that create an agent from another agent's past, and that delete an agent: fork, delete.

Called by `cli.command_run`.
"""

import asyncio
import sys
from argparse import Namespace
from collections.abc import Sequence
from datetime import datetime

from everlog.actors.agent.fork_agent import NewFork
from everlog.events import UnknownAgent
from everlog.interfaces.common import time_text
from everlog.interfaces.common.as_of import moment_of_option
from everlog.interfaces.common.bootstrap import agents_of, open_view, system_of, without_take_over
from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.plural import plural
from everlog.interfaces.output import json_shapes
from everlog.store import name_of


def fork(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `fork`."""
    made = asyncio.run(_fork(args, world, moment_of_option(args.as_of, world)))
    if args.json:
        print(
            json_shapes.line(
                {
                    "agent": made.agent_id, "parent": made.parent, "parent_seq": made.parent_seq, "head": made.head,
                    "closed_turns": made.closed,
                }
            )
        )  # fmt: skip
        return 0
    print(sanitize(f"Created {made.agent_id} from {made.parent} as of seq {made.parent_seq}."))
    if made.closed:
        which = "Turn" if len(made.closed) == 1 else "Turns"
        which += f" {' and '.join(map(str, made.closed))} {'was' if len(made.closed) == 1 else 'were'}"
        print(f"{which} open at that record: closed in the fork, and unchanged in the parent.")
    return 0


async def _fork(args: Namespace, world: CommandEnvironment, at: int | datetime | None) -> NewFork:
    async with agents_of(args, world) as system:
        return await system.fork(args.name, args.new, at=at, placement=args.placement)


def delete(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `delete`."""
    name = name_of(args.name)
    system = system_of(args, world)
    with open_view(system, name, notify=False) as view:
        deleted = view.rows("standing")[0]["deleted"]
        row = {} if deleted or args.yes else view.rows("agents")[0]
    if deleted:
        raise UnknownAgent(f"{name!r} was deleted already. `everlog events` still shows its log.")
    forks = system.live_forks(name)
    if forks and not args.with_forks:
        system.check_no_forks(name)
    if not args.yes:
        if not sys.stdin.isatty():
            args.fail("stdin is not a terminal: give --yes to confirm")
        said = time_text.relative(row["last_active"], world.clock.now())
        also = f" and its forks {sanitize(', '.join(forks))}" if forks else ""
        size = plural(row["messages"], "message")
        answer = world.ask(f"Delete {sanitize(name)} ({size}, last active {said}){also}? [y/N] ")
        if answer.strip().lower() not in ("y", "yes"):
            print("Nothing was deleted.")
            return 1
    with without_take_over():
        ended = asyncio.run(_delete(args, world, name))
    for one in ended:
        print(sanitize(f"Deleted {one}. Its records stay in the log; `everlog create {one}` makes a new agent."))
    return 0


async def _delete(args: Namespace, world: CommandEnvironment, name: str) -> Sequence[str]:
    async with agents_of(args, world) as system:
        return await system.delete(name, with_forks=args.with_forks)
