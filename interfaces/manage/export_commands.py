"""The commands that take agents out of a store and into one: export, restore."""

from argparse import Namespace
from pathlib import Path

from everlog.actors.reports.export_restore import export_agent, restore_agent
from everlog.interfaces.common.bootstrap import leaving_alone, store_of, system_of
from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.common.exits import interruptible
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.time_text import iso
from everlog.interfaces.output import json_shapes, progress_bar
from everlog.store import ExportedStream, ExportHeader, RestoredStream, is_source, name_of, source_of

CHAIN_DIGITS = 12
"""Digits of a chain value that people are shown; programs get all of it."""


def export(args: Namespace, world: CommandEnvironment) -> int:
    """The command `export`."""
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
    others = [f"{_records(stream)} of {_who(stream)}" for stream in contents.streams if stream is not own]
    if others:
        print(sanitize(f"With it: {', '.join(others)}."))
    erased = sum(stream.erased for stream in contents.streams)
    if erased:
        print(f"Erased before, and so without words: {erased:,} of the records.")
    left = _missing_sources(contents)
    if left:
        print(sanitize(f"Not in it: documents of {', '.join(left)}. --with-sources takes them along."))
    return 0


def restore(args: Namespace, world: CommandEnvironment) -> int:
    """The command `restore`."""
    path = Path(args.file).expanduser()
    store = store_of(args, world, create=True)
    try:
        with leaving_alone(), interruptible(), progress_bar.shown(f"restoring {path.name}") as moved:
            done = restore_agent(store, path, moved)
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt("say the same again: it goes on from there.") from error
    if args.json:
        restored = [{**_stream(each.stream), "restored": each.written, "ended": each.ended} for each in done.streams]
        print(json_shapes.line({"agent": done.contents.agent_id, "file": str(path), "streams": restored}))
        return 0
    for each in done.streams:
        print(sanitize(_restore_summary(each)))
    left = _missing_sources(done.contents)
    if left:
        print(sanitize(f"Not in the export: documents of {', '.join(left)}."))
    return 0


def _restore_summary(restored: RestoredStream) -> str:
    stream = restored.stream
    if not restored.written:
        return f"{_who(stream)}: here already, seq {stream.from_seq} to {stream.to_seq}, chain {_short(stream)} equal."
    before = stream.records - restored.written
    also = f" ({before:,} were here)" if before else ""
    what = f"{restored.written:,} record{'s' * (restored.written > 1)} restored{also}"
    end = " Only its fork was asked for: it is ended here." if restored.ended else ""
    return f"{_who(stream)}: {what}, chain {_short(stream)} equal.{end}"


def _who(stream: ExportedStream) -> str:
    """What a person calls whoever has the stream."""
    return f"the source {source_of(stream.agent_id)}" if is_source(stream.agent_id) else stream.agent_id


def _records(stream: ExportedStream) -> str:
    return f"{stream.records:,} record{'s' * (stream.records > 1)}"


def _short(stream: ExportedStream) -> str:
    return stream.chain[:CHAIN_DIGITS]


def _missing_sources(contents: ExportHeader) -> list[str]:
    """Sources that the agent could search, and that are not in the export."""
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
