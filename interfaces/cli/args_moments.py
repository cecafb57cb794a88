"""The arguments of commands that tell moments apart. Imports nothing heavy."""

import argparse

from everlog.interfaces.common.command_options import CommandSpec, json, name


def _moments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("first", metavar="A", help="a seq, an ISO time, or how long ago (2h)")
    parser.add_argument("last", metavar="B", nargs="?", help="the other, before or after it (the head)")


def _full(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--full", action="store_true", help="show every message, whole, and every step of a change")


_DIFFING = """\
Memory by block, configuration, what came into the context and went out of it,
counts, pressure, and what was spent in between; with each change the event that
made it, its turn and its cause. B may lie before A: then it is told backwards."""

COMMANDS = (
    CommandSpec("diff", "show.diff_command:diff", "tell what is different between two moments of an agent",
            "everlog diff sam 12 40", (name, _moments, _full, json), _DIFFING),
)  # fmt: skip
