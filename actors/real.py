"""The real clock and the real ids: the one file that reads the wall clock and draws chance."""

import secrets
import time

from events import RANDOM_BITS, uuid7


class RealClock:
    """The machine's clock."""

    def now(self) -> int:
        """Microseconds since 1970-01-01 UTC."""
        return time.time_ns() // 1000


class RealIds:
    """UUIDv7 from the operating system's chance."""

    def new(self, at: int) -> str:
        """A fresh UUIDv7 for time `at` (microseconds UTC)."""
        return uuid7(at, secrets.randbits(RANDOM_BITS))


def monotonic_us() -> int:
    """Microseconds of a clock that never goes back, for latencies only."""
    return time.monotonic_ns() // 1000
