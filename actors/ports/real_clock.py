"""The real clock and the real ids: the one file that reads the wall clock and draws chance."""

import os
import secrets
import threading
import time
from pathlib import Path

from everlog.actors.ports.effects import Clock, Ids
from everlog.events import RANDOM_BITS, uuid7
from everlog.store import FileStore


class RealClock:
    """The machine's clock."""

    def now(self) -> int:
        """Microseconds since 1970-01-01 UTC."""
        return time.time_ns() // 1000


class RealIds:
    """UUIDv7 from the operating system's chance. Those of one moment, the events of a commit, count up from the first
    (RFC 9562, 6.2, method 2): they sort as they were made, and a sealed file keeps the common part once.
    """

    def __init__(self) -> None:
        self._at = -1
        self._chance = 0

    def new(self, at: int) -> str:
        """A fresh UUIDv7 for time `at` (microseconds UTC)."""
        self._chance = self._chance + 1 if at == self._at else secrets.randbits(RANDOM_BITS - 1)
        self._at = at
        return uuid7(at, self._chance)


def monotonic_us() -> int:
    """Microseconds of a clock that never goes back, for latencies only."""
    return time.monotonic_ns() // 1000


def pause(seconds: float) -> None:
    """Wait, in a thread that has nothing else to do."""
    threading.Event().wait(seconds)


def make_store(root: Path, clock: Clock, ids: Ids, shards: int | None = None) -> FileStore:
    """The store in `root`, made if there is none: with a shard for each processor, where nobody says how many.

    Raises BadInput where there is one with another number of shards, StoreError.
    """
    new = os.cpu_count() or 1
    return FileStore.create(root, clock.now, ids.new(clock.now()), shards=shards, shards_new=new)


def chance() -> float:
    """A number from 0 (inclusive) to 1 (exclusive)."""
    return secrets.randbits(53) / 2**53
