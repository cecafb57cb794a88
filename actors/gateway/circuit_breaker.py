"""Break the circuit to a model that failed several times in a row: its requests fail at once for a while.

Used by `Gateway`.

There is one breaker for each model at each endpoint. Times are arguments, in seconds; nothing here waits or sends.
"""

from everlog.actors.gateway.gateway_status import BreakerStatus, endpoint_of
from everlog.actors.models.failure_classes import failure_of
from everlog.actors.ports.agent_constants import BREAKER_FAILURES, BREAKER_OPEN_S
from everlog.events import ModelError


class CircuitBreaker:
    """Breaker of one model at one endpoint. Closed: all are sent. Open: none; one test after BREAKER_OPEN_S."""

    __slots__ = ("_failures", "_last", "_probing", "_until")

    def __init__(self) -> None:
        self._failures = 0
        self._last: ModelError | None = None
        """Failure that opened the breaker; None while it is closed."""
        self._until = 0.0
        self._probing = False

    @property
    def open(self) -> bool:
        """True if no request is sent, except a test now and then."""
        return self._last is not None

    def check(self, now: float) -> None:
        """Raise ModelError, of the kind that opened the breaker, if no request may be sent."""
        if self._last is not None and (self._probing or now < self._until):
            raise self._refusal(self._last, now)

    def begin(self, now: float) -> bool:
        """Begin a request. Return True if it is the test of an open breaker. Raises ModelError as `check` does."""
        self.check(now)
        self._probing = self.open
        return self._probing

    def end(self) -> None:
        """End the test of an open breaker, whatever its outcome."""
        self._probing = False

    def succeeded(self) -> None:
        """Record an answer, also a refusal: the endpoint is reachable, so the breaker closes."""
        self._failures, self._last = 0, None

    def failed(self, error: ModelError, now: float) -> None:
        """Record a failure. Enough failures in a row open the breaker; a failure that is an answer closes it."""
        failure = failure_of(error)
        if not failure.trips:
            if not failure.retried:
                self.succeeded()
            return
        self._failures += 1
        if self._failures >= BREAKER_FAILURES:
            self._last, self._until = error, now + max(BREAKER_OPEN_S, error.retry_after_s)

    def status(self, base_url: str, model: str, now: float) -> BreakerStatus | None:
        """Return the figures of the breaker; None while it is closed."""
        if self._last is None:
            return None
        return BreakerStatus(
            endpoint=endpoint_of(base_url),
            model=model,
            failures=self._failures,
            opens_s=max(self._until - now, 0.0),
            why=str(self._last),
        )

    def _refusal(self, last: ModelError, now: float) -> ModelError:
        left = max(self._until - now, 1.0)
        return ModelError(
            f"{last} ({self._failures} tries in a row have failed, so nothing was sent: it is tried again in "
            f"{left:.0f} s.)",
            kind=last.kind,
            attempts=0,
            retry_after_s=left,
        )
