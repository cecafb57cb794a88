"""Arguments and help of the commands for personas and humans of new agents.

Used by `command_parser`, which imports every args_ file at each start of `everlog`: import nothing heavy here.
"""

import argparse

from everlog.interfaces.cli.args_shared import json, text
from everlog.interfaces.cli.command_spec import CommandSpec

_ADDING = """\
The text is kept in the store. A new agent gets a copy of it with --persona or
--human. In a persona, {{ agent }} stands for the name of the agent."""


def _which(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", metavar="KIND", choices=("persona", "human"), help="kind: persona or human")
    parser.add_argument("preset", metavar="PRESET", help="name of the preset")


COMMANDS = (
    CommandSpec(
        "preset list",
        "manage.preset_commands:list_",
        "list the personas and humans for new agents",
        "everlog preset list",
        (json,),
        reads_only=True,
    ),
    CommandSpec(
        "preset show",
        "manage.preset_commands:show",
        "show the text of a persona or human",
        "everlog preset show persona sam",
        (_which, json),
        reads_only=True,
    ),
    CommandSpec(
        "preset add",
        "manage.preset_commands:add",
        "add a persona or human",
        'everlog preset add human chad "First name: Chad. Sails."',
        (_which, text, json),
        _ADDING,
    ),
    CommandSpec(
        "preset remove",
        "manage.preset_commands:remove",
        "remove a persona or human that was added",
        "everlog preset remove human chad",
        (_which, json),
    ),
)
"""In the order of the help."""
