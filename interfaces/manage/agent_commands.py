"""The commands that create an agent, import a conversation and change the placement: create, import, move.

Called by `cli.command_run`. An import writes only after the whole file was checked, so a bad file leaves no agent.
"""

import asyncio
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.conversation_import import ImportedMessage, conversation
from everlog.actors.agent_system import AgentSystem
from everlog.events import BadInput, Record, UnknownAgent, UsageError
from everlog.interfaces.common import time_text
from everlog.interfaces.common.bootstrap import (
    agents_of,
    lines_of,
    open_view,
    opened_agent,
    settings_of,
    store_of,
    warn_of_unused,
    without_take_over,
)
from everlog.interfaces.common.error_output import complain, sanitize
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.plural import plural
from everlog.interfaces.output import json_shapes
from everlog.store import check_not_reserved, name_of


def create(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `create`."""
    asyncio.run(_create(args, world))
    return 0


async def _create(args: Namespace, world: CommandEnvironment) -> None:
    name = name_of(args.name)
    check_not_reserved(name)
    settings = settings_of(args, world)
    async with agents_of(args, world) as system:
        if agent_exists(system, name):
            raise UsageError(f"The agent {name!r} exists already. `everlog chat {name}` talks to it.")
        async with opened_agent(args, system, name, settings) as agent:
            shape = {"agent": name, "events": agent.opened.head}
    print(json_shapes.line(shape) if args.json else sanitize(f"Created {name}. Talk to it: everlog chat {name}"))


def agent_exists(system: AgentSystem, name: str) -> bool:
    """Return True if an agent of that name exists and was not deleted."""
    try:
        with open_view(system, name, notify=False) as view:
            return not view.rows("standing")[0]["deleted"]
    except UnknownAgent:
        return False


def import_(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `import`. The whole file is read and checked before the first write."""
    name = name_of(args.name)
    settings = settings_of(args, world)
    with _with_progress(args.file) as lines:
        said = conversation(lines, Path(args.file).name)
    shape = asyncio.run(_import(args, world, name, settings, said))
    if args.json:
        print(json_shapes.line(shape))
    else:
        first, last = shape["first"][:10], shape["last"][:10]
        days = f"of {first}" if first == last else f"from {first} to {last}"
        made = f"; wrote {plural(shape['summaries'], 'summary', 'summaries')}" if shape["summaries"] else ""
        print(f"Imported {plural(shape['messages'], 'message')} {days} into {sanitize(name)}{made}.")
    return 0


async def _import(
    args: Namespace, world: CommandEnvironment, name: str, settings: Settings, said: Sequence[ImportedMessage]
) -> json_shapes.JsonObject:
    made: list[Record] = []
    async with agents_of(args, world) as system, opened_agent(args, system, name, settings) as agent:
        warn_of_unused(args, agent)
        agent.notify(made.extend)
        if not args.again:
            _check_not_imported(system, name, said, args.file)
        with _busy(f"importing {plural(len(said), 'message')}"):
            imported = await agent.import_messages(said)
    if imported.delayed is not None:
        complain(
            f"warning: {plural(len(said), 'message')} imported, but the model was not available for summaries, which "
            f"are made before the next reply. {imported.delayed}"
        )
    spoken = [message.said_at for message in said]
    return {
        "agent": name,
        "messages": len(said),
        "first": time_text.iso(min(spoken)),
        "last": time_text.iso(max(spoken)),
        "summaries": sum(record.type == "summary" for record in made),
    }


def _check_not_imported(system: AgentSystem, name: str, said: Sequence[ImportedMessage], path: str) -> None:
    """Raise BadInput if the file has refs and a message with each of them is in recall memory already."""
    refs = {getattr(message.event, "ref", "") for message in said} - {""}
    if not refs:
        return
    with open_view(system, name) as view:
        known = refs <= {row["ref"] for row in view.rows("recall_memory")}
    if known:
        raise BadInput(
            f"{Path(path).name} was imported already: {name!r} has a message for every ref in it. Nothing was "
            "imported; --again imports it anyway."
        )


@contextmanager
def _busy(what: str) -> Iterator[None]:
    """Show a spinner if stderr is a terminal: the model may write summaries, which takes time."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


@contextmanager
def _with_progress(path: str) -> Iterator[Iterator[bytes]]:
    """Open the lines of a file, with a progress bar if stderr is a terminal."""
    if not sys.stderr.isatty() or not Path(path).is_file():
        yield lines_of(path)
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("reading", total=Path(path).stat().st_size)

        def lines() -> Iterator[bytes]:
            for line in lines_of(path):
                progress.advance(task, len(line))
                yield line

        yield lines()


def move(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `move`."""
    name = name_of(args.name)
    with without_take_over():
        asyncio.run(_move(args, world, name))
    store = store_of(args, world)
    print(sanitize(f"Moved {name} to {store.partition_of(name)}; its log continues there."))
    return 0


async def _move(args: Namespace, world: CommandEnvironment, name: str) -> None:
    async with agents_of(args, world) as system:
        agent = await system.agent(name, create=False, keep_configuration=True, command="everlog move")
        await agent.move(args.placement)
