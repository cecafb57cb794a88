"""Erase records of each agent that a pattern matches: list what goes, ask once, erase one agent after the other.

Called by `erase_command`. Deleted agents are erased too: a record that stays unnoticed in one of them is what an
erasure must prevent. Parents come before their forks, because an erasure reaches the forks.
"""

import asyncio
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence

from everlog.actors.erasure.erase_planned import ErasureReport, agents_to_unload
from everlog.actors.erasure.erasure_plan import ErasurePlan
from everlog.actors.erasure.selection import Selection
from everlog.actors.erasure.store_eraser import Eraser
from everlog.events import BadInput, EverlogError
from everlog.interfaces.common.bootstrap import release
from everlog.interfaces.common.error_output import complain, escape_line
from everlog.interfaces.common.exits import interruptible
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import without_take_over
from everlog.interfaces.common.plural import plural
from everlog.interfaces.manage import erasure_pages
from everlog.interfaces.manage.many_agents import AgentSelection, matching
from everlog.interfaces.output import json_shapes, progress_bar

COPIES = "Earlier copies still have the content: files of `everlog export`, and backups. Delete or replace them."
NOTHING = ErasureReport(erased=0, left=0, bytes_before=0, bytes_after=0)


def erase_matching(args: Namespace, world: CommandEnvironment, eraser: Eraser) -> int:
    """Erase what the arguments select of each agent that the pattern matches. Return the exit code: 1 if an agent
    failed, or if a damaged log may hold agents of the pattern.

    Raises BadInput if there is nothing to erase.
    """
    _check_selection(args)
    selection = Selection(everything=args.all, match=args.match, persons=args.persons)
    selection.check(args.name, 0)
    matched = matching(args, world, deleted=True)
    names = sorted(matched.names, key=lambda name: (len(matched.ancestors(name)), name))
    plans, failed = _plans(eraser, matched, names, selection, derived=args.derived)
    found = {name: plan for name, plan in plans.items() if plan.spans}
    for name, plan in plans.items():
        if not plan.spans and eraser.was_erased(name):  # copies of content that an interrupted erasure has left
            eraser.erase(plan, selection, derived=args.derived)
    faults = int(bool(failed or matched.damaged))
    if not found:
        raise BadInput(f"{args.name!r} matches {plural(len(names), 'agent')}, and of none is a record left to erase.")
    _show(args, found)
    if args.dry_run:
        shapes = [erasure_pages.shape(plan, None) for plan in plans.values()]
        print(json_shapes.line(shapes) if args.json else "Nothing was erased (--dry-run).")
        return faults
    if not args.yes and not _confirm(args, world, found):
        print("Nothing was erased.")
        return 1
    asyncio.run(release(args, world, dict.fromkeys(n for plan in found.values() for n in agents_to_unload(plan))))
    reports, unfinished = _erase_each(args, eraser, found, selection)
    if args.json:
        done = [plan for name, plan in plans.items() if name not in unfinished]
        print(json_shapes.line([erasure_pages.shape(plan, reports.get(plan.agent_id, NOTHING)) for plan in done]))
    else:
        rest = len(plans) - len(found)
        nothing = f"; nothing to erase in {plural(rest, 'agent')}" if rest else ""
        bad = len(failed) + len(unfinished)
        print(f"Erased records of {plural(len(reports), 'agent')}{nothing}{f'; {bad} failed' if bad else ''}.")
        print(COPIES)
    return int(bool(faults or unfinished))


def _check_selection(args: Namespace) -> None:
    """End the command if it selects nothing, or records by numbers, which are other records in each agent."""
    if args.seqs or args.turns or args.first is not None or args.last is not None:
        args.fail(
            f"{args.name!r} is a pattern, and each agent has seqs and turns of its own: erase --seq, --turn, --from "
            "and --to agent by agent"
        )
    if not (args.all or args.match or args.persons):
        args.fail(f"say which records of {args.name!r} to erase: --match WORDS, --person NAME, or --all for everything")


def _plans(
    eraser: Eraser, matched: AgentSelection, names: Sequence[str], selection: Selection, *, derived: bool
) -> tuple[Mapping[str, ErasurePlan], Sequence[str]]:
    """Return the plan of each agent, and the names of those that cannot be planned, after their errors were printed."""
    plans: dict[str, ErasurePlan] = {}
    failed: list[str] = []
    with progress_bar.shown("looking for records") as moved:
        for number, name in enumerate(names):
            moved(number, len(names))
            try:
                plans[name] = eraser.plan(name, selection, derived=derived)
            except EverlogError as error:
                if isinstance(error, BadInput) and not plans.keys().isdisjoint(matched.ancestors(name)):
                    continue  # the selected records of this fork are those of its parent, and go with them
                complain(f"{name!r} was not erased: {error}", error.code)
                failed.append(name)
    return plans, failed


def _show(args: Namespace, found: Mapping[str, ErasurePlan]) -> None:
    """Print what goes: with --dry-run each record, else a line for each agent. Losses are printed in any case."""
    listed = [] if args.json else list(found.values())
    if args.dry_run:
        for plan in listed:
            print(f"{escape_line(plan.agent_id)}:")
            erasure_pages.show(plan, whole=True)
        listed = []
    elif not args.yes:
        for plan in listed[: erasure_pages.LISTED_MAX]:
            print(erasure_pages.total(plan))
        if len(listed) > erasure_pages.LISTED_MAX:
            print(f"and {plural(len(listed) - erasure_pages.LISTED_MAX, 'more agent')}: --dry-run lists all.")
    for plan in found.values() if args.json or not args.dry_run else ():
        erasure_pages.warn(plan)


def _confirm(args: Namespace, world: CommandEnvironment, found: Mapping[str, ErasurePlan]) -> bool:
    if not sys.stdin.isatty():
        args.fail("stdin is not a terminal: give --yes to confirm")
    records = plural(sum(len(plan.taken) for plan in found.values()), "record")
    forks = sorted({fork for plan in found.values() for fork in plan.forks} - found.keys())
    also = f" Also erased in {plural(len(forks), 'fork')} of these." if forks else ""
    answer = world.ask(f"Erase {records} of {plural(len(found), 'agent')}?{also} This cannot be undone. [y/N] ")
    return answer.strip().lower() in ("y", "yes")


def _erase_each(
    args: Namespace, eraser: Eraser, found: Mapping[str, ErasurePlan], selection: Selection
) -> tuple[Mapping[str, ErasureReport], Sequence[str]]:
    """Erase the agents of the plans, and tell the outcome of each. Return the reports of those that were erased, and
    the names of the others. Ctrl-C ends it after a message about the rest.
    """
    reports: dict[str, ErasureReport] = {}
    failed: list[str] = []
    reached: set[str] = set()
    try:
        with without_take_over(), interruptible():
            for name, plan in found.items():
                try:
                    if reached & plan.spans.keys():  # an earlier erasure has taken some of these records
                        plan = eraser.plan(name, selection, derived=args.derived)
                    with progress_bar.shown(f"erasing {name}") as moved:
                        reports[name] = eraser.erase(plan, selection, derived=args.derived, progress=moved)
                except EverlogError as error:
                    complain(f"{name!r} was not erased: {error}", error.code)
                    failed.append(name)
                    continue
                reached.update(plan.spans, plan.forks)
                if not args.json:
                    print(f"Erased {erasure_pages.total(plan)}.")
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(
            f"{len(reports)} of {plural(len(found), 'agent')} erased. Run the same command again, which erases the "
            "rest."
        ) from error
    return reports, failed
