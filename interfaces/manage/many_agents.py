"""Run a command for each agent that a pattern or --label selects. Used by `configure`, `delete`, `erase` and `export`.

The error of one agent is printed and does not stop the others; the exit code is 1 then.
"""

from argparse import Namespace
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from everlog.actors.reports.fleet_listing import list_agents
from everlog.events import EverlogError
from everlog.interfaces.common.agent_patterns import select, selects_many
from everlog.interfaces.common.error_output import complain
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import store_of
from everlog.interfaces.common.plural import plural
from everlog.interfaces.common.server_choice import server_of


class AgentSelection(NamedTuple):
    """Agents that a pattern or --label selects."""

    names: Sequence[str]
    damaged: Sequence[str]
    """Errors of partitions that cannot be read: the pattern may match agents of theirs."""
    parents: Mapping[str, str | None]
    """Parents of all agents that were looked at; None for one that is no fork."""

    def ancestors(self, name: str) -> Sequence[str]:
        """Return the ancestors of an agent, the parent first."""
        parent = self.parents.get(name)
        return [] if parent is None else [parent, *self.ancestors(parent)]


def matching(args: Namespace, world: CommandEnvironment, *, deleted: bool = False) -> AgentSelection:
    """Return the living agents that NAME, a pattern, or --label selects, with `deleted` those too that were deleted.
    Print the errors of damaged partitions.

    Ends the command with exit code 2 if there is none.
    """
    server = server_of(args)
    if server is None:
        store = store_of(args, world)
        listing = list_agents(store, store.register_files.scan().routes, deleted=deleted)
    else:
        listing = server.listing(deleted=deleted)
    for error in listing.damaged:
        complain(error)
    known = [row["agent_id"] for row in listing.rows]
    chosen = getattr(args, "chosen", None)
    names = select(args, [args.name], known) if chosen is None else [name for name in known if name in chosen]
    return AgentSelection(names, listing.damaged, {row["agent_id"]: row["parent"] for row in listing.rows})


def takes_many(args: Namespace, names: Collection[str]) -> bool:
    """Return True if NAME is a pattern and not the name of an agent, or if --label stands for it."""
    return getattr(args, "chosen", None) is not None or selects_many([args.name], names)


async def for_each(names: Iterable[str], work: Callable[[str], Awaitable[object]], done: str) -> Sequence[str]:
    """Do the work for each agent. Return the names of those that failed, after their errors were printed.

    `done`: what the work does, as a participle for the error: "was not deleted".
    """
    failed = []
    for name in names:
        try:
            await work(name)
        except EverlogError as error:
            complain(f"{name!r} was not {done}: {error}", error.code)
            failed.append(name)
    return failed


def outcome(count: int, failed: Sequence[str], what: str) -> str:
    """Return the closing line: "Exported 3 agents; 1 failed."."""
    return f"{what} {plural(count, 'agent')}{f'; {len(failed)} failed' if failed else ''}."
