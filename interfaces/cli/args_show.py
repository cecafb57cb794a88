"""Arguments and help of the commands that read agents and write nothing but a fork. Imports nothing heavy.

Used by `command_parser`, which is loaded at each start of `everlog`.
"""

import argparse

from everlog.interfaces.cli.args_grants import tools
from everlog.interfaces.cli.args_selection import label_of_each, names, sorting, times
from everlog.interfaces.cli.args_shared import (
    as_of,
    filters,
    follow,
    full_texts,
    json,
    name,
    name_or_all,
    query,
    records,
    runtime,
    words,
)
from everlog.interfaces.cli.command_spec import CommandSpec
from everlog.interfaces.common import argument_values
from everlog.interfaces.replay_console.playback import SPEED_MAX, SPEED_MIN

FORMATS = ("table", "csv", "json", "parquet", "arrow")

_REPLAY = """\
On a terminal: an interactive console with the context gauge, core memory and
its changes, and every event with its recorded timing; pauses are capped at two
seconds. Space pauses, arrows step, n s e f jump to the next turn, summary,
memory edit or failure, F forks the agent at this point, ? shows all keys.
Without a terminal all events are printed at once."""
_DIFFING = """\
Compares memory by block, configuration, the messages in the context, counts,
pressure and usage. Each change is shown with the event that made it, its turn
and its cause. If B is earlier than A, the changes are shown in reverse."""
_SQL = """\
Views: agents, messages, turns, steps, model_calls, function_calls,
memory_history, pressure, summaries, heartbeats, failures, prices, and records
(the log itself). `DESCRIBE turns` lists columns; docs/reference/sql.md explains
them. The query reads all logs at one position. It changes nothing, and agents
keep running meanwhile.

Without QUERY: a prompt on a terminal, with completion (Tab) and history, in
which a semicolon ends a query; otherwise the queries are read from stdin."""
_REPORT = """\
Shows messages and failures over time, costs, latency of each model, memory use,
agents whose context window is nearly full, and the busiest agents. Costs are at
current prices, which `everlog sql "FROM prices"` lists. --since and --until go
by when messages were said, and calls, failures and edits were recorded."""
_COST = """\
Tokens and costs by day (UTC) and model, at current prices; cached tokens at
their own price. For one agent also the rest of its budget for today. A pattern,
or an option of lists such as --sort, gives a row for each agent. Prices
come from models.toml, from EVERLOG_GATEWAY_PRICE_IN and _OUT, or from the list
that everlog ships; `everlog sql "FROM prices"` lists them."""
_FOLLOW = """\
Runs until Ctrl-C, and then prints on stderr how to continue after the last
record that was shown. Each record is shown once, in the order of its agent's
log; records of sources and shared blocks too. Reads the store directly; with
--server, the feed of the server."""
AGENT_SORTS = ("agent", "events", "messages", "turns", "last_active")
PRESSURE_SORTS = ("agent", "used", "tokens", "window", "summaries")
COST_SORTS = ("agent", "cost", "tokens", "calls")
_PRESSURE = """\
One name shows the page of that agent, with an estimate of its next request. A
pattern, or none, lists agents: a row for each, without that estimate. --as-of
takes a time then."""
_AGENTS = """\
A PATTERN is a name, or a shell pattern such as 'fleet-*'; put quotes around it.
A terminal shows the first 50 agents, other output has all of them."""
_VERIFY = """\
A rendered request that differs from the recorded one in any byte is a mismatch
(exit code 1), and its first differing part is shown. Requests that cannot be
checked are counted separately and are not failures: the renderer is gone,
records were erased, or a function is missing. A sample is spread over the whole
log and stays the same until the log grows. The hash chain and the order of
records are always checked completely."""


def _listing_agents(parser: argparse.ArgumentParser) -> None:
    sorting(parser, AGENT_SORTS)
    parser.add_argument(
        "--label",
        metavar="LABEL",
        action="append",
        dest="labels",
        help="list only agents with this label, as `configure` gives it; repeatable: with all of them",
    )
    parser.add_argument("--groups", action="store_true", help="list only groups, with their rules and members")


def _types(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--type",
        dest="kinds",
        metavar="TYPE",
        action="append",
        default=[],
        help="show only records of this type; repeatable",
    )


