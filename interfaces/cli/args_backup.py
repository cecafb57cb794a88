"""Arguments about exports, and what the help says of them. Imports nothing heavy."""

import argparse

EXPORT = """\
One Parquet file with every record of the agent, its ancestors' too if it is a
fork, and checksums. The agent may be at work meanwhile: what it had when the
command began is in it. Words that were erased are not; files that were exported
before an erasure still have them."""
RESTORE = """\
Every byte and every record is checked first; a file that is damaged changes
nothing. An agent comes back under its own name with the same chain. One that is
here already with these records is left as it is, and gets those that it lacks;
a name that is somebody else here is refused. After an interruption, say it
again."""


def exporting(parser: argparse.ArgumentParser) -> None:
    """The file, and what goes into it."""
    parser.add_argument("file", metavar="FILE.everlog", help="the file to write")
    parser.add_argument(
        "--with-sources", action="store_true", help="with the documents of all sources that it can search"
    )
    parser.add_argument("--force", action="store_true", help="replace a file that is there")


def restoring(parser: argparse.ArgumentParser) -> None:
    """The file."""
    parser.add_argument("file", metavar="FILE.everlog", help="a file that `everlog export` made")
