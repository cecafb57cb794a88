"""Limit how many requests the holder of a key sends in a second: a bucket of tokens for each key."""

from everlog.actors.ports.effects import Clock
from everlog.events.times import MICROSECONDS

BURST_S = 2.0
"""Seconds whose requests may come at once."""
BUCKETS_MAX = 10_000
"""Number of buckets that are kept; a bucket that is forgotten is full again."""


class RateLimits:
    """Buckets of tokens, by key."""

    def __init__(self, per_s: float, clock: Clock) -> None:
        """`per_s`: requests in a second, on average; 0: no limit."""
        self._per_s = per_s
        self._clock = clock
        self._buckets: dict[str, tuple[float, int]] = {}
        """Tokens, and the time at which they were counted, by key."""

    def wait_s(self, key: str) -> float:
        """Take one token, and return 0; or return the seconds until there is one."""
        if not self._per_s:
            return 0.0
        now = self._clock.now()
        most = self._per_s * BURST_S
        tokens, counted = self._buckets.get(key, (most, now))
        tokens = min(most, tokens + (now - counted) / MICROSECONDS * self._per_s)
        if tokens < 1:
            self._buckets[key] = (tokens, now)
            return (1 - tokens) / self._per_s
        if len(self._buckets) >= BUCKETS_MAX and key not in self._buckets:
            self._buckets.clear()
        self._buckets[key] = (tokens - 1, now)
        return 0.0
