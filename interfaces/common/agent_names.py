"""Look up the agents that the words of a command line name: by a name that `everlog rename` gave, or else the newest
agent of the name; and those that --label chooses.

Used by `cli.command_run` before a command runs, so that the command itself only meets names of streams, and by
`everlog agents`. Patterns select by the names of streams. Nothing heavy is imported before an agent is looked up.
"""

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from everlog.events import EverlogError
from everlog.interfaces.common.error_output import complain, escape_line
from everlog.interfaces.common.front_end import CommandEnvironment

NAMING = ("name", "agent", "pattern")
"""Arguments that name an agent. A pattern that is the name of an agent means that agent."""


def look_up_names(args: Namespace, world: CommandEnvironment) -> None:
    """Replace each name of an agent in the arguments by the stream of that agent: NAME@genN if forks took the name of
    deleted agents.

    A name that no agent has stays as it is, and so do all if there is no store yet. Raises BadInput for an impossible
    name; StoreError, CorruptLog.
    """
    given = {key: getattr(args, key) for key in NAMING if isinstance(getattr(args, key, None), str)}
    several = args.names if isinstance(getattr(args, "names", None), list) else []
    if getattr(args, "command", "") in {"export", "search"} and args.all:  # NAME is a folder, or the query
        given = {}
    if not given and not several:
        return
    from everlog.interfaces.common.open_store import root_of, store_of
    from everlog.store import CONFIGURATION

    if not (root_of(args) / CONFIGURATION).exists():
        return
    store = store_of(args, world)
    for key, name in given.items():
        setattr(args, key, store.stream_of(name))
    several[:] = [store.stream_of(name) for name in several]


def fleet_rows_of(
    args: Namespace, world: CommandEnvironment, query: str, *, until: int | None = None
) -> Sequence[Mapping[str, Any]]:
    """Return the rows of a query over all agents of the store or the server, as of a time: microseconds UTC, None: now.

    Raises CorruptLog, StoreError.
    """
    from everlog.actors.memory.fleet_sql import fleet_sql
    from everlog.events.times import iso
    from everlog.interfaces.common.open_store import store_of
    from everlog.interfaces.common.server_choice import server_of

    server = server_of(args)
    if server is None:
        rows = fleet_sql(store_of(args, world), query, as_of=until)
    else:
        rows, _ = server.query(query, as_of=None if until is None else iso(until))
    found: list[Mapping[str, Any]] = rows.to_pylist()
    return found


def labelled_names(args: Namespace, world: CommandEnvironment, *, until: int | None = None) -> Sequence[str]:
    """Return the names of the living agents that have all labels of --label, sorted."""
    from everlog.actors.mail.names import labelled_query

    return [str(row["agent_id"]) for row in fleet_rows_of(args, world, labelled_query(args.labels), until=until)]


def no_label(labels: Sequence[str]) -> str:
    """Return the words for labels that no agent has."""
    return f"No agent has {label_words(labels)}."


def label_words(labels: Sequence[str]) -> str:
    """Return "the label 'crew'" or "the labels 'crew' and 'night'"."""
    return f"the label{'s' * (len(labels) > 1)} {' and '.join(map(repr, labels))}"


def run_labelled(
    handler: Callable[[Namespace, CommandEnvironment], int], args: Namespace, world: CommandEnvironment
) -> int:
    """Run a command for the agents that have all labels of --label. Return its exit code: 1 if one of them failed.

    A handler that takes a pattern gets all agents at once, and asks one question. Others are run for each agent, and
    the error of one does not stop the rest; the output for each comes after a line with its name, but for JSON. Ends
    the command with exit code 2 if no agent has the labels.
    """
    if args.command == "send" and args.text in (None, "-"):
        args.fail("give TEXT: with --label it is not read from stdin")
    names = labelled_names(args, world)
    if not names:
        args.fail(no_label(args.labels))
    if args.by_label == "all":
        args.name, args.chosen = f"* with the label {' and '.join(args.labels)}", frozenset(names)
        return handler(args, world)
    code = 0
    for name in names:
        if not args.json:
            print(escape_line(f"{name}:"), flush=True)
        try:
            code = max(code, handler(Namespace(**{**vars(args), "name": name, "labels": None}), world))
        except EverlogError as error:
            complain(f"{name!r}: {error}", error.code)
            code = max(code, 1)
    return code
