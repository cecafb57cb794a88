"""Keep the records of the memories of agents that have few, so that a search of them needs no index.

Part of `search_caches`; read by `archival_memory`. An agent is known from its creation only: what it stored before this
process had it is found in the archive. What is kept here holds words of memories: whatever drops an agent's rows must
drop its memories, too.
"""

from collections import OrderedDict
from collections.abc import Collection, Sequence
from typing import Any

from everlog.events import Record

_STORED = frozenset({"archival_inserted", "archival_updated", "archival_deleted"})
_UNKNOWN = frozenset({"records_erased", "source_attached"})
"""Types of records after which an agent's search is left to the archive: it erases, and it has the documents."""
RECORDS_MAX = 200
"""Maximum records of memories of an agent, inclusive: more are left to the archive."""
AGENT_BYTES, RECORD_BYTES = 300, 3000
"""Approximate bytes in memory of an agent without memories, and of a record besides its words, its vector included."""


class KnownMemories:
    """Records of all memories of an agent's current life, in order."""

    __slots__ = ("prepared", "records", "since", "size")

    def __init__(self, since: int) -> None:
        """Begin without memories. `since`: seq of the record that began the life."""
        self.since = since
        self.records: list[Record] = []
        self.size = AGENT_BYTES
        """Approximate bytes in memory."""
        self.prepared: Any = None
        """Rows that were made of the records for searches, which belong to the searcher; None: none were made."""

    def add(self, record: Record) -> int:
        """Add a record. Return its approximate bytes."""
        size = 2 * len(record.text or "") + len(record.payload) + RECORD_BYTES
        self.records.append(record)
        self.size += size
        return size


class MemoryCache:
    """Memories of agents, up to the newest record that the engine has. For one thread at a time."""

    def __init__(self, bytes_max: int) -> None:
        """Keep up to `bytes_max` bytes."""
        self._bytes_max = bytes_max
        self._known: OrderedDict[str, KnownMemories] = OrderedDict()
        self._used = 0

    @property
    def used(self) -> int:
        """Approximate bytes of all memories."""
        return self._used

    def note(self, records: Sequence[Record]) -> None:
        """Take the records that the engine has added, of any agents, in order."""
        for record in records:
            if record.type == "agent_created":
                self.forget([record.agent_id])
                self._known[record.agent_id] = KnownMemories(record.seq)
                self._grown(AGENT_BYTES)
            elif record.type in _UNKNOWN:
                self.forget([record.agent_id])
            elif record.type in _STORED and (known := self._known.get(record.agent_id)) is not None:
                self._grown(known.add(record))
                if len(known.records) > RECORDS_MAX:
                    self.forget([record.agent_id])

    def known(self, agent_id: str, as_of: int) -> KnownMemories | None:
        """Return the memories of an agent's life at a seq; None if they are not kept, or if it has sources."""
        known = self._known.get(agent_id)
        if known is None or as_of < known.since:
            return None
        self._known.move_to_end(agent_id)
        return known

    def rest(self) -> None:
        """Drop what was made for searches; the next search makes it again."""
        for known in self._known.values():
            known.prepared = None

    def forget(self, agents: Collection[str]) -> None:
        """Drop the memories of these agents."""
        for agent_id in agents:
            known = self._known.pop(agent_id, None)
            self._used -= known.size if known is not None else 0

    def clear(self) -> None:
        """Drop everything."""
        self._known.clear()
        self._used = 0

    def _grown(self, size: int) -> None:
        self._used += size
        while self._used > self._bytes_max:
            self.forget([next(iter(self._known))])
