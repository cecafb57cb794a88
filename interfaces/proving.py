"""The commands that prove something: rebuild, verify, log check. They write nothing, and exit 1 if a fault is found."""

import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from actors import replay
from actors.system import System, View
from events import EverlogError
from store import FileStore, Report, name_of, partition_of
from store import check as check_partition

from . import shapes
from .contract import World
from .opening import looking, store_of, system_of

Shape = dict[str, Any]


def rebuild(args: Namespace, world: World) -> int:
    """The command `rebuild`."""
    system = system_of(args, world)
    return _each(args, system, replay.rebuild, "projections rebuilt")


def verify(args: Namespace, world: World) -> int:
    """The command `verify`."""
    system = system_of(args, world)
    return _each(args, system, lambda view: replay.verify(view, system.tools), "model calls rendered again")


def _each(args: Namespace, system: System, prove: Callable[[View], replay.Report], what: str) -> int:
    shapes_found = []
    for name in _names(args, system):
        try:
            with looking(system, name) as view:
                report = prove(view)
        except EverlogError as error:
            if not args.all:
                raise
            report = replay.Report(name, faults=[str(error)])
        shapes_found.append(_proof(report, what, quiet=args.json))
    if args.json:
        print(shapes.line(shapes_found if args.all else shapes_found[0]))
    return int(any(shape["faults"] for shape in shapes_found))


def _names(args: Namespace, system: System) -> Sequence[str]:
    """The agents meant: one by name, or all of the store."""
    if (args.name is None) != args.all:
        args.fail("give either a NAME or --all")
    if not args.all:
        return [args.name]
    return [name for name in system.agents() if system.store.reader(name).head(name).seq]


def _proof(report: replay.Report, what: str, *, quiet: bool) -> Shape:
    if not quiet:
        _print(report.agent_id, f"{report.checked} {what}", report.faults, report.notes)
    return {"agent": report.agent_id, "checked": report.checked, "faults": report.faults, "notes": report.notes}


def _print(name: str, what: str, faults: Sequence[str], notes: Sequence[str], fine: str = "no difference") -> None:
    from rich.text import Text

    from .complaints import plain
    from .terminal import console

    out = console()
    verdict = (f"faults: {len(faults)}", "bold red") if faults else (fine, "green")
    out.print(Text.assemble((plain(name), "bold"), f": {what}, ", verdict), soft_wrap=True)
    for fault in faults:
        out.print(Text(f"  {plain(fault)}", "red"), soft_wrap=True)
    for note in notes:
        out.print(Text(f"  {plain(note)}", "dim"), soft_wrap=True)


def check(args: Namespace, world: World) -> int:
    """The command `log check`."""
    store = store_of(args, world)
    if (args.name is None) != args.all:
        args.fail("give either a NAME or --all")
    if not args.all:
        store.reader(args.name)  # raises UnknownAgent
    reports = [check_partition(store.partition(name)) for name in _partitions(args, store)]
    for report in reports:
        if not args.json:
            _print(_label(args, report), _counted(report), report.errors, report.notes, "whole")
    if args.json:
        found = [msgspec.to_builtins(report) for report in reports]
        print(shapes.line(found if args.all else found[0]))
    sys.stdout.flush()
    return int(not all(report.ok for report in reports))


def _partitions(args: Namespace, store: FileStore) -> Sequence[str]:
    return store.partitions() if args.all else [partition_of(name_of(args.name))]


def _label(args: Namespace, report: Report) -> str:
    return str(args.name or report.partition)


def _counted(report: Report) -> str:
    return f"{report.records} records in {report.commits} commits, {report.bytes:,} bytes in {report.files} file(s)"
