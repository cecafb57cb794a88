"""The commands that maintain the search index: archive status, archive rebuild, archive check.

Called by `cli.command_run`.
"""

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from everlog.actors.archive.archive_index import index_of
from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import store_of
from everlog.interfaces.common.plural import plural
from everlog.interfaces.output import json_shapes, progress_bar

if TYPE_CHECKING:
    from everlog.store.archive import Archive


def status(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `archive status`. Does not bring the index up to date."""
    with _opened(args, world) as index:
        found = index.status()
    if args.json:
        print(json_shapes.line(msgspec.to_builtins(found)))
    elif not found.generation:
        print("There is no index yet. The first search builds it from the logs.")
    else:
        behind = f"{plural(found.behind, 'log')} with new records" if found.behind else "up to date"
        memories, messages = plural(found.memories, "memory", "memories"), plural(found.messages, "message")
        print(
            f"{memories} (each part of a long one counted) and {messages} of {plural(found.partitions, 'log')}; "
            f"{behind}.\n"
            f"Embedding model {found.embedder} ({found.dimension} dimensions), {plural(found.cached, 'vector')} cached "
            f"for a rebuild; {found.bytes / 1e6:,.1f} MB on disk, "
            f"{plural(found.sizes.files, 'file')} and {plural(found.sizes.versions, 'version')} of the table."
        )
    return 0


def rebuild(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `archive rebuild`."""
    from everlog.actors.archive.embedder_choice import embedder_for

    embedder = embedder_for(args.embedder, args.base_url or None) if args.embedder else None
    with _opened(args, world) as index, progress_bar.shown("rebuilding the index") as moved:
        made = index.rebuild(embedder, moved)
    if args.json:
        print(json_shapes.line({"rows": made.rows, "embedded": made.embedded, "embedder": made.embedder,
                           "dimension": made.dimension}))  # fmt: skip
    else:
        print(
            f"Rebuilt the index from the logs: {plural(made.rows, 'row')}, embedding model {sanitize(made.embedder)}; "
            f"{plural(made.embedded, 'text')} embedded, the rest were cached."
        )
    return 0


def check(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `archive check`: bring the index up to date, and compare it with the logs row by row."""
    with _opened(args, world) as index:
        index.follow()
        faults = index.check()
    if args.json:
        print(json_shapes.line({"ok": not faults, "faults": faults}))
    else:
        for fault in faults:
            print(sanitize(fault))
        print(
            "`everlog archive rebuild` rebuilds the index."
            if faults
            else "The index was brought up to date, and agrees with the logs."
        )
    return int(bool(faults))


@contextmanager
def _opened(args: Namespace, world: CommandEnvironment) -> Iterator["Archive"]:
    index = index_of(store_of(args, world))
    try:
        yield index
    finally:
        index.close()
