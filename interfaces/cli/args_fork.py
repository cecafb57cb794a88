"""Arguments about forks, and what the help says of them. Imports nothing heavy."""

import argparse

FORK = """\
Nothing is copied and nothing is written to the agent: the fork reads it up to
the cut, and goes on by itself, with a log, memories and timers of its own. It
costs the same however long the log is. A turn that was open at the cut is
closed in the fork; what it had begun stays with the agent."""


def forking(parser: argparse.ArgumentParser) -> None:
    """Where the fork begins, and what it is called."""
    parser.add_argument(
        "--at", dest="as_of", metavar="SEQ|TIME", help="the cut: the last record that both share (the newest)"
    )
    parser.add_argument("--as", dest="new", metavar="NEW", required=True, help="name of the new agent")
    parser.add_argument(
        "--placement",
        choices=("shared", "dedicated"),
        default="dedicated",
        metavar="HOW",
        help="where it lives: shared (a process and log of many) or dedicated (of its own) (dedicated)",
    )


def deleting(parser: argparse.ArgumentParser) -> None:
    """What becomes of those that were forked from it."""
    parser.add_argument("--with-forks", action="store_true", help="end its forks too, which else keep it from ending")
