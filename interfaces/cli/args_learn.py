"""Arguments of the commands that teach everlog: the tour and the pages of errors. Imports nothing heavy.

Used by `command_parser`, which is loaded at each start of `everlog`.
"""

import argparse

from everlog.interfaces.cli.command_spec import CommandSpec

_TOUR = """\
Ten minutes. Each step explains something, shows a command, and waits until you
type it; you see its true output. The tour needs no key and no network. It has a
store of its own, which is removed at the end, and touches nothing of yours."""
_EXPLAIN = """\
Every error has a page: what failed, why, how to fix it, and an example. The
last line of an error names its page: `more: everlog explain bad-input`. Without
CODE: a list of all errors."""


def _touring(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--list", action="store_true", help="list the steps, and run nothing")
    parser.add_argument("--from", dest="first", metavar="STEP", help="name or number of the first step (default: 1)")
    parser.add_argument(
        "--plain",
        action="store_true",
        help="run every step without a reader and print all of it (default: if stdin or stdout is no terminal)",
    )
    parser.add_argument("--keep", metavar="DIR", help="keep the store of the tour in this new or empty folder")


def _explaining(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("code", metavar="CODE", nargs="?", help="code of the error, for example bad-input")
    parser.add_argument("--all", action="store_true", help="print every page")


COMMANDS = (
    CommandSpec(
        "tour",
        "tour.tour_command:tour",
        "learn everlog in ten minutes, step by step in the terminal",
        "everlog tour",
        (_touring,),
        _TOUR,
        reads_defaults=False,
    ),
    CommandSpec(
        "explain",
        "explain.explain_command:explain",
        "explain an error: why it happens and how to fix it",
        "everlog explain unknown-agent",
        (_explaining,),
        _EXPLAIN,
        reads_defaults=False,
    ),
)
"""In the order of the help."""
