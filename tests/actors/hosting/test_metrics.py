"""Metrics describe a cluster without naming agents; notes are lines of JSON for a collector."""

import asyncio
import errno
import io
from typing import Any

import msgspec
import pytest

from everlog.actors.cluster.structured_log import WHAT_CHARS_MAX, StructuredLogger
from everlog.actors.gateway.gateway_status import UNNAMED, EndpointStatus, GatewayStatus, endpoint_of
from everlog.actors.hosting.cluster_status import ArchiveStatus, HostStatus, ScalingStatus, SupervisorStatus
from everlog.actors.hosting.metrics import (
    COUNTERS,
    GAUGES,
    HISTOGRAMS,
    OTHER,
    TAGS,
    VALUES_MAX,
    InstrumentFactory,
    ProcessMetrics,
)
from everlog.actors.ports.effects import ModelResponse
from everlog.events import ModelError
from tests.support.models.virtual_time_models import SlowModel, answered, gateway, outcome, run

EVERYTHING = {**COUNTERS, **GAUGES, **HISTOGRAMS}
AGENT = "agent-with-a-name"


class Instrument:
    """Records its values, and checks tags and values as strictly as Ray's classes do."""

    def __init__(self, told: list[tuple[str, float, dict[str, str]]], name: str, tag_keys: tuple[str, ...]) -> None:
        self.told, self.name, self.tag_keys = told, name, tag_keys

    def inc(self, value: float, tags: dict[str, str]) -> None:
        assert value > 0
        self.observe(value, tags)

    def observe(self, value: float, tags: dict[str, str]) -> None:
        assert set(tags) == set(self.tag_keys), self.name
        assert all(isinstance(tag, str) for tag in tags.values())
        self.told.append((self.name, value, tags))

    set = observe


def makers(told: list[Any]) -> InstrumentFactory:
    """Return a factory of instruments of each kind, all of which write into `told`."""

    def make(name: str, _description: str, tag_keys: tuple[str, ...], boundaries: Any = ()) -> Instrument:
        assert list(boundaries) == sorted(boundaries)
        return Instrument(told, name, tag_keys)

    return InstrumentFactory(make, make, make)


HOST = HostStatus(
    place=AGENT, placement="dedicated", node="10.0.0.7", pid=4711, active=3, passive=9, turns=1, waiting=2,
    lag_us=250_000, messages=10, model_calls=12, commits=20, ticks=5, refused=1,
    errors={"StoreError": 2},
    busiest=AGENT, busiest_share=0.5, memory_bytes=5000, unsealed_bytes=600,
)  # fmt: skip
GATEWAY = GatewayStatus(
    endpoints=(
        EndpointStatus(endpoint="model:8000", under_way=1, asked=7, tokens=90, failures={"busy": 2}),
        EndpointStatus(endpoint="default", waiting=4, asked=1),
    )
)
SUPERVISOR = SupervisorStatus(
    living=4, waiting=1, recoveries=2, timers=100_000,
    scaling=ScalingStatus(shards_min=2, shards_max=8, shards=4, resizes=3, moves=1, last=f"moved {AGENT!r}"),
)  # fmt: skip

ARCHIVE = ArchiveStatus(
    memory_bytes=300, versions=17, files=60, disk_bytes=9, row_cache_bytes=5, row_cache_bytes_max=256,
    table_cache_bytes=3, table_cache_bytes_max=128,
)  # fmt: skip


def all_told() -> list[tuple[str, float, dict[str, str]]]:
    told: list[tuple[str, float, dict[str, str]]] = []
    made = ProcessMetrics(makers(told), placement="dedicated", node="10.0.0.7")
    made.host(HOST)
    made.gateway(GATEWAY)
    made.supervisor(SUPERVISOR)
    made.archive(ARCHIVE)
    made.ticked(40, 0.002)
    made.activated(0.01)
    return told


def test_every_metric_is_reported_and_named_as_documented() -> None:
    """Every documented metric gets a value from a cluster that uses everything, and no other name occurs."""
    assert {name for name, *_ in all_told()} == set(EVERYTHING)
    assert all(name.startswith("everlog_") and ":" not in name for name in EVERYTHING)


