"""Arguments and help of the commands for an agent's context: its prompt, its memory blocks and shared blocks.

Used by `command_parser`, which imports every args_ file at each start of `everlog`: import nothing heavy here.
"""

import argparse

from everlog.interfaces.cli.args_selection import label_of_each
from everlog.interfaces.cli.args_shared import (
    ENDS,
    as_of,
    block_options,
    json,
    name,
    runtime,
    text,
    variables,
)
from everlog.interfaces.cli.command_spec import CommandSpec
from everlog.interfaces.common import argument_values

_PROMPT_SHOW = """\
With SECTION: its template and the rendered text. Sizes are in characters and in
estimated tokens."""

_PROMPT_SETTING = """\
The text may be a template (docs/reference/prompts.md). A faulty template is
rejected with the number of its line, and nothing is changed."""

_PROMPT_RENDER = """\
Templates are rendered automatically when the model, its window, the zone or the
functions change. Run this command after changing memory blocks that a template
shows."""

_BLAME = """\
The text of the block is shown in parts. Each part names the record that put it
there, its turn, and the input of that turn. Words that an edit left where they
were keep their record; words that it moved count as put there by it.

With the seq of an answer or of a summary, each part names what the model had in
sight that has the same words: an edit of memory, a message, a result. Equal
words are a trace, and no proof."""

_BLOCK_EDITING = """\
No turn runs. The change is one event, and the model sees it in its next
request. If a turn is running, the command waits for its end. `everlog memory
NAME` shows the blocks."""

_BLOCK_REMOVING = """\
The agent no longer sees the block. The log still contains it, and `--as-of`
shows it."""

_SHARED_CREATING = """\
A shared block is a memory block in the core memory of several agents. When one
agent edits the block, the others read the new text before their next answer.
`everlog shared attach` attaches a block to an agent."""

_SHARED_SETTING = """\
Attached agents read the new text before their next answer. With --base the edit
is rejected if the block has changed since that version, which `everlog shared
show` prints."""

_SHARED_ATTACHING = """\
No turn runs. The agent reads the block from its next request on. Its edits with
core_memory_append, core_memory_replace and core_memory_remove are read by all
agents that have the block."""

_SHARED_DELETING = """\
Attached agents keep the last text, see that the block was deleted, and can no
longer edit it. The log of the block stays; `everlog shared create` with the
same name continues it."""

_SHARED_HISTORY = """\
Edits that were erased (`everlog erase block:NAME`) are marked as erased. The
logs of agents hold copies; `--derived` erases them too."""


