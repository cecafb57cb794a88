"""Exit codes of the command line, and Ctrl-C during a query. Imports nothing heavy.

Used by `interfaces/cli`. Scripts of users depend on the codes.
"""

from collections.abc import Iterator
from contextlib import contextmanager

FAILED, USAGE_ERROR, PIPE_CLOSED = 1, 2, 141
SILENT = 4
"""The turn ended, and nothing was said to the user."""

DUCKDB_INTERRUPTED = "Query interrupted"
"""Message of the RuntimeError that DuckDB raises when Ctrl-C interrupts a query, in place of a KeyboardInterrupt."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt for a Ctrl-C during a query of DuckDB, as Python does for any other Ctrl-C."""
    try:
        yield
    except RuntimeError as error:
        if str(error) != DUCKDB_INTERRUPTED:
            raise
        raise KeyboardInterrupt from error
