"""Define, once each, the options that several commands have, for the other args_ files. Imports nothing heavy.

Help texts have one form: a verb and its object, a constraint after a semicolon, and "(default: x)" at the end.
docs/reference/cli.md has the table of the options that mean the same in every command.
"""

import argparse
from typing import Any

from everlog.interfaces.cli.args_grants import grant_options, tools
from everlog.interfaces.common import argument_values

Group = Any
"""A parser, or a group of its arguments: argparse has no public name for both."""

PLACEMENTS = ("shared", "dedicated")


def name(parser: argparse.ArgumentParser) -> None:
    """Add the name of the agent."""
    parser.add_argument("name", metavar="NAME", help="name of the agent")


def name_or_sam(parser: argparse.ArgumentParser) -> None:
    """Add the name of the agent, `sam` if none is given."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="name of the agent (default: sam)")


def name_or_all(parser: argparse.ArgumentParser) -> None:
    """Add the name of one agent, or --all."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="name of the agent")
    parser.add_argument("--all", action="store_true", help="all agents of the store")


def new_name(parser: argparse.ArgumentParser) -> None:
    """Add the name of the fork that a command creates."""
    parser.add_argument("--new-name", dest="new", metavar="NEW", required=True, help="name of the fork")


def json(parser: argparse.ArgumentParser) -> None:
    """Add output in JSON."""
    parser.add_argument("--json", action="store_true", help="print JSON; docs/reference/cli.md describes its keys")


def as_of(parser: argparse.ArgumentParser) -> None:
    """Add the moment as of which an agent is read."""
    parser.add_argument(
        "--as-of", metavar="SEQ|TIME", help="show the state as of a seq, an ISO time, or an age such as 2h"
    )


def records(parser: argparse.ArgumentParser) -> None:
    """Add a range of records."""
    parser.add_argument(
        "--from", dest="first", metavar="SEQ", type=argument_values.seq, default=1, help="first seq (default: 1)"
    )
    parser.add_argument(
        "--to", dest="last", metavar="SEQ", type=argument_values.seq, help="last seq, inclusive (default: the newest)"
    )


def follow(parser: argparse.ArgumentParser) -> None:
    """Add --follow, which keeps a command running for updates."""
    parser.add_argument("-f", "--follow", action="store_true", help="keep running and show updates, until Ctrl-C")


def yes_option(parser: argparse.ArgumentParser) -> None:
    """Add --yes, which answers the question for confirmation."""
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation")


def query(parser: argparse.ArgumentParser) -> None:
    """Add the query of a search."""
    parser.add_argument("query", metavar="QUERY", nargs="?", help="text to search for")


def filters(parser: argparse.ArgumentParser) -> None:
    """Add the filters and the page of a search or a list."""
    parser.add_argument(
        "--since", metavar="DAY", default="", help="show only results from this day on, such as 2024-01-31"
    )
    parser.add_argument("--until", metavar="DAY", default="", help="show only results up to this day, inclusive")
    parser.add_argument(
        "--tag", dest="tags", metavar="TAG", action="append", help="show only results with this tag; repeatable"
    )
    parser.add_argument("--source", metavar="SOURCE", default="", help="show only results from this document source")
    parser.add_argument(
        "--page",
        metavar="N",
        type=argument_values.page,
        default=1,
        help="page of the results, counted from 1 (default: 1)",
    )


def full_texts(parser: argparse.ArgumentParser) -> None:
    """Add --full, which shows the whole of each result."""
    parser.add_argument("--full", action="store_true", help="show long results whole, and not their best passage")


def words(parser: argparse.ArgumentParser) -> None:
    """Add --words, which limits a search to keywords."""
    parser.add_argument(
        "--words", action="store_true", help="search by keywords only; does not wait some seconds for vectors"
    )


def text(parser: argparse.ArgumentParser) -> None:
    """Add a text, given as an argument, on stdin or in a file."""
    parser.add_argument("text", metavar="TEXT", nargs="?", help="text; - reads it from stdin")
    parser.add_argument("--file", metavar="FILE", help="read the text from FILE")


def tags(parser: argparse.ArgumentParser) -> None:
    """Add the tags of a memory."""
    parser.add_argument("--tag", dest="tags", metavar="TAG", action="append", help="tag of the memory; repeatable")


