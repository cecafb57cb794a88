"""Count what a server does, and write the figures in the text format of Prometheus.

No label has the name of an agent, a key or a tenant: each value of a label is a time series of its own in every
collector.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the buckets of latencies, in seconds."""

GAUGES: Mapping[str, str] = {
    "everlog_stream_readers": "Streams that are open",
    "everlog_webhooks": "Webhooks of the store",
    "everlog_webhooks_parked": "Webhooks of the store that are parked, after a day without success",
}
COUNTERS: Mapping[str, str] = {
    "everlog_stream_records": "Records that were sent to streams",
    "everlog_streams_dropped": "Streams that were closed because their reader was too slow",
    "everlog_webhook_deliveries": "Deliveries that receivers of webhooks have acknowledged",
    "everlog_webhook_failures": "Tries of deliveries that failed",
}


class _Latencies:
    __slots__ = ("buckets", "count", "seconds")

    def __init__(self) -> None:
        self.buckets = [0] * len(BUCKETS_S)
        self.count = 0
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.seconds += seconds
        for place, bound in enumerate(BUCKETS_S):
            if seconds <= bound:
                self.buckets[place] += 1


class HttpMetrics:
    """Figures of one server since its start."""

    def __init__(self) -> None:
        self._requests: dict[tuple[str, str, int], int] = defaultdict(int)
        self._latencies: dict[str, _Latencies] = defaultdict(_Latencies)
        self.gauges: dict[str, int] = dict.fromkeys(GAUGES, 0)
        self.counters: dict[str, int] = dict.fromkeys(COUNTERS, 0)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answer. `route`: the path of the route with the names of its parts; `seconds`: until its end."""
        self._requests[method, route, status] += 1
        self._latencies[route].add(seconds)

    def text(self, version: str, more: Sequence[str] = ()) -> str:
        """Return all figures in the text format of Prometheus. `more`: further lines."""
        return "\n".join([*self._lines(version), *more, ""])

    def _lines(self, version: str) -> Iterator[str]:
        yield from ("# HELP everlog_build_info Version of the program", "# TYPE everlog_build_info gauge")
        yield f'everlog_build_info{{version="{version}"}} 1'
        yield "# HELP everlog_http_requests_total Requests that were answered"
        yield "# TYPE everlog_http_requests_total counter"
        for (method, route, status), count in sorted(self._requests.items()):
            yield f'everlog_http_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}'
        yield "# HELP everlog_http_request_duration_seconds Time until the end of an answer"
        yield "# TYPE everlog_http_request_duration_seconds histogram"
        name = "everlog_http_request_duration_seconds"
        for route, seen in sorted(self._latencies.items()):
            for bound, count in zip(BUCKETS_S, seen.buckets, strict=True):
                yield f'{name}_bucket{{route="{route}",le="{bound}"}} {count}'
            yield f'{name}_bucket{{route="{route}",le="+Inf"}} {seen.count}'
            yield f'{name}_sum{{route="{route}"}} {seen.seconds:.6f}'
            yield f'{name}_count{{route="{route}"}} {seen.count}'
        for name, described in GAUGES.items():
            yield from (f"# HELP {name} {described}", f"# TYPE {name} gauge", f"{name} {self.gauges[name]}")
        for name, described in COUNTERS.items():
            total = f"{name}_total"
            yield from (f"# HELP {total} {described}", f"# TYPE {total} counter", f"{total} {self.counters[name]}")
