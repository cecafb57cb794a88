"""What the archive is asked: a plain value, so that whoever asks need not import the index."""

from collections.abc import Sequence

import msgspec


class ArchiveQuery(msgspec.Struct, frozen=True):
    """A search in what an agent keeps, and in the sources that it can search."""

    agent_id: str
    query: str
    """What it has in quotes, a result holds word for word; an empty query finds everything, newest first."""
    as_of: int
    """The agent's seq up to which its memories count, inclusive."""
    as_of_time: int
    """The same for sources: microseconds UTC, inclusive."""
    sources: Sequence[str] = ()
    """Names of the sources that are searched beside the agent's own memories."""
    after: int | None = None
    """When a result was first kept: microseconds UTC, inclusive."""
    before: int | None = None
    """Microseconds UTC, exclusive."""
    tags: Sequence[str] = ()
    """A result has all of them."""
    source: str = ""
    """Only documents of this one of `sources`."""
    first: int = 0
    """First result, from 0."""
    count: int = 10
