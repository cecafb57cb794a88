"""How fast an endpoint is asked: allowances that fill with time, and a count of the last minute.

Time is an argument: seconds of any clock that never goes back. Nothing here waits.
"""

MINUTE_S = 60.0
ROUNDING = 1e-6
"""Less than this is nothing: a timer must not be set for what the sums of floats leave."""
SLOTS = 12
"""Parts of a minute that a Meter counts apart."""


class TokenBucket:
    """So much a minute, evenly: a second's worth may be taken at once, and what was taken beyond is waited for."""

    def __init__(self, per_minute: int) -> None:
        """`per_minute` 0 is no limit."""
        self._per_s = per_minute / MINUTE_S
        self._most = max(self._per_s, 1.0)
        self._left = self._most
        self._at = 0.0

    def wait(self, amount: float, now: float) -> float:
        """Seconds until `amount` may be taken; 0 if it may be now. More than a second's worth waits for a full one."""
        if not self._per_s:
            return 0.0
        lacking = min(amount, self._most) - self._filled(now)
        return lacking / self._per_s if lacking > ROUNDING else 0.0

    def take(self, amount: float, now: float) -> None:
        """Take it, though there be less: whoever is next waits the longer. Negative gives back."""
        if self._per_s:
            self._left = min(self._filled(now) - amount, self._most)

    def _filled(self, now: float) -> float:
        self._left = min(self._left + (now - self._at) * self._per_s, self._most)
        self._at = now
        return self._left


class MinuteCounter:
    """How much there was in the last minute, give or take a twelfth of it."""

    def __init__(self) -> None:
        self._counts = [0] * SLOTS
        self._slot = 0

    def add(self, amount: int, now: float) -> None:
        """There was so much more."""
        self._turn(now)
        self._counts[self._slot % SLOTS] += amount

    def total(self, now: float) -> int:
        """The sum of the last minute."""
        self._turn(now)
        return sum(self._counts)

    def _turn(self, now: float) -> None:
        slot = int(now / MINUTE_S * SLOTS)
        for passed in range(max(self._slot + 1, slot - SLOTS + 1), slot + 1):
            self._counts[passed % SLOTS] = 0
        self._slot = max(self._slot, slot)
