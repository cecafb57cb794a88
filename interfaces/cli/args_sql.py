"""The commands about the whole fleet: their arguments and what the help says of them. Imports nothing heavy."""

import argparse

from everlog.interfaces.common import argument_values
from everlog.interfaces.common.command_options import CommandSpec, json

FORMATS = ("table", "csv", "json", "parquet", "arrow")

_SQL = """\
Views: agents, messages, turns, steps, model_calls, function_calls,
memory_history, pressure, summaries, heartbeats, failures, prices, and records,
the log itself. `DESCRIBE turns` lists columns; docs/analytics.md explains them.
It asks the logs at one position, while agents go on, and can change nothing."""
_REPORT = """\
What the fleet costs, how long models take, what fails, what is remembered, who
is near the end of its window, who is busy. Money is at the prices of now;
`everlog sql "FROM prices"` shows them."""


def _asking(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY", nargs="?", help="one SELECT; - reads it from stdin")
    parser.add_argument("-f", "--file", metavar="FILE", help="a file with the query instead")
    parser.add_argument(
        "--format", choices=FORMATS, help="how the answer is given (table); --json is the same as --format json"
    )
    parser.add_argument("--out", metavar="FILE", help="write the answer into this file, once it is whole")
    parser.add_argument(
        "--rows", metavar="N", type=argument_values.rows, help="rows of a table at most; 0 for all (50)"
    )
    parser.add_argument("--position", action="store_true", help="say on stderr how far each partition is read")


def _over(parser: argparse.ArgumentParser) -> None:
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


COMMANDS = (
    CommandSpec(
        "sql",
        "show.sql_command:sql",
        "ask all agents one SQL question",
        'everlog sql "SELECT agent_id, sum(tokens) FROM model_calls GROUP BY ALL"',
        (_asking, _over, json),
        _SQL,
    ),
    CommandSpec(
        "report",
        "show.report_command:report",
        "show how the whole fleet is doing",
        "everlog report --html report.html",
        (_reporting, _over, json),
        _REPORT,
    ),
)
