"""Arguments about documents and their sources, and what the help says of them. Imports nothing heavy."""

import argparse

LOAD = """\
Reads txt, md, html, pdf, docx, csv, json and jsonl, and folders of them. What
is in the source already, word for word, is left as it is. A file that cannot be
read is named and the rest goes on (exit code 1). The agent is made if need be,
and can search the source from then on, as can others after `everlog attach`."""


def loading(parser: argparse.ArgumentParser) -> None:
    """What is loaded, and where to."""
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


def listing(parser: argparse.ArgumentParser) -> None:
    """Whose sources, or which source."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="only those that this agent can search")
    parser.add_argument("--source", metavar="SOURCE", help="list the documents in this source instead")


def source(parser: argparse.ArgumentParser) -> None:
    """A source that exists."""
    parser.add_argument("source", metavar="SOURCE", help="name of the source")
