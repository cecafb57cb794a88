"""How a run of the command line ends: its exit codes, and Ctrl-C wherever it comes. Imports nothing heavy."""

from collections.abc import Iterator
from contextlib import contextmanager

FAILED, MISUSED, UNREAD = 1, 2, 141

DUCKDB_INTERRUPTED = "Query interrupted"
"""What DuckDB says when Ctrl-C comes during a query, instead of a KeyboardInterrupt."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt for a Ctrl-C that comes during a query of DuckDB, as for any other."""
    try:
        yield
    except RuntimeError as error:
        if str(error) != DUCKDB_INTERRUPTED:
            raise
        raise KeyboardInterrupt from error
