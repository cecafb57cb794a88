"""The commands that write an agent to a file and read it back: export, restore.

Called by `cli.command_run`. Export and restore of everlog's own files need no host; `agent_file_commands` has the files
of other programs.
"""

from argparse import Namespace
from pathlib import Path

from everlog.actors.reports.export_restore import export_agent, restore_agent, stays_deleted
from everlog.interfaces.common.bootstrap import ports_of, system_of
from everlog.interfaces.common.error_output import escape_line
from everlog.interfaces.common.exits import interruptible
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import store_of, warn, without_take_over
from everlog.interfaces.common.plural import plural
from everlog.interfaces.common.server_choice import check_no_server, server_of
from everlog.interfaces.common.time_text import iso
from everlog.interfaces.manage.many_agents import takes_many
from everlog.interfaces.manage.transfer import agent_file_commands, backup_commands
from everlog.interfaces.manage.transfer.many_exports import export_matching
from everlog.interfaces.output import json_shapes, progress_bar
from everlog.store import ExportedStream, ExportHeader, Progress, RestoredStream, is_source, name_of, source_of

CHAIN_DIGITS = 12
"""Digits of a chain value that are printed; JSON has all digits."""


def export(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `export`."""
    if args.af or (args.file or "").endswith(".af"):
        return agent_file_commands.export(args, world)
    if args.all:
        if args.name is None or args.file is not None or args.with_sources:
            args.fail("--all takes a folder and exports everything: everlog export --all DIR")
        check_no_server(args, "A copy of a whole store")
        return backup_commands.export_all(args, world)
    if args.name is None or args.file is None:
        args.fail("give NAME and FILE.everlog, or --all DIR")
    if takes_many(args, system_of(args, world).agents()):
        return _export_matching(args, world)
    name, path = name_of(args.name), Path(args.file).expanduser()
    try:
        with interruptible(), progress_bar.shown(f"exporting {name}") as moved:
            contents = _exported(args, world, name, path, moved)
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt("nothing was exported.") from error
    size = path.stat().st_size
    if args.json:
        print(json_shapes.line({"agent": name, "file": str(path), "bytes": size, **_contents(contents)}))
        return 0
    own = contents.own
    print(escape_line(f"Exported {_records(own)} of {name} to {path} ({json_shapes.size(size)}); chain {_short(own)}."))
    others = [f"{_records(stream)} of {_owner_name(stream)}" for stream in contents.streams if stream is not own]
    if others:
        print(escape_line(f"Also in the file: {', '.join(others)}."))
    erased = sum(stream.erased for stream in contents.streams)
    if erased:
        print(f"{plural(erased, 'record')} in the file without content, because of earlier erasures.")
    left = _missing_sources(contents)
    if left:
        print(escape_line(f"Not in the file: documents of {', '.join(left)}. --with-sources includes them."))
    given = [other for other in store_of(args, world).aliases.of(name) if other != name]
    if given:
        print(escape_line(f"Not in the file: the names {', '.join(given)}. A restored agent is called {name}."))
    return 0


def _exported(args: Namespace, world: CommandEnvironment, name: str, path: Path, moved: Progress) -> ExportHeader:
    """Export an agent of the store, or of the server. Return the header of the file."""
    server = server_of(args)
    if server is not None:
        return server.export(name, path, with_sources=args.with_sources, replace=args.force)
    return export_agent(
        system_of(args, world), store_of(args, world), name, path, clock=world.clock, with_sources=args.with_sources,
        replace=args.force, progress=moved,
    )  # fmt: skip


def _export_matching(args: Namespace, world: CommandEnvironment) -> int:
    """Export the agents that a pattern matches, a file each."""

    def one(name: str, path: Path) -> json_shapes.JsonObject:
        with progress_bar.shown(f"exporting {name}") as moved:
            _exported(args, world, name, path, moved)
        return {"file": str(path), "bytes": path.stat().st_size}

    return export_matching(args, world, one)


def restore(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `restore`."""
    path = Path(args.file).expanduser()
    if path.is_dir():
        check_no_server(args, "A restore of a whole store")
        return backup_commands.restore_all(args, world, path)
    if not agent_file_commands.is_everlog_file(path):
        return agent_file_commands.restore(args, world, path)
    if args.new is not None:
        args.fail("--new-name belongs to agent files of other programs; `everlog rename` renames a restored agent")
    server = server_of(args)
    try:
        with without_take_over(), interruptible(), progress_bar.shown(f"restoring {path.name}") as moved:
            if server is not None:
                done = server.restore(path)
                if done.erased_since:
                    warn(stays_deleted(done.contents.agent_id, done.erased_since))
            else:
                done = restore_agent(store_of(args, world, create=True), path, moved, ports=ports_of(world))
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt("run the same command again to continue.") from error
    if args.json:
        restored = [{**_stream(each.stream), "restored": each.written, "ended": each.ended} for each in done.streams]
        shape = {"agent": done.contents.agent_id, "file": str(path), "streams": restored}
        print(json_shapes.line({**shape, "revived": done.revived or None}))
        return 0
    for each in done.streams:
        print(escape_line(_restore_summary(each)))
    if done.revived:
        print(escape_line(f"{done.contents.agent_id} was deleted here; it continues as {done.revived}."))
    left = _missing_sources(done.contents)
    if left:
        print(escape_line(f"Not in the file: documents of {', '.join(left)}."))
    return 0


def _restore_summary(restored: RestoredStream) -> str:
    stream = restored.stream
    if not restored.written:
        seqs = f"seq {stream.from_seq} to {stream.to_seq}"
        return f"{_owner_name(stream)}: {seqs} exist already, with the same chain {_short(stream)}."
    before = stream.records - restored.written
    also = f" ({before:,} existed already)" if before else ""
    what = f"{plural(restored.written, 'record')} restored{also}"
    end = " It was restored for its fork only, and is marked as deleted." if restored.ended else ""
    return f"{_owner_name(stream)}: {what}, with the same chain {_short(stream)}.{end}"


def _owner_name(stream: ExportedStream) -> str:
    """Return the name of the agent, or of the source, that the stream belongs to."""
    return f"the source {source_of(stream.agent_id)}" if is_source(stream.agent_id) else stream.agent_id


def _records(stream: ExportedStream) -> str:
    return plural(stream.records, "record")


def _short(stream: ExportedStream) -> str:
    return stream.chain[:CHAIN_DIGITS]


def _missing_sources(contents: ExportHeader) -> list[str]:
    """Return the sources that the agent could search and that are not in the file."""
    inside = {source_of(stream.agent_id) for stream in contents.streams if is_source(stream.agent_id)}
    return [source for source in contents.sources if source not in inside]


def _contents(contents: ExportHeader) -> json_shapes.JsonObject:
    return {
        "made_at": iso(contents.made_at),
        "store": contents.store_id,
        "streams": [_stream(stream) for stream in contents.streams],
        "sources_left_out": _missing_sources(contents),
    }


def _stream(stream: ExportedStream) -> json_shapes.JsonObject:
    return {
        "agent": stream.agent_id,
        "from_seq": stream.from_seq,
        "to_seq": stream.to_seq,
        "chain": stream.chain,
        "parent": stream.parent or None,
        "parent_seq": stream.parent_seq or None,
        "erased": stream.erased,
    }
