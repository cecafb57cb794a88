"""Metrics of a cluster, for whoever collects them: names, what they mean, and how figures become counts and gauges.

The instruments are Ray's, handed over by the one file that imports Ray; without them nothing is measured. They are
moved once a second from the same figures that `everlog cluster status` shows, and once in a tick: never for each
message. A tag says the placement, the node, the endpoint or the kind of error, and never who an agent is: each value of
a tag is a time series of its own in every collector.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast

from everlog.actors.gateway.gateway_status import EndpointStatus, GatewayStatus
from everlog.actors.hosting.cluster_status import HostStatus, SupervisorStatus

PLACE = ("placement", "node")
TAGS = frozenset({*PLACE, "endpoint", "error"})
"""Every tag that there is."""

VALUES_MAX = 50
"""Endpoints, and kinds of error, that one process tells apart; what comes after them is `other`."""
OTHER = "other"

COUNTERS: Mapping[str, tuple[str, Sequence[str]]] = {
    "everlog_messages": ("Inputs that are durable", PLACE),
    "everlog_model_calls": ("Steps that were asked of a model, the offline one too", PLACE),
    "everlog_commits": ("Commits that are durable", PLACE),
    "everlog_refused": ("Commands that were refused because a queue was full", PLACE),
    "everlog_errors": ("Errors, by kind", (*PLACE, "error")),
    "everlog_recoveries": ("Hosts that finished what another had left unfinished", ()),
    "everlog_requests": ("Requests for a model endpoint, those that were refused included", ("endpoint",)),
    "everlog_tokens": ("Tokens of requests and replies, as the endpoint counts them", ("endpoint",)),
    "everlog_request_failures": ("Requests to a model endpoint that failed for good, by kind", ("endpoint", "error")),
}
"""What only grows: its meaning, and its tags."""

GAUGES: Mapping[str, tuple[str, Sequence[str]]] = {
    "everlog_agents_active": ("Agents in memory", PLACE),
    "everlog_agents_passive": ("Agents that are registered and not in memory", PLACE),
    "everlog_turns_running": ("Turns that run now", PLACE),
    "everlog_inputs_waiting": ("Commands that are being carried out", PLACE),
    "everlog_lag_seconds": ("Age of the oldest of them", PLACE),
    "everlog_memory_bytes": ("Memory of the host's process that it shares with no other", PLACE),
    "everlog_unsealed_bytes": ("Frames of the log that are not sealed yet", PLACE),
    "everlog_hosts": ("Hosts that run", ()),
    "everlog_hosts_waiting": ("Hosts that wait for room", ()),
    "everlog_timers": ("Agents with timers that are kept", ()),
    "everlog_requests_under_way": ("Requests to a model endpoint that are not answered yet", ("endpoint",)),
    "everlog_requests_waiting": ("Requests that wait for their turn at a model endpoint", ("endpoint",)),
}
"""What goes up and down."""

HISTOGRAMS: Mapping[str, tuple[str, Sequence[str], Sequence[float]]] = {
    "everlog_tick_commits": ("Commits that were synced as one", PLACE, (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)),
    "everlog_sync_seconds": ("Time of a sync", PLACE, (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1)),
    "everlog_activation_seconds": ("Time to bring an agent into memory", PLACE, (0.005, 0.01, 0.02, 0.04, 0.1, 0.5, 2)),
}
"""What is spread: its meaning, its tags, and the upper ends of its buckets."""

_OF_A_HOST = {
    "everlog_messages": "messages",
    "everlog_model_calls": "model_calls",
    "everlog_commits": "commits",
    "everlog_refused": "refused",
    "everlog_agents_active": "active",
    "everlog_agents_passive": "passive",
    "everlog_turns_running": "turns",
    "everlog_inputs_waiting": "waiting",
    "everlog_memory_bytes": "memory_bytes",
    "everlog_unsealed_bytes": "unsealed_bytes",
}
_OF_AN_ENDPOINT = {
    "everlog_requests": "asked",
    "everlog_tokens": "tokens",
    "everlog_requests_under_way": "under_way",
    "everlog_requests_waiting": "waiting",
}
_OF_THE_SUPERVISOR = {
    "everlog_recoveries": "recoveries",
    "everlog_hosts": "living",
    "everlog_hosts_waiting": "waiting",
    "everlog_timers": "timers",
}

MetricTags = dict[str, str]


class Instrument(Protocol):
    """An instrument; which of the three methods it has, its kind says. Ray's Counter, Gauge and Histogram are such."""

    def inc(self, value: float, tags: MetricTags) -> None:
        """Of a counter: add a `value` above 0."""
        ...

    def set(self, value: float, tags: MetricTags) -> None:
        """Of a gauge: it is `value` now."""
        ...

    def observe(self, value: float, tags: MetricTags) -> None:
        """Of a histogram: `value` was met."""
        ...


