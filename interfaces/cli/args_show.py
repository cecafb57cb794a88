"""The commands that show, search and prove what is there, and write nothing but a fork: their arguments and what the
help says of them. Imports nothing heavy.
"""

import argparse

from everlog.interfaces.cli.args_shared import (
    CommandSpec,
    as_of,
    filters,
    follow,
    json,
    name,
    name_or_all,
    query,
    records,
    runtime,
    tools,
    words,
)
from everlog.interfaces.common import argument_values
from everlog.interfaces.replay_console.playback import SPEED_MAX, SPEED_MIN

FORMATS = ("table", "csv", "json", "parquet", "arrow")

_REPLAY = """\
On a terminal: a console with the context gauge, core memory with what changes
in it, and everything that happens, at the pace of then. Space pauses, arrows
step, n s e f go to the next turn, summary, memory edit or failure, F forks the
agent here, ? shows all keys. Pauses of then are cut to two seconds. Elsewhere
the story is printed at once."""
_DIFFING = """\
Memory by block, configuration, what came into the context and went out of it,
counts, pressure, and what was spent in between; with each change the event that
made it, its turn and its cause. B may lie before A: then it is told backwards."""
_SQL = """\
Views: agents, messages, turns, steps, model_calls, function_calls,
memory_history, pressure, summaries, heartbeats, failures, prices, and records,
the log itself. `DESCRIBE turns` lists columns; docs/analytics.md explains them.
It asks the logs at one position, while agents go on, and can change nothing."""
_REPORT = """\
What the fleet costs, how long models take, what fails, what is remembered, who
is near the end of its window, who is busy. Money is at the prices of now;
`everlog sql "FROM prices"` shows them."""
_COST = """\
Tokens and money by day (UTC) and model, at the prices of now, cached tokens at
theirs. Of one agent also what its budget leaves it today. Prices come from
models.toml, from EVERLOG_GATEWAY_PRICE_IN and _OUT, or from the list that
everlog ships; `everlog sql "FROM prices"` shows them."""
_VERIFY = """\
A request that is not the same, to the byte, is a mismatch (exit code 1), and
the first part of it that differs is shown. What cannot be checked is told apart
and is no fault: its renderer is gone, records were erased, a function is
missing. A sample is spread over the agent's life, and is the same each time
until the log grows; the chain and the order of records are checked whole."""


def _types(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--type", dest="kinds", metavar="TYPE", action="append", default=[], help="only this type (repeatable)"
    )


