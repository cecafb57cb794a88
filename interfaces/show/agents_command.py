"""`everlog agents`: list the agents of a store, by name, size or activity. It writes nothing.

Called by `cli.command_run`; `pressure` and `cost` list agents with its functions; `fleet_pages` prints the table. It
reads columns of the fleet's views and no whole log, so that ten thousand agents are listed in seconds. Damage never
hides the other agents: each error is printed, and the command ends with exit code 1.
"""

import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from everlog.actors.reports.fleet_listing import FleetListing, FleetRow, list_agents
from everlog.interfaces.common.agent_names import fleet_rows_of, label_words, labelled_names, no_label
from everlog.interfaces.common.agent_patterns import is_pattern, no_match, select, selects_many
from everlog.interfaces.common.as_of import time_of_option
from everlog.interfaces.common.error_output import complain
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import store_of
from everlog.interfaces.common.server_choice import server_of
from everlog.interfaces.output import json_shapes
from everlog.store import FileStore, check_register

ROWS_MAX = 50
"""Rows that a terminal shows without --limit."""

SortKey = Callable[[FleetRow], Any]
"""Value by which rows are sorted."""

SORTS: Mapping[str, tuple[SortKey, bool]] = {
    "agent": (lambda row: row["agent_id"], False),
    "events": (lambda row: row["events"], True),
    "messages": (lambda row: row["messages"], True),
    "turns": (lambda row: row["turns"], True),
    "last_active": (lambda row: row["last_active"], True),
}
"""Columns that --sort takes, with their values; True: the largest comes first."""


def agents(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog agents` and return its exit code."""
    listing, errors = _listed(args, world)
    faults = report_damage([*listing.damaged, *errors])
    rows = chosen_rows(args, listing)
    if args.labels:
        chosen = set(labelled_names(args, world, until=time_of_option(args, world)))
        rows = [row for row in rows if row["agent_id"] in chosen]
    groups = _groups(args, world) if args.groups else {}
    if args.groups:
        rows = [{**row, "group": groups[row["agent_id"]]} for row in rows if row["agent_id"] in groups]
    shown = ordered(args, rows, SORTS)
    if args.json:
        print(json_shapes.line([json_shapes.agent(row) for row in shown]))
    elif rows or not faults:
        from everlog.interfaces.output import fleet_pages, show_pages

        more = len(rows) - len(shown)
        show_pages.show(fleet_pages.agents(shown, world.clock.now(), more=more, otherwise=_none_of(args)))
    return int(faults)


def _none_of(args: Namespace) -> str:
    """Return what to say if no agent has what the options ask for; empty without such options."""
    labels = args.labels or ()
    if args.groups:
        return (
            f"No group has {label_words(labels)}."
            if labels
            else "There is no group. `everlog create --group` makes one."
        )
    return no_label(labels) if labels else ""


def _groups(args: Namespace, world: CommandEnvironment) -> Mapping[str, Mapping[str, Any]]:
    """Return the rule, the members and the manager (or None) of each group."""
    found: dict[str, dict[str, Any]] = {}
    query = "SELECT agent_id, rule, member, role FROM groups ORDER BY agent_id, place"
    for row in fleet_rows_of(args, world, query, until=time_of_option(args, world)):
        group = found.setdefault(row["agent_id"], {"rule": row["rule"], "members": [], "manager": None})
        if row["role"] == "manager":
            group["manager"] = row["member"]
        else:
            group["members"].append(row["member"])
    return found


def _listed(args: Namespace, world: CommandEnvironment) -> tuple[FleetListing, Sequence[str]]:
    """Return the agents, each with its newest name, and the errors of the register."""
    until, server = time_of_option(args, world), server_of(args)
    if server is not None:
        return server.listing(until=until, check=True), ()
    store = store_of(args, world)
    scan = store.register_files.scan()
    listing = list_agents(store, scan.routes, until=until)
    given = store.aliases.shown()
    rows: list[FleetRow] = [{**row, "name": given.get(row["agent_id"], row["agent_id"])} for row in listing.rows]
    return FleetListing(rows, listing.damaged), check_register(store, scan=scan).errors


def lists_agents(args: Namespace, store: FileStore) -> bool:
    """Return True if a command that can also show one page, of one agent or of all together, lists agents: because of
    its patterns, or because it has an option of a listing.

    Ends it with exit code 2 if such an option is given for one agent.
    """
    patterns = any(map(is_pattern, args.names))
    many = selects_many(args.names, store.agents() if patterns else ()) if args.names else False
    listing = args.sort is not None or args.reverse or args.limit is not None
    if args.names and listing and not many:
        args.fail(f"--sort, --reverse and --limit list agents: give a pattern in place of {args.names[0]!r}")
    return many or listing


def report_damage(errors: Iterable[str]) -> bool:
    """Print each error once on stderr. Return True if there is one."""
    found = list(dict.fromkeys(errors))
    for error in found:
        complain(error)
    return bool(found)


def chosen_rows(args: Namespace, listing: FleetListing) -> list[FleetRow]:
    """Return the rows that the patterns of the command select. Ends it with exit code 2 if one matches nothing."""
    names = [row["agent_id"] for row in listing.rows]
    chosen = set(select(args, args.names, names))
    unknown = chosen - set(names)
    if unknown:
        args.fail(no_match(min(unknown), names))
    return [row for row in listing.rows if row["agent_id"] in chosen]


def ordered(args: Namespace, rows: Sequence[FleetRow], sorts: Mapping[str, tuple[SortKey, bool]]) -> Sequence[FleetRow]:
    """Return the rows in the order of --sort (by default of the first of `sorts`) and --reverse, as many as --limit
    says. Equal rows stay sorted by name.
    """
    value, largest_first = sorts[args.sort or next(iter(sorts))]
    found = sorted(rows, key=value, reverse=largest_first)
    if args.reverse:
        found.reverse()
    limit = args.limit
    if limit is None:
        limit = 0 if args.json or not sys.stdout.isatty() else ROWS_MAX
    return found[:limit] if limit else found
