"""Arguments of the commands for archival memory and documents."""

import argparse

from everlog.interfaces.cli.args_shared import (
    CommandSpec,
    as_of,
    base_url,
    filters,
    json,
    name,
    opening,
    query,
    runtime,
    tags,
    text,
    words,
)
from everlog.interfaces.common import argument_values

_ARCHIVE_KEEPING = """\
No turn is run and no model is asked: the agent finds it by its own search from
its next request on. A text that a memory holds already is not kept again."""

_ARCHIVE_DELETING = """\
It is no longer found. The log still says what it was, and `--as-of` shows it;
`everlog erase` takes it out of the log too."""

_ARCHIVE_SEARCHING = """\
Finds what archival_memory_search finds, documents of the agent's sources
included. A "phrase in quotes" is looked for exactly as it stands."""

_ARCHIVE_REBUILDING = """\
The old index answers until the new one takes its place. What was embedded once
by the same model is not embedded again. OPENAI_API_KEY is the endpoint's key."""

_LOAD = """\
Reads txt, md, html, pdf, docx, csv, json and jsonl, and folders of them. What
is in the source already, word for word, is left as it is. A file that cannot be
read is named and the rest goes on (exit code 1). The agent is made if need be,
and can search the source from then on, as can others after `everlog attach`."""


def _memory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "memory", metavar="ID", type=argument_values.words, help="id of the memory, as `archive list` shows it"
    )


def _no_tags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-tags", action="store_true", help="take its tags away (without --tag they stay)")


def _embedder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--embedder",
        metavar="MODEL",
        type=argument_values.words,
        help="whose vectors: `wordllama-256` (offline), or a model of an endpoint (the one that it has)",
    )
    base_url(parser)


def _loading(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", metavar="PATH", nargs="*", help="files and folders; with --sql: databases of DuckDB that it reads"
    )
    parser.add_argument("--source", metavar="SOURCE", help="the source to load into (that of the agent's own name)")
    parser.add_argument(
        "--sql", metavar="QUERY", help="load each row of a SELECT over Parquet, CSV, JSON or a database of DuckDB"
    )
    parser.add_argument(
        "--prune", action="store_true", help="take out what was loaded from there before and is there no longer"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")


def _source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="name of the source")


COMMANDS = (
    CommandSpec(
        "archive insert",
        "manage.archive_commands:insert",
        "keep a text in an agent's archival memory",
        'everlog archive insert sam "The gold is under the oak" --tag gold',
        (name, text, tags, json, runtime),
        _ARCHIVE_KEEPING,
    ),
    CommandSpec(
        "archive list",
        "manage.archive_commands:list_command",
        "list what an agent keeps, in order",
        "everlog archive list sam --tag gold",
        (name, filters, as_of, json),
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
        (name, _memory, text, tags, _no_tags, json, runtime),
    ),
    CommandSpec(
        "archive delete",
        "manage.archive_commands:delete",
        "delete a memory",
        "everlog archive delete sam 01a3b6c2-4f00-7000-8000-000000000001",
        (name, _memory, json, runtime),
        _ARCHIVE_DELETING,
    ),
    CommandSpec(
        "archive search",
        "manage.archive_commands:search",
        "search what an agent keeps, and the documents that it can read",
        'everlog archive search sam "where is the gold" --since 2024-01-01',
        (name, query, filters, words, as_of, json),
        _ARCHIVE_SEARCHING,
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
        _ARCHIVE_REBUILDING,
    ),
    CommandSpec(
        "load",
        "manage.document_commands:load",
        "load documents into a source, for an agent to search",
        "everlog load sam handbook/ --source handbook",
        (name, _loading, json, opening),
        _LOAD,
    ),
    CommandSpec(
        "attach",
        "manage.document_commands:attach",
        "let an agent search a source",
        "everlog attach ann handbook",
        (name, _source, json, runtime),
    ),
    CommandSpec(
        "detach",
        "manage.document_commands:detach",
        "keep a source from an agent",
        "everlog detach ann handbook",
        (name, _source, json, runtime),
    ),
)
"""In the order of the help."""