def test_no_tag_names_an_agent() -> None:
    """The tags are placement, node, endpoint and kind of error; no tag has the name of an agent."""
    told = all_told()
    assert all(set(spec[1]) <= TAGS for spec in EVERYTHING.values())
    assert set(TAGS) == {"placement", "node", "endpoint", "error"}
    assert AGENT not in str(told)
    assert {tags["endpoint"] for _, _, tags in told if "endpoint" in tags} == {"model:8000", "default"}


def test_counters_grow_by_what_is_new() -> None:
    """Repeated reports of one host count each message once; a report without new messages changes no counter."""
    told: list[tuple[str, float, dict[str, str]]] = []
    made = ProcessMetrics(makers(told), placement="shared", node="n")
    for messages in (10, 10, 25):
        made.host(msgspec.structs.replace(HOST, messages=messages))
    assert [value for name, value, _ in told if name == "everlog_messages"] == [10, 15]
    assert [value for name, value, _ in told if name == "everlog_errors"] == [2]
    assert [value for name, value, _ in told if name == "everlog_lag_seconds"] == [0.25] * 3


def test_counters_continue_after_a_gateway_restart() -> None:
    """A restarted gateway counts from 0: its requests are added to the collector's count."""
    told: list[tuple[str, float, dict[str, str]]] = []
    made = ProcessMetrics(makers(told))
    for asked in (7, 9, 2, 3):
        made.gateway(GatewayStatus(endpoints=[EndpointStatus(endpoint="model:8000", asked=asked)]))
    assert [value for name, value, _ in told if name == "everlog_requests"] == [7, 2, 2, 1]


def test_surplus_endpoints_share_one_series() -> None:
    """With any number of endpoints the number of series is bounded, and the surplus endpoints are counted together."""
    told: list[tuple[str, float, dict[str, str]]] = []
    made = ProcessMetrics(makers(told))
    many = tuple(EndpointStatus(endpoint=f"host-{number}", asked=1, waiting=1) for number in range(VALUES_MAX + 20))
    made.gateway(GatewayStatus(endpoints=many))
    for metric in ("everlog_requests", "everlog_requests_waiting"):
        asked = [(tags["endpoint"], value) for name, value, tags in told if name == metric]
        assert len(asked) == VALUES_MAX + 1
        assert dict(asked)[OTHER] == 20 and sum(value for _, value in asked) == VALUES_MAX + 20


def test_metrics_of_an_endpoint_are_its_own() -> None:
    """Requests, tokens and failures carry the name of their endpoint, also after a later endpoint that sorts first.

    Two addresses on one host and port are one endpoint, and no secret part of an address is reported.
    """

    def script(request: bytes, before: int) -> ModelResponse | ModelError:
        return ModelError("No.", kind="rejected") if request == b"no" else answered(request, before)

    async def main() -> None:
        told: list[tuple[str, float, dict[str, str]]] = []
        made, one = ProcessMetrics(makers(told)), gateway(SlowModel(script))
        await one.ask("m", "http://me:secret@b:1/v1", b"?")
        await outcome(one.ask("m", "http://me:secret@b:1/v1", b"no"))
        made.gateway(one.status())
        await asyncio.gather(one.ask("m", "http://a:1/v1", b"?"), one.ask("m", "http://b:1/v2?key=secret", b"?"))
        made.gateway(one.status())
        sums: dict[tuple[str, str], float] = {}
        for name, value, tags in told:
            if name in COUNTERS:
                sums[name, tags["endpoint"]] = sums.get((name, tags["endpoint"]), 0) + value
        assert sums == {
            ("everlog_requests", "b:1"): 3, ("everlog_tokens", "b:1"): 20, ("everlog_request_failures", "b:1"): 1,
            ("everlog_requests", "a:1"): 1, ("everlog_tokens", "a:1"): 10,
        }  # fmt: skip
        assert "secret" not in f"{told}{one.status()}"

    run(main)


@pytest.mark.parametrize(
    ("base_url", "called"),
    [("https://key@api.openai.com/v1?api_key=x", "api.openai.com"), ("127.0.0.1:8000", "127.0.0.1:8000"),
     ("", "default"), ("http://[::1", UNNAMED), ("http://host:port/", UNNAMED), ("http:///path", UNNAMED)],
)  # fmt: skip
def test_the_name_of_an_endpoint_is_host_and_port(base_url: str, called: str) -> None:
    """An endpoint's name is its host and port only, because an address may contain a key."""
    assert endpoint_of(base_url) == called


