"""What a command of the command line is, and the options that several commands have: each is defined here, once.

docs/cli.md has the table of those that mean the same everywhere. Imports nothing heavy.
"""

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

from everlog.interfaces.common import argument_values

Add = Callable[[argparse.ArgumentParser], None]

Group = Any
"""A parser, or a group of its arguments: argparse has no public name for both."""

PLACEMENTS = ("shared", "dedicated")


class CommandSpec(NamedTuple):
    """One command of the command line."""

    name: str
    handler: str
    summary: str
    example: str
    arguments: tuple[Add, ...]
    more: str = ""
    """What the help says after the summary."""


def name(parser: argparse.ArgumentParser) -> None:
    """Add the agent that is meant."""
    parser.add_argument("name", metavar="NAME", help="name of the agent")


def name_or_sam(parser: argparse.ArgumentParser) -> None:
    """Add the agent that is meant, sam where none is."""
    parser.add_argument("name", metavar="NAME", nargs="?", default="sam", help="name of the agent (sam)")


def name_or_all(parser: argparse.ArgumentParser) -> None:
    """Add one agent, or all of the store."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="name of the agent")
    parser.add_argument("--all", action="store_true", help="every agent of the store")


def new_name(parser: argparse.ArgumentParser) -> None:
    """Add the name of the agent that a command makes of another one."""
    parser.add_argument("--new-name", dest="new", metavar="NEW", required=True, help="name of the fork")


def json(parser: argparse.ArgumentParser) -> None:
    """Add output for programs."""
    parser.add_argument("--json", action="store_true", help="print JSON, as docs/cli.md promises it")


def as_of(parser: argparse.ArgumentParser) -> None:
    """Add a moment of the past."""
    parser.add_argument(
        "--as-of", metavar="SEQ|TIME", help="as it was at this seq, at this ISO time, or so long ago (2h)"
    )


def records(parser: argparse.ArgumentParser) -> None:
    """Add a range of records."""
    parser.add_argument(
        "--from", dest="first", metavar="SEQ", type=argument_values.seq, default=1, help="first seq (1)"
    )
    parser.add_argument(
        "--to", dest="last", metavar="SEQ", type=argument_values.seq, help="last seq, inclusive (the head)"
    )


def follow(parser: argparse.ArgumentParser) -> None:
    """Add going on with what comes."""
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what comes, until Ctrl-C")


def yes_option(parser: argparse.ArgumentParser) -> None:
    """Add the answer to what would be asked."""
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


def query(parser: argparse.ArgumentParser) -> None:
    """Add what is looked for."""
    parser.add_argument("query", metavar="QUERY", nargs="?", help="what to look for")


def filters(parser: argparse.ArgumentParser) -> None:
    """Add what the results of a search or a list must be, and which page of them."""
    parser.add_argument("--since", metavar="DAY", default="", help="only from this day on, as 2024-01-31")
    parser.add_argument("--until", metavar="DAY", default="", help="only up to this day, inclusive")
    parser.add_argument("--tag", dest="tags", metavar="TAG", action="append", help="only with this tag (repeatable)")
    parser.add_argument("--source", metavar="SOURCE", default="", help="only what was loaded into this source")
    parser.add_argument("--page", metavar="N", type=argument_values.page, default=1, help="page, from 1 (1)")


def words(parser: argparse.ArgumentParser) -> None:
    """Add how a search goes."""
    parser.add_argument(
        "--words", action="store_true", help="search by words alone: it does not wait some seconds for vectors"
    )


def text(parser: argparse.ArgumentParser) -> None:
    """Add a text: typed, from stdin, or in a file."""
    parser.add_argument("text", metavar="TEXT", nargs="?", help="the text; - reads it from stdin")
    parser.add_argument("--file", metavar="FILE", help="a file with the text instead")


def tags(parser: argparse.ArgumentParser) -> None:
    """Add the tags that a memory gets."""
    parser.add_argument("--tag", dest="tags", metavar="TAG", action="append", help="a tag of it (repeatable)")


def block_options(parser: argparse.ArgumentParser) -> None:
    """Add what there is to say of a memory block besides its value."""
    parser.add_argument(
        "--limit", metavar="N", type=argument_values.whole_number, help="characters that it may hold, at most"
    )
    parser.add_argument("--description", metavar="TEXT", help="what it is for, in words for the model")
    switch(parser, "--read-only", "agents see it and cannot edit it")


def tools(parser: argparse.ArgumentParser) -> None:
    """Add functions of the user's own."""
    parser.add_argument(
        "--tools", metavar="FILE.py", action="append", default=[], help="functions of your own (repeatable)"
    )


