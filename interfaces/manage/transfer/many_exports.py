"""Export the agents that a pattern matches into a folder, a file each, in any format."""

import asyncio
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from everlog.actors.reports.store_backup import file_of
from everlog.events import UsageError
from everlog.interfaces.common.error_output import escape_line
from everlog.interfaces.common.exits import interruptible
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.manage.many_agents import for_each, matching, outcome
from everlog.interfaces.output import json_shapes


def export_matching(
    args: Namespace, world: CommandEnvironment, export_one: Callable[[str, Path], json_shapes.JsonObject]
) -> int:
    """Export each agent that NAME, a pattern, matches. The error of one agent does not stop the others. Return the exit
    code of the command.

    `export_one`: exports an agent to a path, and returns what JSON says of it beside name and file. The path has the
    ending of everlog's own exports.
    """
    names, damaged, _ = matching(args, world)
    folder = Path(args.file).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise UsageError(f"{folder} cannot be a folder for files of agents: {error.strerror}.") from error
    shapes: list[json_shapes.JsonObject] = []

    async def one(name: str) -> None:
        shapes.append({"agent": name, **export_one(name, folder / file_of(name))})

    with interruptible():
        failed = asyncio.run(for_each(names, one, "exported"))
    text = escape_line(f"{outcome(len(shapes), failed, 'Exported')[:-1]} to {folder}.")
    print(json_shapes.line(shapes) if args.json else text)
    return int(bool(failed or damaged))
