"""Index memories, messages and documents for search by words and by meaning; made from the logs alone.

The index can be lost: `everlog archive rebuild` creates it again.

`store` does not import it. A process that needs the index imports `everlog.store.archive`, which takes much memory.
"""

from everlog.store.archive.archive import Archive, drop_messages, message_vectors_of, recorded_embedder
from everlog.store.archive.archive_metadata import ServingTable
from everlog.store.archive.archive_results import FollowCounts, IndexSizes, IndexStatus, Match, Matches, RebuildReport
from everlog.store.archive.message_vectors import MessageVectors
from everlog.store.archive.row_caches import MemoryRows
from everlog.store.embedding.embedder import Embedder

__all__ = [
    "Archive",
    "Embedder",
    "FollowCounts",
    "IndexSizes",
    "IndexStatus",
    "Match",
    "Matches",
    "MemoryRows",
    "MessageVectors",
    "RebuildReport",
    "ServingTable",
    "drop_messages",
    "message_vectors_of",
    "recorded_embedder",
]
