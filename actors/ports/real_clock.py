"""Supply the real clock and the real ids. No other file reads the wall clock or draws random numbers.

Used by the entry points of processes and by `ports.py`; agents get clock and ids as arguments.
"""

import os
import secrets
import threading
import time
from pathlib import Path

from everlog.actors.ports.effects import Clock, Ids
from everlog.events import RANDOM_BITS, uuid7
from everlog.store import FileStore


class RealClock:
    """Clock of the machine."""

    def now(self) -> int:
        """Return microseconds since 1970-01-01 UTC."""
        return time.time_ns() // 1000


class RealIds:
    """Generator of UUIDv7 with randomness from the operating system. Ids of one moment, as those of a commit, count up
    from the first (RFC 9562, 6.2, method 2): they sort in the order of their creation, and a sealed file stores their
    common part once.
    """

    def __init__(self) -> None:
        self._at = -1
        self._chance = 0

    def new(self, at: int) -> str:
        """Return a fresh UUIDv7 for time `at` (microseconds UTC)."""
        # One bit less than there is room for: counting up within one moment cannot overflow.
        self._chance = self._chance + 1 if at == self._at else secrets.randbits(RANDOM_BITS - 1)
        self._at = at
        return uuid7(at, self._chance)


def process_us() -> int:
    """Return the processor time that this process has used, in microseconds."""
    return time.process_time_ns() // 1000


def monotonic_us() -> int:
    """Return microseconds of a clock that never goes back. For latencies only."""
    return time.monotonic_ns() // 1000


def pause(seconds: float) -> None:
    """Block the thread for a number of seconds."""
    threading.Event().wait(seconds)


def make_store(root: Path, clock: Clock, ids: Ids, shards: int | None = None) -> FileStore:
    """Open the store in `root`.
    Create it if there is none, with one shard for each processor unless `shards` says otherwise.

    Raise BadInput if the store has another number of shards than `shards`; StoreError.
    """
    new = os.cpu_count() or 1
    return FileStore.create(root, clock.now, ids.new(clock.now()), shards=shards, shards_new=new)


def secret() -> str:
    """Return a new secret of 256 bits, in 43 characters that fit into an address."""
    return secrets.token_urlsafe(32)


def chance() -> float:
    """Return a random number from 0 (inclusive) to 1 (exclusive)."""
    return secrets.randbits(53) / 2**53
