"""Define the figures of a gateway: its endpoints, the models with an open circuit breaker, and the used budgets.

Filled by the gateway's files; read by `hosting.cluster_status` and `hosting.metrics`.

Counters only grow, from 0 at the start of the gateway's process.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

import msgspec

UNNAMED = "other"
"""Name of an endpoint whose address cannot be read."""


def endpoint_of(base_url: str) -> str:
    """Return the name of an endpoint in figures: host and port, nothing secret. An empty URL is `default`."""
    if not base_url:
        return "default"
    text = base_url if "//" in base_url else f"//{base_url}"
    try:
        host, port = urlsplit(text).hostname or UNNAMED, urlsplit(text).port
    except ValueError:
        return UNNAMED
    return f"{host}:{port}" if port else host


class EndpointStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one model endpoint."""

    endpoint: str
    """Host and port, without path and key; see `endpoint_of`."""
    under_way: int = 0
    """Requests that were sent and not answered yet."""
    waiting: int = 0
    """Requests that wait for their turn, or for a retry."""
    asked: int = 0
    """Counter: requests for the endpoint, refused ones included; a request with retries counts once."""
    answered: int = 0
    """Counter."""
    retried: int = 0
    """Counter: retries."""
    tokens: int = 0
    """Counter: tokens of requests and replies, as the endpoint counts them."""
    tokens_out: int = 0
    """Counter: tokens of replies, a part of `tokens`."""
    failures: Mapping[str, int] = {}
    """Counters by kind of ModelError: requests that failed for good, refusals included."""
    requests_last_minute: int = 0
    tokens_last_minute: int = 0
    paused_s: float = 0.0
    """Seconds of pause that are left, in which nothing is sent; 0 if there is none."""
    shut: str = ""
    """Failure for which nothing but a probe is sent; empty if requests are sent."""


class BreakerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Model with an open circuit breaker, because it failed too often in a row."""

    endpoint: str
    """Host and port; see `endpoint_of`."""
    model: str
    failures: int
    """Number of failures in a row."""
    opens_s: float
    """Seconds until a request is let through to test the model; 0: the next request is."""
    why: str
    """Message of the last failure."""


class GatewayStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of a gateway; the properties are sums over its endpoints."""

    endpoints: Sequence[EndpointStatus] = ()
    left_alone: Sequence[BreakerStatus] = ()
    spent: tuple[int, float] = (0, 0.0)
    """Tokens and cost in the current period of the budgets; 0 without budgets."""

    @property
    def under_way(self) -> int:
        """Requests that were sent and not answered yet."""
        return sum(endpoint.under_way for endpoint in self.endpoints)

    @property
    def waiting(self) -> int:
        """Requests that wait for their turn, or for a retry."""
        return sum(endpoint.waiting for endpoint in self.endpoints)

    @property
    def asked(self) -> int:
        """Counter: requests, refused ones included."""
        return sum(endpoint.asked for endpoint in self.endpoints)

    @property
    def answered(self) -> int:
        """Counter."""
        return sum(endpoint.answered for endpoint in self.endpoints)

    @property
    def retried(self) -> int:
        """Counter: retries."""
        return sum(endpoint.retried for endpoint in self.endpoints)

    @property
    def tokens(self) -> int:
        """Counter: tokens of requests and replies."""
        return sum(endpoint.tokens for endpoint in self.endpoints)

    @property
    def tokens_out(self) -> int:
        """Counter: tokens of replies."""
        return sum(endpoint.tokens_out for endpoint in self.endpoints)

    @property
    def failures(self) -> Mapping[str, int]:
        """Counters by kind of ModelError: requests that failed for good."""
        found: Counter[str] = Counter()
        for endpoint in self.endpoints:
            found.update(endpoint.failures)
        return dict(found)
