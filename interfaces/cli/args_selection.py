"""Define the options that select agents and times, and sort and limit agents. Imports nothing heavy.

Used by the args_ files of commands that take patterns of names. A default of --limit is a promise of the reference.
"""

import argparse
from collections.abc import Sequence

from everlog.interfaces.common import argument_values

_PATTERN_HELP = "name of the agent, or a shell pattern such as 'fleet-*'"


def names(parser: argparse.ArgumentParser) -> None:
    """Add names and patterns of names; none stands for all agents."""
    parser.add_argument(
        "names", metavar="PATTERN", nargs="*", help="name of an agent, or a shell pattern (default: all agents)"
    )


def name_or_pattern(parser: argparse.ArgumentParser) -> None:
    """Add the name of one agent, or a pattern for several."""
    parser.add_argument("name", metavar="NAME", help=_PATTERN_HELP)


def label_of_each(parser: argparse.ArgumentParser) -> None:
    """Add --label in place of NAME: the command is run for each agent that has all of the labels."""
    _label(parser, "each")


def label_of_all(parser: argparse.ArgumentParser) -> None:
    """Add --label in place of NAME, for a command that takes several agents at once."""
    _label(parser, "all")


def _label(parser: argparse.ArgumentParser, by_label: str) -> None:
    parser.add_argument(
        "--label",
        metavar="LABEL",
        action="append",
        dest="labels",
        help="in place of NAME: all agents with this label; repeatable, for those that have all of them",
    )
    parser.set_defaults(by_label=by_label)


def optional_name_or_pattern(parser: argparse.ArgumentParser) -> None:
    """Add the name of one agent, or a pattern for several, which --label may stand for."""
    parser.add_argument("name", metavar="NAME", nargs="?", help=_PATTERN_HELP)


def sorting(parser: argparse.ArgumentParser, columns: Sequence[str]) -> None:
    """Add the order and the length of a listing of agents; the first of `columns` is the default."""
    parser.add_argument(
        "--sort", metavar="COLUMN", choices=columns,
        help=f"sort by {', '.join(columns[:-1])} or {columns[-1]}; largest and newest first (default: {columns[0]})",
    )  # fmt: skip
    parser.add_argument("--reverse", action="store_true", help="reverse the order")
    parser.add_argument(
        "--limit",
        metavar="N",
        type=argument_values.whole_number,
        help="list at most N agents; 0 lists all (default: 50 on a terminal, else all)",
    )


def times(parser: argparse.ArgumentParser) -> None:
    """Add the first and the last time of what a command reads of many agents."""
    parser.add_argument("--since", metavar="TIME", help="only from this time on, or an age such as 30d")
    parser.add_argument("--until", metavar="TIME", help="only up to this time, inclusive")
