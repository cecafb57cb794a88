"""Arguments and help of the commands for derived memories: what an agent concluded, believes and plans.

Used by `command_parser`, which imports every args_ file at each start of `everlog`: import nothing heavy here.
"""

import argparse

from everlog.interfaces.cli.args_selection import label_of_each
from everlog.interfaces.cli.args_shared import ENDS, as_of, json, name
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
Shows the items that are still to come. A timer wakes the agent when an item is
due."""

_REFLECT = """\
No turn runs. Rules conclude unless --model names a model; each result names the
records that it rests on. A second call concludes nothing twice."""
_DERIVE = """\
The same log can be derived again, by other rules or another model, as another
generation: nothing is overwritten. --compare shows the differences, and --use
puts the generation in use."""
_WITHDRAW = """\
Nothing is deleted: a withdrawn fact, insight, merge of names or plan stays in
the log, and --restore lets it count again. `everlog memories` shows the seqs."""


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


def _deriving(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kind", dest="kinds", metavar="KIND", action="append", default=[],
        choices=("facts", "reflection", "plans", "blocks"),
        help="derive this kind: facts, reflection, plans or blocks; repeatable (default: the first two)",
    )  # fmt: skip
    _deriver(parser)
    parser.add_argument(
        "--compare", metavar="GENERATION", type=argument_values.count, nargs="?", const=1,
        help="show the differences from this generation (default: 1)",
    )  # fmt: skip
    parser.add_argument("--use", action="store_true", help="put the generation in use")


def _deriver(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", metavar="MODEL", help="model that derives (default: rules, which ask no model)")
    parser.add_argument("--base-url", metavar="URL", help="URL of the model's endpoint")
    parser.add_argument(
        "--generation", metavar="N", type=argument_values.count, default=1,
        help="generation to derive, which stands beside the others (default: 1)",
    )  # fmt: skip


def _withdrawing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("seqs", metavar="SEQ", type=argument_values.seq, nargs="+", help="seqs of derived memories")
    parser.add_argument("--reason", metavar="WORDS", help="why, for the log")
    parser.add_argument("--restore", action="store_true", help="let them count again")


COMMANDS = (
    CommandSpec(
        "memories",
        "memories.list_commands:memories",
        "show what an agent concluded, why, and since when",
        'everlog memories sam --about "Lea"',
        (name, _memories, as_of, json),
        _MEMORIES,
        reads_only=True,
    ),
    CommandSpec(
        "facts",
        "memories.list_commands:facts",
        "show what an agent believes, and when it holds",
        "everlog facts sam --at 2024-03-15",
        (name, _facts, as_of, json),
        _FACTS,
        reads_only=True,
    ),
    CommandSpec(
        "plans",
        "memories.list_commands:plans",
        "show what an agent plans",
        "everlog plans sam",
        (name, _all, as_of, json),
        _PLANS,
        reads_only=True,
    ),
    CommandSpec(
        "reflect",
        "memories.derive_commands:reflect",
        "conclude facts and insights from what was said since the last time",
        "everlog reflect sam",
        (name, label_of_each, _deriver, *ENDS),
        _REFLECT,
    ),
    CommandSpec(
        "derive",
        "memories.derive_commands:derive",
        "derive memories, beside those of another generation if you like",
        "everlog derive sam --generation 2 --model gpt-4o --compare",
        (name, _deriving, *ENDS),
        _DERIVE,
    ),
    CommandSpec(
        "withdraw",
        "memories.derive_commands:withdraw",
        "let derived memories no longer count, or count again",
        "everlog withdraw sam 430 431 --reason wrong",
        (name, _withdrawing, *ENDS),
        _WITHDRAW,
    ),
)
