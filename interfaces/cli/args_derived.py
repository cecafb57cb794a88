"""Arguments and help of the commands for derived memories: what an agent concluded, believes and plans.

Used by `command_parser`, which imports every args_ file at each start of `everlog`: import nothing heavy here.
"""

import argparse

from everlog.interfaces.cli.args_shared import as_of, json, name
from everlog.interfaces.cli.command_spec import CommandSpec
from everlog.interfaces.common import argument_values

_MEMORIES = """\
Shows insights, facts and plans, each with the records that it rests on and its
deriver. A memory is outdated if it rests on a fact that has ended. `--because`
shows the whole tree of one memory, down to the messages."""
_FACTS = """\
Shows what the agent believes. --at asks what held at a time, and --as-of what
the agent believed at a moment of its life: "what did sam believe on 3 May about
March" is --as-of 2024-05-03 --at 2024-03-15."""
_PLANS = """\
Shows the items that are still to come. Their timers wake the agent when they are
due."""


def _memories(parser: argparse.ArgumentParser) -> None:
    about(parser)
    parser.add_argument(
        "--kind", dest="kinds", metavar="KIND", action="append", default=[],
        choices=("insight", "fact", "plan", "message", "archival"),
        help="show memories of this kind: insight, fact, plan, message or archival; repeatable (default: the first "
        "three)",
    )  # fmt: skip
    parser.add_argument(
        "--because", metavar="SEQ", type=argument_values.seq, help="show what the memory at SEQ rests on, as a tree"
    )


def about(parser: argparse.ArgumentParser) -> None:
    """Add the name of an entity."""
    parser.add_argument("--about", metavar="WORDS", help="show only memories that mention this name or contain WORDS")


def _facts(parser: argparse.ArgumentParser) -> None:
    about(parser)
    parser.add_argument("--at", metavar="TIME", type=argument_values.moment, help="show facts that held at this time")
    _all(parser)


def _all(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="show what has ended, too")


COMMANDS = (
    CommandSpec(
        "memories",
        "show.memories_command:memories",
        "show what an agent concluded, why, and since when",
        'everlog memories sam --about "Lea"',
        (name, _memories, as_of, json),
        _MEMORIES,
        reads_only=True,
    ),
    CommandSpec(
        "facts",
        "show.memories_command:facts",
        "show what an agent believes, and when it holds",
        "everlog facts sam --at 2024-03-15",
        (name, _facts, as_of, json),
        _FACTS,
        reads_only=True,
    ),
    CommandSpec(
        "plans",
        "show.memories_command:plans",
        "show what an agent plans",
        "everlog plans sam",
        (name, _all, as_of, json),
        _PLANS,
        reads_only=True,
    ),
)
