"""`everlog erase`: erase the content of records for good. Their positions in the log stay.

Called by `cli.command_run`. The order counts: first list what goes, then release the agents, then erase the logs, then
update the search index, which holds copies of the content. A command that was interrupted is run again as it was.

With --server the server does all of it as a job, which continues if the command is interrupted.
"""

import asyncio
import sys
from argparse import Namespace
from collections.abc import Sequence

from everlog.actors.erasure.erase_planned import agents_to_unload
from everlog.actors.erasure.erasure_plan import ErasurePlan
from everlog.actors.erasure.selection import Selection
from everlog.actors.erasure.store_eraser import Eraser, StoreEraser
from everlog.events import BadInput
from everlog.interfaces.common.agent_patterns import is_pattern
from everlog.interfaces.common.bootstrap import open_view, release, system_of
from everlog.interfaces.common.error_output import complain, escape_line
from everlog.interfaces.common.exits import interruptible
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import without_take_over
from everlog.interfaces.common.server_choice import server_of
from everlog.interfaces.manage import erasure_pages
from everlog.interfaces.manage.many_agents import takes_many
from everlog.interfaces.manage.many_erasures import COPIES, erase_matching
from everlog.interfaces.output import json_shapes, progress_bar
from everlog.store import generation_of, name_of, typed


def erase(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `erase`."""
    eraser = _eraser(args, world)
    if is_pattern(args.name) and takes_many(args, eraser.names()):
        return erase_matching(args, world, eraser)
    name = name_of(args.name)
    head = eraser.head(name)
    selection = _selection(args, name, head)
    plan = eraser.plan(name, selection, derived=args.derived)
    if not plan.spans:
        # An interruption may have come after the logs and before the index.
        eraser.erase(plan, selection, derived=args.derived)
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
            report = eraser.erase(plan, selection, derived=args.derived, progress=moved)
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(_interrupted_message(args, eraser, plan, head)) from error
    if args.json:
        print(json_shapes.line(erasure_pages.shape(plan, report)))
    else:
        print(f"Erased {what}. Positions in the log stay.{_forks_sentence(plan.forks)}")
        print(COPIES)
    earlier = generation_of(name).earlier
    if earlier:
        complain(f"earlier agents of that name were not erased: {', '.join(earlier)}")
    return 0


def _eraser(args: Namespace, world: CommandEnvironment) -> Eraser:
    """Return the erasures of the store, or of the server. Warn of a damaged end of the log of the agent."""
    server = server_of(args)
    if server is not None:
        return server.eraser()
    system = system_of(args, world)
    if not is_pattern(args.name):
        with open_view(system, args.name, notify=False):
            pass
    return StoreEraser(system)


def _selection(args: Namespace, name: str, head: int) -> Selection:
    """Return what the arguments select. Ends the command if they select nothing, so that no agent is erased whole
    because an option was forgotten.
    """
    seqs = [span for spans in args.seqs for span in spans]
    if args.first is not None or args.last is not None:
        seqs.append(_range(args, name, head))
    if not (args.all or seqs or args.match or args.turns or args.persons):
        args.fail(
            f"say which records of {name!r} to erase: --match WORDS, --seq N,N-M, --turn N, --person NAME, "
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


def _interrupted_message(args: Namespace, eraser: Eraser, plan: ErasurePlan, head: int) -> str:
    """Return the state of an interrupted erasure, as a message."""
    name = plan.agent_id
    if server_of(args) is not None:
        return "the server continues to erase. The same command again says what is left."
    if eraser.was_erased(name, head + 1):
        seal = f"everlog log seal {escape_line(typed(name))}"
        return f"the erasure is in the log and is completed when the agent is opened next, or by `{seal}`."
    if len(plan.spans) > 1 or plan.forks:
        return "the erasure is not complete: run the same command again, which erases the rest."
    return "nothing was erased."


def _range(args: Namespace, name: str, head: int) -> tuple[int, int]:
    """Return the first and the last seq, inclusive. Raise BadInput, which names the last record of the agent."""
    first = 1 if args.first is None else args.first
    last = head if args.last is None else args.last
    there = f"{name!r} has records 1 to {head}. Nothing was erased."
    if first > head or last > head:
        beyond = f"--from {first}" if first > head else f"--to {last}"
        raise BadInput(f"{beyond} is beyond the last record: {there}")
    if first > last:
        raise BadInput(f"--from {first} is greater than --to {last}: {there}")
    return first, last
