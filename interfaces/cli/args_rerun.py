"""Arguments of `rerun`, and what the help says of it. Imports nothing heavy."""

import argparse

from everlog.interfaces.cli import args_settings
from everlog.interfaces.common import argument_values

RERUN = """\
The agent is forked just before a record of its past, and the fork is told again
what the agent was told from there on, with whatever you change. Calls that were
made then, with the same arguments, get the result of then. Of all others those
that act outside are refused, unless you say --live-tools; those that only read
are run where --tools gives them. The agent itself is left as it is."""


def rerunning(parser: argparse.ArgumentParser) -> None:
    """What is done again, and what is otherwise."""
    parser.add_argument(
        "--from",
        dest="first",
        metavar="SEQ|TIME",
        help="the first record that is done again, or the first from that time on; inside a turn: its beginning",
    )
    parser.add_argument("--as", dest="new", metavar="NEW", required=True, help="name of the fork")
    parser.add_argument("--turns", metavar="N", type=argument_values.count, help="how many turns, at most (all)")
    parser.add_argument(
        "--recorded",
        action="store_true",
        help="ask no model: give the recorded replies, as long as each request is the one of then",
    )
    parser.add_argument(
        "--live-tools", action="store_true", help="let functions act outside for calls that were not made then"
    )
    parser.add_argument("--report", action="store_true", help="run nothing: compare NAME with NEW, a fork of it")
    group = parser.add_argument_group("what is otherwise")
    group.add_argument("--model", metavar="MODEL", type=argument_values.words, help="another model (that of then)")
    group.add_argument("--base-url", metavar="URL", help="where it is served, as for `everlog send`")
    group.add_argument("--window", metavar="TOKENS", type=argument_values.window, help="another context window")
    args_settings.system(group, "another system prompt")
    args_settings.block(group, "another text in a memory block, or a new block (repeatable)")
    parser.set_defaults(runtime="local", persona=None, human=None, zone=None, preset=None, verify_first=None)