def block_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a memory block other than its value."""
    parser.add_argument(
        "--limit",
        metavar="N",
        type=argument_values.whole_number,
        help="maximum length in characters (default: 2000 for a new block)",
    )
    parser.add_argument("--description", metavar="TEXT", help="purpose of the block, in words for the model")
    switch(parser, "--read-only", "agents can read the block, but not edit it")


def runtime(parser: argparse.ArgumentParser) -> None:
    """Add where the agent runs."""
    parser.add_argument(
        "--runtime",
        choices=("auto", "local", "ray"),
        metavar="WHERE",
        help="where the agent runs: local (this process), ray (a cluster) or auto (a cluster if one runs) "
        "(default: EVERLOG_RUNTIME, else auto)",
    )


def placement(parser: argparse.ArgumentParser, default: str | None = "dedicated") -> None:
    """Add the placement of an agent; the option is required if `default` is None."""
    parser.add_argument(
        "--placement",
        choices=PLACEMENTS,
        default=None if default == "dedicated" else default,  # None: the files of defaults decide
        required=default is None,
        metavar="HOW",
        help="placement: `shared` (one process and log for many agents) or `dedicated` (one process and log each)"
        + (f" (default: {default})" if default else ""),
    )


def shards(parser: argparse.ArgumentParser) -> None:
    """Add the number of shards of a store that the command creates."""
    parser.add_argument(
        "--shards",
        metavar="N",
        type=argument_values.shards,
        help="number of shared logs, if the store is created (default: one per processor)",
    )


class OneModel(argparse.Action):
    """Store a model, which --group names as well: the rule of a group stands in the place of its model."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: object, option: str | None = None
    ) -> None:
        """Store the value. End the command if the other one of the two options was given."""
        before = getattr(namespace, "model_option", option)
        if before != option:
            parser.error(
                "--model and --group exclude each other: a group asks its members and no model of its own. Give one of "
                "them."
            )
        namespace.model, namespace.model_option = values, option


def model(group: Group, what: str) -> None:
    """Add a model."""
    group.add_argument("--model", metavar="MODEL", type=argument_values.words, action=OneModel, help=what)


def base_url(group: Group) -> None:
    """Add the endpoint of a model."""
    group.add_argument(
        "--base-url",
        metavar="URL",
        help="OpenAI-compatible endpoint that serves the model (default: from models.toml or OPENAI_BASE_URL)",
    )


def window(group: Group) -> None:
    """Add the context window."""
    group.add_argument(
        "--window", metavar="TOKENS", type=argument_values.window, help="context window of the model, in tokens"
    )


def system(group: Group) -> None:
    """Add a file with a system prompt."""
    group.add_argument("--system", metavar="FILE", help="file with a system prompt, instead of the preset's")


def blocks(group: Group, what: str) -> None:
    """Add files with memory blocks."""
    group.add_argument(
        "--block", metavar="LABEL=FILE[:LIMIT]", action="append", default=[], type=argument_values.block, help=what
    )


def variables(parser: Group) -> None:
    """Add variables for templates."""
    parser.add_argument(
        "--var",
        metavar="NAME=VALUE",
        action="append",
        type=argument_values.name_value,
        help="variable for the templates of the given sections; repeatable",
    )


def switch(group: Group, option: str, what: str) -> None:
    """Add --OPTION and --no-OPTION; without either the value is None, which changes nothing."""
    group.add_argument(option, action=argparse.BooleanOptionalAction, default=None, help=what)


def opening(parser: argparse.ArgumentParser) -> None:
    """Add the settings of an agent that a command creates or opens."""
    group = parser.add_argument_group(
        "the agent",
        "Stored in its log, except --base-url and --no-probe: give them once.\n"
        "Options marked (*), and defaults, are for a new agent.",
    )
    model(
        group,
        "`offline` (rule-based, built in), a model of an endpoint, ENDPOINT/MODEL, or a .gguf file (default: offline)",
    )
    base_url(group)
    settings(group)
    group.add_argument(
        "--no-probe", action="store_true", help="do not send test requests to an endpoint that is not known yet"
    )
    group.add_argument(
        "--persona", metavar="PRESET|FILE", help="persona of the agent: a preset or a file (*) (default: sam)"
    )
    group.add_argument(
        "--human", metavar="PRESET|FILE", help="facts about the user: a preset or a file (*) (default: basic)"
    )
    _first_blocks(group)
    tools(parser)
    grant_options(parser)
    runtime(parser)
    parser.add_argument(
        "--take-over",
        action="store_true",
        help="take the agent from the process that has it open, which then cannot write any more",
    )


