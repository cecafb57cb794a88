"""The parser of the command line: every command, or the one that was typed. Imports nothing heavy.

Used by `command_run`, by the tour, and by `docs/make`, which makes the reference of the command line from it.

A command names its handler as "module:function"; the module is imported when the command runs.
"""

import argparse
import shutil
from collections.abc import Sequence
from typing import NoReturn, TypeAlias

from everlog.interfaces.cli import (
    args_archive,
    args_derived,
    args_fleet,
    args_manage,
    args_memory,
    args_operate,
    args_presets,
    args_serve,
    args_show,
    args_talk,
)
from everlog.interfaces.cli.args_selection import label_of_all, label_of_each
from everlog.interfaces.cli.command_spec import CommandSpec
from everlog.interfaces.common.error_output import complain
from everlog.interfaces.common.exits import USAGE_ERROR
from everlog.interfaces.common.installed import installed_version
from everlog.interfaces.defaults.default_keys import BY_NAME

LEVELS = BY_NAME["log"].choices
SUGGESTIONS_MAX = 3
"""Most commands that are suggested for a word that is not a command."""


class _Parser(argparse.ArgumentParser):
    """A parser that prints the reason of a usage error first, and then one line of usage."""

    def error(self, message: str) -> NoReturn:
        """Print the reason and the usage on stderr, and exit with 2."""
        complain(message)
        lists = "commands" if self._subparsers is not None else "options"
        self.exit(USAGE_ERROR, f"usage: {self.usage or self.prog}; `{self.prog} --help` lists the {lists}\n")

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """Raise ArgumentError for a word that is not a command; it names similar commands and not all of them."""
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:  # noqa: SLF001
            raise argparse.ArgumentError(None, unknown_command(self.prog, str(value)))
        super()._check_value(action, value)

    def set_usage(self, positionals: str = "") -> None:
        """Set a usage line of positional and required arguments only. `positionals` replaces the parser's own."""
        known = [_usage_of(action) for action in self._get_positional_actions()]
        required = [f"{action.option_strings[-1]} {action.metavar}" for action in self._get_optional_actions()
                    if action.required]  # fmt: skip
        self.usage = " ".join([self.prog, *([positionals] if positionals else known), *required, "[options]"])


def _usage_of(action: argparse.Action) -> str:
    name = str(action.metavar)
    return {"?": f"[{name}]", "*": f"[{name} ...]"}.get(str(action.nargs), name)


_Subparsers: TypeAlias = "argparse._SubParsersAction[_Parser]"  # noqa: SLF001 - it has no public name


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=min(100, shutil.get_terminal_size().columns - 2))


COMMANDS = (
    *args_talk.COMMANDS,
    *args_show.COMMANDS,
    *args_manage.COMMANDS,
    *args_memory.COMMANDS,
    *args_presets.COMMANDS,
    *args_archive.COMMANDS,
    *args_derived.COMMANDS,
    *args_fleet.COMMANDS,
    *args_serve.COMMANDS,
    *args_operate.COMMANDS,
)
"""Every command, in the order of the help. A name of two words belongs to a group."""

GROUPS = {
    "a2a": "add, list, test and remove agents of other programs, which agents may ask",
    "archive": "search and edit archival memory, and maintain its index",
    "block": "add, change and remove memory blocks",
    "cluster": "show the state of a cluster",
    "keys": "create, list and revoke the keys of a server",
    "log": "check, measure and seal the files of a log",
    "mcp": "add, list, test, refresh and remove the servers that lend functions to agents",
    "preset": "list, add and remove personas and humans for new agents",
    "prompt": "show and change the sections of a system prompt",
    "store": "copy a store",
    "shared": "create, edit and attach memory blocks that agents share",
}
"""Summaries of the commands that have commands of their own."""


_EPILOG = """\
example:
  everlog chat sam

`everlog COMMAND --help` has an example of each. `everlog tour` teaches everlog
in ten minutes."""