def _following(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "agents",
        metavar="PATTERN",
        nargs="*",
        help="show only records of agents whose name matches, such as 'fleet-*' (default: all)",
    )
    _types(parser)
    parser.add_argument(
        "--resume",
        metavar="TOKEN|start",
        help="begin after the position that an earlier run printed, or at the start (default: now)",
    )


def _full(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--full", action="store_true", help="show all details, and messages in full")


def _transcribing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--markdown", action="store_true", help="print Markdown instead of plain text")
    parser.add_argument("--calls", action="store_true", help="include function calls; in Markdown they are folded")


def _factor(text: str) -> float:
    """Return the speed factor of a text such as 8, 8x or 0.5x; raise ArgumentTypeError if it is out of range."""
    try:
        factor = float(text.lower().removesuffix("x"))
    except ValueError:
        factor = 0.0
    if not SPEED_MIN <= factor <= SPEED_MAX:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a speed from {SPEED_MIN:g}x to {SPEED_MAX:g}x, as 8x")
    return factor


def _speed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--speed", metavar="X", type=_factor, default=1.0, help="playback speed, such as 8x (default: 1x)"
    )


def _moments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("first", metavar="A", help="first moment: a seq, an ISO time, or an age such as 2h")
    parser.add_argument(
        "last", metavar="B", nargs="?", help="second moment, before or after A (default: the newest record)"
    )


def _searching(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--in",
        dest="place",
        choices=("everything", "messages", "archive", "documents", "derived", "recall", "archival"),
        metavar="WHERE",
        default="everything",
        help="search only `messages`, `archive` (memories that the agent stored), `documents` or `derived` (insights, "
        "facts and plans) (default: everything)",
    )
    parser.add_argument("--ended", action="store_true", help="show facts that have ended, too")
    parser.add_argument("--role", metavar="ROLE", action="append", default=[], help="show only messages of this role: "
                        "user or assistant; repeatable")  # fmt: skip
    parser.add_argument("--scores", action="store_true", help="show the score of each result")
    full_texts(parser)
    parser.add_argument(
        "--queries", metavar="FILE", help="run each line of FILE as a query; prints one JSON line per query"
    )


def _sources(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="show only sources that this agent can search")
    parser.add_argument("--source", metavar="SOURCE", help="list the documents of this source instead")


def _asking(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY", nargs="?", help="one SELECT statement; - reads queries from stdin")
    parser.add_argument("--file", metavar="FILE", help="read queries from FILE, separated by semicolons")
    parser.add_argument(
        "--param",
        dest="params",
        metavar="NAME=VALUE",
        type=argument_values.parameter,
        action="append",
        default=[],
        help="value of $NAME in the query; repeatable",
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        metavar="FORMAT",
        help=f"output format: {', '.join(FORMATS)}; --json is the same as --format json (default: table)",
    )
    parser.add_argument("--out", metavar="FILE", help="write the result to FILE; the file appears when it is complete")
    parser.add_argument(
        "--rows",
        metavar="N",
        type=argument_values.rows,
        help="print at most N rows of a table; 0 prints all (default: 50)",
    )
    parser.add_argument(
        "--position", action="store_true", help="print on stderr up to which record each partition is read"
    )


def _over_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--as-of", metavar="TIME", help="use only records up to TIME: an ISO time, or an age such as 2h"
    )
    parser.add_argument("--agent", metavar="NAME", help="use only the records of this agent")
    parser.add_argument(
        "--memory",
        metavar="MB",
        type=argument_values.count,
        help="limit the memory of the query, in MB (default: 2048)",
    )
    parser.add_argument(
        "--skip-damaged", action="store_true", help="check every file first, and skip damaged partitions"
    )


def _reporting(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--html", metavar="FILE", help="write the report to FILE, as one self-contained HTML page with charts"
    )
    times(parser)
    parser.add_argument(
        "--by", metavar="UNIT", choices=("day", "week", "month", "year"),
        help="bars over time by day, week, month or year (default: at most 60 bars)",
    )  # fmt: skip


def _sorting_pressure(parser: argparse.ArgumentParser) -> None:
    sorting(parser, PRESSURE_SORTS)


def _costing(parser: argparse.ArgumentParser) -> None:
    sorting(parser, COST_SORTS)
    parser.add_argument(
        "--days",
        metavar="N",
        type=argument_values.count,
        default=7,
        help="show the last N days, including today (default: 7)",
    )


