"""The commands that look after the index of memories: archive status, archive rebuild, archive check."""

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from everlog.actors.archive.archive_index import index_of
from everlog.interfaces.common.bootstrap import store_of
from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.output import json_shapes, progress_bar

if TYPE_CHECKING:
    from everlog.store.archive import Archive


def status(args: Namespace, world: CommandEnvironment) -> int:
    """The command `archive status`. Follows nothing."""
    with _opened(args, world) as index:
        found = index.status()
    if args.json:
        print(json_shapes.line(msgspec.to_builtins(found)))
    elif not found.generation:
        print("Nothing was searched here yet, so there is no index. The first search makes it, from the logs.")
    else:
        behind = f", {found.behind:,} logs have something new" if found.behind else ", up to date"
        print(
            f"{found.memories:,} memories (parts of long ones counted each) and {found.messages:,} messages of "
            f"{found.partitions:,} logs{behind}.\n"
            f"Vectors of {found.embedder} ({found.dimension} numbers), {found.cached:,} kept for a rebuild; "
            f"{found.bytes / 1e6:,.1f} MB on the disk."
        )
    return 0


def rebuild(args: Namespace, world: CommandEnvironment) -> int:
    """The command `archive rebuild`."""
    from everlog.actors.archive.embedder_choice import embedder_for

    embedder = embedder_for(args.embedder, args.base_url or None) if args.embedder else None
    with _opened(args, world) as index, progress_bar.shown("making the index anew") as moved:
        made = index.rebuild(embedder, moved)
    if args.json:
        print(json_shapes.line({"rows": made.rows, "embedded": made.embedded, "embedder": made.embedder,
                           "dimension": made.dimension}))  # fmt: skip
    else:
        print(
            f"Made the index anew from the logs: {made.rows:,} rows, vectors of {sanitize(made.embedder)}; "
            f"{made.embedded:,} texts had to be embedded, the others were known."
        )
    return 0


def check(args: Namespace, world: CommandEnvironment) -> int:
    """The command `archive check`: the index held against the logs, row for row."""
    with _opened(args, world) as index:
        index.follow()
        faults = index.check()
    if args.json:
        print(json_shapes.line({"ok": not faults, "faults": faults}))
    else:
        for fault in faults:
            print(sanitize(fault))
        print(
            "The index is up to date and matches the logs."
            if not faults
            else "`everlog archive rebuild` makes it anew."
        )
    return int(bool(faults))


@contextmanager
def _opened(args: Namespace, world: CommandEnvironment) -> Iterator["Archive"]:
    index = index_of(store_of(args, world))
    try:
        yield index
    finally:
        index.close()
