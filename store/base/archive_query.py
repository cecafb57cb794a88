"""Define the questions to the archive as plain values, so that a caller need not import the index.

Used by `actors/archive/archive_service.py`, `actors/memory/agent_search.py` and `store.archive`.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    import numpy as np

MessageLookup = Callable[[int], tuple[str, str, str]]
"""Returns role, name and text of the message at a place (from 0) of `SaidMessages.seqs`. It may be called in another
thread, and after the caller has stopped waiting.
"""


class SaidMessages(msgspec.Struct, frozen=True):
    """Messages to and from one agent. Texts are looked up only for messages that were never embedded."""

    seqs: "np.ndarray | Sequence[int]"
    """Seqs of the messages, ascending: int64."""
    message: MessageLookup


class MeaningQuery(NamedTuple):
    """Messages of one agent that are compared with a query in meaning."""

    agent_id: str
    query: str
    said: SaidMessages


class ArchiveQuery(msgspec.Struct, frozen=True):
    """A search in one agent's memories and in the sources that the agent can search."""

    agent_id: str
    query: str
    """Search text. A result must contain each phrase in quotes word for word. An empty query finds everything, newest
    first.
    """
    as_of: int
    """Last seq of the agent whose memories are searched, inclusive."""
    as_of_time: int
    """Latest time of the sources' records that are searched: microseconds UTC, inclusive."""
    sources: Sequence[str] = ()
    """Names of the sources that are searched in addition to the agent's own memories."""
    after: int | None = None
    """Earliest time at which a result was first stored: microseconds UTC, inclusive."""
    before: int | None = None
    """Time before which a result was first stored: microseconds UTC, exclusive."""
    tags: Sequence[str] = ()
    """Tags that a result must have, all of them."""
    source: str = ""
    """One name out of `sources`: only documents of that source are searched."""
    memory: str = ""
    """Id of one memory or document: only its parts are searched."""
    own: bool = True
    """False: only documents are searched, and not the agent's own memories."""
    first: int = 0
    """Rank of the first result to return, from 0."""
    count: int = 10
