"""`everlog help`, and `everlog` without a command: print the help of commands.

Called by `cli.command_run`. Both print to stdout and exit with 0: the reader asked for help, and nothing failed.
"""

from argparse import Namespace

from everlog.interfaces.cli.command_parser import COMMANDS, command_help, unknown_command
from everlog.interfaces.common.front_end import CommandEnvironment

SHORT = """\
Agents with memory, whose whole state is their log of events.

  everlog chat sam              talk to an agent; it is created at the first message
  everlog send sam "Hi"         send one message, and print the answer
  everlog agents                list the agents of the store
  everlog tour                  learn everlog in ten minutes
  everlog doctor                check this machine, the store and the models
  everlog help                  list all {} commands
  everlog help COMMAND          explain one command"""
"""Help of `everlog` alone: where to begin. The number of commands is filled in."""


def overview(_args: Namespace, _world: CommandEnvironment) -> int:
    """Print where to begin."""
    print(SHORT.format(len(COMMANDS)))
    return 0


def help_(args: Namespace, _world: CommandEnvironment) -> int:
    """Run the command `help`."""
    found = command_help(args.words)
    if found is None:
        known = [n for n in range(len(args.words)) if command_help(args.words[:n]) is not None]
        prog = " ".join(["everlog", *args.words[: known[-1]]])
        args.fail(unknown_command(prog, args.words[known[-1]]))
    print(found, end="")
    return 0
