"""`everlog export --af` and `everlog restore FILE.af`: agents as files of Letta, and from files of Letta or MemGPT.

Called by `export_commands`. The formats are in `interfaces/imports`.
"""

import asyncio
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from everlog.events import EverlogError
from everlog.interfaces.common import time_text
from everlog.interfaces.common.bootstrap import agents_of, open_view, system_of
from everlog.interfaces.common.error_output import complain, escape_line
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import lines_of
from everlog.interfaces.common.plural import plural
from everlog.interfaces.imports.letta_file_export import LettaAgentFile, letta_file_of
from everlog.interfaces.imports.past_conversation import PastConversation
from everlog.interfaces.imports.read_conversations import named, read_agents
from everlog.interfaces.imports.restore_agents import RestoredAgent, restore_past
from everlog.interfaces.manage.many_agents import takes_many
from everlog.interfaces.manage.transfer.import_command import busy, left_out_line
from everlog.interfaces.manage.transfer.many_exports import export_matching
from everlog.interfaces.output import json_shapes
from everlog.interfaces.output.whole_file import check_free, write_whole
from everlog.store import check_not_reserved, name_of

EVERLOG_MAGIC = b"PAR1"
"""First bytes of a file of `everlog export`, which is Parquet."""


def is_everlog_file(path: Path) -> bool:
    """Return True if a file of `everlog export` is there, or no file at all: the restore then names the fault."""
    try:
        with path.open("rb") as file:
            return file.read(len(EVERLOG_MAGIC)) == EVERLOG_MAGIC or path.suffix == ".everlog"
    except OSError:
        return path.suffix != ".af"


def export(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `export --af`."""
    if args.all or args.with_sources:
        args.fail("--af writes agents alone: leave out --all and --with-sources")
    if args.name is None or args.file is None:
        args.fail("give NAME and FILE.af, or a pattern and a folder")
    path = Path(args.file).expanduser()
    if takes_many(args, system_of(args, world).agents()):
        return _export_matching(args, world)
    name = name_of(args.name)
    file = _export_one(args, world, name, path)
    if args.json:
        print(json_shapes.line({"agent": name, "file": str(path), **_shape(file)}))
        return 0
    (agent,) = file.content["agents"]
    print(escape_line(f"Exported {plural(len(agent['messages']), 'message')} and "
                      f"{plural(len(file.content['blocks']), 'block')} of {name} to {path}."))  # fmt: skip
    if file.left_out:
        print(escape_line(left_out_line(file.left_out)))
    return 0


def _export_one(args: Namespace, world: CommandEnvironment, name: str, path: Path) -> LettaAgentFile:
    with open_view(system_of(args, world), name) as view:
        file = letta_file_of(view, name=name)
    check_free(path, force=args.force)
    write_whole(path, [file.encode()])
    return file


def _export_matching(args: Namespace, world: CommandEnvironment) -> int:
    """Export the agents that a pattern matches, a file each."""

    def one(name: str, path: Path) -> json_shapes.JsonObject:
        file = path.with_suffix(".af")
        return {"file": str(file), **_shape(_export_one(args, world, name, file))}

    return export_matching(args, world, one)


def _shape(file: LettaAgentFile) -> json_shapes.JsonObject:
    (agent,) = file.content["agents"]
    return {
        "messages": len(agent["messages"]),
        "blocks": len(file.content["blocks"]),
        "tools": len(file.content["tools"]),
        "left_out": dict(file.left_out),
    }


def restore(args: Namespace, world: CommandEnvironment, path: Path) -> int:
    """Run the command `restore` for a file of another program. The whole file is checked before the first write."""
    wanted = named(read_agents(b"".join(lines_of(str(path))), path.name), args.new, path.name)
    for name in wanted:
        check_not_reserved(name)
    shapes: list[json_shapes.JsonObject] = []
    failed = asyncio.run(_restore(args, world, wanted, shapes))
    if args.json:
        print(json_shapes.line({"file": str(path), "agents": shapes}))
    return int(failed)


async def _restore(
    args: Namespace,
    world: CommandEnvironment,
    wanted: Mapping[str, PastConversation],
    shapes: list[json_shapes.JsonObject],
) -> bool:
    """Restore each agent, and tell of it. Return True if one failed, which does not stop the others."""
    failed = False
    async with agents_of(args, world) as system:
        for name, past in wanted.items():
            try:
                with busy(f"restoring {name}"):
                    done = await restore_past(system, name, past)
            except EverlogError as error:
                if len(wanted) == 1:
                    raise
                complain(f"{name!r} was not restored: {error}", error.code)
                failed = True
                continue
            shapes.append(_restored(done, past))
            if not args.json:
                _print(done, past)
    return failed


def _restored(done: RestoredAgent, past: PastConversation) -> json_shapes.JsonObject:
    spoken = [time_text.since_epoch(message.said_at) for message in past.messages]
    return {
        "agent": done.name,
        "model": done.model,
        "existed": done.existed,
        "messages": len(past.messages),
        "first": time_text.iso(min(spoken)) if spoken else None,
        "last": time_text.iso(max(spoken)) if spoken else None,
        "blocks": len(past.blocks),
        "left_out": dict(sorted(past.left_out.items())),
    }


def _print(done: RestoredAgent, past: PastConversation) -> None:
    if done.existed:
        print(escape_line(f"{done.name} exists already, with the blocks and messages of the file."))
        return
    print(escape_line(f"Restored {done.name}: {plural(len(past.blocks), 'block')} and "
                      f"{plural(len(past.messages), 'message')}, model {done.model}."))  # fmt: skip
    if past.left_out:
        print(escape_line(left_out_line(dict(sorted(past.left_out.items())))))
    if done.imported is not None and done.imported.delayed is not None:
        complain(
            "warning: the model was not available for summaries, which are made before the next reply. "
            f"{done.imported.delayed}"
        )
