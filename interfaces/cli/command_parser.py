"""The parser of the command line: every command, or the one that was typed. Imports nothing heavy.

A command names its handler as "module:function"; the module is imported when the command runs.
"""

import argparse
import shutil
from collections.abc import Sequence
from typing import NoReturn, TypeAlias

from everlog.interfaces.cli import args_archive, args_fleet, args_learn, args_manage, args_memory, args_show, args_talk
from everlog.interfaces.cli.args_shared import CommandSpec
from everlog.interfaces.common.error_output import sanitize


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        super().error(sanitize(message))


_Subparsers: TypeAlias = "argparse._SubParsersAction[_Parser]"  # noqa: SLF001 - it has no public name


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=min(100, shutil.get_terminal_size().columns - 2))


COMMANDS = (
    *args_talk.COMMANDS,
    *args_show.COMMANDS,
    *args_manage.COMMANDS,
    *args_memory.COMMANDS,
    *args_archive.COMMANDS,
    *args_fleet.COMMANDS,
    *args_learn.COMMANDS,
)
"""Every command, in the order of the help. A name of two words is one of a group's."""

GROUPS = {
    "archive": "keep, change and search memories, and look after their index",
    "block": "add, change and remove memory blocks",
    "cluster": "look after a cluster: status",
    "log": "look after the files of a log: check, stats, seal",
    "prompt": "show and change the sections of a system prompt",
    "shared": "memory blocks that several agents have: make, edit, attach them",
}
"""What the help says of the commands that have commands of their own."""


_EPILOG = """\
example:
  everlog chat sam

`everlog COMMAND --help` has an example of each. `everlog tour` teaches everlog
in ten minutes."""


def parser(words: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Return the parser of the command that `words` name; that of the whole command line where they name none.

    What a command accepts is the same in both, but hundreds of options that nobody asked for are not put together.
    """
    root = _Parser(
        prog="everlog",
        description="Agents with memory, whose whole state is their log of events.",
        epilog=_EPILOG,
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    root.add_argument("--store", metavar="DIR", help="folder of the store (EVERLOG_STORE, else ~/.everlog)")
    commands = root.add_subparsers(title="commands", metavar="COMMAND", required=True)
    groups: dict[str, _Subparsers] = {}
    for command in _named(words) or COMMANDS:
        group, _, name = command.name.rpartition(" ")
        if group and group not in groups:
            groups[group] = _group(commands, group)
        _add(groups[group] if group else commands, name, command)
    return root


def _named(words: Sequence[str]) -> Sequence[CommandSpec]:
    """Return the command whose name the words begin with, as the one of a list; an empty list if there is none."""
    said: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--store":
            next(rest, None)
        elif not word.startswith("--store="):
            said.append(word)
    return [command for command in COMMANDS if command.name.split() == said[: command.name.count(" ") + 1]]


def _group(commands: "_Subparsers", group: str) -> "_Subparsers":
    """The parser of a command that only has commands of its own; its help has an example of each."""
    examples = [f"  {command.example}" for command in COMMANDS if command.name.startswith(f"{group} ")]
    summary = GROUPS[group]
    sub = commands.add_parser(
        group,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog="\n".join(["examples:", *examples]),
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    sub.add_argument("--store", metavar="DIR", default=argparse.SUPPRESS, help="folder of the store")
    return sub.add_subparsers(title="commands", metavar="COMMAND", required=True)


def _add(commands: "_Subparsers", name: str, command: CommandSpec) -> None:
    summary = f"{command.summary[0].upper()}{command.summary[1:]}."
    sub = commands.add_parser(
        name,
        help=command.summary,
        description=f"{summary}\n\n{command.more}" if command.more else summary,
        epilog=f"example:\n  {command.example}",
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    for add in command.arguments:
        add(sub)
    sub.add_argument("--store", metavar="DIR", default=argparse.SUPPRESS, help="folder of the store")
    sub.set_defaults(handler=command.handler, command=command.name, fail=sub.error)
