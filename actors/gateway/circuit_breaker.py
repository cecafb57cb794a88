"""Circuit breakers: a model that failed several times in a row is left alone for a while, and nobody waits for it.

One for each model at each endpoint. Time is an argument, in seconds; nothing here waits or sends.
"""

from everlog.actors.gateway.gateway_status import BreakerStatus, endpoint_of
from everlog.actors.models.failure_classes import failure_of
from everlog.actors.ports.agent_constants import BREAK_AFTER, BREAK_S
from everlog.events import ModelError


class CircuitBreaker:
    """One model at one endpoint. Closed: all are sent. Open: none. After BREAK_S one is sent, to find out."""

    __slots__ = ("_failures", "_last", "_probing", "_until")

    def __init__(self) -> None:
        self._failures = 0
        self._last: ModelError | None = None
        """What opened it; None: it is closed."""
        self._until = 0.0
        self._probing = False

    @property
    def open(self) -> bool:
        """Whether nobody is asked, but for one now and then."""
        return self._last is not None

    def check(self, now: float) -> None:
        """Raises ModelError, of the kind that opened it, where nobody is asked."""
        if self._last is not None and (self._probing or now < self._until):
            raise self._refusal(self._last, now)

    def begin(self, now: float) -> bool:
        """A request is to be sent: whether it is the one that finds out. Raises ModelError as `check` does."""
        self.check(now)
        self._probing = self.open
        return self._probing

    def end(self) -> None:
        """The request that was to find out has come to its end, whichever."""
        self._probing = False

    def succeeded(self) -> None:
        """Something was answered, if only with a refusal: it is there."""
        self._failures, self._last = 0, None

    def failed(self, error: ModelError, now: float) -> None:
        """One more failure."""
        failure = failure_of(error)
        if not failure.trips:
            if not failure.retried:
                self.succeeded()
            return
        self._failures += 1
        if self._failures >= BREAK_AFTER:
            self._last, self._until = error, now + max(BREAK_S, error.retry_after_s)

    def status(self, base_url: str, model: str, now: float) -> BreakerStatus | None:
        """How it stands; None while it is closed."""
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
