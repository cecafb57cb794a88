"""Arguments about where agents live, and about many of them."""

import argparse

from everlog.interfaces.common import argument_values


def placed(parser: argparse.ArgumentParser) -> None:
    """Where an agent that is made lives."""
    _placement(parser, "dedicated")


def moved(parser: argparse.ArgumentParser) -> None:
    """Where an agent goes."""
    parser.add_argument(
        "--to",
        required=True,
        choices=("shared", "dedicated"),
        metavar="HOW",
        help="shared (the process and log of its shard), or dedicated (a process and a log of its own)",
    )


def _placement(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--placement",
        choices=("shared", "dedicated"),
        default=default,
        metavar="HOW",
        help=f"of new ones: shared (many in a process and log) or dedicated (a process and log for each) ({default})",
    )
    parser.add_argument(
        "--shards",
        metavar="K",
        type=argument_values.count,
        help="shared logs of a store that is made (one for each processor)",
    )


def crowd(parser: argparse.ArgumentParser) -> None:
    """How many agents, and what is said to them."""
    for option, default, what in (
        ("--agents", 100, "how many agents (100): fleet-00001 and so on, made where there are none"),
        ("--messages", 5, "messages that each of them is told (5)"),
        ("--at-once", 1000, "messages under way at once, at most (1000)"),
    ):
        parser.add_argument(option, metavar="N", type=argument_values.count, default=default, help=what)
    _placement(parser, "shared")
    parser.add_argument(
        "--from",
        dest="source",
        metavar="FILE",
        help="what is said: text, one message a line; or a .jsonl as `import` reads it (sixty everyday lines)",
    )
    parser.add_argument("--model", metavar="MODEL", type=argument_values.words, help="as with `create` (offline)")
    parser.add_argument("--base-url", metavar="URL", help="an OpenAI-compatible endpoint, for this command only")
