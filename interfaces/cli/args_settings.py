"""Arguments that say how an agent is set up: one definition for all commands that take them. Imports nothing heavy."""

import argparse
from typing import Any

from everlog.interfaces.common import argument_values
from everlog.interfaces.common.command_options import CommandSpec, json, name, runtime, tools

ArgumentGroup = Any
"""A parser, or a group of its arguments: argparse has no public name for both."""


def setup(group: ArgumentGroup) -> None:
    """Everything but the model, and what only a new agent has."""
    group.add_argument("--window", metavar="TOKENS", type=argument_values.window, help="context window of the model")
    group.add_argument(
        "--zone",
        metavar="ZONE",
        type=argument_values.words,
        help="time zone that the agent is told the time in, as Europe/Oslo",
    )
    _prompt(group)
    _asking(group)
    _limits(group)


def _prompt(group: ArgumentGroup) -> None:
    group.add_argument(
        "--preset",
        metavar="NAME",
        type=argument_values.words,
        help="system prompt, and functions: `chat`, `docs` (reads documents), or `extras` (files, web, another model)",
    )
    system(group, "a system prompt of your own")
    group.add_argument(
        "--section",
        metavar="NAME=FILE",
        action="append",
        type=argument_values.named,
        help="a section of the system prompt, a text or a template; again for the next one",
    )
    group.add_argument("--sections", metavar="DIR", help="a folder of sections, 10-base.md, 20-memory.md and so on")
    group.add_argument(
        "--var",
        metavar="NAME=VALUE",
        action="append",
        type=argument_values.named,
        help="a variable of your own for the sections (repeatable)",
    )


def _asking(group: ArgumentGroup) -> None:
    group.add_argument(
        "--calling",
        choices=("native", "schema", "text"),
        help="how the model calls functions: by its endpoint's tools, in a reply held to a schema, or in plain text",
    )
    _switch(group, "--stream", "ask for replies piece by piece: on a terminal they are shown as they come")
    group.add_argument(
        "--sampling",
        metavar="KEY=VALUE",
        action="append",
        help="temperature, top_p, top_k, min_p, seed, max_tokens, ... All of it: what is not named is the endpoint's "
        "own default again; `default` alone names none (repeatable)",
    )
    group.add_argument("--summarizer", metavar="MODEL", help='the model that writes summaries (the agent\'s own: "")')
    group.add_argument("--fallback", metavar="MODEL", help='the model for when its own cannot be asked (none: "")')
    _switch(group, "--verify-first", "hold the first reply to MemGPT's rules")
    _number(
        group, "--first-attempts", "first_attempts_max", "N", "replies asked for when the first one is held to them"
    )


def _limits(group: ArgumentGroup) -> None:
    _number(group, "--monologue-chars", "monologue_chars_max", "N", "characters of a thought that are shown (all: 0)")
    _number(group, "--steps", "steps_max", "N", "model calls in one turn, at most")
    _number(group, "--keep-last", "keep_last", "N", "messages that a summary leaves alone")
    _number(group, "--day-tokens", "day_tokens_max", "N", "tokens that it may use up on one day, UTC (no limit: 0)")
    for option, dest, what in (
        ("--pressure", "pressure_fraction", "part of the window at which it is warned, as 0.75"),
        ("--summary-part", "summary_fraction", "part of the messages that a summary replaces, as 0.75"),
        ("--day-cost", "day_cost_max", "what it may cost on one day, UTC (no limit: 0)"),
    ):
        group.add_argument(option, dest=dest, metavar="X", type=argument_values.decimal, help=what)


def _number(group: ArgumentGroup, option: str, dest: str, metavar: str, what: str) -> None:
    group.add_argument(option, dest=dest, metavar=metavar, type=argument_values.whole, help=what)


def _switch(group: ArgumentGroup, option: str, what: str) -> None:
    group.add_argument(option, action=argparse.BooleanOptionalAction, default=None, help=what)


def system(group: ArgumentGroup, what: str) -> None:
    """A system prompt as a file."""
    group.add_argument("--system", metavar="FILE", help=what)


def block(group: ArgumentGroup, what: str) -> None:
    """Memory blocks as files."""
    group.add_argument(
        "--block", metavar="LABEL=FILE[:LIMIT]", action="append", default=[], type=argument_values.block, help=what
    )


def blocks(group: ArgumentGroup) -> None:
    """Memory blocks of a new agent, and what there is to say of them."""
    block(group, "a memory block, with its limit in characters (*, repeatable)")
    group.add_argument(
        "--block-description",
        metavar="LABEL=TEXT",
        action="append",
        type=argument_values.named,
        help="what a block is for, in words for the model (*, repeatable)",
    )
    group.add_argument(
        "--block-read-only",
        metavar="LABEL",
        action="append",
        help="a block that the agent sees and cannot edit (*, repeatable)",
    )


def _model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model", metavar="MODEL", type=argument_values.words, help="the model that is asked from now on"
    )


_CONFIGURE = """\
What is not named stays as it is. The change is one event; what it changed is
printed. Without options: how the agent is set up."""

COMMANDS = (
    CommandSpec("configure", "manage.configure_command:configure", "change how an agent is set up",
            "everlog configure sam --model gpt-4o --sampling temperature=0.3",
            (name, _model, setup, tools, json, runtime), _CONFIGURE),
)  # fmt: skip
