"""`everlog export --all DIR` and `everlog restore DIR`: a whole store into a folder, and back.

Called by `export_commands`. A stream or a file that fails is reported on stderr, the others continue, and the exit code
is 1: a backup that left something out must not look complete.
"""

from argparse import Namespace
from pathlib import Path

import msgspec

from everlog.actors.reports.store_backup import BackupFile, export_store, restore_store
from everlog.events import EverlogError
from everlog.interfaces.common.error_output import complain, escape_line
from everlog.interfaces.common.exits import interruptible
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import store_of, without_take_over
from everlog.interfaces.common.plural import plural
from everlog.interfaces.output import json_shapes, progress_bar
from everlog.store import RestoreReport


def export_all(args: Namespace, world: CommandEnvironment) -> int:
    """Export the whole store into a folder."""
    folder, store = Path(args.name).expanduser(), store_of(args, world)
    total = len(store.assigned())
    done: dict[str, str] = {}
    try:
        with interruptible(), progress_bar.shown("exporting the store") as moved:

            def on_stream(stream: str, became: str) -> None:
                done[stream] = became
                moved(len(done), total)

            listed = export_store(store, folder, clock=world.clock, on_stream=on_stream)
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt("run the same command again to continue; finished files are kept.") from error
    for stream, reason in listed.left_out.items():
        complain(f"{stream!r} was left out: {reason}")
    if args.json:
        shape = msgspec.to_builtins(listed)
        print(json_shapes.line({"folder": str(folder), **shape, "streams": done}))
        return int(bool(listed.left_out))
    written = sum(became == "exported" for became in done.values())
    same = sum(became == "unchanged" for became in done.values())
    size = json_shapes.size(sum(one.bytes for one in listed.files))
    print(escape_line(f"{folder} holds {plural(len(listed.files), 'file')} ({size}): {written} written, "
                      f"{same} unchanged."))  # fmt: skip
    if listed.left_out:
        print(f"{plural(len(listed.left_out), 'stream')} left out: see above.")
    print(f"Not in the folder: {'; '.join(listed.not_inside)}.")
    return int(bool(listed.left_out))


def restore_all(args: Namespace, world: CommandEnvironment, folder: Path) -> int:
    """Restore a folder of `export --all`."""
    store = store_of(args, world, create=True)
    written: dict[str, int] = {}
    failed: dict[str, str] = {}

    def on_file(one: BackupFile, result: RestoreReport | EverlogError) -> None:
        if isinstance(result, EverlogError):
            failed[one.stream] = str(result)
            complain(f"{one.file} was not restored: {result}", result.code)
        else:
            written[one.stream] = result.written

    try:
        with without_take_over(), interruptible():
            listed = restore_store(store, folder, on_file)
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt("run the same command again to continue.") from error
    if args.json:
        shape = {"folder": str(folder), "made_at": listed.made_at, "restored": written, "failed": failed,
                 "left_out": listed.left_out}  # fmt: skip
        print(json_shapes.line(shape))
        return int(bool(failed))
    records = sum(written.values())
    print(f"{plural(len(written), 'file')} of {len(listed.files)} restored: {plural(records, 'record')} added.")
    for stream in listed.left_out:
        print(escape_line(f"Not in the backup: {stream}, which could not be exported."))
    return int(bool(failed))
