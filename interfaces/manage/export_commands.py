"""The commands that write an agent to a file and read it back: export, restore.

Called by `cli.command_run`. Export and restore work on files and need no host.
"""

from argparse import Namespace
from pathlib import Path

from everlog.actors.reports.export_restore import export_agent, restore_agent
from everlog.interfaces.common.bootstrap import store_of, system_of, without_take_over
from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.common.exits import interruptible
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.plural import plural
from everlog.interfaces.common.time_text import iso
from everlog.interfaces.output import json_shapes, progress_bar
from everlog.store import ExportedStream, ExportHeader, RestoredStream, is_source, name_of, source_of

CHAIN_DIGITS = 12
"""Digits of a chain value that are printed; JSON has all digits."""


def export(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `export`."""
    name, path = name_of(args.name), Path(args.file).expanduser()
    try:
        with interruptible(), progress_bar.shown(f"exporting {name}") as moved:
            contents = export_agent(
                system_of(args, world),
                store_of(args, world),
                name,
                path,
                clock=world.clock,
                with_sources=args.with_sources,
                replace=args.force,
                progress=moved,
            )
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt("nothing was exported.") from error
    size = path.stat().st_size
    if args.json:
        print(json_shapes.line({"agent": name, "file": str(path), "bytes": size, **_contents(contents)}))
        return 0
    own = contents.own
    print(sanitize(f"Exported {_records(own)} of {name} to {path} ({json_shapes.size(size)}); chain {_short(own)}."))
    others = [f"{_records(stream)} of {_owner_name(stream)}" for stream in contents.streams if stream is not own]
    if others:
        print(sanitize(f"Also in the file: {', '.join(others)}."))
    erased = sum(stream.erased for stream in contents.streams)
    if erased:
        print(f"{plural(erased, 'record')} in the file without content, because of earlier erasures.")
    left = _missing_sources(contents)
    if left:
        print(sanitize(f"Not in the file: documents of {', '.join(left)}. --with-sources includes them."))
    return 0


def restore(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `restore`."""
    path = Path(args.file).expanduser()
    store = store_of(args, world, create=True)
    try:
        with without_take_over(), interruptible(), progress_bar.shown(f"restoring {path.name}") as moved:
            done = restore_agent(store, path, moved)
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt("run the same command again to continue.") from error
    if args.json:
        restored = [{**_stream(each.stream), "restored": each.written, "ended": each.ended} for each in done.streams]
        print(json_shapes.line({"agent": done.contents.agent_id, "file": str(path), "streams": restored}))
        return 0
    for each in done.streams:
        print(sanitize(_restore_summary(each)))
    left = _missing_sources(done.contents)
    if left:
        print(sanitize(f"Not in the file: documents of {', '.join(left)}."))
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
