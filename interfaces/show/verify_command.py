"""Commands that replay the log to check it: rebuild and verify. They write nothing, and exit with 1 if a fault is
found.

Called by `cli.command_run`; `log_commands` prints faults with `print_proof`.
"""

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from everlog.actors.agent.local_system import AgentView, LocalSystem
from everlog.actors.replay import rebuild_check, replay_report
from everlog.events import EverlogError
from everlog.interfaces.common.bootstrap import open_view, system_of
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.plural import plural
from everlog.interfaces.output import json_shapes, progress_bar

if TYPE_CHECKING:
    from rich.console import Console

ProofObject = dict[str, Any]
NO_DIFFERENCE = "no difference"

_COLOURS = {"- ": "red", "+ ": "green"}


def rebuild(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog rebuild` and return its exit code."""
    system = system_of(args, world)
    return _verify_each(args, system, rebuild_check.rebuild, "rebuilding", _rebuilt_text)


def verify(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog verify` and return its exit code."""
    if args.seed is not None and args.sample is None:
        args.fail("--seed chooses a sample, so it needs --sample N")
    system = system_of(args, world)

    def prove(view: AgentView) -> rebuild_check.ReplayReport:
        return rebuild_check.verify(view, system.tools, args.sample, args.seed or "")

    return _verify_each(args, system, prove, "verifying", _verified_text)


def _verify_each(
    args: Namespace,
    system: LocalSystem,
    prove: Callable[[AgentView], rebuild_check.ReplayReport],
    doing: str,
    worded: Callable[[Sequence[rebuild_check.ReplayReport]], str],
) -> int:
    reports = []
    names = names_of(args, system)
    for number, name in enumerate(names):
        try:
            with progress_bar.shown(f"{doing} {name}") as moved, open_view(system, name) as view:
                if args.all:
                    moved(number, len(names))
                report = prove(view)
        except EverlogError as error:
            if not args.all:
                raise
            report = rebuild_check.ReplayReport(name, faults=[str(error)])
        reports.append(report)
        if not args.json:
            details = {
                replay_report.headline(group): group[0].difference for group in replay_report.groups(report.mismatches)
            }
            print_proof(name, worded([report]), report.faults, report.notes, details=details)
    if args.json:
        found = [_shape(report, whole=prove is not rebuild_check.rebuild) for report in reports]
        print(json_shapes.line(found if args.all else found[0]))
    elif len(reports) > 1:
        agents = plural(len(reports), "agent")
        print_proof(agents, worded(reports), [f for report in reports for f in report.faults], [])
    return int(any(report.faults for report in reports))


def names_of(args: Namespace, system: LocalSystem) -> Sequence[str]:
    """Return the names of the agents to check: the one of NAME, or with --all every agent that has records."""
    if (args.name is None) != args.all:
        args.fail("give either a NAME or --all")
    if not args.all:
        return [args.name]
    return [name for name in system.agents() if system.store.reader(name).head(name).seq]


def _rebuilt_text(reports: Sequence[rebuild_check.ReplayReport]) -> str:
    return f"{plural(sum(report.checked for report in reports), 'projection')} rebuilt"


def _verified_text(reports: Sequence[rebuild_check.ReplayReport]) -> str:
    """Return how many model calls were replayed, and of how many."""
    checked = sum(report.checked for report in reports)
    calls = sum(report.calls.calls for report in reports)
    replayed = f"{plural(calls, 'model call')} replayed"
    return replayed if checked == calls else f"{checked:,} of {replayed}"


def _shape(report: rebuild_check.ReplayReport, *, whole: bool) -> ProofObject:
    shape = {
        "agent": report.agent_id,
        "checked": report.checked,
        "faults": report.faults,
        "notes": report.notes,
    }
    if whole:
        calls = report.calls
        gone, missing = calls.renderer_gone, calls.missing_function
        shape["calls"] = {
            "all": calls.calls,
            "chosen": calls.chosen,
            "equal": len(calls.equal),
            "mismatch": len(calls.mismatch),
            "erased": len(calls.erased),
            "renderer_gone": sum(map(len, gone.values())),
            "reader_gone": sum(map(len, calls.reader_gone.values())),
            "missing_function": len({seq for seqs in missing.values() for seq in seqs}),
        }
        shape["mismatches"] = msgspec.to_builtins(report.mismatches)
        shape["erased"] = sorted(calls.erased)
        shape["renderer_gone"] = [{"renderer": number, "seqs": seqs} for number, seqs in sorted(gone.items())]
        shape["reader_gone"] = [{"reader": number, "seqs": s} for number, s in sorted(calls.reader_gone.items())]
        shape["missing_function"] = [{"function": name, "seqs": seqs} for name, seqs in sorted(missing.items())]
    return shape


def print_proof(
    name: str,
    what: str,
    faults: Sequence[str],
    notes: Sequence[str],
    fine: str = NO_DIFFERENCE,
    details: Mapping[str, replay_report.RequestDiff | None] | None = None,
) -> None:
    """Print the verdict of a check: what was checked, each fault with its difference (`details`, by fault), and
    notes.
    """
    from rich.text import Text

    from everlog.interfaces.common.error_output import sanitize
    from everlog.interfaces.output.terminal_output import console, indented

    out = console()
    verdict = (f"faults: {len(faults)}", "bold red") if faults else (fine, "green")
    out.print(Text.assemble((sanitize(name), "bold"), f": {what}, ", verdict), soft_wrap=True)
    for fault in faults:
        out.print(indented(Text(sanitize(fault), "red"), out, wrap=out.is_terminal), soft_wrap=True)
        difference = (details or {}).get(fault)
        if difference is not None:
            _print_difference(difference, out)
    for note in notes:
        out.print(indented(Text(sanitize(note), "dim"), out, wrap=out.is_terminal), soft_wrap=True)


def _print_difference(difference: replay_report.RequestDiff, out: "Console") -> None:
    """Print a difference as a diff: recorded lines in red, today's lines in green."""
    from rich.text import Text

    from everlog.interfaces.common.error_output import sanitize

    if difference.also:
        out.print(Text(f"    also different: {sanitize(', '.join(difference.also))}", "dim"), soft_wrap=True)
    if difference.against:
        out.print(Text(f"    - {sanitize(difference.against)}; + today:", "dim"), soft_wrap=True)
    for line in difference.lines:
        out.print(Text(f"    {sanitize(line)}", _COLOURS.get(line[:2], "dim")), soft_wrap=True)
