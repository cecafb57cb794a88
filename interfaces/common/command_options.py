"""What a command of the command line is, and the arguments that several of them have. Imports nothing heavy."""

import argparse
from collections.abc import Callable
from typing import NamedTuple

ArgumentBuilder = Callable[[argparse.ArgumentParser], None]


class CommandSpec(NamedTuple):
    """One command of the command line."""

    name: str
    handler: str
    summary: str
    example: str
    arguments: tuple[ArgumentBuilder, ...]
    more: str = ""
    """What the help says after the summary."""


def name(parser: argparse.ArgumentParser) -> None:
    """The agent that is meant."""
    parser.add_argument("name", metavar="NAME", help="name of the agent")


def name_or_sam(parser: argparse.ArgumentParser) -> None:
    """The agent that is meant, sam where none is."""
    parser.add_argument("name", metavar="NAME", nargs="?", default="sam", help="name of the agent (sam)")


def name_or_all(parser: argparse.ArgumentParser) -> None:
    """One agent, or all of the store."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="name of the agent")
    parser.add_argument("--all", action="store_true", help="every agent of the store")


def json(parser: argparse.ArgumentParser) -> None:
    """For programs."""
    parser.add_argument("--json", action="store_true", help="print JSON, as docs/cli.md promises it")


def as_of(parser: argparse.ArgumentParser) -> None:
    """A moment of the past."""
    parser.add_argument(
        "--as-of", metavar="SEQ|TIME", help="as it was at this seq, at this ISO time, or so long ago (2h)"
    )


def tools(parser: argparse.ArgumentParser) -> None:
    """Functions of the user's own."""
    parser.add_argument(
        "--tools", metavar="FILE.py", action="append", default=[], help="functions of your own (repeatable)"
    )


def runtime(parser: argparse.ArgumentParser) -> None:
    """Where the agent runs."""
    parser.add_argument(
        "--runtime",
        choices=("auto", "local", "ray"),
        metavar="WHERE",
        help="where the agent runs: local (this process), ray (a cluster), auto (a cluster if one runs); "
        "EVERLOG_RUNTIME, else auto",
    )


def words(parser: argparse.ArgumentParser) -> None:
    """How a search goes."""
    parser.add_argument(
        "--words", action="store_true", help="search by words alone: it does not wait some seconds for vectors"
    )
