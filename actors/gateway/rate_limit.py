"""Limit the rate of requests and tokens with token buckets, and count the last minute.

Used by `EndpointQueue`.

Times are arguments: seconds of a clock that never goes back. Nothing here waits.
"""

MINUTE_S = 60.0
ROUNDING = 1e-6
"""Amounts below this count as 0: a timer must not be set for the rounding errors of floats."""
SLOTS = 12
"""Parts of a minute that `MinuteCounter` counts separately."""


class TokenBucket:
    """Allowance of so much a minute: up to a second's worth may be taken at once; takers beyond that wait."""

    def __init__(self, per_minute: int) -> None:
        """Create the bucket. `per_minute` 0 means no limit."""
        self._per_s = per_minute / MINUTE_S
        self._most = max(self._per_s, 1.0)
        self._left = self._most
        self._at = 0.0

    def wait(self, amount: float, now: float) -> float:
        """Return the seconds until `amount` may be taken; 0 for now. An amount above a second's worth waits for a full
        bucket.
        """
        if not self._per_s:
            return 0.0
        lacking = min(amount, self._most) - self._filled(now)
        return lacking / self._per_s if lacking > ROUNDING else 0.0

    def take(self, amount: float, now: float) -> None:
        """Take the amount, even if there is less: the next taker waits longer. A negative amount is given back."""
        if self._per_s:
            self._left = min(self._filled(now) - amount, self._most)

    def _filled(self, now: float) -> float:
        self._left = min(self._left + (now - self._at) * self._per_s, self._most)
        self._at = now
        return self._left


class MinuteCounter:
    """Count of the last minute, exact to a twelfth of a minute."""

    def __init__(self) -> None:
        self._counts = [0] * SLOTS
        self._slot = 0

    def add(self, amount: int, now: float) -> None:
        """Add to the count."""
        self._turn(now)
        self._counts[self._slot % SLOTS] += amount

    def total(self, now: float) -> int:
        """Return the count of the last minute."""
        self._turn(now)
        return sum(self._counts)

    def _turn(self, now: float) -> None:
        slot = int(now / MINUTE_S * SLOTS)
        for passed in range(max(self._slot + 1, slot - SLOTS + 1), slot + 1):
            self._counts[passed % SLOTS] = 0
        self._slot = max(self._slot, slot)
