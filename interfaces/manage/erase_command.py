"""`everlog erase`: erase the content of records for good. Their positions in the log stay.

Called by `cli.command_run`. The order counts: first release the agent and its forks, then erase, then update the search
index, which holds copies of the content.
"""

import asyncio
import sys
from argparse import Namespace
from collections.abc import Sequence

from everlog.actors.agent.erase_agent import check_own_records, forks_reached, unnotified_forks
from everlog.actors.agent.local_system import AgentView, LocalSystem
from everlog.actors.archive.archive_index import catch_up
from everlog.events import BadInput, RecordsErased, is_erased
from everlog.interfaces.common.bootstrap import open_view, release, store_of, system_of, without_take_over
from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.common.exits import interruptible
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.plural import plural
from everlog.interfaces.output import json_shapes, progress_bar
from everlog.store import name_of


def erase(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `erase`."""
    name = name_of(args.name)
    system = system_of(args, world)
    with open_view(system, name, notify=False) as view:
        first, last = _range(args, view)
        check_own_records(system.store, name, first)
        count = sum(not is_erased(record.payload) for record in view.reader.read(name, first, last))
    where = f"seq {first}" if first == last else f"seq {first} to {last}"
    if not count and not unnotified_forks(system.store, name, first, last):
        raise BadInput(f"{name!r}: {where} was erased already. `everlog events {name}` shows the remaining records.")
    forks = list(forks_reached(system.store, name, first, last))
    what = f"{plural(count, 'record')} of {sanitize(name)} ({where})"
    if not args.yes and not _confirm(args, world, what, forks):
        print("Nothing was erased.")
        return 1
    asyncio.run(release(args, world, [name, *forks]))
    try:
        with without_take_over(), interruptible(), progress_bar.shown(f"erasing {name}") as moved:
            done = system.erase(name, first, last, moved)
            catch_up(store_of(args, world), [name, *forks])
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(_interrupted_message(system, name, last)) from error
    if args.json:
        print(
            json_shapes.line(
                {
                    "agent": name, "from_seq": first, "to_seq": last, "erased": count, "forks": forks,
                    "bytes_before": done.bytes_before, "bytes_after": done.bytes_after, "exports_reached": False,
                }
            )
        )  # fmt: skip
    else:
        print(f"Erased {what}. Positions in the log stay.{_forks_sentence(forks)}")
        print("Earlier copies still have the content: files of `everlog export`, and backups. Delete or replace them.")
    return 0


def _confirm(args: Namespace, world: CommandEnvironment, what: str, forks: Sequence[str]) -> bool:
    if not sys.stdin.isatty():
        args.fail("stdin is not a terminal: give --yes to confirm")
    answer = world.ask(f"Erase {what}?{_forks_sentence(forks)} This cannot be undone. [y/N] ")
    return answer.strip().lower() in ("y", "yes")


def _forks_sentence(forks: Sequence[str]) -> str:
    """Return a sentence about the forks that the erasure reaches, after a blank; empty if there are none."""
    return f" Also erased in its fork{'s' * (len(forks) > 1)} {sanitize(', '.join(forks))}." if forks else ""


def _interrupted_message(system: LocalSystem, name: str, last: int) -> str:
    """Return the state of an interrupted erasure, as a message."""
    later = system.store.reader(name).read(name, last + 1)
    if any(record.type == RecordsErased.kind for record in later):
        seal = f"everlog log seal {sanitize(name)}"
        return f"the erasure is in the log and is completed when the agent is opened next, or by `{seal}`."
    return "nothing was erased."


def _range(args: Namespace, view: AgentView) -> tuple[int, int]:
    """Return the first and the last seq, inclusive. Raise BadInput, which names the last record of the agent."""
    head = view.head.seq
    last = head if args.last is None else args.last
    there = f"{view.agent_id!r} has records 1 to {head}. Nothing was erased."
    if args.first > head or last > head:
        beyond = f"--from {args.first}" if args.first > head else f"--to {last}"
        raise BadInput(f"{beyond} is beyond the last record: {there}")
    if args.first > last:
        raise BadInput(f"--from {args.first} is greater than --to {last}: {there}")
    return args.first, last