def _section(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("section", metavar="SECTION", type=argument_values.words, help="name of the section")


def _any_section(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("section", metavar="SECTION", nargs="?", help="name of one section (default: all sections)")


def _place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--place", metavar="N", type=argument_values.count, help="position of the section, from 1 (default: the last)"
    )


def _new_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("place", metavar="N", type=argument_values.count, help="new position of the section, from 1")


def _preset(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--preset", metavar="PRESET", default="chat", help="preset: chat, docs or extras (default: chat)"
    )


def _label(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("label", metavar="LABEL", type=argument_values.words, help="label of the memory block")


def _blamed(parser: argparse.ArgumentParser) -> None:
    what = "label of the memory block, or the seq of an answer or of a summary"
    parser.add_argument("label", metavar="LABEL|SEQ", type=argument_values.words, help=what)


def _block(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("block", metavar="BLOCK", type=argument_values.words, help="name of the shared block")


def _base(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--base", metavar="VERSION", type=int, help="edit the block only if VERSION is still its current version"
    )


def _version(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--as-of", metavar="VERSION|TIME", help="show the block as of a version, an ISO time, or an age such as 2h"
    )


def _own_label(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--block-label",
        metavar="LABEL",
        dest="label",
        default="",
        help="label of the block in the agent's core memory (default: the block's name)",
    )


COMMANDS = (
    CommandSpec(
        "prompt show",
        "manage.section_commands:show",
        "show the sections of a system prompt",
        "everlog prompt show sam",
        (name, _any_section, as_of, json),
        _PROMPT_SHOW,
        reads_only=True,
    ),
    CommandSpec(
        "prompt add",
        "manage.section_commands:add",
        "add a section",
        "everlog prompt add sam manners --file manners.md --place 2",
        (name, _section, text, variables, _place, *ENDS),
        _PROMPT_SETTING,
    ),
    CommandSpec(
        "prompt set",
        "manage.section_commands:set_",
        "replace the text of a section",
        'everlog prompt set sam tools "You are on {{ model }}."',
        (name, _section, text, variables, *ENDS),
        _PROMPT_SETTING,
    ),
    CommandSpec(
        "prompt move",
        "manage.section_commands:move",
        "move a section to another position",
        "everlog prompt move sam memory 1",
        (name, _section, _new_place, *ENDS),
    ),
    CommandSpec(
        "prompt hide",
        "manage.section_commands:hide",
        "leave a section out of the prompt, without removing it",
        "everlog prompt hide sam tools",
        (name, _section, *ENDS),
    ),
    CommandSpec(
        "prompt unhide",
        "manage.section_commands:unhide",
        "put a hidden section back into the prompt",
        "everlog prompt unhide sam tools",
        (name, _section, *ENDS),
    ),
    CommandSpec(
        "prompt remove",
        "manage.section_commands:remove",
        "remove a section",
        "everlog prompt remove sam tools",
        (name, _section, *ENDS),
    ),
    CommandSpec(
        "prompt reset",
        "manage.section_commands:reset",
        "restore the prompt and the functions of a preset",
        "everlog prompt reset sam",
        (name, _preset, *ENDS),
    ),
    CommandSpec(
        "prompt render",
        "manage.section_commands:render",
        "render the templates again",
        "everlog prompt render sam",
        (name, *ENDS),
        _PROMPT_RENDER,
    ),
    CommandSpec(
        "blame",
        "replay_console.blame_command:blame",
        "show where the words of a memory block, an answer or a summary come from",
        "everlog blame sam human",
        (name, _blamed, as_of, json),
        _BLAME,
        reads_only=True,
    ),
    CommandSpec(
        "block add",
        "manage.block_commands:add",
        "add a memory block to an agent",
        'everlog block add sam rules "Be kind." --read-only --limit 500',
        (name, _label, text, block_options, json, runtime),
        _BLOCK_EDITING,
    ),
    CommandSpec(
        "block set",
        "manage.block_commands:set_",
        "change a memory block: value, limit, description, read-only flag",
        'everlog block set sam rules "Be kind and brief."',
        (name, _label, text, block_options, json, runtime),
        _BLOCK_EDITING,
    ),
    CommandSpec(
        "block remove",
        "manage.block_commands:remove",
        "remove a memory block from core memory",
        "everlog block remove sam rules",
        (name, _label, json, runtime),
        _BLOCK_REMOVING,
    ),
    CommandSpec(
        "shared create",
        "manage.shared_commands:create",
        "create a memory block that agents can share",
        'everlog shared create team "The captain is Ann." --limit 4000',
        (_block, text, block_options, json, runtime),
        _SHARED_CREATING,
    ),
    CommandSpec(
        "shared list",
        "manage.shared_commands:listed",
        "list shared blocks, and the agents that have them",
        "everlog shared list",
        (json,),
        reads_only=True,
    ),
    CommandSpec(
        "shared show",
        "manage.shared_commands:show",
        "show a shared block, now or at an earlier moment",
        "everlog shared show team --as-of 2h",
        (_block, _version, json),
        reads_only=True,
    ),
    CommandSpec(
        "shared set",
        "manage.shared_commands:set_",
        "replace the text of a shared block",
        'everlog shared set team "The captain is Bob."',
        (_block, text, _base, json, runtime),
        _SHARED_SETTING,
    ),
    CommandSpec(
        "shared describe",
        "manage.shared_commands:describe",
        "change the limit, description or read-only flag of a shared block",
        'everlog shared describe team --description "Who is who on board"',
        (_block, block_options, json, runtime),
    ),
    CommandSpec(
        "shared attach",
        "manage.shared_commands:attach",
        "attach a shared block to an agent",
        "everlog shared attach sam team",
        (name, label_of_each, _block, _own_label, json, runtime),
        _SHARED_ATTACHING,
    ),
    CommandSpec(
        "shared detach",
        "manage.shared_commands:detach",
        "detach a shared block from an agent",
        "everlog shared detach sam team",
        (name, label_of_each, _block, json, runtime),
    ),
    CommandSpec(
        "shared history",
        "manage.shared_commands:history",
        "list all edits of a shared block, with their authors",
        "everlog shared history team",
        (_block, json),
        _SHARED_HISTORY,
        reads_only=True,
    ),
    CommandSpec(
        "shared delete",
        "manage.shared_commands:delete",
        "delete a shared block; agents keep its last text",
        "everlog shared delete team",
        (_block, json, runtime),
        _SHARED_DELETING,
    ),
)
"""In the order of the help."""
