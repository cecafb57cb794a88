"""Define what is given to agents with each command: functions, and the permissions of those that reach outside. Nothing
of it is stored. Imports nothing heavy.

Used by the other args_ files.
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


def tools(parser: argparse.ArgumentParser) -> None:
    """Add files with the user's own functions, servers that lend functions, and remote agents."""
    parser.add_argument(
        "--tools",
        metavar="FILE.py",
        action="append",
        default=[],
        help="Python file with your own functions; give it each time; repeatable",
    )
    parser.add_argument(
        "--mcp",
        metavar="SERVER",
        action="append",
        default=[],
        help="MCP server whose functions the agent gets; give it each time; repeatable",
    )
    parser.add_argument(
        "--a2a",
        metavar="REMOTE",
        action="append",
        default=[],
        help="remote agent that the agent may ask; give it each time; repeatable",
    )