def _sampling(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sample",
        metavar="N",
        type=argument_values.count,
        help="check only N model calls of each agent; 1 to 1,000,000 (default: all)",
    )
    parser.add_argument(
        "--seed", metavar="TEXT", help="seed of the sample; choose the same sample after the log has grown"
    )


READERS = (
    CommandSpec(
        "agents",
        "show.agents_command:agents",
        "list the agents of the store",
        "everlog agents 'fleet-*' --sort last_active --limit 10",
        (names, _listing_agents, as_of, json),
        _AGENTS,
    ),
    CommandSpec(
        "events",
        "show.show_commands:events",
        "print the log of an agent",
        "everlog events sam --type memory_edited",
        (name, records, _types, follow, as_of, json),
    ),
    CommandSpec(
        "follow",
        "show.follow_command:follow",
        "print the records of all agents as they are committed",
        "everlog follow 'fleet-*' --type message_sent",
        (_following, json),
        _FOLLOW,
        reads_only=True,
    ),
    CommandSpec(
        "show",
        "show.transcript_command:show",
        "print the conversation with an agent, to read or to share",
        "everlog show sam --markdown",
        (name, _transcribing, records, as_of, json),
    ),
    CommandSpec(
        "context",
        "show.show_commands:context",
        "show what the model sees, now or at an earlier moment",
        "everlog context sam --as-of 12",
        (name, as_of, _full, json),
    ),
    CommandSpec(
        "memory",
        "show.show_commands:memory",
        "show the memory blocks, now or at an earlier moment",
        "everlog memory sam --as-of 2024-01-31T12:00",
        (name, as_of, json),
    ),
    CommandSpec(
        "pressure",
        "show.show_commands:pressure",
        "show how full the context window is",
        "everlog pressure 'fleet-*' --sort used --limit 10",
        (names, _sorting_pressure, as_of, json),
        _PRESSURE,
    ),
    CommandSpec(
        "timers", "talk.timer_commands:timers", "list the timers of an agent", "everlog timers sam", (name, as_of, json)
    ),
    CommandSpec(
        "sources",
        "manage.document_commands:sources",
        "list document sources, and the agents that can search them",
        "everlog sources",
        (_sources, as_of, json),
    ),
    CommandSpec(
        "search",
        "show.search_command:search",
        "search messages, memories and documents of an agent, or of all agents",
        'everlog search sam "sailing trip" --page 2',
        (name_or_all, query, _searching, filters, words, as_of, json),
        usage="NAME QUERY | --all QUERY",
    ),
    CommandSpec(
        "replay",
        "replay_console.replay_command:replay",
        "replay the log of an agent, event by event",
        "everlog replay sam --speed 8x",
        (name, _speed, records, follow, json, runtime),
        _REPLAY,
    ),
    CommandSpec(
        "diff",
        "show.diff_command:diff",
        "compare two moments of an agent",
        "everlog diff sam 12 40",
        (name, _moments, _full, json),
        _DIFFING,
    ),
    CommandSpec(
        "rebuild",
        "show.verify_command:rebuild",
        "rebuild all derived state from the log, and compare",
        "everlog rebuild sam",
        (name_or_all, label_of_each, json),
    ),
    CommandSpec(
        "verify",
        "show.verify_command:verify",
        "render every recorded request again, and compare byte by byte",
        "everlog verify --all",
        (name_or_all, label_of_each, _sampling, tools, json),
        _VERIFY,
    ),
    CommandSpec(
        "sql",
        "show.sql_command:sql",
        "query all agents with SQL",
        'everlog sql "SELECT agent_id, sum(tokens) FROM model_calls GROUP BY ALL"',
        (_asking, _over_option, json),
        _SQL,
    ),
    CommandSpec(
        "report",
        "show.report_command:report",
        "report on all agents: costs, latency, failures, memory",
        "everlog report --html report.html",
        (_reporting, _over_option, json),
        _REPORT,
    ),
    CommandSpec(
        "cost",
        "show.cost_command:cost",
        "show the costs of models, by day and model",
        "everlog cost sam --days 30",
        (names, _costing, json),
        _COST,
    ),
)
COMMANDS = tuple(command._replace(reads_only=True) for command in READERS)
"""In the order of the help."""
