"""Arguments and help of the commands for archival memory and documents.

Used by `command_parser`, which imports every args_ file at each start of `everlog`: import nothing heavy here.
"""

import argparse

from everlog.interfaces.cli.args_selection import label_of_each
from everlog.interfaces.cli.args_shared import (
    as_of,
    base_url,
    filters,
    full_texts,
    json,
    name,
    opening,
    query,
    runtime,
    tags,
    text,
    words,
)
from everlog.interfaces.cli.command_spec import CommandSpec
from everlog.interfaces.common import argument_values

_ARCHIVE_KEEPING = """\
No turn runs and no model is called. The agent's own search finds the text from
its next request on. A text that is stored already is not stored again."""

_ARCHIVE_DELETING = """\
Searches no longer find the memory. The log still contains it, and `--as-of`
shows it; `everlog erase` removes it from the log too."""

_ARCHIVE_SEARCHING = """\
Finds the same results as the agent's function archival_memory_search, including
documents of its sources. A "phrase in quotes" must match exactly."""

_ARCHIVE_REBUILDING = """\
Searches use the old index until the new one is complete. Texts that the same
model has embedded before are not embedded again. An endpoint gets the key in
OPENAI_API_KEY."""

_LOAD = """\
Reads txt, md, html, pdf, docx, csv, json and jsonl files, folders of them, and
web pages of hosts that --allow-host names. The rows of parquet, arrow, feather,
lance (a folder) and Chroma's sqlite3 are documents, without their vectors.
Unchanged documents are left as they are. Unreadable files are reported on
stderr, and the others are still loaded (exit code 1). Creates the agent if it
does not exist, and lets it search the source; `everlog attach` lets other
agents search it."""


def _memory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "memory", metavar="ID", type=argument_values.words, help="id of the memory, as `archive list` shows it"
    )


def _no_tags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--no-tags", action="store_true", help="remove all tags (default: keep them, unless --tag is given)"
    )


def _embedder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--embedder",
        metavar="MODEL",
        type=argument_values.words,
        help="embedding model: `wordllama-256` (offline), `minilm` (offline, slower and better; the extra "
        "`minilm`) or a model of an endpoint (default: the index's model)",
    )
    base_url(parser)


def _loading(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="*",
        help="files, folders and web addresses; with --sql: DuckDB database files that the query reads",
    )
    parser.add_argument("--source", metavar="SOURCE", help="name of the source (default: the agent's name)")
    parser.add_argument(
        "--sql", metavar="QUERY", help="load each row of a SELECT over Parquet, CSV, JSON or a DuckDB database"
    )
    parser.add_argument(
        "--prune",
        action="store_true",
        help="remove documents that were loaded from the same place and no longer exist there",
    )
    parser.add_argument("--dry-run", action="store_true", help="print what would be done; write nothing")


def _source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="name of the source")


COMMANDS = (
    CommandSpec(
        "archive insert",
        "manage.archive_commands:insert",
        "store a text in an agent's archival memory",
        'everlog archive insert sam "The gold is under the oak" --tag gold',
        (name, text, tags, json, runtime),
        _ARCHIVE_KEEPING,
    ),
    CommandSpec(
        "archive list",
        "manage.archive_commands:list_command",
        "list the archival memory of an agent, in order",
        "everlog archive list sam --tag gold",
        (name, filters, as_of, json),
        reads_only=True,
    ),
    CommandSpec(
        "archive show",
        "manage.archive_commands:show",
        "show one memory in full",
        "everlog archive show sam 01a3b6c2-4f00-7000-8000-000000000001",
        (name, _memory, as_of, json),
        reads_only=True,
    ),
    CommandSpec(
        "archive update",
        "manage.archive_commands:update",
        "replace the text of a memory",
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
        "search the archival memory and the documents of an agent",
        'everlog archive search sam "where is the gold" --since 2024-01-01',
        (name, query, filters, full_texts, words, as_of, json),
        _ARCHIVE_SEARCHING,
        reads_only=True,
        usage="NAME QUERY",
    ),
    CommandSpec(
        "archive status",
        "manage.index_commands:status",
        "show the size, progress and embedding model of the search index",
        "everlog archive status",
        (json,),
        reads_only=True,
    ),
    CommandSpec(
        "archive check",
        "manage.index_commands:check",
        "compare the search index with the logs, row by row",
        "everlog archive check",
        (json,),
        reads_only=True,
    ),
    CommandSpec(
        "archive rebuild",
        "manage.index_commands:rebuild",
        "rebuild the search index from the logs",
        "everlog archive rebuild --embedder text-embedding-3-small",
        (_embedder, json),
        _ARCHIVE_REBUILDING,
    ),
    CommandSpec(
        "load",
        "manage.document_commands:load",
        "load documents into a source that an agent can search",
        "everlog load sam handbook/ --source handbook",
        (name, _loading, json, opening),
        _LOAD,
    ),
    CommandSpec(
        "attach",
        "manage.document_commands:attach",
        "let an agent search a source",
        "everlog attach ann handbook",
        (name, label_of_each, _source, json, runtime),
    ),
    CommandSpec(
        "detach",
        "manage.document_commands:detach",
        "stop an agent from searching a source",
        "everlog detach ann handbook",
        (name, label_of_each, _source, json, runtime),
    ),
)
"""In the order of the help."""
