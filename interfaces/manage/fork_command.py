"""The commands that create an agent from another agent's past, and that delete an agent: fork, delete.

Called by `cli.command_run`.
"""

import asyncio
import sys
from argparse import Namespace
from collections.abc import Sequence
from datetime import datetime

from everlog.actors.agent.fork_agent import NewFork
from everlog.actors.agent.local_system import LocalSystem
from everlog.events import UnknownAgent
from everlog.interfaces.common import time_text
from everlog.interfaces.common.agent_defaults import placement_of
from everlog.interfaces.common.agent_patterns import summary
from everlog.interfaces.common.as_of import moment_of_option
from everlog.interfaces.common.bootstrap import agents_of, open_view, system_of
from everlog.interfaces.common.error_output import escape_line
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import without_take_over
from everlog.interfaces.common.plural import plural
from everlog.interfaces.manage.many_agents import AgentSelection, for_each, matching, takes_many
from everlog.interfaces.output import json_shapes
from everlog.store import bare_name, name_of, typed


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
    print(escape_line(f"Created {made.agent_id} from {made.parent} as of seq {made.parent_seq}."))
    if made.closed:
        which = "Turn" if len(made.closed) == 1 else "Turns"
        which += f" {' and '.join(map(str, made.closed))} {'was' if len(made.closed) == 1 else 'were'}"
        print(f"{which} open at that record: closed in the fork, and unchanged in the parent.")
    return 0


async def _fork(args: Namespace, world: CommandEnvironment, at: int | datetime | None) -> NewFork:
    async with agents_of(args, world) as system:
        return await system.fork(args.name, args.new, at=at, placement=placement_of(args))


def delete(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `delete`."""
    system = system_of(args, world)
    names = system.agents()
    if takes_many(args, names):
        return _delete_matching(args, world, system)
    name = name_of(args.name)
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
        also = f" and its forks {escape_line(', '.join(sorted(forks)))}" if forks else ""
        size = plural(row["messages"], "message")
        answer = world.ask(f"Delete {escape_line(name)} ({size}, last active {said}){also}? [y/N] ")
        if answer.strip().lower() not in ("y", "yes"):
            print(json_shapes.line({"deleted": []}) if args.json else "Nothing was deleted.")
            return 1
    with without_take_over():
        ended = asyncio.run(_delete(args, world, name))
    if args.json:
        print(json_shapes.line({"deleted": list(ended)}))
        return 0
    for one in ended:
        again = f"`everlog create {typed(bare_name(one))}` makes a new agent."
        print(escape_line(f"Deleted {one}. Its records stay in the log; {again}"))
    return 0


def _delete_matching(args: Namespace, world: CommandEnvironment, system: LocalSystem) -> int:
    """Delete the agents that a pattern matches, after one question. The error of one agent does not stop the others."""
    matched = matching(args, world)
    names = matched.names
    if not args.yes:
        if not sys.stdin.isatty():
            args.fail("stdin is not a terminal: give --yes to confirm")
        reached = {fork for name in names for fork in system.live_forks(name)} if args.with_forks else set()
        forks = sorted(reached - set(names))
        also = f" and their forks {escape_line(', '.join(forks))}" if forks else ""
        answer = world.ask(f"Delete {escape_line(summary(names))}{also}? [y/N] ")
        if answer.strip().lower() not in ("y", "yes"):
            print(json_shapes.line({"deleted": []}) if args.json else "Nothing was deleted.")
            return 1
    with without_take_over():
        ended, failed = asyncio.run(_delete_each(args, world, matched))
    said = f"Deleted {plural(len(ended), 'agent')}. Their records stay in the log."
    print(json_shapes.line({"deleted": list(ended)}) if args.json else said)
    return int(bool(failed or matched.damaged))


async def _delete_each(
    args: Namespace, world: CommandEnvironment, matched: AgentSelection
) -> tuple[Sequence[str], Sequence[str]]:
    """Delete agents one after the other, forks before their parents. Return the deleted names and the others."""
    ended: list[str] = []
    async with agents_of(args, world) as system:

        async def end(name: str) -> None:
            if name not in ended:
                ended.extend(await system.delete(name, with_forks=args.with_forks))

        left = sorted(matched.names, key=lambda name: len(matched.ancestors(name)), reverse=True)
        return ended, await for_each(left, end, "deleted")


async def _delete(args: Namespace, world: CommandEnvironment, name: str) -> Sequence[str]:
    async with agents_of(args, world) as system:
        return await system.delete(name, with_forks=args.with_forks)
