"""Define the permissions of the functions that reach outside. Imports nothing heavy.

Used by `args_shared.py` and `args_talk.py`. A permission is never stored: it is given with each command.
"""

import argparse

from everlog.interfaces.common import argument_values


def grant_options(parser: argparse.ArgumentParser) -> None:
    """Add the permissions of the functions of the preset `extras`."""
    group = parser.add_argument_group(
        "permissions", "For the functions of the preset `extras`.\nThey are not stored: give them each time."
    )
    group.add_argument(
        "--workspace",
        metavar="DIR",
        type=argument_values.allowed,
        help="folder whose text files the agent may read and add to",
    )
    group.add_argument(
        "--allow-host",
        metavar="HOST[:PORT]",
        action="append",
        default=[],
        type=argument_values.allowed,
        help="web server that the agent may send requests to; repeatable",
    )
    group.add_argument(
        "--helper",
        metavar="MODEL",
        type=argument_values.allowed,
        help="model that answers the agent's questions (default: the agent's own model)",
    )
