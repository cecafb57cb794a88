"""The commands that begin an agent and fill it, and that say where it lives: create, import, move."""

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
    leaving_alone,
    lines_of,
    open_view,
    owning,
    settings_of,
    store_of,
    warn_of_unused,
)
from everlog.interfaces.common.error_output import complain, sanitize
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.output import json_shapes
from everlog.store import check_not_reserved, name_of


def create(args: Namespace, world: CommandEnvironment) -> int:
    """The command `create`."""
    asyncio.run(_create(args, world))
    return 0


async def _create(args: Namespace, world: CommandEnvironment) -> None:
    name = name_of(args.name)
    check_not_reserved(name)
    settings = settings_of(args, world)
    async with agents_of(args, world) as system:
        if agent_exists(system, name):
            raise UsageError(f"There is an agent {name!r} already. Talk to it: `everlog chat {name}`.")
        async with owning(args, system, name, settings) as agent:
            shape = {"agent": name, "events": agent.opened.head}
    print(json_shapes.line(shape) if args.json else sanitize(f"Created {name}. Talk to it: everlog chat {name}"))


def agent_exists(system: AgentSystem, name: str) -> bool:
    """Whether there is an agent of that name that was not deleted."""
    try:
        with open_view(system, name, notify=False) as view:
            return not view.rows("standing")[0]["deleted"]
    except UnknownAgent:
        return False


def import_(args: Namespace, world: CommandEnvironment) -> int:
    """The command `import`. The whole file is read and checked before anything is written."""
    name = name_of(args.name)
    settings = settings_of(args, world)
    with _with_progress(args.file) as lines:
        said = conversation(lines, Path(args.file).name)
    shape = asyncio.run(_import(args, world, name, settings, said))
    if args.json:
        print(json_shapes.line(shape))
    else:
        print(
            f"Imported {shape['messages']:,} messages from {shape['first'][:10]} to {shape['last'][:10]} "
            f"into {sanitize(name)}; "
            f"{shape['summaries']} summar{'y was' if shape['summaries'] == 1 else 'ies were'} made."
        )
    return 0


async def _import(
    args: Namespace, world: CommandEnvironment, name: str, settings: Settings, said: Sequence[ImportedMessage]
) -> json_shapes.JsonObject:
    made: list[Record] = []
    async with agents_of(args, world) as system, owning(args, system, name, settings) as agent:
        warn_of_unused(args, agent)
        agent.notify(made.extend)
        if not args.again:
            _check_not_imported(system, name, said, args.file)
        with _busy(f"importing {len(said):,} messages"):
            imported = await agent.import_messages(said)
    if imported.delayed is not None:
        complain(
            f"warning: all {len(said):,} messages are kept, but the model could not be asked for summaries; they are "
            f"made before the next reply. {imported.delayed}"
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
    """Raises BadInput where every message of the file that has a ref is in recall already."""
    refs = {getattr(message.event, "ref", "") for message in said} - {""}
    if not refs:
        return
    with open_view(system, name) as view:
        known = refs <= {row["ref"] for row in view.rows("recall_memory")}
    if known:
        raise BadInput(
            f"{Path(path).name} was imported already: {name!r} knows every ref in it. Nothing was kept; to "
            "import it all the same, say --again."
        )


@contextmanager
def _busy(what: str) -> Iterator[None]:
    """A spinner on a terminal: a model that writes summaries takes its time."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


@contextmanager
def _with_progress(path: str) -> Iterator[Iterator[bytes]]:
    """The lines of a file, under a progress bar on a terminal."""
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
    """The command `move`."""
    name = name_of(args.name)
    with leaving_alone():
        asyncio.run(_move(args, world, name))
    store = store_of(args, world)
    print(sanitize(f"{name} is in {store.partition_of(name)} now; its log goes on there."))
    return 0


async def _move(args: Namespace, world: CommandEnvironment, name: str) -> None:
    async with agents_of(args, world) as system:
        agent = await system.agent(name, create=False, keep_configuration=True, command="everlog move")
        await agent.move(args.placement)
