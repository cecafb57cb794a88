"""Map event ids to the commits that hold them, which makes appends idempotent (P6).

Ids contain their time, and the newest id of each file is known. So the ids of a sealed file are read only when an id
arrives that is as old as the file: opening a long log costs no more than opening a short one. When a file is sealed,
its last ids stay in memory for a minute, because appends that were on their way meanwhile have ids a little older than
the newest.

Used by `append_rules`, as part of `StreamHeads`. The time in an id is taken from its first six bytes, as
`events/ids.py` writes it.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator

from everlog.events import Record
from everlog.events.times import MICROSECONDS
from everlog.store.base.arrow_schema import id_bytes
from everlog.store.base.store_constants import ID_MEMORY_S

ID_MEMORY_US = ID_MEMORY_S * MICROSECONDS

RECENT_US = 60_000_000
"""Microseconds before the newest id of a sealed file: ids from there on stay in memory."""
ID_BYTES = 16
NEVER = 2**63
"""A time later than that of any id."""

CommitsById = dict[bytes, int]
"""Commit numbers by the 16 bytes of an event id."""


def time_of_option(key: bytes) -> int:
    """Return the time inside a UUIDv7 of 16 bytes, in microseconds UTC, exact to the millisecond."""
    return int.from_bytes(key[:6], "big") * 1000


class _RecentIds:
    """Event ids and their commits, sorted: 24 bytes for each, of which a dictionary takes 150."""

    __slots__ = ("_commits", "_keys")

    def __init__(self, ids: CommitsById) -> None:
        keys = sorted(ids)
        self._keys = b"".join(keys)
        self._commits = array("q", map(ids.__getitem__, keys))

    def _key(self, place: int) -> bytes:
        return self._keys[ID_BYTES * place : ID_BYTES * (place + 1)]

    def find(self, key: bytes) -> int | None:
        """Return the commit of an id; None if it is not here."""
        place = bisect_left(range(len(self._commits)), key, key=self._key)
        return self._commits[place] if self._key(place) == key else None

    def items(self) -> Iterator[tuple[bytes, int]]:
        """Yield all ids with their commits."""
        return ((self._key(place), number) for place, number in enumerate(self._commits))


NO_IDS = _RecentIds({})


class _Generation:
    """Event ids of one file."""

    __slots__ = ("ids", "last_commit", "load", "newest", "recent", "recent_from")

    def __init__(self) -> None:
        self.ids: CommitsById | None = {}
        self.newest = 0
        """Time of the newest id, microseconds UTC."""
        self.last_commit = 0
        """Number of the file's last commit, once the file is closed."""
        self.load: Callable[[], CommitsById] = dict
        self.recent = NO_IDS
        """Ids of the file from the time `recent_from` on (inclusive), complete, while `ids` is not in memory."""
        self.recent_from = NEVER

    def forget_recent(self) -> None:
        """Leave all ids of the file to the file."""
        self.recent, self.recent_from = NO_IDS, NEVER

    def find(self, key: bytes) -> int | None:
        at = time_of_option(key)
        if at > self.newest:
            return None
        if self.ids is None and at >= self.recent_from:
            return self.recent.find(key)
        if self.ids is None:
            self.ids = self.load()
        return self.ids.get(key)

    def since(self, at: int) -> CommitsById | None:
        """Return all ids with the time `at` or later; None if they are not in memory."""
        if self.newest < at:
            return {}
        if self.ids is None and self.recent_from > at:
            return None
        known = self.recent if self.ids is None else self.ids
        return {key: number for key, number in known.items() if time_of_option(key) >= at}


class DedupIndex:
    """Event ids and the commits that hold them, one generation for each remembered file."""

    def __init__(self) -> None:
        self._open = _Generation()
        self._closed: list[_Generation] = []
        self.forgotten_to = -1
        """Newest time of all forgotten ids, microseconds UTC: no id with a later time was ever forgotten."""

    def find(self, key: bytes) -> int | None:
        """Return the commit that holds the event `key` (16 bytes). Raises CorruptLog, StoreError if a file cannot be
        read.
        """
        assert self._open.ids is not None
        number = self._open.ids.get(key)
        if number is None and self._closed:
            for generation in reversed(self._closed):
                number = generation.find(key)
                if number is not None:
                    break
        return number

    def add(self, records: Iterable[Record]) -> None:
        """Remember the ids of `records` in the newest generation."""
        ids, newest = self._open.ids, self._open.newest
        assert ids is not None
        for record in records:
            key = id_bytes(record.event_id)
            ids[key] = record.commit
            newest = max(newest, time_of_option(key))
        self._open.newest = newest

    def note(self, new: CommitsById) -> None:
        """Remember ids that are given as 16-byte keys, in the newest generation."""
        assert self._open.ids is not None
        self._open.ids.update(new)
        self._open.newest = max(self._open.newest, time_of_option(max(new, default=bytes(16))))

    @property
    def newest(self) -> int:
        """Time of the newest id in the newest generation, microseconds UTC."""
        return self._open.newest

    def begin_generation(self, last_commit: int, now: int) -> None:
        """Close the newest generation, whose file ends with `last_commit`; forget files older than `ID_MEMORY_S` at
        `now`.
        """
        self._open.last_commit = last_commit
        self._closed = [g for g in (*self._closed, self._open) if not self.forget(g.newest, now)]
        self._open = _Generation()

    def seal(self, first_commit: int, last_commit: int, newest: int, load: Callable[[], CommitsById], now: int) -> None:
        """Replace the generations from `first_commit` to `last_commit` by one sealed file, whose ids `load` reads.

        `newest` is the time of the newest id in the file. Opening a log calls this for each file that was sealed
        before.
        """
        kept = [g for g in self._closed if not first_commit <= g.last_commit <= last_commit]
        if not self.forget(newest, now):
            generation = _Generation()
            generation.ids, generation.newest, generation.last_commit = None, newest, last_commit
            generation.load = load
            recent = [g.since(newest - RECENT_US) for g in self._closed if g not in kept]
            if recent and None not in recent:
                generation.recent_from = newest - RECENT_US
                generation.recent = _RecentIds({key: number for ids in recent for key, number in (ids or {}).items()})
            kept.append(generation)
        for generation in kept:
            if generation.newest < now - RECENT_US:  # no append of that time is still on its way
                generation.forget_recent()
        self._closed = sorted(kept, key=lambda g: g.last_commit)

    def forget(self, newest: int, now: int) -> bool:
        """Return True if a closed file whose newest id has the time `newest` may be forgotten at `now`; if so, note
        that it was.
        """
        if newest >= now - ID_MEMORY_US:
            return False
        self.forgotten_to = max(self.forgotten_to, newest)
        return True
