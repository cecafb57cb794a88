"""The commands of the group `prompt`: their arguments and what the help says of them. Imports nothing heavy."""

import argparse

from everlog.interfaces.common import argument_values
from everlog.interfaces.common.command_options import CommandSpec, as_of, json, name, runtime, tools

_SHOW = """\
With a SECTION: its template, and what it gives. A section is counted in
characters and in tokens as they are estimated."""
_SETTING = """\
The text may be a template: docs/prompts.md says what it can hold. A template
that is wrong is refused with its line, and nothing is changed."""
_RENDER = """\
It is done by itself where the model, its window, the zone or the functions
change; do it by hand after a change of memory blocks that a template shows."""


def _section(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("section", metavar="SECTION", type=argument_values.words, help="name of the section")


def _one(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("section", metavar="SECTION", nargs="?", help="name of one section (all)")


def _text(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", nargs="?", help="the text; - reads it from stdin")
    parser.add_argument("--file", metavar="FILE", help="a file with the text instead")
    parser.add_argument(
        "--var",
        metavar="NAME=VALUE",
        action="append",
        type=argument_values.named,
        help="a variable of its own (repeatable)",
    )


def _at(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--at", dest="place", metavar="N", type=argument_values.count, help="its place, from 1 (the last)"
    )


def _place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("place", metavar="N", type=argument_values.count, help="its new place, from 1")


def _preset(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--preset", metavar="NAME", default="chat", help="which preset: chat, docs, extras (chat)")


_ENDS = (tools, json, runtime)

COMMANDS = (
    CommandSpec(
        "prompt show",
        "manage.section_commands:show",
        "show the sections of a system prompt",
        "everlog prompt show sam",
        (name, _one, as_of, json),
        _SHOW,
    ),
    CommandSpec(
        "prompt add",
        "manage.section_commands:add",
        "add a section",
        "everlog prompt add sam manners --file manners.md --at 2",
        (name, _section, _text, _at, *_ENDS),
        _SETTING,
    ),
    CommandSpec(
        "prompt set",
        "manage.section_commands:set_",
        "give a section another text",
        'everlog prompt set sam tools "You are on {{ model }}."',
        (name, _section, _text, *_ENDS),
        _SETTING,
    ),
    CommandSpec(
        "prompt move",
        "manage.section_commands:move",
        "put a section at another place",
        "everlog prompt move sam memory 1",
        (name, _section, _place, *_ENDS),
    ),
    CommandSpec(
        "prompt hide",
        "manage.section_commands:hide",
        "keep a section, and leave it out of the prompt",
        "everlog prompt hide sam tools",
        (name, _section, *_ENDS),
    ),
    CommandSpec(
        "prompt unhide",
        "manage.section_commands:unhide",
        "take a hidden section into the prompt again",
        "everlog prompt unhide sam tools",
        (name, _section, *_ENDS),
    ),
    CommandSpec(
        "prompt remove",
        "manage.section_commands:remove",
        "remove a section",
        "everlog prompt remove sam tools",
        (name, _section, *_ENDS),
    ),
    CommandSpec(
        "prompt reset",
        "manage.section_commands:reset",
        "go back to a preset, with its functions",
        "everlog prompt reset sam",
        (name, _preset, *_ENDS),
    ),
    CommandSpec(
        "prompt render",
        "manage.section_commands:render",
        "render the templates again",
        "everlog prompt render sam",
        (name, *_ENDS),
        _RENDER,
    ),
)
"""In the order of the help."""
