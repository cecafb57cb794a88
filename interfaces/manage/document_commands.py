"""The commands about documents: load, sources, attach, detach.

Called by `cli.command_run`. All arguments are checked before the first write.
"""

import asyncio
import difflib
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.memory.document_load import Document, LoadReport, UnreadableDocument
from everlog.actors.memory.source_service import Sources
from everlog.events import BadInput
from everlog.interfaces.common import time_text
from everlog.interfaces.common.as_of import time_of_option
from everlog.interfaces.common.bootstrap import (
    agents_of,
    open_view,
    opened_agent,
    opened_view,
    settings_of,
    system_of,
    warn_of_unused,
)
from everlog.interfaces.common.error_output import complain, escape_line
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import root_of, store_of, warn, without_take_over
from everlog.interfaces.common.plural import plural
from everlog.interfaces.common.server_choice import server_of
from everlog.interfaces.documents import (
    FileSelection,
    check_readers_installed,
    find,
    query_rows,
    read,
    table_export,
    web_pages,
)
from everlog.interfaces.output import json_shapes, progress_bar
from everlog.store import MemoryStore, Progress, name_of, source_of, stream_of

if TYPE_CHECKING:
    from everlog.interfaces.client.remote_documents import RemoteSources

NAMES_SHOWN = 10
"""Most names that are printed one by one."""


