"""Index memories, messages and documents for search by words and by meaning; made from the logs alone.

The index can be lost: `everlog archive rebuild` creates it again.

`store` does not import it. A process that needs the index imports `everlog.store.archive`, which takes much memory.
"""

from everlog.store.archive.archive import Archive, recorded_embedder
from everlog.store.archive.archive_results import FollowCounts, IndexStatus, Match, Matches, RebuildReport
from everlog.store.archive.embedder import Embedder

__all__ = [
    "Archive",
    "Embedder",
    "FollowCounts",
    "IndexStatus",
    "Match",
    "Matches",
    "RebuildReport",
    "recorded_embedder",
]
