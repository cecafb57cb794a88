"""`everlog store copy`: copy a store between folders and buckets. Called by `cli.command_run`."""

import sys
from argparse import Namespace
from pathlib import Path

import msgspec

from everlog.events import UsageError
from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.plural import plural
from everlog.interfaces.defaults.default_files import store_folder
from everlog.interfaces.output import json_shapes
from everlog.store import FileStore, url_of
from everlog.store.check.check_side_files import COPIED_NAMES
from everlog.store.copy.copy_store import copy_store


def copy(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `store copy`."""
    if getattr(args, "store", None) or getattr(args, "server", None):
        raise UsageError("`everlog store copy` takes the stores as FROM and TO, without --store and --server.")
    source = FileStore(store_folder(args.source), world.clock.now)
    target = store_folder(args.target)

    def told(done: int, all_: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{done} of {plural(all_, 'log')}", end="\n" if done == all_ else "", file=sys.stderr, flush=True)

    report = copy_store(source, target, world.clock.now, progress=told)
    beside = _beside(source.root)
    if args.json:
        print(json_shapes.line({**msgspec.structs.asdict(report), "not_copied": beside}))
        return 0
    if report.was_finished:
        print(
            f"{_place(target)} was whole already: an earlier copy was interrupted at its very end. Nothing was copied."
        )
        return 0
    print(
        f"Copied {plural(report.agents, 'stream')} with {plural(report.records, 'record')} to {_place(target)}: "
        f"{plural(report.files, 'file')}, {report.bytes:,} bytes; {report.kept} were there already. All are checked. "
        f"Beside them: {plural(report.side_files, 'side file')}."
    )
    if beside:
        print(sanitize(f"Not copied, because they belong to one machine: {', '.join(beside)} in {source.root}."))
    return 0


def _beside(root: Path) -> list[str]:
    """Return the names of what lies beside the logs on this machine."""
    return sorted(path.name for path in root.iterdir() if path.name not in COPIED_NAMES) if root.is_dir() else []


def _place(root: Path) -> str:
    return sanitize(url_of(root) or str(root))
