"""The commands that prove something: rebuild and verify. They write nothing, and exit 1 if a fault is found."""

from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import Any

from actors import replay
from actors.system import System, View
from events import EverlogError

from . import progress, shapes
from .contract import World
from .opening import looking, system_of

Shape = dict[str, Any]


def rebuild(args: Namespace, world: World) -> int:
    """The command `rebuild`."""
    system = system_of(args, world)
    return _each(args, system, replay.rebuild, "rebuilding", "projections rebuilt")


def verify(args: Namespace, world: World) -> int:
    """The command `verify`."""
    system = system_of(args, world)
    return _each(
        args, system, lambda view: replay.verify(view, system.tools), "verifying", "model calls rendered again"
    )


def _each(args: Namespace, system: System, prove: Callable[[View], replay.Report], doing: str, what: str) -> int:
    shapes_found = []
    names = _names(args, system)
    for number, name in enumerate(names):
        try:
            with progress.shown(f"{doing} {name}") as moved, looking(system, name) as view:
                if args.all:
                    moved(number, len(names))
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
        print_proof(report.agent_id, f"{report.checked:,} {what}", report.faults, report.notes)
    return {"agent": report.agent_id, "checked": report.checked, "faults": report.faults, "notes": report.notes}


def print_proof(name: str, what: str, faults: Sequence[str], notes: Sequence[str], fine: str = "no difference") -> None:
    """Say what was looked at, what is wrong with it, and what else there is to know."""
    from rich.text import Text

    from .complaints import plain
    from .terminal import console, indented

    out = console()
    verdict = (f"faults: {len(faults)}", "bold red") if faults else (fine, "green")
    out.print(Text.assemble((plain(name), "bold"), f": {what}, ", verdict), soft_wrap=True)
    for fault in faults:
        out.print(indented(Text(plain(fault), "red"), out, wrap=out.is_terminal), soft_wrap=True)
    for note in notes:
        out.print(indented(Text(plain(note), "dim"), out, wrap=out.is_terminal), soft_wrap=True)
