"""Part of a feed as a command follows it, from the store or from a server."""

from collections.abc import Sequence
from typing import NamedTuple

from everlog.events import EverlogError, Record


class FeedPart(NamedTuple):
    """Records of a feed, or the reason why a log cannot be read now."""

    token: str = ""
    """Position after this part; empty: as before."""
    records: Sequence[Record] = ()
    error: EverlogError | None = None
    """Reason; the records follow when the log is mended."""