class InstrumentFactory(NamedTuple):
    """Who makes instruments: the classes Counter, Gauge and Histogram of `ray.util.metrics`, or a test's."""

    counter: Callable[..., Any]
    gauge: Callable[..., Any]
    histogram: Callable[..., Any]


class ProcessMetrics:
    """The instruments of one process. One for each kind is enough: a host, the supervisor, the gateway."""

    def __init__(self, makers: InstrumentFactory | None, *, placement: str = "", node: str = "") -> None:
        """`makers`: None measures nothing. `placement` and `node` are those of a host."""
        self._makers = makers
        self._place: MetricTags = {"placement": placement, "node": node}
        self._meters: dict[str, Instrument] = {}
        self._counted: dict[tuple[str, ...], int] = {}
        """How far each counter has been told, by its name and the values of its tags."""
        self._known: dict[str, set[str]] = {"endpoint": set(), "error": set()}

    def host(self, seen: HostStatus) -> None:
        """Tell how a host is doing; once a second."""
        if self._makers is None:
            return
        self._all(_OF_A_HOST, seen, self._place)
        self._meter("everlog_lag_seconds").set(seen.lag_us / 1e6, self._place)
        for kind, count in seen.errors.items():
            self._grow("everlog_errors", count, {**self._place, "error": self._few("error", kind)}, kind)

    def gateway(self, seen: GatewayStatus) -> None:
        """Tell how the gateway is doing; once a second."""
        if self._makers is None:
            return
        named: dict[str, list[EndpointStatus]] = defaultdict(list)
        for endpoint in seen.endpoints:
            named[self._few("endpoint", endpoint.endpoint)].append(endpoint)
        for name, some in named.items():  # those that share a series are one in it
            self._endpoint(name, GatewayStatus(endpoints=some))

    def _endpoint(self, name: str, seen: GatewayStatus) -> None:
        """Tell the sums of the endpoints that have one name."""
        tags = {"endpoint": name}
        self._all(_OF_AN_ENDPOINT, seen, tags, name)
        for kind, count in seen.failures.items():
            self._grow("everlog_request_failures", count, {**tags, "error": self._few("error", kind)}, name, kind)

    def supervisor(self, seen: SupervisorStatus) -> None:
        """Tell how the supervisor is doing; once a second."""
        if self._makers is not None:
            self._all(_OF_THE_SUPERVISOR, seen, {})

    def ticked(self, commits: int, sync_s: float) -> None:
        """A tick of so many commits is durable; its sync took so long, seconds."""
        if self._makers is not None and commits:
            self._meter("everlog_tick_commits").observe(commits, self._place)
            self._meter("everlog_sync_seconds").observe(sync_s, self._place)

    def activated(self, seconds: float) -> None:
        """An agent was brought into memory in so long."""
        if self._makers is not None:
            self._meter("everlog_activation_seconds").observe(seconds, self._place)

    def _all(self, names: Mapping[str, str], seen: object, tags: MetricTags, *of: str) -> None:
        for name, field in names.items():
            value = getattr(seen, field)
            if name in COUNTERS:
                self._grow(name, value, tags, *of)
            else:
                self._meter(name).set(value, tags)

    def _grow(self, name: str, count: int, tags: MetricTags, *of: str) -> None:
        """Bring a counter to `count`. `of`: whose it is, where several share the same tags."""
        key = (name, *of)
        before = self._counted.get(key, 0)
        if count < before:  # whoever counts was started again, and began at 0
            before = 0
        if count > before:
            self._meter(name).inc(count - before, tags)
        self._counted[key] = count

    def _few(self, tag: str, value: str) -> str:
        """The value of a tag; `other` for those beyond the first `VALUES_MAX`."""
        known = self._known[tag]
        if value not in known and len(known) >= VALUES_MAX:
            return OTHER
        known.add(value)
        return value

    def _meter(self, name: str) -> Instrument:
        if name not in self._meters:
            assert self._makers is not None
            self._meters[name] = _make_instrument(self._makers, name)
        return self._meters[name]


def _make_instrument(makers: InstrumentFactory, name: str) -> Instrument:
    if name in HISTOGRAMS:
        told, tags, bounds = HISTOGRAMS[name]
        return cast("Instrument", makers.histogram(name, told, boundaries=list(bounds), tag_keys=tuple(tags)))
    make, table = (makers.counter, COUNTERS) if name in COUNTERS else (makers.gauge, GAUGES)
    told, tags = table[name]
    return cast("Instrument", make(name, told, tag_keys=tuple(tags)))
