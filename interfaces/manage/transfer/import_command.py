"""Import past conversations: `everlog import`. Called by `cli.command_run`.

Writes only after the whole file was checked, so a bad file leaves no agent. Each conversation is one commit; an import
of many conversations that was interrupted continues when it is repeated.
"""

import asyncio
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent_system import AgentSystem
from everlog.events import BadInput
from everlog.interfaces.common import time_text
from everlog.interfaces.common.bootstrap import agents_of, opened_agent, settings_of, warn_of_unused
from everlog.interfaces.common.error_output import complain, escape_line
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import lines_of
from everlog.interfaces.common.plural import plural
from everlog.interfaces.imports.past_conversation import PastConversation
from everlog.interfaces.imports.read_conversations import chosen, read_conversations
from everlog.interfaces.imports.restore_agents import has_messages
from everlog.interfaces.output import json_shapes
from everlog.store import check_not_reserved


def import_(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `import`. The whole file is read and checked before the first write."""
    settings, source = settings_of(args, world), Path(args.file).name
    with _with_progress(args.file) as lines:
        found = read_conversations(b"".join(lines), source, args.format)
    wanted = chosen(found, args.name, args.conversation, source)
    for name in wanted:
        check_not_reserved(name)
    return asyncio.run(_import(args, world, settings, wanted))


async def _import(
    args: Namespace, world: CommandEnvironment, settings: Settings, wanted: Mapping[str, PastConversation]
) -> int:
    async with agents_of(args, world) as system:
        for name, past in wanted.items():
            if not args.again and has_messages(system, name, past.messages):
                if len(wanted) == 1:
                    raise BadInput(
                        f"{Path(args.file).name} was imported already: {name!r} has a message for every ref in it. "
                        "Nothing was imported; --again imports it anyway."
                    )
                if not args.json:
                    print(escape_line(f"{name} has these messages already."))
                continue
            _print(args, await _import_one(args, system, name, settings, past))
    return 0


async def _import_one(
    args: Namespace, system: AgentSystem, name: str, settings: Settings, past: PastConversation
) -> json_shapes.JsonObject:
    given = {block.label for block in settings.blocks}  # a block of the command line goes before one of the file
    blocks = [*settings.blocks, *(block for block in past.blocks if block.label not in given)]
    async with opened_agent(args, system, name, msgspec.structs.replace(settings, blocks=blocks)) as agent:
        warn_of_unused(args, agent)
        with busy(f"importing {plural(len(past.messages), 'message')}"):
            imported = await agent.import_messages(past.messages)
    if imported.delayed is not None:
        complain(
            f"warning: {plural(len(past.messages), 'message')} imported, but the model was not available for "
            f"summaries, which are made before the next reply. {imported.delayed}"
        )
    spoken = [time_text.since_epoch(message.said_at) for message in past.messages]
    return {
        "agent": name,
        "messages": len(past.messages),
        "first": time_text.iso(min(spoken)),
        "last": time_text.iso(max(spoken)),
        "summaries": imported.summaries,
        "left_out": dict(sorted(past.left_out.items())),
    }


def _print(args: Namespace, shape: json_shapes.JsonObject) -> None:
    if args.json:
        print(json_shapes.line(shape))
        return
    first, last = shape["first"][:10], shape["last"][:10]
    days = f"of {first}" if first == last else f"from {first} to {last}"
    made = f"; wrote {plural(shape['summaries'], 'summary', 'summaries')}" if shape["summaries"] else ""
    print(f"Imported {plural(shape['messages'], 'message')} {days} into {escape_line(shape['agent'])}{made}.")
    if shape["left_out"]:
        print(escape_line(left_out_line(shape["left_out"])))


def left_out_line(left_out: Mapping[str, int]) -> str:
    """Return the line that lists what was left out, by kind."""
    return "Left out: " + ", ".join(f"{count} {kind}" for kind, count in left_out.items()) + "."


@contextmanager
def busy(what: str) -> Iterator[None]:
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
