"""Arguments about a turn while it runs: what is shown of it before it is final, and its end. Imports nothing heavy."""

import argparse

from . import options
from .options import Command


def _every(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="those that wait for it too")


CANCEL = Command(
    "cancel", "cancelling:cancel", "end the turn that an agent is at", "everlog cancel sam",
    (options.name, _every, options.runtime, options.json),
    "What the turn has left in the log stays. A function that reaches outside may\n"
    "have done what it was asked to: the agent is told that nobody knows.",
)  # fmt: skip


def unstreamed(parser: argparse.ArgumentParser) -> None:
    """For a conversation, where a reply is shown while it comes."""
    parser.add_argument(
        "--no-stream", dest="stream", action="store_false", default=None, help="show a reply when it is whole"
    )


def streamed(parser: argparse.ArgumentParser) -> None:
    """For one thing that is said, where a reply is shown when it is final."""
    parser.add_argument(
        "--stream", action="store_true", default=None, help="on a terminal, show the answer while it comes (kept)"
    )
