"""Which text is near a question? The index of what agents keep and say, made from the logs alone.

It can be lost: `everlog archive rebuild` makes it again.

Not imported by `store`: whoever needs it imports `everlog.store.archive`, in a process that may be large.
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
