"""The commands of the group `block`: their arguments and what the help says of them. Imports nothing heavy."""

import argparse

from everlog.interfaces.common import argument_values
from everlog.interfaces.common.command_options import CommandSpec, json, name, runtime

_EDITING = """\
No turn is run: it is one event, and the model sees it in its next request. A
turn that runs is waited for. `everlog memory NAME` shows the blocks."""
_REMOVING = """\
The agent no longer sees it. The log still says what it held, and `--as-of`
shows it."""


def _label(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("label", metavar="LABEL", type=argument_values.words, help="label of the memory block")


def _text(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", nargs="?", help="its value; - reads it from stdin")
    parser.add_argument("--file", metavar="FILE", help="a file with the value instead")


def _more(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", metavar="N", type=argument_values.whole, help="characters that it may hold, at most")
    parser.add_argument("--description", metavar="TEXT", help="what it is for, in words for the model")
    parser.add_argument(
        "--read-only",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="the agent sees it and cannot edit it",
    )


COMMANDS = (
    CommandSpec(
        "block add",
        "manage.block_commands:add",
        "give an agent another memory block",
        'everlog block add sam rules "Be kind." --read-only --limit 500',
        (name, _label, _text, _more, json, runtime),
        _EDITING,
    ),
    CommandSpec(
        "block set",
        "manage.block_commands:set_",
        "change a memory block: value, limit, description, protection",
        'everlog block set sam rules "Be kind and brief."',
        (name, _label, _text, _more, json, runtime),
        _EDITING,
    ),
    CommandSpec(
        "block remove",
        "manage.block_commands:remove",
        "take a memory block out of core memory",
        "everlog block remove sam rules",
        (name, _label, json, runtime),
        _REMOVING,
    ),
)
"""In the order of the help."""
