"""Which commit holds an event id: what makes appends idempotent (P6).

Ids carry their time, and a file's newest id is known. So the ids of a sealed file are read from it only when somebody
sends an id that is as old as the file: opening a log does not cost more for being long. The last of them are kept in
memory when a file is sealed: what comes next was on its way meanwhile, with ids a little older than the newest.
"""

from collections.abc import Callable, Iterable

from everlog.events import Record
from everlog.events.times import MICROSECONDS
from everlog.store.base.arrow_schema import id_bytes
from everlog.store.base.store_constants import ID_MEMORY_S

ID_MEMORY_US = ID_MEMORY_S * MICROSECONDS

RECENT_US = 60_000_000
"""Of a file that is sealed, ids that are no older than this before its newest stay in memory."""
NEVER = 2**63
"""A time that no id has."""

CommitsById = dict[bytes, int]
"""Commit numbers by the 16 bytes of an event id."""


def time_in(key: bytes) -> int:
    """The time inside a UUIDv7 of 16 bytes, microseconds UTC to the millisecond."""
    return int.from_bytes(key[:6], "big") * 1000


class _Generation:
    """The ids of one file."""

    __slots__ = ("ids", "last_commit", "load", "newest", "recent", "recent_from")

    def __init__(self) -> None:
        self.ids: CommitsById | None = {}
        self.newest = 0
        """Time of the newest id, microseconds UTC."""
        self.last_commit = 0
        """Last commit of the file once it is closed."""
        self.load: Callable[[], CommitsById] = dict
        self.recent: CommitsById = {}
        """All ids of the file from the time `recent_from` on (inclusive), where `ids` is not in memory."""
        self.recent_from = NEVER

    def find(self, key: bytes) -> int | None:
        at = time_in(key)
        if at > self.newest:
            return None
        if self.ids is None and at >= self.recent_from:
            return self.recent.get(key)
        if self.ids is None:
            self.ids = self.load()
        return self.ids.get(key)

    def since(self, at: int) -> CommitsById | None:
        """All ids with that time or a later one; None where they are not in memory."""
        if self.newest < at:
            return {}
        if self.ids is None and self.recent_from > at:
            return None
        known = self.recent if self.ids is None else self.ids
        return {key: number for key, number in known.items() if time_in(key) >= at}


class DedupIndex:
    """Event ids and the commits that hold them, one generation for each file that is remembered."""

    def __init__(self) -> None:
        self._open = _Generation()
        self._closed: list[_Generation] = []
        self.forgotten_to = -1
        """No id with a later time (microseconds UTC) was ever forgotten."""

    def find(self, key: bytes) -> int | None:
        """The commit that holds the event `key` (16 bytes). Raises CorruptLog, StoreError if a file cannot be read."""
        assert self._open.ids is not None
        number = self._open.ids.get(key)
        if number is None and self._closed:
            for generation in reversed(self._closed):
                number = generation.find(key)
                if number is not None:
                    break
        return number

    def add(self, records: Iterable[Record]) -> None:
        """Remember the ids of `records`, in the newest generation."""
        ids, newest = self._open.ids, self._open.newest
        assert ids is not None
        for record in records:
            key = id_bytes(record.event_id)
            ids[key] = record.commit
            newest = max(newest, time_in(key))
        self._open.newest = newest

    def note(self, new: CommitsById) -> None:
        """Remember ids that are known as keys already, in the newest generation."""
        assert self._open.ids is not None
        self._open.ids.update(new)
        self._open.newest = max(self._open.newest, time_in(max(new, default=bytes(16))))

    @property
    def newest(self) -> int:
        """Time of the newest id in the newest generation, microseconds UTC."""
        return self._open.newest

    def begin_generation(self, last_commit: int, now: int) -> None:
        """The file that ends with `last_commit` was closed; what is older than `ID_MEMORY_S` at `now` is forgotten."""
        self._open.last_commit = last_commit
        self._closed = [g for g in (*self._closed, self._open) if not self.forget(g.newest, now)]
        self._open = _Generation()

    def seal(self, first_commit: int, last_commit: int, newest: int, load: Callable[[], CommitsById], now: int) -> None:
        """The files from `first_commit` to `last_commit` are one now, whose ids `load` reads; `newest` is the last.

        For a file that is sealed since long, this is how it is remembered.
        """
        kept = [g for g in self._closed if not first_commit <= g.last_commit <= last_commit]
        if not self.forget(newest, now):
            generation = _Generation()
            generation.ids, generation.newest, generation.last_commit = None, newest, last_commit
            generation.load = load
            recent = [g.since(newest - RECENT_US) for g in self._closed if g not in kept]
            if recent and None not in recent:
                generation.recent_from = newest - RECENT_US
                generation.recent = {key: number for ids in recent for key, number in (ids or {}).items()}
            kept.append(generation)
        self._closed = sorted(kept, key=lambda g: g.last_commit)

    def forget(self, newest: int, now: int) -> bool:
        """Whether a closed file whose newest id has time `newest` may be forgotten at `now`; notes that it was."""
        if newest >= now - ID_MEMORY_US:
            return False
        self.forgotten_to = max(self.forgotten_to, newest)
        return True
