"""Make the reference of the command line from its parser: synopsis, arguments, options, defaults, example."""

import argparse
import re
from collections import Counter

from docs.make.blocks import UnknownBlock, escaped, table
from everlog.interfaces.cli.command_parser import COMMANDS, GROUPS
from everlog.interfaces.cli.command_spec import CommandSpec

EVERYWHERE = ("--help", "--store", "--json")
"""Options that the page explains once, for all commands."""
ORDINARY = ("positional arguments", "options", "optional arguments")
"""Titles that argparse gives to the arguments of no group."""

_DEFAULT = re.compile(r"\s*\(default: ([^()]*(?:\([^()]*\))?[^()]*)\)")


def _parser(command: CommandSpec) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False)
    for add in command.arguments:
        add(parser)
    return parser


def _titled(parser: argparse.ArgumentParser) -> "dict[str, argparse._ArgumentGroup]":
    """Return the groups of a parser that have a title of their own and hold something."""
    groups = parser._action_groups  # noqa: SLF001 - argparse has no public name for them
    return {group.title: group for group in groups if group.title not in ORDINARY and group.title and _of(group)}


def _of(group: "argparse._ArgumentGroup") -> list[argparse.Action]:
    return group._group_actions  # noqa: SLF001


def _shared() -> "dict[str, argparse._ArgumentGroup]":
    """Return the groups of options that several commands have, by title."""
    found = [_titled(_parser(command)) for command in COMMANDS]
    times = Counter(title for groups in found for title in groups)
    return {title: group for groups in found for title, group in groups.items() if times[title] > 1}


def _words(action: argparse.Action) -> str:
    """Return the help of an argument without what it says of its default."""
    text = (action.help or "").replace("%%", "%")
    return escaped(_DEFAULT.sub("", text))


def _default(action: argparse.Action) -> str:
    """Return the default of an argument, as the help says it or else as the parser has it; empty if there is none."""
    said = _DEFAULT.search(action.help or "")
    if said is not None:
        return escaped(said[1])
    if action.default in (None, False, True, "", argparse.SUPPRESS) or isinstance(action.default, list):
        return ""
    return f"`{action.default}`"


def _name(action: argparse.Action) -> str:
    """Return an argument as it is typed."""
    value = f" {action.metavar}" if action.nargs != 0 and action.metavar else ""
    if not action.option_strings:
        return f"`{action.metavar or action.dest}`"
    return ", ".join(f"`{option}{value}`" for option in action.option_strings)


def _options(actions: list[argparse.Action]) -> str:
    rows = [(_name(a), _words(a), _default(a)) for a in actions if not set(a.option_strings) & set(EVERYWHERE)]
    if not any(default for *_, default in rows):
        return table(("argument", "meaning"), [row[:2] for row in rows])
    return table(("argument", "meaning", "default"), rows)


def _group(title: str, group: "argparse._ArgumentGroup") -> list[str]:
    """Return the parts of a group of options that only one command has."""
    return [f"**{title[0].upper()}{title[1:]}.** {escaped(group.description or '')}".strip(), _options(_of(group))]


def _synopsis(command: CommandSpec, parser: argparse.ArgumentParser) -> str:
    words = ["everlog", command.name]
    for action in parser._actions:  # noqa: SLF001 - argparse has no public name for them
        if not action.option_strings:
            value = str(action.metavar or action.dest)
            words.append({"?": f"[{value}]", "*": f"[{value} ...]", "+": f"{value} ..."}.get(str(action.nargs), value))
    required = [action for action in parser._actions if action.required and action.option_strings]  # noqa: SLF001
    words += [f"{action.option_strings[-1]} {action.metavar}" for action in required]
    return " ".join([*words, "[OPTIONS]"])


def _paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a help text, each on one line; what is indented stays as it is, as code."""
    found = []
    for part in re.split(r"\n\s*\n", text.strip("\n")) if text else ():
        indented = all(line.startswith("  ") for line in part.splitlines())
        found.append(f"```text\n{part}\n```" if indented else escaped(" ".join(part.split())))
    return found


def command_block(name: str, _: str) -> str:
    """Return the reference of one command: all that its `--help` says. Raise UnknownBlock if there is none."""
    command = next((command for command in COMMANDS if command.name == name), None)
    if command is None:
        raise UnknownBlock(f"there is no command {name!r}")
    parser = _parser(command)
    shared = _shared()
    titled = _titled(parser)
    own = [action for group in titled.values() for action in _of(group)]
    plain = [action for action in parser._actions if action not in own]  # noqa: SLF001
    parts = [f"{escaped(command.summary[0].upper() + command.summary[1:])}.", *_paragraphs(command.more)]
    parts += [f"```text\n{_synopsis(command, parser)}\n```", _options(plain)]
    links = [f"[{title}](#{anchor(title)})" for title in titled if title in shared]
    parts += [part for title, group in titled.items() if title not in shared for part in _group(title, group)]
    if links:
        parts.append(f"Options that several commands have: {', '.join(links)}.")
    parts.append(f"```sh\n{command.example}\n```")
    return "\n\n".join(part for part in parts if part)


def anchor(title: str) -> str:
    """Return the anchor of a heading, as GitHub and the site make it."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def group_block(title: str, _: str) -> str:
    """Return the table of a group of options that several commands have. Raise UnknownBlock if there is none."""
    shared = _shared()
    number = int(title) - 1 if title.isdigit() else -1
    found = list(shared.values())[number] if 0 <= number < len(shared) else shared.get(title)
    if found is None:
        raise UnknownBlock(f"there is no group {title!r}: there are {sorted(shared)}")
    about = escaped(" ".join((found.description or "").split()))
    return "\n\n".join(part for part in (f"### {found.title}", about, _options(_of(found))) if part)


def list_block(_name: str, _: str) -> str:
    """Return the list of all commands, each with its summary and a link to its section."""
    rows = [
        (f"[`everlog {command.name}`](#{anchor(f'everlog {command.name}')})", escaped(command.summary))
        for command in COMMANDS
    ]
    return table(("command", "does"), rows)


def missing(page: str) -> list[str]:
    """Return the names of commands and groups of commands for which a page has no heading."""
    wanted = [*(command.name for command in COMMANDS), *GROUPS]
    return [name for name in wanted if f"\n## everlog {name}\n" not in page and f"\n### everlog {name}\n" not in page]
