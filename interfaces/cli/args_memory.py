"""Arguments of the commands for what an agent has in its context: its prompt, its memory blocks, shared blocks."""

import argparse

from everlog.interfaces.cli.args_shared import (
    ENDS,
    CommandSpec,
    as_of,
    block_options,
    json,
    name,
    runtime,
    text,
    variables,
)
from everlog.interfaces.common import argument_values

_PROMPT_SHOW = """\
With a SECTION: its template, and what it gives. A section is counted in
characters and in tokens as they are estimated."""

_PROMPT_SETTING = """\
The text may be a template: docs/prompts.md says what it can hold. A template
that is wrong is refused with its line, and nothing is changed."""

_PROMPT_RENDER = """\
It is done by itself where the model, its window, the zone or the functions
change; do it by hand after a change of memory blocks that a template shows."""

_BLOCK_EDITING = """\
No turn is run: it is one event, and the model sees it in its next request. A
turn that runs is waited for. `everlog memory NAME` shows the blocks."""

_BLOCK_REMOVING = """\
The agent no longer sees it. The log still says what it held, and `--as-of`
shows it."""

_SHARED_CREATING = """\
A shared block is a memory block that several agents have in their core memory:
what one writes there, all read before their next answer. `everlog shared
attach` gives it to an agent."""

_SHARED_SETTING = """\
Agents that follow it read it before their next answer. --base refuses to undo
what somebody wrote since you looked (`everlog shared show`)."""

_SHARED_ATTACHING = """\
No turn is run. From its next request on the agent reads the block, and what it
writes there with core_memory_append, core_memory_replace and core_memory_remove
is read by all who follow it."""

_SHARED_DELETING = """\
Agents that follow it keep what it said, are told that it is gone, and can no
longer edit it. Its log stays, and `everlog shared create` goes on with it."""

_SHARED_HISTORY = """\
An edit that was erased (`everlog erase block:NAME`) says so. Copies stand in
the logs of agents, and are erased there."""


def _section(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("section", metavar="SECTION", type=argument_values.words, help="name of the section")


def _any_section(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("section", metavar="SECTION", nargs="?", help="name of one section (all)")


def _place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--place", metavar="N", type=argument_values.count, help="its place, from 1 (the last)")


def _new_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("place", metavar="N", type=argument_values.count, help="its new place, from 1")


def _preset(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--preset", metavar="PRESET", default="chat", help="which preset: chat, docs, extras (chat)")


def _label(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("label", metavar="LABEL", type=argument_values.words, help="label of the memory block")


def _block(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("block", metavar="BLOCK", type=argument_values.words, help="name of the shared block")


def _base(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--base", metavar="VERSION", type=int, help="only if this is still its version")


def _version(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--as-of", metavar="VERSION|TIME", help="as it was at this version, at this ISO time, or so long ago (2h)"
    )


def _own_label(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--label", metavar="LABEL", default="", help="what the agent calls it (the block's own name)")


COMMANDS = (
    CommandSpec(
        "prompt show",
        "manage.section_commands:show",
        "show the sections of a system prompt",
        "everlog prompt show sam",
        (name, _any_section, as_of, json),
        _PROMPT_SHOW,
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
        "give a section another text",
        'everlog prompt set sam tools "You are on {{ model }}."',
        (name, _section, text, variables, *ENDS),
        _PROMPT_SETTING,
    ),
    CommandSpec(
        "prompt move",
        "manage.section_commands:move",
        "put a section at another place",
        "everlog prompt move sam memory 1",
        (name, _section, _new_place, *ENDS),
    ),
    CommandSpec(
        "prompt hide",
        "manage.section_commands:hide",
        "keep a section, and leave it out of the prompt",
        "everlog prompt hide sam tools",
        (name, _section, *ENDS),
    ),
    CommandSpec(
        "prompt unhide",
        "manage.section_commands:unhide",
        "take a hidden section into the prompt again",
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
        "go back to a preset, with its functions",
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
        "block add",
        "manage.block_commands:add",
        "give an agent another memory block",
        'everlog block add sam rules "Be kind." --read-only --limit 500',
        (name, _label, text, block_options, json, runtime),
        _BLOCK_EDITING,
    ),
    CommandSpec(
        "block set",
        "manage.block_commands:set_",
        "change a memory block: value, limit, description, protection",
        'everlog block set sam rules "Be kind and brief."',
        (name, _label, text, block_options, json, runtime),
        _BLOCK_EDITING,
    ),
    CommandSpec(
        "block remove",
        "manage.block_commands:remove",
        "take a memory block out of core memory",
        "everlog block remove sam rules",
        (name, _label, json, runtime),
        _BLOCK_REMOVING,
    ),
    CommandSpec(
        "shared create",
        "manage.shared_commands:create",
        "make a memory block that agents can share",
        'everlog shared create team "The captain is Ann." --limit 4000',
        (_block, text, block_options, json, runtime),
        _SHARED_CREATING,
    ),
    CommandSpec(
        "shared list",
        "manage.shared_commands:listed",
        "list the shared blocks, and who follows each",
        "everlog shared list",
        (json,),
    ),
    CommandSpec(
        "shared show",
        "manage.shared_commands:show",
        "show what a shared block says, now or then",
        "everlog shared show team --as-of 2h",
        (_block, _version, json),
    ),
    CommandSpec(
        "shared set",
        "manage.shared_commands:set_",
        "rewrite a shared block",
        'everlog shared set team "The captain is Bob."',
        (_block, text, _base, json, runtime),
        _SHARED_SETTING,
    ),
    CommandSpec(
        "shared describe",
        "manage.shared_commands:describe",
        "change the limit, description or protection of a shared block",
        'everlog shared describe team --description "Who is who on board"',
        (_block, block_options, json, runtime),
    ),
    CommandSpec(
        "shared attach",
        "manage.shared_commands:attach",
        "have an agent follow a shared block",
        "everlog shared attach sam team",
        (name, _block, _own_label, json, runtime),
        _SHARED_ATTACHING,
    ),
    CommandSpec(
        "shared detach",
        "manage.shared_commands:detach",
        "take a shared block out of an agent's core memory",
        "everlog shared detach sam team",
        (name, _block, json, runtime),
    ),
    CommandSpec(
        "shared history",
        "manage.shared_commands:history",
        "list every edit of a shared block, and who made it",
        "everlog shared history team",
        (_block, json),
        _SHARED_HISTORY,
    ),
    CommandSpec(
        "shared delete",
        "manage.shared_commands:delete",
        "end a shared block; what agents know of it stays",
        "everlog shared delete team",
        (_block, json, runtime),
        _SHARED_DELETING,
    ),
)
"""In the order of the help."""