def test_without_instruments_nothing_is_measured() -> None:
    """Without Ray no instrument is created, and no count is kept."""
    made = ProcessMetrics(None, placement="shared", node="n")
    made.host(HOST)
    made.gateway(GATEWAY)
    made.supervisor(SUPERVISOR)
    made.ticked(1, 0.1)
    made.activated(0.1)
    assert made._meters == {}


def test_a_metrics_report_is_cheap() -> None:
    """Each instrument is created once; the second report sets as many series as the hundredth."""
    told: list[tuple[str, float, dict[str, str]]] = []
    names: list[str] = []

    def make(name: str, *about: Any, **more: Any) -> Any:
        names.append(name)
        return makers(told).gauge(name, *about, **more)

    meters = ProcessMetrics(InstrumentFactory(make, make, make), placement="shared", node="n")
    counts = []
    for messages in range(1, 101):
        before = len(told)
        meters.host(msgspec.structs.replace(HOST, messages=messages))
        counts.append(len(told) - before)
    assert len(names) == len(set(names)) <= counts[0] <= len(EVERYTHING)
    assert set(counts[1:]) == {counts[1]}
    assert counts[1] < counts[0]


class Clock:
    def now(self) -> int:
        return 1_700_000_000_123_456


def noted(*what: str, environment: dict[str, str] | None = None) -> list[dict[str, str]]:
    """Return the notes, parsed as a collector would parse them."""
    out = io.StringIO()
    notes = StructuredLogger("supervisor", "10.0.0.7", clock=Clock(), environment=environment or {}, out=lambda: out)
    for text in what:
        notes(text)
    return [msgspec.json.decode(line) for line in out.getvalue().splitlines()]


def test_a_note_that_cannot_be_written_stops_no_work() -> None:
    """A note that cannot be written, for example to a full disk, raises no error."""

    class Full(io.StringIO):
        def write(self, line: str) -> int:
            tried.append(line)
            raise OSError(errno.ENOSPC, "No space left on device")

    tried: list[str] = []
    notes = StructuredLogger("supervisor", "10.0.0.7", clock=Clock(), environment={}, out=Full)
    notes("a host died")
    notes("another one")
    assert ["a host died" in tried[0], "another one" in tried[-1]] == [True, True]


def test_a_note_is_one_line_of_json() -> None:
    """A note has time, level, place, node and text; line ends and control characters in the text do not break the
    line.
    """
    (line,) = noted("the host of 'sam'\n(process 4711) died\x1b[2J;\u2028another goes on")
    assert line == {
        "time": "2023-11-14T22:13:20.123456Z", "level": "warning", "place": "supervisor", "node": "10.0.0.7",
        "what": "the host of 'sam' (process 4711) died\x1b[2J; another goes on",
    }  # fmt: skip


def test_a_long_note_is_cut() -> None:
    """The text of a note beyond the limit is cut; a text of exactly the limit is not."""
    long, whole = noted("x" * (WHAT_CHARS_MAX + 1), "y" * WHAT_CHARS_MAX)
    assert len(long["what"]) == WHAT_CHARS_MAX
    assert long["what"].endswith("…")
    assert whole["what"] == "y" * WHAT_CHARS_MAX


@pytest.mark.parametrize(
    "secret",
    ["Authorization: Bearer hush-hush-hush", "key sk-hush-hush-hush was refused", "http://me:hush-hush-hush@host/v1",
     "GET /v1?api_key=hush-hush-hush&x=1", "the value hush-hush-hush itself"],
)  # fmt: skip
def test_a_note_has_no_secret(secret: str) -> None:
    """Keys in addresses and headers, and secrets of the process's environment, are replaced."""
    environment = {"OPENAI_API_KEY": "hush-hush-hush"} if "itself" in secret else {"MY_KEY": "is"}
    (line,) = noted(secret, environment=environment)
    assert "hush" not in line["what"]
    assert "***" in line["what"]
