"""`everlog erase`: erase the content of records for good. Their positions in the log stay.

Called by `cli.command_run`. The order counts: first list what goes, then release the agents, then erase the logs, then
update the search index, which holds copies of the content. A command that was interrupted is run again as it was.
"""

import asyncio
import sys
from argparse import Namespace
from collections.abc import Sequence

from everlog.actors.agent.local_system import AgentView, LocalSystem
from everlog.actors.erasure.erase_planned import agents_to_unload, erase_planned
from everlog.actors.erasure.erasure_plan import ErasurePlan, plan_erasure
from everlog.actors.erasure.selection import Selection
from everlog.events import BadInput, RecordsErased
from everlog.interfaces.common.agent_patterns import is_pattern, selects_many
from everlog.interfaces.common.bootstrap import open_view, release, system_of
from everlog.interfaces.common.error_output import complain, escape_line
from everlog.interfaces.common.exits import interruptible
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import without_take_over
from everlog.interfaces.manage import erasure_pages
from everlog.interfaces.manage.many_erasures import COPIES, erase_matching
from everlog.interfaces.output import json_shapes, progress_bar
from everlog.store import generation_of, name_of, typed


def erase(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `erase`."""
    system = system_of(args, world)
    if is_pattern(args.name) and selects_many([args.name], system.agents()):
        return erase_matching(args, world, system)
    name = name_of(args.name)
    with open_view(system, name, notify=False) as view:
        head = view.head.seq
        plan = plan_erasure(system.store, name, _selection(args, view), derived=args.derived)
    if not plan.spans:
        # An interruption may have come after the logs and before the index.
        erase_planned(system, plan)
        raise BadInput(_nothing(args, name))
    if args.json:
        erasure_pages.warn(plan)
    else:
        erasure_pages.show(plan, whole=args.dry_run)
    if args.dry_run:
        print(json_shapes.line(erasure_pages.shape(plan, None)) if args.json else "Nothing was erased (--dry-run).")
        return 0
    what = erasure_pages.total(plan)
    if not args.yes and not _confirm(args, world, what, plan.forks):
        print("Nothing was erased.")
        return 1
    asyncio.run(release(args, world, agents_to_unload(plan)))
    try:
        with without_take_over(), interruptible(), progress_bar.shown(f"erasing {name}") as moved:
            report = erase_planned(system, plan, moved)
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(_interrupted_message(system, plan, head)) from error
    if args.json:
        print(json_shapes.line(erasure_pages.shape(plan, report)))
    else:
        print(f"Erased {what}. Positions in the log stay.{_forks_sentence(plan.forks)}")
        print(COPIES)
    earlier = generation_of(name).earlier
    if earlier:
        complain(f"earlier agents of that name were not erased: {', '.join(earlier)}")
    return 0


def _selection(args: Namespace, view: AgentView) -> Selection:
    """Return what the arguments select. Ends the command if they select nothing, so that no agent is erased whole
    because an option was forgotten.
    """
    seqs = [span for spans in args.seqs for span in spans]
    if args.first is not None or args.last is not None:
        seqs.append(_range(args, view))
    if not (args.all or seqs or args.match or args.turns or args.persons):
        args.fail(
            f"say which records of {view.agent_id!r} to erase: --match WORDS, --seq N,N-M, --turn N, --person NAME, "
            "or --all for everything, its memory and settings too"
        )
    return Selection(everything=args.all, seqs=seqs, match=args.match, turns=args.turns, persons=args.persons)


def _nothing(args: Namespace, name: str) -> str:
    """Return why there is nothing to erase."""
    rest = f"`everlog events {typed(name)}` shows the remaining records."
    if args.match or args.turns or args.persons:
        return f"No record of {name!r} that has its content is selected: nothing is left to erase. {rest}"
    return f"{name!r}: what is selected was erased already. {rest}"


def _confirm(args: Namespace, world: CommandEnvironment, what: str, forks: Sequence[str]) -> bool:
    if not sys.stdin.isatty():
        args.fail("stdin is not a terminal: give --yes to confirm")
    answer = world.ask(f"Erase {what}?{_forks_sentence(forks)} This cannot be undone. [y/N] ")
    return answer.strip().lower() in ("y", "yes")


def _forks_sentence(forks: Sequence[str]) -> str:
    """Return a sentence about the forks that the erasure reaches, after a blank; empty if there are none."""
    return f" Also erased in its fork{'s' * (len(forks) > 1)} {escape_line(', '.join(forks))}." if forks else ""


def _interrupted_message(system: LocalSystem, plan: ErasurePlan, head: int) -> str:
    """Return the state of an interrupted erasure, as a message."""
    name = plan.agent_id
    later = system.store.reader(name).read(name, head + 1)
    if any(record.type == RecordsErased.kind for record in later):
        seal = f"everlog log seal {escape_line(typed(name))}"
        return f"the erasure is in the log and is completed when the agent is opened next, or by `{seal}`."
    if len(plan.spans) > 1 or plan.forks:
        return "the erasure is not complete: run the same command again, which erases the rest."
    return "nothing was erased."


def _range(args: Namespace, view: AgentView) -> tuple[int, int]:
    """Return the first and the last seq, inclusive. Raise BadInput, which names the last record of the agent."""
    head = view.head.seq
    first = 1 if args.first is None else args.first
    last = head if args.last is None else args.last
    there = f"{view.agent_id!r} has records 1 to {head}. Nothing was erased."
    if first > head or last > head:
        beyond = f"--from {first}" if first > head else f"--to {last}"
        raise BadInput(f"{beyond} is beyond the last record: {there}")
    if first > last:
        raise BadInput(f"--from {first} is greater than --to {last}: {there}")
    return first, last
