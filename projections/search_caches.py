"""Keep what searches of an engine's agents need in memory: talk, and few memories.

Used by `engine`, which has one of each; `talk_reads` and `archival_memory` read them. Every record that the engine adds
must be noted, and every agent whose rows come or go in another way must be forgotten.
"""

from collections.abc import Collection, Sequence

from everlog.events import Record
from everlog.projections.projection_constants import MEMORIES_BYTES_MAX, TALK_BYTES_MAX
from everlog.projections.search.memory_cache import MemoryCache
from everlog.projections.search.talk_cache import TalkCache


class SearchCaches:
    """Caches of one engine. For one thread at a time."""

    def __init__(self) -> None:
        self.talks = TalkCache(TALK_BYTES_MAX)
        """Words that agents said and heard."""
        self.memories = MemoryCache(MEMORIES_BYTES_MAX)
        """Memories of agents that have few."""

    def note(self, records: Sequence[Record]) -> None:
        """Take the records that the engine has added, of any agents, in order."""
        self.talks.note(records)
        self.memories.note(records)

    def forget(self, agents: Collection[str]) -> None:
        """Drop what was noted of these agents."""
        self.talks.forget(agents)
        self.memories.forget(agents)

    def rest(self) -> None:
        """Give back the memory that only searches need. The next search of an agent makes its part again."""
        self.talks.clear()
        self.memories.rest()

    def clear(self) -> None:
        """Drop everything."""
        self.talks.clear()
        self.memories.clear()