def parser(words: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Return the parser of the command that `words` name; that of all commands if they name none.

    Both accept the same arguments for a command. The parser of one command is faster to build: it does not add the
    hundreds of options of the others.
    """
    root = _Parser(
        prog="everlog",
        description="Agents with memory, whose whole state is their log of events.",
        epilog=_EPILOG,
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    root.add_argument("--version", action=_VersionAction, nargs=0, help="print the version of everlog")
    root.add_argument("--store", metavar="DIR", help=STORE_HELP)
    root.add_argument("--server", metavar="URL", help=SERVER_HELP)
    root.add_argument("--log", dest="log_level", metavar="LEVEL", choices=LEVELS, help=LOG_HELP)
    root.add_argument("--json", action="store_true", help="print JSON, for every command that has --json")
    commands = root.add_subparsers(title="commands", metavar="COMMAND")
    root.set_defaults(handler="cli.help_command:overview", command="", reads_only=True, has_json=False,
                      reads_defaults=False, fail=root.error)  # fmt: skip
    root.usage = "everlog COMMAND [arguments]"
    groups: dict[str, _Subparsers] = {}
    for command in _named(words) or COMMANDS:
        group, _, name = command.name.rpartition(" ")
        if group and group not in groups:
            groups[group] = _group(commands, group)
        _add(groups[group] if group else commands, name, command)
    return root


STORE_HELP = "folder of the store, or s3://BUCKET/PREFIX, gs:// or az:// (default: EVERLOG_STORE, else ~/.everlog)"
SERVER_HELP = "address of a server, instead of a store (default: EVERLOG_SERVER, else none)"
LOG_HELP = f"log what the program does: {', '.join(LEVELS)} (default: EVERLOG_LOG, else none)"


def command_help(words: Sequence[str]) -> str | None:
    """Return the help of a command, of a group of commands, or of all for no words; None if `words` name none."""
    at: argparse.ArgumentParser = parser()
    for word in words:
        below = next((action for action in at._actions if isinstance(action, argparse._SubParsersAction)), None)  # noqa: SLF001
        if below is None or word not in below.choices:
            return None
        at = below.choices[word]
    return at.format_help()


class _VersionAction(argparse.Action):
    """Print the version. The package's metadata is read only then: it takes as long as the rest of the start."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        print(f"everlog {installed_version()}")
        parser.exit(0)


def unknown_command(prog: str, word: str) -> str:
    """Return the error for a word that is not a command of `prog`, with the commands of similar names."""
    from difflib import get_close_matches

    group = f"{prog} ".removeprefix("everlog ")
    names = [name for name in (*GROUPS, *(command.name for command in COMMANDS)) if name.startswith(group)]
    last_words = [name.split()[-1] for name in names]
    near = [word] if word in last_words else get_close_matches(word, dict.fromkeys(last_words), SUGGESTIONS_MAX, 0.7)
    meant = [f"`everlog {name}`" for one in near for name in names if name.split()[-1] == one][:SUGGESTIONS_MAX]
    hint = f"; did you mean {' or '.join(meant)}?" if meant else "."
    return f"there is no command {group + word!r}{hint}"


def _named(words: Sequence[str]) -> Sequence[CommandSpec]:
    """Return a list of the one command that `words` begin with, without the options that may come first; an empty list
    if there is none.
    """
    said: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in ("--store", "--server", "--log"):
            next(rest, None)
        elif word != "--json" and not word.startswith(("--store=", "--server=", "--log=")):
            said.append(word)
    return [command for command in COMMANDS if command.name.split() == said[: command.name.count(" ") + 1]]


def with_name(words: Sequence[str]) -> Sequence[str]:
    """Return the words of a command line with a name where --label stands for it: argparse cannot leave out the first
    of two positional arguments.
    """
    labelled = {label_of_each, label_of_all}
    commands = [command for command in _named(words) if labelled.intersection(command.arguments)]
    ahead = words[: words.index("--")] if "--" in words else words
    if not commands or not any(word == "--label" or word.startswith("--label=") for word in ahead):
        return words
    left, rest = len(commands[0].name.split()), iter(range(len(words)))
    for at in rest:
        if words[at] in ("--store", "--server", "--log"):
            next(rest, None)
        elif words[at] != "--json" and not words[at].startswith(("--store=", "--server=", "--log=")):
            left -= 1
            if not left:
                return [*words[: at + 1], NAMELESS, *words[at + 1 :]]
    return words


NAMELESS = "* of --label"
"""Name in the arguments while --label stands for it."""


def _group(commands: "_Subparsers", group: str) -> "_Subparsers":
    """Add the parser of a command that only has commands of its own; its help has an example of each."""
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
    _add_everywhere(sub)
    within = sub.add_subparsers(title="commands", metavar="COMMAND", required=True)
    sub.usage = f"{sub.prog} COMMAND [arguments]"
    return within


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
    _add_everywhere(sub)
    json = next((action for action in sub._actions if "--json" in action.option_strings), None)  # noqa: SLF001
    if json is not None:
        json.default = argparse.SUPPRESS  # --json may come before the command: the value of the root stays
    sub.set_usage(command.usage)
    sub.set_defaults(
        handler=command.handler, command=command.name, reads_only=command.reads_only, has_json=json is not None,
        reads_defaults=command.reads_defaults, fail=sub.error,
    )  # fmt: skip


def _add_everywhere(sub: argparse.ArgumentParser) -> None:
    """Add the options that may come before the command and after it."""
    sub.add_argument("--store", metavar="DIR", default=argparse.SUPPRESS, help=STORE_HELP)
    sub.add_argument("--server", metavar="URL", default=argparse.SUPPRESS, help=SERVER_HELP)
    sub.add_argument(
        "--log", dest="log_level", metavar="LEVEL", choices=LEVELS, default=argparse.SUPPRESS, help=LOG_HELP
    )
