"""A lane: one endpoint as the gateway sees it. Who waits for it, how fast it may be asked, whether it wants to be left
alone, and whether it has shut us out. Time is an argument, in seconds; nothing here waits or sends.
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
"""Failures that every other request would meet as well."""


class QueueTicket:
    """One request on its way through a lane. Two are never equal."""

    __slots__ = ("agent_id", "estimate", "granted")

    def __init__(self, agent_id: str, estimate: int) -> None:
        self.agent_id = agent_id
        self.estimate = estimate
        """Tokens that it will cost at least."""
        self.granted: asyncio.Future[None]
        """While it waits: done when it may be sent."""


class EndpointQueue:
    """One endpoint."""

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
        """Why, and the kind of the failure."""
        self._probe_at = 0.0
        self._probe: QueueTicket | None = None
        """The request that finds out whether a lane that is shut has opened."""

    @property
    def shut(self) -> bool:
        """Whether nobody is served, but for a probe now and then."""
        return self._shut is not None

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count a request for this endpoint, and what comes of it."""
        self._asked += 1
        try:
            yield
        except ModelError as error:
            self._failures[error.kind] += 1
            raise
        self._answered += 1

    def count_tokens(self, used: Usage) -> None:
        """Count what a reply cost, whether it could be used or not."""
        self._tokens_used += max(used.total, used.completion)
        self._tokens_out += used.completion

    def count_retry(self) -> None:
        """Count a request that is tried again."""
        self._retried += 1

    def arrive(self) -> None:
        """Let one more request in; it goes with `leave`."""
        self._inside += 1

    def enter(self, ticket: QueueTicket, now: float, *, again: bool) -> None:
        """Wait here. Raises ModelError where the lane is shut, unless it is time that somebody tries."""
        if self._shut is not None and self._probe is not ticket:
            if self._probe is not None or now < self._probe_at:
                raise self.refusal(now)
            self._probe = ticket
        self.waiting.add(ticket.agent_id, ticket, first=again)

    def wait(self, now: float) -> float:
        """Seconds until the next request may be sent: 0 is now, infinity that none waits."""
        while (ticket := self.waiting.peek()) is not None and ticket.granted.cancelled():
            self.waiting.take()  # its caller has gone away in this moment
        if ticket is None:
            return math.inf
        return max(self._paused_until - now, self._requests.wait(1, now), self._tokens.wait(ticket.estimate, now), 0)

    def next(self, now: float) -> QueueTicket:
        """Take the request whose turn it is: it is sent now."""
        ticket = self.waiting.take()
        self._requests.take(1, now)
        self._tokens.take(ticket.estimate, now)
        self._sent.add(1, now)
        self._under_way += 1
        return ticket

    def end(self, now: float) -> None:
        """What was sent has come back, or will not."""
        self._under_way -= 1
        self._ended.add(1, now)

    def succeeded(self, ticket: QueueTicket, used: Usage, now: float) -> None:
        """It was answered: the lane is open, and the estimate is put right."""
        self._shut = None
        self._tokens.take(used.total - ticket.estimate, now)
        self._used.add(used.total, now)

    def failed(self, error: ModelError, backoff_s: float, now: float) -> list[QueueTicket]:
        """It failed. Gives back those who waited and shall not, because nobody will be answered for a while."""
        if error.kind in SHUT_KINDS:
            return self._close(error, max(PROBE_S, error.retry_after_s), now)
        if error.kind == "rate_limited":
            pause = error.retry_after_s or backoff_s
            if pause > PAUSE_S_MAX:
                return self._close(error, pause, now)
            self._paused_until = max(self._paused_until, now + pause)
        return []

    def leave(self, ticket: QueueTicket) -> None:
        """It has come to its end, whichever."""
        self._inside -= 1
        self.waiting.withdraw(ticket.agent_id, ticket)
        if self._probe is ticket:
            self._probe = None

    def _close(self, error: ModelError, seconds: float, now: float) -> list[QueueTicket]:
        self._shut, self._probe_at = (str(error), error.kind), now + seconds
        return self.waiting.clear()

    def refusal(self, now: float) -> ModelError:
        """What whoever comes to a lane that is shut is told: what was found, and when it is tried again."""
        found, kind = self._shut or ("", "busy")
        left = max(self._probe_at - now, 1.0)
        return ModelError(
            f"{found} (Another request found this; the endpoint is tried again in {left:.0f} s.)",
            kind=kind,
            attempts=0,
            retry_after_s=left,
        )

    def hint(self, now: float) -> float:
        """In how many seconds what waits now may have been answered, 1 or more, as fast as it goes at present."""
        per_minute = max(self._ended.total(now), 1)
        return max(len(self.waiting) * MINUTE_S / per_minute, self._paused_until - now, 1.0)

    def status(self, now: float) -> EndpointStatus:
        """How it does."""
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
