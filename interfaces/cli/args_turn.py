"""Arguments about a turn while it runs: its end. Imports nothing heavy."""

import argparse

from everlog.interfaces.common import command_options
from everlog.interfaces.common.command_options import CommandSpec


def _every(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="those that wait for it too")


CANCEL = CommandSpec(
    "cancel", "talk.cancel_command:cancel", "end the turn that an agent is at", "everlog cancel sam",
    (command_options.name, _every, command_options.runtime, command_options.json),
    "What the turn has left in the log stays. A function that reaches outside may\n"
    "have done what it was asked to: the agent is told that nobody knows.",
)  # fmt: skip
