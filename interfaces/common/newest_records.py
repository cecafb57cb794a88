"""Read the log of an agent backwards from its head.

Used by `everlog chat` and `everlog send`.
"""

from collections.abc import Iterator

from everlog.events import Record
from everlog.store import LogReader

BACKWARD_RECORDS = 200
"""Records that are read from the log at once."""


def newest_first(reader: LogReader, name: str) -> Iterator[Record]:
    """Yield the records of a stream from its head back to its beginning. They are read BACKWARD_RECORDS at a time."""
    last = reader.head(name).seq
    while last:
        first = max(1, last - BACKWARD_RECORDS + 1)
        yield from reversed(list(reader.read(name, first, last)))
        last = first - 1