def _full(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--full", action="store_true", help="show everything, and every message whole")


def _factor(text: str) -> float:
    """8, 8x or 0.5x."""
    try:
        factor = float(text.lower().removesuffix("x"))
    except ValueError:
        factor = 0.0
    if not SPEED_MIN <= factor <= SPEED_MAX:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a speed from {SPEED_MIN:g}x to {SPEED_MAX:g}x, as 8x")
    return factor


def _speed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--speed", metavar="X", type=_factor, default=1.0, help="how many times as fast, as 8x (1x)")


def _moments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("first", metavar="A", help="a seq, an ISO time, or how long ago (2h)")
    parser.add_argument("last", metavar="B", nargs="?", help="the other, before or after it (the head)")


def _searching(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--in",
        dest="place",
        choices=("recall", "archival"),
        metavar="WHERE",
        default="recall",
        help="`recall`: what was said, or `archival`: what the agent kept (recall)",
    )
    parser.add_argument("--role", metavar="ROLE", action="append", default=[], help="only what was said as user, or as "
                        "assistant")  # fmt: skip
    parser.add_argument("--scores", action="store_true", help="show the score of each result")
    parser.add_argument("--queries", metavar="FILE", help="answer a file of queries, one line of JSON each")


def _sources(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="only those that this agent can search")
    parser.add_argument("--source", metavar="SOURCE", help="list the documents in this source instead")


def _asking(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY", nargs="?", help="one SELECT; - reads it from stdin")
    parser.add_argument("--file", metavar="FILE", help="a file with the query instead")
    parser.add_argument(
        "--format",
        choices=FORMATS,
        metavar="FORMAT",
        help=f"how the answer is given: {', '.join(FORMATS)} (table); --json is the same as --format json",
    )
    parser.add_argument("--out", metavar="FILE", help="write the answer into this file, once it is whole")
    parser.add_argument(
        "--rows", metavar="N", type=argument_values.rows, help="rows of a table at most; 0 for all (50)"
    )
    parser.add_argument("--position", action="store_true", help="say on stderr how far each partition is read")


def _over_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--as-of", metavar="TIME", help="only what was recorded up to then: an ISO time, or 2h for that long ago"
    )
    parser.add_argument("--agent", metavar="NAME", help="only the records of this agent")
    parser.add_argument("--memory", metavar="MB", type=argument_values.count, help="memory that it may use (2048)")
    parser.add_argument(
        "--skip-damaged", action="store_true", help="check every file first, and leave out partitions with damage"
    )


def _reporting(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--html", metavar="FILE", help="write it as one page with charts, which needs nothing else")


def _costing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="name of the agent (all together)")
    parser.add_argument(
        "--days", metavar="N", type=argument_values.count, default=7, help="the last N days, with today (7)"
    )


def _sampling(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sample",
        metavar="N",
        type=argument_values.count,
        help="check only N model calls of each agent (1 to 1000000)",
    )
    parser.add_argument("--seed", metavar="TEXT", help="what chooses the sample, for the same one in a log that grew")


COMMANDS = (
    CommandSpec(
        "agents", "show.show_commands:agents", "list the agents of the store", "everlog agents --json", (as_of, json)
    ),
    CommandSpec(
        "events",
        "show.show_commands:events",
        "print the log of an agent",
        "everlog events sam --type memory_edited",
        (name, records, _types, follow, as_of, json),
    ),
    CommandSpec(
        "context",
        "show.show_commands:context",
        "show what the model sees, now or then",
        "everlog context sam --as-of 12",
        (name, as_of, _full, json),
    ),
    CommandSpec(
        "memory",
        "show.show_commands:memory",
        "show the memory blocks, now or then",
        "everlog memory sam --as-of 2024-01-31T12:00",
        (name, as_of, json),
    ),
    CommandSpec(
        "pressure",
        "show.show_commands:pressure",
        "show how full the context window is",
        "everlog pressure sam",
        (name, as_of, json),
    ),
    CommandSpec(
        "timers", "talk.timer_commands:timers", "list the timers of an agent", "everlog timers sam", (name, as_of, json)
    ),
    CommandSpec(
        "sources",
        "manage.document_commands:sources",
        "list the sources of documents, and who can search them",
        "everlog sources",
        (_sources, as_of, json),
    ),
    CommandSpec(
        "search",
        "show.search_command:search",
        "search what was said, or what the agent kept",
        'everlog search sam "sailing trip" --page 2',
        (name, query, _searching, filters, words, as_of, json),
    ),
    CommandSpec(
        "replay",
        "replay_console.replay_command:replay",
        "watch an agent live again, event by event",
        "everlog replay sam --speed 8x",
        (name, _speed, records, follow, json, runtime),
        _REPLAY,
    ),
    CommandSpec(
        "diff",
        "show.diff_command:diff",
        "tell what is different between two moments of an agent",
        "everlog diff sam 12 40",
        (name, _moments, _full, json),
        _DIFFING,
    ),
    CommandSpec(
        "rebuild",
        "show.verify_command:rebuild",
        "build all derived state again from the log, and compare",
        "everlog rebuild sam",
        (name_or_all, json),
    ),
    CommandSpec(
        "verify",
        "show.verify_command:verify",
        "render every request ever sent again, and compare",
        "everlog verify --all",
        (name_or_all, _sampling, tools, json),
        _VERIFY,
    ),
    CommandSpec(
        "sql",
        "show.sql_command:sql",
        "ask all agents one SQL question",
        'everlog sql "SELECT agent_id, sum(tokens) FROM model_calls GROUP BY ALL"',
        (_asking, _over_option, json),
        _SQL,
    ),
    CommandSpec(
        "report",
        "show.report_command:report",
        "show how the whole fleet is doing",
        "everlog report --html report.html",
        (_reporting, _over_option, json),
        _REPORT,
    ),
    CommandSpec(
        "cost",
        "show.cost_command:cost",
        "tell what models cost, by day and model",
        "everlog cost sam --days 30",
        (_costing, json),
        _COST,
    ),
)
"""In the order of the help."""