def runtime(parser: argparse.ArgumentParser) -> None:
    """Add where the agent runs."""
    parser.add_argument(
        "--runtime",
        choices=("auto", "local", "ray"),
        metavar="WHERE",
        help="where the agent runs: local (this process), ray (a cluster), auto (a cluster if one runs); "
        "EVERLOG_RUNTIME, else auto",
    )


def placement(parser: argparse.ArgumentParser, default: str | None = "dedicated") -> None:
    """Add how agents live; required where there is no default."""
    parser.add_argument(
        "--placement",
        choices=PLACEMENTS,
        default=default,
        required=default is None,
        metavar="HOW",
        help="shared (many in one process and log), or dedicated (a process and log for each)"
        + (f" ({default})" if default else ""),
    )


def shards(parser: argparse.ArgumentParser) -> None:
    """Add the number of shards of a store that is made."""
    parser.add_argument(
        "--shards",
        metavar="N",
        type=argument_values.count,
        help="shared logs of a store that is made (one for each processor)",
    )


def model(group: Group, what: str) -> None:
    """Add a model."""
    group.add_argument("--model", metavar="MODEL", type=argument_values.words, help=what)


def base_url(group: Group) -> None:
    """Add where models are served."""
    group.add_argument(
        "--base-url",
        metavar="URL",
        help="the OpenAI-compatible endpoint that serves the model; else as models.toml or OPENAI_BASE_URL says",
    )


def window(group: Group) -> None:
    """Add the context window."""
    group.add_argument("--window", metavar="TOKENS", type=argument_values.window, help="context window of the model")


def system(group: Group) -> None:
    """Add a system prompt as a file."""
    group.add_argument("--system", metavar="FILE", help="a system prompt of your own")


def blocks(group: Group, what: str) -> None:
    """Add memory blocks as files."""
    group.add_argument(
        "--block", metavar="LABEL=FILE[:LIMIT]", action="append", default=[], type=argument_values.block, help=what
    )


def variables(parser: Group) -> None:
    """Add variables of templates."""
    parser.add_argument(
        "--var",
        metavar="NAME=VALUE",
        action="append",
        type=argument_values.name_value,
        help="a variable of your own for the sections that are given (repeatable)",
    )


def switch(group: Group, option: str, what: str) -> None:
    """Add --OPTION and --no-OPTION; neither leaves things as they are."""
    group.add_argument(option, action=argparse.BooleanOptionalAction, default=None, help=what)


def grant_options(parser: argparse.ArgumentParser) -> None:
    """Add what is allowed to the functions of the preset `extras`."""
    group = parser.add_argument_group(
        "what it may reach", "For the functions of the preset `extras`. Never kept: give them each time."
    )
    group.add_argument(
        "--workspace",
        metavar="DIR",
        type=argument_values.allowed,
        help="folder whose text files it may read and add to",
    )
    group.add_argument(
        "--allow-host",
        metavar="HOST[:PORT]",
        action="append",
        default=[],
        type=argument_values.allowed,
        help="web server that it may send requests to (repeatable)",
    )
    group.add_argument(
        "--helper",
        metavar="MODEL",
        type=argument_values.allowed,
        help="model that answers its questions (the agent's own)",
    )


def opening(parser: argparse.ArgumentParser) -> None:
    """Add how an agent is created, and what may be changed when it is opened."""
    group = parser.add_argument_group(
        "the agent",
        "Kept in its log (all but --base-url, --tools, --take-over): give them once.\nThose marked (*): for a new one.",
    )
    model(
        group, "`offline` (rule-based, embedded), a model of an endpoint, ENDPOINT/MODEL, or a file that ends in .gguf"
    )
    base_url(group)
    settings(group)
    group.add_argument(
        "--no-probe", action="store_true", help="do not ask an endpoint that nobody knows what it can do"
    )
    group.add_argument("--persona", metavar="PRESET|FILE", help="who the agent is: a preset or a file (*)")
    group.add_argument("--human", metavar="PRESET|FILE", help="what it knows of the user: a preset or a file (*)")
    _first_blocks(group)
    tools(parser)
    grant_options(parser)
    runtime(parser)
    parser.add_argument("--take-over", action="store_true", help="fence the process that has the agent open")