def _first_blocks(group: Group) -> None:
    """Add the memory blocks of a new agent, with their descriptions."""
    blocks(group, "memory block, with its limit in characters; repeatable (*) (default limit: 2000)")
    group.add_argument(
        "--block-description",
        metavar="LABEL=TEXT",
        action="append",
        type=argument_values.name_value,
        help="purpose of a block, in words for the model; repeatable (*)",
    )
    group.add_argument(
        "--block-read-only",
        metavar="LABEL",
        action="append",
        help="make a block read-only for the agent; repeatable (*)",
    )
    group.add_argument(
        "--block-items",
        metavar="LABEL",
        action="append",
        help="the lines of a block are items, and the agent has functions for them; repeatable (*)",
    )


def settings(group: Group) -> None:
    """Add the settings of an agent, except the model and the options that only a new agent has."""
    window(group)
    group.add_argument(
        "--zone",
        metavar="ZONE",
        type=argument_values.words,
        help="time zone of the times that the agent sees, such as Europe/Oslo (default: UTC)",
    )
    _prompt(group)
    _asking(group)
    _limits(group)


def _prompt(group: Group) -> None:
    group.add_argument(
        "--preset",
        metavar="PRESET",
        type=argument_values.words,
        help="prompt and functions: `chat`, `docs` (documents), `extras` (files, web, another model) or `small` "
        "(short, for small windows) (default: chat; small up to 6144 tokens)",
    )
    system(group)
    group.add_argument(
        "--section",
        metavar="SECTION=FILE",
        action="append",
        type=argument_values.name_value,
        help="section of the system prompt, a text or a template; repeatable",
    )
    group.add_argument("--sections", metavar="DIR", help="folder of sections, 10-base.md, 20-memory.md and so on")
    variables(group)


def _asking(group: Group) -> None:
    group.add_argument(
        "--calling",
        choices=("native", "schema", "text", "llama3", "zephyr", "airoboros", "neural-chat"),
        metavar="WAY",
        help="calling format: `native` (the endpoint's tools), `schema` (a reply that matches a JSON schema), `text` "
        "(one prompt in ChatML), or a prompt as `llama3`, `zephyr`, `airoboros` or `neural-chat` have it "
        "(default: the best that the model supports)",
    )
    switch(group, "--stream", "request streamed replies, which a terminal shows while they arrive (default: no)")
    group.add_argument(
        "--sampling",
        metavar="KEY=VALUE",
        action="append",
        help="sampling setting: temperature, top_p, top_k, min_p, seed, max_tokens, ...; repeatable. Replaces all "
        "sampling settings: those not given revert to the endpoint's defaults; `default` alone clears all",
    )
    group.add_argument(
        "--summarizer", metavar="MODEL", help='model that writes summaries; "" is the agent\'s own model (default: "")'
    )
    group.add_argument(
        "--fallback",
        metavar="MODEL",
        help='model to use when the agent\'s own is not available; "" is none (default: "")',
    )
    group.add_argument(
        "--deriver",
        metavar="MODEL",
        help='model that derives memories while the agent is idle; `rules` for rules, "" for none (default: "")',
    )
    switch(
        group,
        "--verify-first",
        "check the first reply against MemGPT's rules (default: yes for models known to call functions, else no)",
    )
    _number(
        group,
        "--first-attempts",
        "first_attempts_max",
        "requests for a first reply that follows these rules, at most (default: 10)",
    )


def _limits(group: Group) -> None:
    _number(
        group,
        "--monologue-chars",
        "monologue_chars_max",
        "characters of a thought in the context; 0 is all (default: 0)",
    )
    _number(group, "--steps", "steps_max", "model calls in one turn, at most; 1 to 1,000 (default: 20)")
    _number(group, "--keep-last", "keep_last", "newest messages that a summary leaves as they are (default: 3)")
    _number(group, "--day-tokens", "day_tokens_max", "tokens per day (UTC), at most; 0 is no limit (default: 0)")
    _number(group, "--reflect-at", "reflect_at", "importance of new messages at which it reflects (default: 150)")
    for option, dest, what in (
        (
            "--pressure",
            "pressure_fraction",
            "part of the window at which the agent is warned, 0.05 to 1 (default: 0.75)",
        ),
        (
            "--summary-part",
            "summary_fraction",
            "part of the messages that a summary replaces, 0.05 to 1 (default: 0.75)",
        ),
        ("--day-cost", "day_cost_max", "cost per day (UTC), at most; 0 is no limit (default: 0)"),
    ):
        group.add_argument(option, dest=dest, metavar="X", type=argument_values.decimal, help=what)


def _number(group: Group, option: str, dest: str, what: str) -> None:
    group.add_argument(option, dest=dest, metavar="N", type=argument_values.whole_number, help=what)


ENDS = (tools, json, runtime)
"""Last options of the commands that change an agent's settings."""
