"""The index of what agents keep and say: derived from the log, losable, made anew by `everlog archive rebuild`.

Not imported by `store`: whoever needs it imports `store.archive`, in a process that may be large.
"""

from .archive import Archive
from .contract import Lag, Match, Matches, Rebuilt, Status
from .embedding import Embedder
from .recorded import recorded_embedder

__all__ = ["Archive", "Embedder", "Lag", "Match", "Matches", "Rebuilt", "Status", "recorded_embedder"]
