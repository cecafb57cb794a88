"""Queue the requests for one endpoint: order, rate limits, pauses, and whether the endpoint is shut for an error that
every request would get. Times are arguments, in seconds; nothing here waits or sends.

Used by `Gateway`, which does the waiting and the sending.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from everlog.actors.gateway.fair_queue import FairQueue
from everlog.actors.gateway.gateway_limits import GatewayLimits
from everlog.actors.gateway.gateway_status import EndpointStatus, endpoint_of
from everlog.actors.gateway.rate_limit import MINUTE_S, MinuteCounter, TokenBucket
from everlog.actors.ports.agent_constants import PAUSE_S_MAX, PROBE_S
from everlog.events import ModelError, Usage

SHUT_KINDS = ("key", "credit")
"""Failure kinds that every other request would get as well."""


class QueueTicket:
    """One request on its way through an endpoint queue. No two tickets are equal."""

    __slots__ = ("agent_id", "estimate", "granted")

    def __init__(self, agent_id: str, estimate: int) -> None:
        self.agent_id = agent_id
        self.estimate = estimate
        """Estimate of the tokens that the request costs at least."""
        self.granted: asyncio.Future[None]
        """While the request waits: resolved when it may be sent."""


class EndpointQueue:
    """Queue of one endpoint."""

    def __init__(self, base_url: str, limits: GatewayLimits) -> None:
        self.base_url = base_url
        self.waiting: FairQueue[QueueTicket] = FairQueue()
        self._limits = limits
        self._requests = TokenBucket(limits.requests_per_minute)
        self._tokens = TokenBucket(limits.tokens_per_minute)
        self._sent, self._used, self._ended = MinuteCounter(), MinuteCounter(), MinuteCounter()
        self._inside = self._under_way = 0
        self._asked = self._answered = self._retried = self._tokens_used = self._tokens_out = 0
        self._failures: Counter[str] = Counter()
        self._paused_until = 0.0
        self._shut: tuple[str, str] | None = None
        """Message and kind of the failure that shut the queue; None while it is open."""
        self._probe_at = 0.0
        self._probe: QueueTicket | None = None
        """Request that tests whether a shut endpoint answers again."""

    @property
    def shut(self) -> bool:
        """True if no request is sent, except a probe now and then."""
        return self._shut is not None

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Hold a request for this endpoint, and count it and its outcome."""
        self._asked += 1
        try:
            yield
        except ModelError as error:
            self._failures[error.kind] += 1
            raise
        self._answered += 1

    def count_tokens(self, used: Usage) -> None:
        """Count the tokens of a reply, usable or not."""
        self._tokens_used += max(used.total, used.completion)
        self._tokens_out += used.completion

    def count_retry(self) -> None:
        """Count a retry."""
        self._retried += 1

    def arrive(self) -> None:
        """Let a request in; `leave` must follow."""
        self._inside += 1

    def enter(self, ticket: QueueTicket, now: float, *, again: bool) -> None:
        """Queue the request. Raises ModelError if the queue is shut, unless it is time for a probe and this request
        becomes it.

        `again`: a retry, which goes before the other requests of its agent.
        """
        if self._shut is not None and self._probe is not ticket:
            if self._probe is not None or now < self._probe_at:
                raise self.refusal(now)
            self._probe = ticket
        self.waiting.add(ticket.agent_id, ticket, first=again)

    def wait(self, now: float) -> float:
        """Return the seconds until the next request may be sent: 0 for now, infinity if none waits."""
        while (ticket := self.waiting.peek()) is not None and ticket.granted.cancelled():
            self.waiting.take()  # its caller was cancelled
        if ticket is None:
            return math.inf
        return max(self._paused_until - now, self._requests.wait(1, now), self._tokens.wait(ticket.estimate, now), 0)

    def next(self, now: float) -> QueueTicket:
        """Take the next request out of the queue, to send it now."""
        ticket = self.waiting.take()
        self._requests.take(1, now)
        self._tokens.take(ticket.estimate, now)
        self._sent.add(1, now)
        self._under_way += 1
        return ticket

    def end(self, now: float) -> None:
        """Record that a sent request has been answered, or never will be."""
        self._under_way -= 1
        self._ended.add(1, now)

    def succeeded(self, ticket: QueueTicket, used: Usage, now: float) -> None:
        """Record an answer: open the queue, and replace the estimate of tokens by the real usage."""
        self._shut = None
        self._tokens.take(used.total - ticket.estimate, now)
        self._used.add(used.total, now)

    def failed(self, error: ModelError, backoff_s: float, now: float) -> list[QueueTicket]:
        """Record a failure. Return the waiting requests that must be refused, if the endpoint is unusable for a
        while.
        """
        if error.kind in SHUT_KINDS:
            return self._close(error, max(PROBE_S, error.retry_after_s), now)
        if error.kind == "rate_limited":
            pause = error.retry_after_s or backoff_s
            if pause > PAUSE_S_MAX:
                return self._close(error, pause, now)
            self._paused_until = max(self._paused_until, now + pause)
        return []

    def leave(self, ticket: QueueTicket) -> None:
        """Remove a request at its end, whatever its outcome."""
        self._inside -= 1
        self.waiting.withdraw(ticket.agent_id, ticket)
        if self._probe is ticket:
            self._probe = None

    def _close(self, error: ModelError, seconds: float, now: float) -> list[QueueTicket]:
        self._shut, self._probe_at = (str(error), error.kind), now + seconds
        return self.waiting.clear()

    def refusal(self, now: float) -> ModelError:
        """Return the error for requests to a shut endpoint: the failure that shut it, and the time of the next
        probe.
        """
        found, kind = self._shut or ("", "busy")
        left = max(self._probe_at - now, 1.0)
        return ModelError(
            f"{found} (Another request found this; the endpoint is tried again in {left:.0f} s.)",
            kind=kind,
            attempts=0,
            retry_after_s=left,
        )

    def hint(self, now: float) -> float:
        """Return an estimate of the seconds until the waiting requests are answered, 1 or more, from the last minute's
        rate.
        """
        per_minute = max(self._ended.total(now), 1)
        return max(len(self.waiting) * MINUTE_S / per_minute, self._paused_until - now, 1.0)

    def status(self, now: float) -> EndpointStatus:
        """Return the figures of this endpoint."""
        return EndpointStatus(
            endpoint=endpoint_of(self.base_url),
            under_way=self._under_way,
            waiting=self._inside - self._under_way,
            asked=self._asked,
            answered=self._answered,
            retried=self._retried,
            tokens=self._tokens_used,
            tokens_out=self._tokens_out,
            failures=dict(self._failures),
            requests_last_minute=self._sent.total(now),
            tokens_last_minute=self._used.total(now),
            paused_s=max(self._paused_until - now, 0.0),
            shut=self._shut[0] if self._shut else "",
        )
