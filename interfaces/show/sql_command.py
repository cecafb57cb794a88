"""`everlog sql`: SELECTs over all agents, as a table, or as a file for another tool.

Called by `cli.command_run`.
"""

import sys
from argparse import Namespace
from collections.abc import Sequence

from everlog.events import BadInput
from everlog.interfaces.common.error_output import complain
from everlog.interfaces.common.exits import FAILED
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import store_of, text_of
from everlog.interfaces.common.server_choice import ChosenServer, server_of
from everlog.interfaces.line_editor.terminal_check import has_editor_terminal
from everlog.interfaces.show.sql_answer import (
    complain_with_place,
    open_views,
    print_position,
    server_answer,
    tell_left_out,
    write_answer,
)
from everlog.interfaces.show.sql_text import parameters_of, queries_of
from everlog.store import FleetPosition, check_presence

BINARY = ("parquet", "arrow")


def sql(args: Namespace, world: CommandEnvironment) -> int:
    """Run `everlog sql` and return its exit code."""
    form = _form(args)
    if args.query is None and args.file is None and sys.stdin.isatty():
        if args.out or not has_editor_terminal():
            args.fail("give either a QUERY or -f FILE: the prompt needs a terminal at both ends, and no --out")
        from everlog.interfaces.show.sql_prompt import talk

        return talk(args, world, form)
    queries = _queries(args, form)
    at = world.clock.now()
    server = server_of(args)
    if server is not None:
        return _sql_of_server(args, world, server, form, queries)
    with open_views(args, world) as (views, snapshot):
        position = snapshot.covered(at, check_presence(store_of(args, world)))
        for number, query in enumerate(queries):
            if number and form == "table":
                print()
            try:
                write_answer(args, form, views, position, query)
            except BadInput as error:
                if not sys.stderr.isatty():  # one paragraph for programs
                    raise
                complain_with_place(error, views, query)
                return FAILED
        if form != "json":
            print_position(position, every=args.position)
    return _warned_of_missing(position)


def _warned_of_missing(position: FleetPosition) -> int:
    """Print to stderr what the answers lack. Return the exit code."""
    for wrong in position.missing:
        complain(f"warning: {wrong}")
    return int(bool(position.left_out or position.missing))


def _sql_of_server(
    args: Namespace, world: CommandEnvironment, server: ChosenServer, form: str, queries: Sequence[str]
) -> int:
    """Have a server answer the queries, each at a position of its own. Return the exit code."""
    for number, query in enumerate(queries):
        if number and form == "table":
            print()
        position = server_answer(args, world, server, form, query)
    tell_left_out(position.left_out)
    if form != "json":
        print_position(position, every=args.position)
    return _warned_of_missing(position)


def _form(args: Namespace) -> str:
    form = args.format or ("json" if args.json else "table")
    if args.json and form != "json":
        args.fail(f"--json and --format {form} exclude each other")
    args.json = form == "json"
    if form == "table" and args.out:
        args.fail("--out needs --format csv, json, parquet or arrow: a table is for the terminal")
    if form != "table" and args.rows is not None:
        args.fail("--rows limits a table only; write LIMIT into the query")
    if form in BINARY and not args.out and sys.stdout.isatty():
        args.fail(f"--format {form} is binary: give --out FILE, or pipe it to another program")
    return str(form)


def _queries(args: Namespace, form: str) -> list[str]:
    """Return the queries: the one of the command line, or those of a file or of stdin. Raises BadInput."""
    if args.query is not None and args.file is not None:
        args.fail("give either a QUERY or -f FILE")
    if args.query not in (None, "-"):
        queries = [str(args.query)]
    else:
        text = sys.stdin.read() if args.file is None else text_of(args.file)
        queries = queries_of(text) or [text]
    try:
        "".join(queries).encode()
    except UnicodeEncodeError as error:
        raise BadInput(f"The query is not UTF-8: {error.reason}.") from error
    if len(queries) > 1 and (args.out or form not in ("table", "json")):
        raise BadInput(f"A file of {form} holds one answer, not {len(queries)}. Give the queries one by one.")
    named = {name for query in queries for name in parameters_of(query)}
    for name, _ in args.params:
        if name not in named:
            raise BadInput(f"--param {name}: no query names ${name}. Nothing was run.")
    return queries