def load(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `load`. All arguments are checked before the first write."""
    name, settings = name_of(args.name), settings_of(args, world)
    source = source_of(stream_of(name if args.source is None else args.source))
    if not args.paths and args.sql is None:
        args.fail("PATH is missing: give files or folders to load, or a query with --sql")
    rows: Iterable[Document | UnreadableDocument] | None = None
    if args.sql is None:
        found, others = _given(args, world)
        check_readers_installed(found.files)
    else:
        others = ()
        rows, found = (
            query_rows.rows(args.sql, query_rows.databases(args.paths)),
            FileSelection(origins=[query_rows.SQL]),
        )
    attached = False if args.dry_run else asyncio.run(_ensure_attached(args, world, name, source, settings))
    with without_take_over(), progress_bar.shown(f"loading into {source}") as moved:
        brought = chain(_read(found, moved), *others) if rows is None else rows
        loaded = _sources(args, world).load(
            source, brought, origins=found.origins, prune=args.prune, dry_run=args.dry_run
        )
    for failed in loaded.failed:
        complain(f"{failed.name}: {failed.reason}.")
    if args.json:
        print(json_shapes.line({"agent": name, "attached": attached, **_shape(loaded, found, dry_run=args.dry_run)}))
    else:
        _print_load(loaded, found, dry_run=args.dry_run)
    return int(bool(loaded.failed))


def _given(
    args: Namespace, world: CommandEnvironment
) -> tuple[FileSelection, Sequence[Iterable[Document | UnreadableDocument]]]:
    """Return the files among the given paths, and the documents of the others: exported tables and web pages."""
    addresses = [path for path in args.paths if web_pages.is_address(path)]
    exports = [path for path in args.paths if path not in addresses and table_export.is_export(path)]
    found = find([path for path in args.paths if path not in (*addresses, *exports)])
    others: list[Iterable[Document | UnreadableDocument]] = [table_export.rows(path) for path in exports]
    found.origins += [str(Path(path).expanduser().resolve()) for path in exports] + addresses
    if addresses:
        others.append(web_pages.pages(addresses, args.allow_host, world.web))
    return found, others


def _read(found: FileSelection, moved: Progress) -> Iterator[Document | UnreadableDocument]:
    """Yield the document of each file, or the reason why the file cannot be read."""
    yield from found.failed
    done = 0
    for file in found.files:
        yield read(file)
        done += file.bytes
        moved(done, found.bytes)


def _sources(args: Namespace, world: CommandEnvironment) -> "Sources | RemoteSources":
    """Return the sources of the store; an empty set of sources if a dry run finds no store."""
    server = server_of(args)
    if server is not None:
        return server.sources()
    if getattr(args, "dry_run", False) and not (root_of(args) / "everlog.json").exists():
        return Sources(MemoryStore(), clock=world.clock, ids=world.ids)
    return Sources(store_of(args, world), clock=world.clock, ids=world.ids, note=warn)


async def _ensure_attached(
    args: Namespace, world: CommandEnvironment, name: str, source: str, settings: Settings
) -> bool:
    """Attach the source to the agent, which is created if it does not exist. Return False if it was attached before."""
    async with agents_of(args, world) as system, opened_agent(args, system, name, settings) as agent:
        warn_of_unused(args, agent)
        return await agent.attach_source(source)


def _shape(loaded: LoadReport, found: FileSelection, *, dry_run: bool) -> json_shapes.JsonObject:
    counts = {key: len(getattr(loaded, key)) for key in ("new", "changed", "unchanged", "removed")}
    return {
        "source": loaded.source,
        "documents": loaded.documents,
        **counts,
        "vanished": loaded.vanished,
        "skipped": found.skipped,
        "failed": [{"document": one.name, "reason": one.reason} for one in loaded.failed],
        "dry_run": dry_run,
    }


def _print_load(loaded: LoadReport, found: FileSelection, *, dry_run: bool) -> None:
    """Print the result of a load or of a dry run."""
    parts = [f"{len(getattr(loaded, key)):,} {key}" for key in ("new", "changed", "unchanged", "removed")]
    did = ", ".join(part for part in parts if not part.startswith("0 "))
    failed = f"; {len(loaded.failed):,} could not be read" if loaded.failed else ""
    begin = f"{'Would load' if dry_run else 'Loaded'} {_documents(loaded.documents)}"
    print(escape_line(f"{begin}{f' ({did})' if did else ''} into source {loaded.source}{failed}."))
    if loaded.vanished:
        print(
            escape_line(f"No longer found where they were loaded from: {_some(loaded.vanished)}. --prune removes them.")
        )
    if found.skipped:
        print(escape_line(f"Skipped (unsupported file type): {_some(found.skipped)}."))


def _documents(count: int) -> str:
    return plural(count, "document")


def _some(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - NAMES_SHOWN:,} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(names[:NAMES_SHOWN]) + more


def sources(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `sources`: list the sources of the store or of an agent, or the documents of one source."""
    if args.source is not None:
        return _list_documents(args, _sources(args, world), time_of_option(args, world))
    until = _until(args, world)
    known = _sources(args, world)
    attached = known.attached(until)
    found = []
    for source in sorted({*known.names(), *attached}):
        agents = attached.get(source, [])
        if args.name is None or name_of(args.name) in agents:
            rows = known.documents(source, until) if source in known.names() else []
            characters = sum(row["chars"] for row in rows)
            found.append({"source": source, "documents": len(rows), "characters": characters, "agents": agents})
    if args.json:
        print(json_shapes.line(found))
        return 0
    for one in found:
        readers = _some(one["agents"]) or "no agents"
        size = f"{_documents(one['documents'])}, {plural(one['characters'], 'character')}"
        print(escape_line(f"{one['source']}  {size}  {readers}"))
    if not found:
        whose = "This store has" if args.name is None else f"{args.name} has"
        print(escape_line(f"{whose} no sources; `everlog load` creates one."))
    return 0


def _until(args: Namespace, world: CommandEnvironment) -> int | None:
    """Return the time of --as-of in microseconds UTC, or None for now. A seq is one of the agent's records.

    Raises UnknownAgent.
    """
    if args.name is None:
        return time_of_option(args, world)
    with opened_view(args, world) as view:
        return next(view.reader.read(view.agent_id, view.seq, view.seq)).recorded_at if view.is_past else None


def _list_documents(args: Namespace, known: "Sources | RemoteSources", until: int | None) -> int:
    """Print the documents of a source."""
    if args.name is not None:
        args.fail("NAME cannot be given with --source")
    rows = known.documents(args.source, until)
    shown = [
        {
            "document": row["document"],
            "title": row["title"],
            "characters": row["chars"],
            "bytes": row["bytes"],
            "media_type": row["media_type"],
            "sha256": row["sha256"],
            "origin": row["origin"],
            "seq": row["seq"],
            "loaded": time_text.iso(row["time"]),
        }
        for row in rows
    ]
    if args.json:
        print(json_shapes.line(shown))
        return 0
    for row in rows:
        title = f"  {row['title']}" if row["title"] else ""
        print(escape_line(f"{row['document']}  {plural(row['chars'], 'character')}{title}"))
    if not rows:
        print(escape_line(f"The source {args.source} is empty."))
    return 0


def attach(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `attach`."""
    name = name_of(args.name)
    known = _sources(args, world).names()
    if args.source not in known:
        near = difflib.get_close_matches(args.source, known, 3)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise BadInput(
            f"There is no source {args.source!r}.{hint} `everlog sources` lists sources; `everlog load` creates one."
        )
    changed = _set_attached(args, world, name, attach=True)
    if args.json:
        print(json_shapes.line({"agent": name, "source": args.source, "attached": True, "changed": changed}))
    else:
        print(escape_line(f"{name} can {'now' if changed else 'already'} search the source {args.source}."))
    return 0


def detach(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `detach`."""
    name = name_of(args.name)
    if not _set_attached(args, world, name, attach=False):
        with open_view(system_of(args, world), name, notify=False) as view:
            own = ", ".join(row["source"] for row in view.rows("sources") if row["source"]) or "none"
        raise BadInput(f"{name!r} cannot search a source {args.source!r}; its sources: {own}.")
    if args.json:
        print(json_shapes.line({"agent": name, "source": args.source, "attached": False, "changed": True}))
    else:
        print(escape_line(f"{name} can no longer search the source {args.source}. The source itself stays."))
    return 0


def _set_attached(args: Namespace, world: CommandEnvironment, name: str, *, attach: bool) -> bool:
    with open_view(system_of(args, world), name, notify=False), without_take_over():  # creates no store and no agent
        return asyncio.run(_change(args, world, name, attach=attach))


async def _change(args: Namespace, world: CommandEnvironment, name: str, *, attach: bool) -> bool:
    async with agents_of(args, world) as system:
        agent = await system.agent(name, create=False, keep_configuration=True, command=f"everlog {args.command}")
        return await (agent.attach_source(args.source) if attach else agent.detach_source(args.source))
