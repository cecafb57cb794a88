"""`everlog completion`: print a script with which a shell completes commands, options, files and names of agents.

Called by `cli.command_run`. shtab makes the scripts from the parser, so they know what the parser knows. Names of
agents come from `everlog completion --names`, which the script calls when Tab is pressed: it reads the register and
no log.
"""

import argparse
from argparse import Namespace

from everlog.interfaces.cli.command_parser import parser
from everlog.interfaces.common.error_output import escape_line
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.defaults.default_files import applied, store_folder
from everlog.store import CONFIGURATION, FileStore

NAMES = "everlog completion --names 2>/dev/null"
"""Command that a script calls for the names of agents."""


def completion(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `completion`."""
    if args.names:
        with applied(args):
            root = store_folder(args.store)
            if (root / CONFIGURATION).exists():
                for name in sorted(FileStore(root, world.clock.now).agents()):
                    print(escape_line(name))
        return 0
    if args.shell is None:
        args.fail("SHELL is missing: bash, zsh or fish")
    print(script_of(args.shell), end="")
    return 0


def script_of(shell: str) -> str:
    """Return the script for a shell."""
    import shtab

    root = parser()
    _mark(root)
    return shtab.complete(root, shell)


def _mark(of: argparse.ArgumentParser) -> None:
    """Tell shtab how to complete the arguments of a parser, and of the parsers below it."""
    import shtab  # not needed for the names of agents, which must come at once

    for action in of._actions:  # noqa: SLF001 - argparse has no public name for them
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for sub in set(action.choices.values()):
                _mark(sub)
            continue
        metavar = str(action.metavar or "")
        complete = None
        if metavar == "NAME" and not action.choices:
            complete = shtab.cmd(NAMES)
        elif metavar == "DIR":
            complete = shtab.DIRECTORY
        elif metavar.startswith("FILE") or metavar in ("PATH", "PRESET|FILE"):
            complete = shtab.FILE
        if complete is not None:
            action.complete = complete  # type: ignore[attr-defined]
