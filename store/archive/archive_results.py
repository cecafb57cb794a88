"""Define the results of the archive: plain values for search, follow, rebuild and status.

Returned by `Archive` to `actors/archive` and `everlog archive`. All fields of `FollowCounts` are numbers, because
`Archive` adds them up over partitions.
"""

from collections.abc import Callable, Sequence

import msgspec

RebuildProgress = Callable[[int, int], None]
"""Callback with the memories and messages done and those in total, called from time to time."""


class FollowCounts(msgspec.Struct, frozen=True):
    """Result of following the log."""

    commits: int = 0
    """Number of commits followed."""
    rows: int = 0
    """Number of rows written for them."""
    embedded: int = 0
    """Number of texts that were sent to the embedder; the others were in the cache."""


class Match(msgspec.Struct, frozen=True):
    """A part of a memory or document that a search found."""

    memory: str
    """Id of the memory, as agents use it. Of a document: the event id of `document_loaded`."""
    seq: int
    """Seq of the record with the text, in the stream of the agent or the source."""
    time: int
    """Time when the memory was first stored, or the document loaded, microseconds UTC."""
    text: str
    score: float
    tags: Sequence[str] = ()
    source: str = ""
    document: str = ""
    part: int = 1
    parts: int = 1
    near: float | None = None
    """Similarity in meaning to the query, as a cosine from -1 to 1; None for a query without words."""


class Matches(msgspec.Struct, frozen=True):
    """One page of results, best first."""

    total: int
    """Number of all results, on this page or not."""
    results: Sequence[Match] = ()
    by_meaning: bool = False
    """True if vectors took part in the ranking; False for an empty query."""


class RebuildReport(msgspec.Struct, frozen=True):
    """Result of a rebuild."""

    rows: int
    embedded: int
    """Number of texts that were sent to the embedder; the others were in the cache."""
    embedder: str
    dimension: int


class IndexSizes(msgspec.Struct, frozen=True):
    """Everything of the archive that could grow, with its limit where there is one."""

    versions: int = 0
    """Number of versions of the table; compactions remove old ones."""
    files: int = 0
    """Number of files of the table."""
    bytes: int = 0
    """Bytes of the archive on disk."""
    row_caches: int = 0
    """Number of row caches: up to two for each agent that was searched recently."""
    row_cache_bytes: int = 0
    row_cache_bytes_max: int = 0
    table_cache_bytes: int = 0
    """Bytes of LanceDB's caches of indices and metadata, of this process."""
    table_cache_bytes_max: int = 0


class IndexStatus(msgspec.Struct, frozen=True):
    """Status of the archive."""

    embedder: str
    """Name of the model whose vectors the table holds; empty if there is no table yet."""
    dimension: int
    generation: int
    """Number of the table: rebuilds and erasures count it up, from 1; 0 if there is no table yet."""
    memories: int
    """Number of parts of memories and documents, including those that were changed or deleted since."""
    messages: int
    """Number of messages whose vectors are kept."""
    partitions: int
    """Number of partitions of the log that were followed."""
    behind: int
    """Number of partitions with records that are not followed yet."""
    cached: int
    """Number of vectors in the cache."""
    bytes: int
    """Bytes of the archive on disk."""
    sizes: IndexSizes = IndexSizes()
    """Sizes that could grow; the caches are those of the process that asks."""
