"""Commands that replay the log to check it: rebuild and verify. They write nothing, and exit with 1 if a fault is
found.

Called by `cli.command_run`; `log_commands` prints faults with `print_proof`.
"""

from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from everlog.actors.agent.local_system import AgentView, LocalSystem
from everlog.actors.replay import rebuild_check, replay_report, verify_agents
from everlog.events import EverlogError, UnknownAgent
from everlog.interfaces.common.bootstrap import open_view, system_of
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import tell_deleted, warn_of_damage
from everlog.interfaces.common.plural import plural
from everlog.interfaces.common.server_choice import ChosenServer, check_no_options_of_server, server_of
from everlog.interfaces.output import json_shapes, progress_bar
from everlog.projections import Projections

if TYPE_CHECKING:
    from rich.console import Console

ProofObject = Mapping[str, Any]
Proof = tuple[rebuild_check.ReplayReport, ProofObject]
"""Report for people, and the same in JSON."""
AgentCheck = Callable[[AgentView], rebuild_check.ReplayReport]
NO_DIFFERENCE = "no difference"
_DOING = {"rebuild": "rebuilding", "verify": "verifying"}
"""Words for the progress bar, by command."""

_COLOURS = {"- ": "red", "+ ": "green"}


def rebuild(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog rebuild` and return its exit code."""
    system = system_of(args, world)
    names = names_of(args, system)
    with Projections() as engine:
        reports = _one_by_one(args, system, names, rebuild_check.rebuild, engine)
        return _report_each(args, ((one, proof_shape(one, whole=False)) for one in reports), _rebuilt_text)


def verify(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog verify` and return its exit code."""
    if args.seed is not None and args.sample is None:
        args.fail("--seed chooses a sample, so it needs --sample N")
    system = system_of(args, world)
    names = names_of(args, system)
    server = server_of(args)
    if server is not None:
        return _report_each(args, _verified_there(args, server, names), _verified_text)
    plan = verify_agents.VerificationPlan(system.tools, args.sample, args.seed or "")

    def prove(view: AgentView) -> rebuild_check.ReplayReport:
        return rebuild_check.verify(view, *plan)

    with Projections() as engine:
        if args.all:
            reports = _together(args, system, names, plan, engine, prove)
        else:
            reports = _one_by_one(args, system, names, prove, engine)
        return _report_each(args, ((one, proof_shape(one, whole=True)) for one in reports), _verified_text)


def _verified_there(args: Namespace, server: ChosenServer, names: Sequence[str]) -> Iterator[Proof]:
    """Yield the proof of each agent, which the server makes."""
    check_no_options_of_server(args)
    for number, name in enumerate(names):
        try:
            with progress_bar.shown(f"verifying {name}") as moved:
                moved(number, len(names))
                shape = dict(server.verify(name, args.sample, args.seed or ""))
        except EverlogError as error:
            if not args.all:
                raise
            report = rebuild_check.ReplayReport(name, faults=[str(error)])
            yield report, proof_shape(report, whole=True)
        else:
            if shape.pop("deleted"):
                tell_deleted(name)
            yield _report_of(shape), shape


def _report_of(shape: ProofObject) -> rebuild_check.ReplayReport:
    """Return the report of a proof in JSON, as far as it is printed: of the calls, their number."""
    return rebuild_check.ReplayReport(
        shape["agent"], shape["checked"], shape["faults"], shape["notes"],
        msgspec.convert(shape["mismatches"], list[replay_report.ReplayMismatch]),
        replay_report.CallVerdicts(calls=shape["calls"]["all"]),
    )  # fmt: skip


def _together(
    args: Namespace,
    system: LocalSystem,
    names: Sequence[str],
    plan: verify_agents.VerificationPlan,
    engine: Projections,
    prove: AgentCheck,
) -> Iterator[rebuild_check.ReplayReport]:
    """Yield the report of each agent in order. Those that cannot be read together with others are opened one by one."""
    batches = verify_agents.verify_many(system.store, names, engine, plan)
    done, damage = 0, set[str]()
    while done < len(names):
        with progress_bar.shown(f"verifying {plural(len(names), 'agent')}") as moved:
            moved(done, len(names))
            batch = next(batches)
        for text in batch.damage:
            if text not in damage:  # agents of one partition share its end
                warn_of_damage(text)
            damage.add(text)
        for name in batch.deleted:
            tell_deleted(name)
        alone = {report.agent_id: report for report in _one_by_one(args, system, batch.alone, prove, engine)}
        reports = {**batch.reports, **alone}
        yield from (reports[name] for name in sorted(reports))
        done += len(batch.reports) + len(batch.alone)


def _one_by_one(
    args: Namespace, system: LocalSystem, names: Sequence[str], prove: AgentCheck, engine: Projections
) -> Iterator[rebuild_check.ReplayReport]:
    """Yield the report of each agent that has a record. With --all an agent's error is a fault of its report."""
    for number, name in enumerate(names):
        try:
            view = open_view(system, name, projections=engine)
            with progress_bar.shown(f"{_DOING[args.command]} {name}") as moved, view as opened:
                if args.all:
                    moved(number, len(names))
                report = prove(opened)
        except EverlogError as error:
            if not args.all:
                raise
            if isinstance(error, UnknownAgent):  # it was registered, and has no record yet
                continue
            engine.forget(name)  # what was loaded before the error
            report = rebuild_check.ReplayReport(name, faults=[str(error)])
        yield report


def _report_each(
    args: Namespace,
    proofs: Iterable[Proof],
    worded: Callable[[Sequence[rebuild_check.ReplayReport]], str],
) -> int:
    """Print each report as it comes, and a line about all. Return the exit code."""
    found: list[rebuild_check.ReplayReport] = []
    shapes: list[ProofObject] = []
    for report, shape in proofs:
        found.append(report)
        shapes.append(shape)
        if not args.json:
            _print_report(report.agent_id, report, worded)
    if args.json:
        print(json_shapes.line(shapes if args.all else shapes[0]))
    elif len(found) > 1:
        agents = plural(len(found), "agent")
        print_proof(agents, worded(found), [f for report in found for f in report.faults], [])
    return int(any(report.faults for report in found))


def _print_report(
    name: str, report: rebuild_check.ReplayReport, worded: Callable[[Sequence[rebuild_check.ReplayReport]], str]
) -> None:
    details = {replay_report.headline(group): group[0].difference for group in replay_report.groups(report.mismatches)}
    print_proof(name, worded([report]), report.faults, report.notes, details=details)


def names_of(args: Namespace, system: LocalSystem) -> Sequence[str]:
    """Return the names of the agents to check: the one of NAME, or with --all every agent of the register."""
    if (args.name is None) != args.all:
        args.fail("give either a NAME or --all")
    if not args.all:
        return [args.name]
    return system.agents()


def _rebuilt_text(reports: Sequence[rebuild_check.ReplayReport]) -> str:
    return f"{plural(sum(report.checked for report in reports), 'projection')} rebuilt"


def _verified_text(reports: Sequence[rebuild_check.ReplayReport]) -> str:
    """Return how many model calls were replayed, and of how many."""
    checked = sum(report.checked for report in reports)
    calls = sum(report.calls.calls for report in reports)
    replayed = f"{plural(calls, 'model call')} replayed"
    return replayed if checked == calls else f"{checked:,} of {replayed}"


def proof_shape(report: rebuild_check.ReplayReport, *, whole: bool) -> ProofObject:
    """Return a report in JSON. `whole`: it is about model calls."""
    shape: dict[str, Any] = {
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

    from everlog.interfaces.common.error_output import escape_line, sanitize
    from everlog.interfaces.output.terminal_output import console, indented

    out = console()
    verdict = (f"faults: {len(faults)}", "bold red") if faults else (fine, "green")
    out.print(Text.assemble((escape_line(name), "bold"), f": {what}, ", verdict), soft_wrap=True)
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
