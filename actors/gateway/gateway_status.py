"""What a gateway says of itself: its endpoints, the models that it leaves alone, what was used up. Plain figures.

Counters only grow, from 0 at the start of the gateway's process.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

import msgspec

UNNAMED = "other"
"""An endpoint whose address cannot be read."""


def endpoint_of(base_url: str) -> str:
    """Return what an endpoint is called in figures: host and port, nothing that could be secret. Empty is `default`."""
    if not base_url:
        return "default"
    text = base_url if "//" in base_url else f"//{base_url}"
    try:
        host, port = urlsplit(text).hostname or UNNAMED, urlsplit(text).port
    except ValueError:
        return UNNAMED
    return f"{host}:{port}" if port else host


class EndpointStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One model endpoint, as the gateway sees it."""

    endpoint: str
    """Where it is: host and port, no path, no key. See `endpoint_of`."""
    under_way: int = 0
    """Requests that were sent and not answered yet."""
    waiting: int = 0
    """Requests that wait for their turn, or to be tried again."""
    asked: int = 0
    """Counter: requests for it, those that were refused included; one that is tried again counts once."""
    answered: int = 0
    """Counter."""
    retried: int = 0
    """Counter: how often a request was tried again."""
    tokens: int = 0
    """Counter: of requests and replies, as the endpoint counts them."""
    tokens_out: int = 0
    """Counter: of these, those of replies."""
    failures: Mapping[str, int] = {}
    """Counters: requests that failed for good, refusals included, by the kind of the ModelError."""
    requests_last_minute: int = 0
    tokens_last_minute: int = 0
    paused_s: float = 0.0
    """For so long nothing is sent; 0 if it is."""
    shut: str = ""
    """Why it is not asked at all, but for a probe now and then; empty if it is."""


class BreakerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A model that is left alone, because it failed too often in a row."""

    endpoint: str
    """Where it is: see `endpoint_of`."""
    model: str
    failures: int
    """In a row."""
    opens_s: float
    """For so long nobody is asked; 0: the next request finds out."""
    why: str
    """What the last failure said."""


class GatewayStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A gateway: the sums are over its endpoints."""

    endpoints: Sequence[EndpointStatus] = ()
    left_alone: Sequence[BreakerStatus] = ()
    spent: tuple[int, float] = (0, 0.0)
    """Tokens and money in the time of the budgets, if there are any."""

    @property
    def under_way(self) -> int:
        """Requests that were sent and not answered yet."""
        return sum(endpoint.under_way for endpoint in self.endpoints)

    @property
    def waiting(self) -> int:
        """Requests that wait for their turn, or to be tried again."""
        return sum(endpoint.waiting for endpoint in self.endpoints)

    @property
    def asked(self) -> int:
        """Counter: requests, those that were refused included."""
        return sum(endpoint.asked for endpoint in self.endpoints)

    @property
    def answered(self) -> int:
        """Counter."""
        return sum(endpoint.answered for endpoint in self.endpoints)

    @property
    def retried(self) -> int:
        """Counter: how often a request was tried again."""
        return sum(endpoint.retried for endpoint in self.endpoints)

    @property
    def tokens(self) -> int:
        """Counter: of requests and replies."""
        return sum(endpoint.tokens for endpoint in self.endpoints)

    @property
    def tokens_out(self) -> int:
        """Counter: of replies."""
        return sum(endpoint.tokens_out for endpoint in self.endpoints)

    @property
    def failures(self) -> Mapping[str, int]:
        """Counters: requests that failed for good, by the kind of the ModelError."""
        found: Counter[str] = Counter()
        for endpoint in self.endpoints:
            found.update(endpoint.failures)
        return dict(found)