def _first_blocks(group: Group) -> None:
    """Add the memory blocks of a new agent, and what there is to say of them."""
    blocks(group, "a memory block, with its limit in characters (*, repeatable)")
    group.add_argument(
        "--block-description",
        metavar="LABEL=TEXT",
        action="append",
        type=argument_values.name_value,
        help="what a block is for, in words for the model (*, repeatable)",
    )
    group.add_argument(
        "--block-read-only",
        metavar="LABEL",
        action="append",
        help="a block that the agent sees and cannot edit (*, repeatable)",
    )


def settings(group: Group) -> None:
    """Add how an agent is set up: everything but the model, and what only a new agent has."""
    window(group)
    group.add_argument(
        "--zone",
        metavar="ZONE",
        type=argument_values.words,
        help="time zone that the agent is told the time in, as Europe/Oslo",
    )
    _prompt(group)
    _asking(group)
    _limits(group)


def _prompt(group: Group) -> None:
    group.add_argument(
        "--preset",
        metavar="PRESET",
        type=argument_values.words,
        help="system prompt, and functions: `chat`, `docs` (reads documents), or `extras` (files, web, another model)",
    )
    system(group)
    group.add_argument(
        "--section",
        metavar="SECTION=FILE",
        action="append",
        type=argument_values.name_value,
        help="a section of the system prompt, a text or a template; again for the next one",
    )
    group.add_argument("--sections", metavar="DIR", help="a folder of sections, 10-base.md, 20-memory.md and so on")
    variables(group)


def _asking(group: Group) -> None:
    group.add_argument(
        "--calling",
        choices=("native", "schema", "text"),
        metavar="WAY",
        help="how the model calls functions: `native` (by its endpoint's tools), `schema` (in a reply held to a JSON "
        "schema), or `text`; else as suits what the model can do",
    )
    switch(group, "--stream", "ask for replies piece by piece: on a terminal they are shown as they come")
    group.add_argument(
        "--sampling",
        metavar="KEY=VALUE",
        action="append",
        help="temperature, top_p, top_k, min_p, seed, max_tokens, ... All of it: what is not named is the endpoint's "
        "own default again; `default` alone names none (repeatable)",
    )
    group.add_argument("--summarizer", metavar="MODEL", help='the model that writes summaries (the agent\'s own: "")')
    group.add_argument("--fallback", metavar="MODEL", help='the model for when its own cannot be asked (none: "")')
    switch(group, "--verify-first", "hold the first reply to MemGPT's rules")
    _number(group, "--first-attempts", "first_attempts_max", "replies asked for when the first one is held to them")


def _limits(group: Group) -> None:
    _number(group, "--monologue-chars", "monologue_chars_max", "characters of a thought that are shown (all: 0)")
    _number(group, "--steps", "steps_max", "model calls in one turn, at most")
    _number(group, "--keep-last", "keep_last", "messages that a summary leaves alone")
    _number(group, "--day-tokens", "day_tokens_max", "tokens that it may use up on one day, UTC (no limit: 0)")
    for option, dest, what in (
        ("--pressure", "pressure_fraction", "part of the window at which it is warned, as 0.75"),
        ("--summary-part", "summary_fraction", "part of the messages that a summary replaces, as 0.75"),
        ("--day-cost", "day_cost_max", "what it may cost on one day, UTC (no limit: 0)"),
    ):
        group.add_argument(option, dest=dest, metavar="X", type=argument_values.decimal, help=what)


def _number(group: Group, option: str, dest: str, what: str) -> None:
    group.add_argument(option, dest=dest, metavar="N", type=argument_values.whole_number, help=what)


ENDS = (tools, json, runtime)
"""What commands that change an agent's settings end with."""
