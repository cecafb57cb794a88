"""What the archive gives to others: plain values for what was found and done."""

from collections.abc import Callable, Sequence

import msgspec

RebuildProgress = Callable[[int, int], None]
"""Called with the memories and messages done and those in all, now and then."""


class FollowCounts(msgspec.Struct, frozen=True):
    """What following the log did."""

    commits: int = 0
    """Commits that were taken in."""
    rows: int = 0
    """Rows that were written for them."""
    embedded: int = 0
    """Texts for which the embedder was asked; the others were in the cache."""


class Match(msgspec.Struct, frozen=True):
    """One part of a memory or document that a search found."""

    memory: str
    """Id of the memory: the one that agents use. Of a document: the event id of `document_loaded`."""
    seq: int
    """Where the text was written down: in the agent's stream, or in that of the source."""
    time: int
    """When the memory was first kept, or the document loaded, microseconds UTC."""
    text: str
    score: float
    tags: Sequence[str] = ()
    source: str = ""
    document: str = ""
    part: int = 1
    parts: int = 1


class Matches(msgspec.Struct, frozen=True):
    """One page of what was found, best first."""

    total: int
    """All that was found, on this page or not."""
    results: Sequence[Match] = ()
    by_meaning: bool = False
    """Whether vectors had a part in the order: False for an empty query."""


class RebuildReport(msgspec.Struct, frozen=True):
    """What a rebuild made."""

    rows: int
    embedded: int
    """Texts for which the embedder was asked; the others were in the cache."""
    embedder: str
    dimension: int


class IndexStatus(msgspec.Struct, frozen=True):
    """How the archive stands."""

    embedder: str
    """Name of the model whose vectors the table holds; empty before there is a table."""
    dimension: int
    generation: int
    """Counts the rebuilds, from 1; 0 before there is a table."""
    memories: int
    """Parts of memories and documents, those that were changed or deleted since included."""
    messages: int
    partitions: int
    """Partitions of the log that were followed."""
    behind: int
    """Partitions that have something new for the archive to take in."""
    cached: int
    """Vectors in the cache."""
    bytes: int
    """What the archive takes on the disk."""
