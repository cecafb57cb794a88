"""The log of an agent, read from its end."""

from collections.abc import Iterator

from everlog.events import Record
from everlog.store import LogReader

BACKWARD_RECORDS = 200
"""Records that are read together, from the newest back."""


def newest_first(reader: LogReader, name: str) -> Iterator[Record]:
    """Yield the records of a stream from its head back to its beginning, read a few at a time."""
    last = reader.head(name).seq
    while last:
        first = max(1, last - BACKWARD_RECORDS + 1)
        yield from reversed(list(reader.read(name, first, last)))
        last = first - 1
