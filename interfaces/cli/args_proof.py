"""Arguments of the commands that prove something, and what the help says of them. Imports nothing heavy."""

import argparse

from everlog.interfaces.common import argument_values

VERIFY = """\
A request that is not the same, to the byte, is a mismatch (exit code 1), and
the first part of it that differs is shown. What cannot be checked is told apart
and is no fault: its renderer is gone, records were erased, a function is
missing. A sample is spread over the agent's life, and is the same each time
until the log grows; the chain and the order of records are checked whole."""


def sampling(parser: argparse.ArgumentParser) -> None:
    """How many model calls, and which."""
    parser.add_argument(
        "--sample",
        metavar="N",
        type=argument_values.count,
        help="check only N model calls of each agent (1 to 1000000)",
    )
    parser.add_argument("--seed", metavar="WORDS", help="what chooses the sample, for the same one in a log that grew")
