"""The commands of the group `shared`: their arguments and what the help says of them. Imports nothing heavy."""

import argparse

from everlog.interfaces.common import argument_values
from everlog.interfaces.common.command_options import CommandSpec, json, name, runtime

_CREATING = """\
A shared block is a memory block that several agents have in their core memory:
what one writes there, all read before their next answer. `everlog shared
attach` gives it to an agent."""
_SETTING = """\
Agents that follow it read it before their next answer. --base refuses to undo
what somebody wrote since you looked (`everlog shared show`)."""
_ATTACHING = """\
No turn is run. From its next request on the agent reads the block, and what it
writes there with core_memory_append, core_memory_replace and core_memory_remove
is read by all who follow it."""
_DELETING = """\
Agents that follow it keep what it said, are told that it is gone, and can no
longer edit it. Its log stays, and `everlog shared create` goes on with it."""
_ERASED = """\
An edit that was erased (`everlog erase block:NAME`) says so. Copies stand in
the logs of agents, and are erased there."""


def _block(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("block", metavar="BLOCK", type=argument_values.words, help="name of the shared block")


def _text(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", nargs="?", help="what the block says; - reads it from stdin")
    parser.add_argument("--file", metavar="FILE", help="a file with the text instead")


def _described(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", metavar="N", type=int, help="characters that it may hold (2000 for a new one)")
    parser.add_argument("--description", metavar="WORDS", help="what it is for, in words for the model")


def _protected(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--read-only", action="store_true", help="agents read it and cannot edit it")


def _unprotected(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--editable", action="store_true", help="agents may edit it again")


def _base(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--base", metavar="VERSION", type=int, help="only if this is still its version")


def _moment(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--as-of", metavar="VERSION|TIME", help="as it was at this version, at this ISO time, or so long ago (2h)"
    )


def _label(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--label", metavar="LABEL", default="", help="what the agent calls it (the block's own name)")


COMMANDS = (
    CommandSpec(
        "shared create",
        "manage.shared_commands:create",
        "make a memory block that agents can share",
        'everlog shared create team "The captain is Ann." --limit 4000',
        (_block, _text, _described, _protected, json, runtime),
        _CREATING,
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
        (_block, _moment, json),
    ),
    CommandSpec(
        "shared set",
        "manage.shared_commands:set_",
        "rewrite a shared block",
        'everlog shared set team "The captain is Bob."',
        (_block, _text, _base, json, runtime),
        _SETTING,
    ),
    CommandSpec(
        "shared describe",
        "manage.shared_commands:describe",
        "change the limit, description or protection of a shared block",
        'everlog shared describe team --description "Who is who on board"',
        (_block, _described, _protected, _unprotected, json, runtime),
    ),
    CommandSpec(
        "shared attach",
        "manage.shared_commands:attach",
        "have an agent follow a shared block",
        "everlog shared attach sam team",
        (name, _block, _label, json, runtime),
        _ATTACHING,
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
        _ERASED,
    ),
    CommandSpec(
        "shared delete",
        "manage.shared_commands:delete",
        "end a shared block; what agents know of it stays",
        "everlog shared delete team",
        (_block, json, runtime),
        _DELETING,
    ),
)
"""In the order of the help."""
