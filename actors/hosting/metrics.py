"""Define the metrics of a cluster, and turn figures into counters, gauges and histograms.

Used by the Ray actors of shards, of the archive, and of the supervisor, which exports the gateway's figures too.
Dashboards read the names of metrics and tags; docs/reference/cluster.md lists the names.

The instruments are Ray's, passed in by the one file that imports Ray; without them nothing is measured. Counters and
gauges are updated once a second from the figures that `everlog cluster status` shows, and histograms once in a tick,
never for each message. A tag is the placement, the node, the endpoint or the kind of error, and never an agent's name:
each value of a tag is a time series of its own in every collector.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast

from everlog.actors.gateway.gateway_status import EndpointStatus, GatewayStatus
from everlog.actors.hosting.cluster_status import ArchiveStatus, HostStatus, SupervisorStatus
from everlog.events import INPUTS, ModelReply, Record

PLACE = ("placement", "node")
TAGS = frozenset({*PLACE, "endpoint", "error"})
"""All tags."""

VALUES_MAX = 50
"""Number of endpoints, and of kinds of error, that one process tells apart; the others are `other`."""
OTHER = "other"

COUNTERS: Mapping[str, tuple[str, Sequence[str]]] = {
    "everlog_messages": ("Inputs that are durable", PLACE),
    "everlog_model_calls": ("Steps that were asked of a model, the offline one too", PLACE),
    "everlog_commits": ("Commits that are durable", PLACE),
    "everlog_refused": ("Commands that were refused because a queue was full", PLACE),
    "everlog_errors": ("Errors, by kind", (*PLACE, "error")),
    "everlog_recoveries": ("Hosts that finished what another had left unfinished", ()),
    "everlog_shard_resizes": ("Changes of the number of shards because of their load", ()),
    "everlog_shard_moves": ("Agents that were moved to another shard because of their load", ()),
    "everlog_requests": ("Requests for a model endpoint, those that were refused included", ("endpoint",)),
    "everlog_tokens": ("Tokens of requests and replies, as the endpoint counts them", ("endpoint",)),
    "everlog_request_failures": ("Requests to a model endpoint that failed for good, by kind", ("endpoint", "error")),
}
"""Description and tags of each value that only grows."""

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
    "everlog_shards": ("Shards of a store whose number follows the load", ()),
    "everlog_requests_under_way": ("Requests to a model endpoint that are not answered yet", ("endpoint",)),
    "everlog_requests_waiting": ("Requests that wait for their turn at a model endpoint", ("endpoint",)),
    "everlog_archive_memory_bytes": ("Memory of the archive's process that it shares with no other", ()),
    "everlog_archive_row_cache_bytes": ("Rows of recently searched agents in the archive's memory", ()),
    "everlog_archive_row_cache_bytes_max": ("Limit of the row caches", ()),
    "everlog_archive_table_cache_bytes": ("LanceDB's caches in the archive's memory", ()),
    "everlog_archive_table_cache_bytes_max": ("Limit of LanceDB's caches", ()),
    "everlog_archive_disk_bytes": ("Bytes of the archive on disk", ()),
    "everlog_archive_versions": ("Versions of the archive's table on disk", ()),
    "everlog_archive_files": ("Files of the archive's table", ()),
}
"""Description and tags of each value that goes up and down."""

HISTOGRAMS: Mapping[str, tuple[str, Sequence[str], Sequence[float]]] = {
    "everlog_tick_commits": ("Commits that were synced as one", PLACE, (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)),
    "everlog_sync_seconds": ("Time of a sync", PLACE, (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1)),
    "everlog_activation_seconds": ("Time to bring an agent into memory", PLACE, (0.005, 0.01, 0.02, 0.04, 0.1, 0.5, 2)),
}
"""Description, tags and upper bucket bounds of each distribution."""

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
_OF_THE_SCALING = {
    "everlog_shards": "shards",
    "everlog_shard_resizes": "resizes",
    "everlog_shard_moves": "moves",
}
_OF_THE_ARCHIVE = {
    f"everlog_archive_{field}": field
    for field in (
        "memory_bytes", "row_cache_bytes", "row_cache_bytes_max", "table_cache_bytes", "table_cache_bytes_max",
        "disk_bytes", "versions", "files",
    )
}  # fmt: skip

MetricTags = dict[str, str]


class Instrument(Protocol):
    """Counter, gauge or histogram, with the one method of its kind, as those of Ray."""

    def inc(self, value: float, tags: MetricTags) -> None:
        """Add a `value` above 0 (counters)."""
        ...

    def set(self, value: float, tags: MetricTags) -> None:
        """Set the current value (gauges)."""
        ...

    def observe(self, value: float, tags: MetricTags) -> None:
        """Add an observation (histograms)."""
        ...


class InstrumentFactory(NamedTuple):
    """Makers of instruments: the classes Counter, Gauge and Histogram of `ray.util.metrics`, or those of a test."""

    counter: Callable[..., Any]
    gauge: Callable[..., Any]
    histogram: Callable[..., Any]


class ProcessMetrics:
    """Instruments of one process: a host, the supervisor, the archive or the gateway."""

    def __init__(self, makers: InstrumentFactory | None, *, placement: str = "", node: str = "") -> None:
        """Create the instruments. `makers`: None measures nothing. `placement` and `node` are those of a host."""
        self._makers = makers
        self._place: MetricTags = {"placement": placement, "node": node}
        self._meters: dict[str, Instrument] = {}
        self._counted: dict[tuple[str, ...], int] = {}
        """Value up to which each counter was incremented, by its name and the values of its tags."""
        self._known: dict[str, set[str]] = {"endpoint": set(), "error": set()}

    def host(self, seen: HostStatus) -> None:
        """Update the metrics of a host; call once a second."""
        if self._makers is None:
            return
        self._all(_OF_A_HOST, seen, self._place)
        self._meter("everlog_lag_seconds").set(seen.lag_us / 1e6, self._place)
        for kind, count in seen.errors.items():
            self._increase_to("everlog_errors", count, {**self._place, "error": self._few("error", kind)}, kind)

    def gateway(self, seen: GatewayStatus) -> None:
        """Update the metrics of the gateway; call once a second."""
        if self._makers is None:
            return
        named: dict[str, list[EndpointStatus]] = defaultdict(list)
        for endpoint in seen.endpoints:
            named[self._few("endpoint", endpoint.endpoint)].append(endpoint)
        for name, some in named.items():  # endpoints with the same tag are summed
            self._endpoint(name, GatewayStatus(endpoints=some))

    def _endpoint(self, name: str, seen: GatewayStatus) -> None:
        """Update the metrics of the endpoints that have one tag, with their sums."""
        tags = {"endpoint": name}
        self._all(_OF_AN_ENDPOINT, seen, tags, name)
        for kind, count in seen.failures.items():
            self._increase_to(
                "everlog_request_failures", count, {**tags, "error": self._few("error", kind)}, name, kind
            )

    def supervisor(self, seen: SupervisorStatus) -> None:
        """Update the metrics of the supervisor; call once a second."""
        if self._makers is not None:
            self._all(_OF_THE_SUPERVISOR, seen, {})
            if seen.scaling is not None:
                self._all(_OF_THE_SCALING, seen.scaling, {})

    def archive(self, seen: ArchiveStatus) -> None:
        """Update the metrics of the archive; call every few seconds."""
        if self._makers is not None:
            self._all(_OF_THE_ARCHIVE, seen, {})

    def ticked(self, commits: int, sync_s: float) -> None:
        """Observe a durable tick of so many commits, whose sync took so many seconds."""
        if self._makers is not None and commits:
            self._meter("everlog_tick_commits").observe(commits, self._place)
            self._meter("everlog_sync_seconds").observe(sync_s, self._place)

    def activated(self, seconds: float) -> None:
        """Observe an activation that took so many seconds."""
        if self._makers is not None:
            self._meter("everlog_activation_seconds").observe(seconds, self._place)

    def _all(self, names: Mapping[str, str], seen: object, tags: MetricTags, *of: str) -> None:
        for name, field in names.items():
            value = getattr(seen, field)
            if name in COUNTERS:
                self._increase_to(name, value, tags, *of)
            else:
                self._meter(name).set(value, tags)

    def _increase_to(self, name: str, count: int, tags: MetricTags, *of: str) -> None:
        """Increment a counter up to `count`. `of`: source of the count, where several sources share the same tags."""
        key = (name, *of)
        before = self._counted.get(key, 0)
        if count < before:  # the source was restarted, and counts from 0 again
            before = 0
        if count > before:
            self._meter(name).inc(count - before, tags)
        self._counted[key] = count

    def _few(self, tag: str, value: str) -> str:
        """Return the value of a tag; `other` beyond the first `VALUES_MAX` values."""
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
        description, tags, bounds = HISTOGRAMS[name]
        return cast("Instrument", makers.histogram(name, description, boundaries=list(bounds), tag_keys=tuple(tags)))
    make, table = (makers.counter, COUNTERS) if name in COUNTERS else (makers.gauge, GAUGES)
    description, tags = table[name]
    return cast("Instrument", make(name, description, tag_keys=tuple(tags)))


class AgentWork:
    """Finds the agent of a shard that makes the most of its newest records, in bounded memory and without a clock."""

    RECORDS_MAX = 4096
    """Records after which all counts are halved, so that old ones are soon forgotten."""

    def __init__(self) -> None:
        self._records: Counter[str] = Counter()
        self._total = 0

    def add(self, agents: Sequence[str]) -> None:
        """Count a record for each of these agents."""
        self._records.update(agents)
        self._total += len(agents)
        if self._total > self.RECORDS_MAX:
            self._records = Counter({agent: count // 2 for agent, count in self._records.items() if count > 1})
            self._total = self._records.total()

    @property
    def busiest(self) -> tuple[str, float]:
        """The agent with the most records, and its part of all of them, from 0 to 1. Empty and 0 if there are none."""
        if not self._records:
            return "", 0.0
        agent, count = max(self._records.items(), key=lambda item: item[1])
        return agent, count / self._total


class TickCounts:
    """Counters of ticks since the start of the process; they continue when a log is opened again."""

    def __init__(self) -> None:
        self.ticks = 0
        self.commits = 0
        self.inputs = 0
        """Inputs that opened a turn."""
        self.model_calls = 0
        self._of_agents = AgentWork()

    def figures(self) -> dict[str, Any]:
        """Return the counters, and the agent with the most recent records, as fields of a `HostStatus`."""
        busiest, share = self._of_agents.busiest
        return {
            "messages": self.inputs, "model_calls": self.model_calls, "commits": self.commits, "ticks": self.ticks,
            "busiest": busiest, "busiest_share": share,
        }  # fmt: skip

    def add(self, commits: int, records: Sequence[Record]) -> None:
        """Count one tick of so many commits, and its records."""
        self.ticks += 1
        self.commits += commits
        self._of_agents.add([record.agent_id for record in records])
        for record in records:
            if not record.turn:  # records of the creation of an agent
                continue
            if record.type == ModelReply.kind:
                self.model_calls += 1
            elif record.type in INPUTS and not record.step:
                self.inputs += 1
