"""The commands of the group `archive`: their arguments and what the help says of them. Imports nothing heavy."""

import argparse

from everlog.interfaces.common import argument_values
from everlog.interfaces.common.command_options import CommandSpec, as_of, json, name, runtime, words

_KEEPING = """\
No turn is run and no model is asked: the agent finds it by its own search from
its next request on. A text that a memory holds already is not kept again."""
_DELETING = """\
It is no longer found. The log still says what it was, and `--as-of` shows it;
`everlog erase` takes it out of the log too."""
_SEARCHING = """\
Finds what archival_memory_search finds, documents of the agent's sources
included. A "phrase in quotes" is looked for exactly as it stands."""

_REBUILDING = """\
The old index answers until the new one takes its place. What was embedded once
by the same model is not embedded again. OPENAI_API_KEY is the endpoint's key."""


def _memory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "memory", metavar="ID", type=argument_values.words, help="id of the memory, as `archive list` shows it"
    )


def _text(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", nargs="?", help="the text; - reads it from stdin")
    parser.add_argument("--file", metavar="FILE", help="a file with the text instead")


def _tags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tag", metavar="TAG", dest="tags", action="append", help="a tag of it (repeatable)")


def _no_tags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-tags", action="store_true", help="take its tags away (without --tag they stay)")


def _filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tag", metavar="TAG", dest="tags", action="append", help="only with this tag (repeatable)")
    parser.add_argument("--from", dest="start", metavar="DAY", default="", help="only from this day on, as 2024-01-31")
    parser.add_argument("--to", dest="end", metavar="DAY", default="", help="only up to this day, inclusive")
    parser.add_argument("--source", metavar="SOURCE", default="", help="only what was loaded into this source")
    parser.add_argument("--page", metavar="P", type=argument_values.page, default=0, help="page, from 0 (0)")


def _embedder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--embedder",
        metavar="MODEL",
        type=argument_values.words,
        help="whose vectors: `wordllama-256` (offline), or a model of an endpoint (the one that it has)",
    )
    parser.add_argument("--base-url", metavar="URL", default="", help="the OpenAI-compatible endpoint of the model")


def _query(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY", nargs="?", help="what to look for")


COMMANDS = (
    CommandSpec(
        "archive insert",
        "manage.archive_commands:insert",
        "keep a text in an agent's archival memory",
        'everlog archive insert sam "The gold is under the oak" --tag gold',
        (name, _text, _tags, json, runtime),
        _KEEPING,
    ),
    CommandSpec(
        "archive list",
        "manage.archive_commands:listed",
        "list what an agent keeps, in order",
        "everlog archive list sam --tag gold",
        (name, _filters, as_of, json),
    ),
    CommandSpec(
        "archive show",
        "manage.archive_commands:show",
        "show one memory whole",
        "everlog archive show sam 01a3b6c2-4f00-7000-8000-000000000001",
        (name, _memory, as_of, json),
    ),
    CommandSpec(
        "archive update",
        "manage.archive_commands:update",
        "put another text in the place of a memory",
        'everlog archive update sam 01a3b6c2-4f00-7000-8000-000000000001 "The elm"',
        (name, _memory, _text, _tags, _no_tags, json, runtime),
    ),
    CommandSpec(
        "archive delete",
        "manage.archive_commands:delete",
        "delete a memory",
        "everlog archive delete sam 01a3b6c2-4f00-7000-8000-000000000001",
        (name, _memory, json, runtime),
        _DELETING,
    ),
    CommandSpec(
        "archive search",
        "manage.archive_commands:search",
        "search what an agent keeps, and the documents that it can read",
        'everlog archive search sam "where is the gold" --from 2024-01-01',
        (name, _query, _filters, words, as_of, json),
        _SEARCHING,
    ),
    CommandSpec(
        "archive status",
        "manage.index_commands:status",
        "tell how far the index of all memories is, and whose vectors it has",
        "everlog archive status",
        (json,),
    ),
    CommandSpec(
        "archive check",
        "manage.index_commands:check",
        "hold the index of all memories against the logs, row for row",
        "everlog archive check",
        (json,),
    ),
    CommandSpec(
        "archive rebuild",
        "manage.index_commands:rebuild",
        "make the index of all memories anew, from the logs alone",
        "everlog archive rebuild --embedder text-embedding-3-small",
        (_embedder, json),
        _REBUILDING,
    ),
)
"""In the order of the help."""
