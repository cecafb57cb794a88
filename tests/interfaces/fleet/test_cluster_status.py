"""`everlog cluster status` over simulated clusters, and where no cluster runs."""

import json
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from everlog.actors.cluster import ray_address
from everlog.actors.gateway.gateway_status import BreakerStatus, EndpointStatus, GatewayStatus
from everlog.actors.hosting.cluster_status import (
    ArchiveStatus,
    ClusterStatus,
    HostStatus,
    NodeStatus,
    ScalingStatus,
    SupervisorStatus,
    rates,
    sum_rates,
)
from everlog.events import ClusterError
from everlog.interfaces.fleet import cluster_commands, status_page
from everlog.interfaces.output import show_pages
from everlog.store.stores import mounts
from tests.interfaces.cli.test_help import DOCUMENT, keys_of
from tests.support.cli.command_line import SECOND, START, Line


def host(number: int, **changes: Any) -> HostStatus:
    return HostStatus(place=f"shard-{number:03}", placement="shared", node="10.0.0.7", pid=4000 + number, **changes)


def looked(seconds: int, hosts: Sequence[HostStatus], **changes: Any) -> ClusterStatus:
    return ClusterStatus(at=START + seconds * SECOND, address="10.0.0.1:6379", hosts=hosts, **changes)


FIRST = looked(0, [host(0, messages=100, commits=200, ticks=10), host(1, messages=50)])
SECOND_LOOK = looked(
    2,
    [
        host(0, messages=6100, commits=12_200, ticks=310, active=500, passive=4000, turns=3, waiting=12, lag_us=400_000,
             memory_bytes=90_000_000, unsealed_bytes=700_000, errors={"StoreError": 1}),
        host(1, messages=50, active=1, refused=5),
    ],
    nodes=[NodeStatus(node="head"), NodeStatus(node="10.0.0.7", hosts=2, slots=4, slots_used=2, memory_used_bytes=10**9,
                                               memory_bytes=32 * 10**9), NodeStatus(node="10.0.0.8", lives=False)],
    supervisor=SupervisorStatus(living=2, starting=1, waiting=3, recoveries=7, timers=100_000,
                                next_due=START + 32 * SECOND,
                                scaling=ScalingStatus(shards_min=2, shards_max=16, shards=4, resizes=1, last_at=START,
                                                      last="changed from 2 to 4 shards: they were busy",
                                                      fault="the disk is full")),
    gateway=GatewayStatus(endpoints=(EndpointStatus(endpoint="model:8000", under_way=4, asked=90, tokens=1234,
                                                    failures={"busy": 2}),),
                          left_alone=(BreakerStatus(endpoint="model:8000", model="m", failures=5, opens_s=9.0,
                                                    why="500"),)),
    silent=1,
)  # fmt: skip


ARCHIVE = ArchiveStatus(
    memories=12, messages=340, behind=1, memory_bytes=300_000_000, versions=17, files=60, disk_bytes=9_000_000,
    row_cache_bytes=5_000_000, row_cache_bytes_max=268_000_000, table_cache_bytes=3_000_000,
    table_cache_bytes_max=67_000_000,
)  # fmt: skip


class Source:
    """A cluster that shows the given states one after another, and is gone after the last one."""

    def __init__(self, *states: ClusterStatus) -> None:
        self.states = list(states)

    async def status(self) -> ClusterStatus:
        if not self.states:
            raise ClusterError("The Ray cluster failed: it is gone.")
        return self.states.pop(0)


@pytest.fixture
def runs(cli: Line, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Source]:
    """Return a function that starts a store with a cluster in the given states."""

    def run(*states: ClusterStatus) -> Source:
        source = Source(*states)

        @asynccontextmanager
        async def source_of(*_: object) -> AsyncIterator[Source]:
            yield source

        monkeypatch.setattr(cluster_commands, "running", lambda _: "10.0.0.1:6379")
        monkeypatch.setattr(cluster_commands, "source_of", source_of)
        if not cli.root.exists():
            cli.ok("create", "sam")
        cli.sleeps.clear()
        return source

    return run


def test_ping_tells_health_by_its_exit_code(cli: Line, runs: Callable[..., Source]) -> None:
    """0: the supervisor and every host answer. 1: one of them does not, or the cluster fails; the reason is said."""
    healthy = looked(0, [host(0)], supervisor=SupervisorStatus(living=1))
    runs(healthy, healthy)
    assert cli("ping") == (0, "healthy: 10.0.0.1:6379\n", "")
    assert cli.json("ping") == {"running": True, "healthy": True, "address": "10.0.0.1:6379", "reasons": []}
    for ill, reason in (
        (looked(0, [host(0)]), "the supervisor did not answer in time"),
        (msgspec.structs.replace(healthy, silent=2), "2 of 3 hosts did not answer in time"),
    ):
        runs(ill)
        assert cli("ping") == (1, f"unhealthy: {reason}\n", "")
    code, out, _ = cli("ping", "--json")
    assert code == 1
    assert json.loads(out)["reasons"] == ["The Ray cluster failed: it is gone."]


def test_where_nothing_runs(cli: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command exits 3, says that no cluster runs and how to start one, and makes no store."""
    for name in ("RAY_ADDRESS", *ray_address.ENVIRONMENT):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(cli.root / "no-ray"))
    code, said, _ = cli("cluster", "status")
    assert code == 3
    assert "No cluster is running for the store" in said
    assert "`everlog up`" in said
    assert cli("cluster", "status", "--json") == (3, '{"running":false}\n', "")
    assert cli("cluster", "drain", "10.0.0.7") == (3, said, "")
    assert cli("cluster", "drain", "--json") == (3, '{"running":false}\n', "")
    assert cli("cluster", "status", "--follow") == (3, said, "")
    code, said, _ = cli("ping")
    assert code == 3 and said.startswith("not running: no cluster for the store ")
    assert json.loads(cli("ping", "--json")[1]) == {
        "running": False, "healthy": False, "address": None, "reasons": []
    }  # fmt: skip
    assert not cli.root.exists()


def test_up_refuses_storage_that_is_unsafe(cli: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`everlog up` on an object store's mount says why the mount cannot keep a log; no store is made, and no cluster
    started.
    """
    told = tmp_path / "mountinfo"
    told.write_text(f"30 22 0:50 / {tmp_path.resolve()} rw - fuse.s3fs bucket rw\n")
    monkeypatch.setattr(mounts, "_MOUNTS", told)
    assert "it keeps objects, not files" in cli.fails("up")
    assert not cli.root.exists()


def test_a_cluster_without_a_store(cli: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without a store is an error, and no store is made."""
    monkeypatch.setattr(cluster_commands, "running", lambda _: "10.0.0.1:6379")
    assert "there is no store" in cli.fails("cluster", "status")
    assert not cli.root.exists()


def test_what_is_shown(cli: Line, runs: Callable[..., Source]) -> None:
    """The totals come first, then nodes, then hosts with the busiest first; rates cover the time between two looks."""
    runs(FIRST, SECOND_LOOK)
    said = cli.ok("cluster", "status")
    assert cli.sleeps == [cluster_commands.FOLLOW_S]
    for words in ("501 agents active, 4,000 passive in 2 hosts", "3,000/s, 6,150 since", "6,000/s, 40 in a tick",
                  "3 turns in progress, 12 inputs waiting, the oldest for 0.4 s, 5 rejected", "3 waiting for room",
                  "7 recovered", "100,000, the next in 30s", "4 in progress", "2 failed", "1,234 tokens",
                  "4 now, 2 to 16 by load", "2s ago: changed from 2 to 4 shards: they were busy",
                  "load: the disk is full", "1 host did not answer", "10.0.0.8 (dead)"):  # fmt: skip
        assert words in said
    order = [said.index(words) for words in ("agents ", "timers ", "slots", "shard-000", "shard-001")]
    assert order == sorted(order)
    assert max(map(len, said.splitlines())) <= 100


def test_the_archive_has_its_sizes_beside_their_limits(cli: Line, runs: Callable[..., Source]) -> None:
    """Caches, versions and files of the archive are shown, and the age of figures that are not new."""
    old = msgspec.structs.replace(ARCHIVE, age_s=61.0)
    now, later = (msgspec.structs.replace(SECOND_LOOK, archive=found) for found in (ARCHIVE, old))
    runs(FIRST, now, FIRST, later)
    said = cli.ok("cluster", "status")
    for words in ("12 memories, 340 messages, 1 log behind, 300.0 MB\n", "rows 5.0 MB of 268.0 MB",
                  "table 3.0 MB of 67.0 MB", "9.0 MB, 60 files, 17 versions"):  # fmt: skip
        assert words in said.replace(" \n", "\n").replace("  ", ""), words
    assert "measured" not in said
    assert "(measured 1m1s ago: the archive is busy)" in cli.ok("cluster", "status")


def test_a_narrow_terminal(cli: Line, runs: Callable[..., Source], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without room for all columns the least important are left out; names and rates are whole."""
    monkeypatch.setenv("COLUMNS", "60")
    runs(FIRST, SECOND_LOOK)
    said = cli.ok("cluster", "status")
    header = next(line for line in said.splitlines() if "messages/s" in line)
    assert "unsealed" not in header
    assert all(words in said for words in ("shard-000", "shard-001", "3,000"))


def test_the_json_of_a_look(cli: Line, runs: Callable[..., Source]) -> None:
    """The JSON has every figure, each key is documented, and unknown values are null."""
    runs(FIRST, msgspec.structs.replace(SECOND_LOOK, hosts=[*SECOND_LOOK.hosts, host(9)], archive=ARCHIVE))
    said = cli.json("cluster", "status")
    assert said["running"] is True
    assert (said["messages_per_s"], said["commits_per_tick"]) == (3000.0, 40.0)
    assert said["hosts"][0]["messages_per_s"] == 3000.0
    assert said["hosts"][2]["messages_per_s"] is None
    assert said["supervisor"]["next_due"].endswith("Z")
    assert said["supervisor"]["scaling"]["last_at"].endswith("Z")
    assert said["nodes"][1]["slots"] == 4
    assert (said["archive"]["row_cache_bytes"], said["archive"]["versions"]) == (5_000_000, 17)
    assert {key for key in keys_of(said) - {"StoreError", "busy"} if f"`{key}`" not in DOCUMENT} == set()


def test_a_cluster_that_just_began(cli: Line, runs: Callable[..., Source]) -> None:
    """Without hosts, nodes and an answer of the supervisor, the page says so and shows no rate."""
    runs(looked(0, []), looked(1, []))
    said = cli.ok("cluster", "status")
    assert "No host runs" in said
    assert "the supervisor did not answer in time" in said
    assert "–/s" in said


def test_many_hosts_are_counted(cli: Line, runs: Callable[..., Source]) -> None:
    """Hosts beyond the limit are shown as a number, with how many of them are busy; the busiest hosts are listed
    first.
    """
    many = [host(number, active=1) for number in range(57)]
    runs(looked(0, many), looked(1, many), looked(0, many), looked(1, [*many[:-1], host(56, active=1, waiting=9)]))
    idle = cli.ok("cluster", "status")
    assert idle.count("shard-") == status_page.HOSTS_SHOWN
    assert "and 37 more hosts, idle" in idle
    assert "shard-056" in cli.ok("cluster", "status")
    busy = [host(number, waiting=1) for number in range(30)]
    runs(looked(0, busy), looked(1, busy))
    assert "and 10 more hosts, 10 of them busy" in cli.ok("cluster", "status")


def test_following_into_a_file(cli: Line, runs: Callable[..., Source]) -> None:
    """If stdout is not a terminal, one line is printed each second until the cluster is gone; then an error says so."""
    runs(FIRST, SECOND_LOOK, msgspec.structs.replace(SECOND_LOOK, at=SECOND_LOOK.at + SECOND))
    code, out, err = cli("cluster", "status", "--follow")
    assert code == 1
    assert "it is gone" in err
    lines = out.splitlines()
    assert len(lines) == 2
    assert "3,000 messages/s, 6,000 commits/s, 1 host silent" in lines[0]
    assert "0 messages/s" in lines[1]


def test_following_as_json(cli: Line, runs: Callable[..., Source]) -> None:
    """With --json one object is printed each second."""
    runs(FIRST, SECOND_LOOK, SECOND_LOOK)
    _, out, _ = cli("cluster", "status", "--follow", "--json")
    assert [json.loads(line)["messages_per_s"] for line in out.splitlines()] == [3000.0, None]


def test_following_on_a_terminal(cli: Line, runs: Callable[..., Source], monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal the page is redrawn at each interval. Ctrl-C ends the command without a message, because it only
    reads.
    """
    source = runs(*[FIRST, SECOND_LOOK] * 3)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    def stop() -> None:
        if len(source.states) == 1:
            raise KeyboardInterrupt

    cli.on_sleep = stop
    code, out, err = cli("cluster", "status", "--follow")
    assert (code, err) == (130, "")
    assert out.count("shard-000") >= 1


def test_a_runtime_that_says_nothing(cli: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """A runtime that cannot report its state is an error that names another command to look with."""

    class Mute:
        runtime = object()

    @asynccontextmanager
    async def opened(*_: object, **__: object) -> AsyncIterator[Mute]:
        yield Mute()

    cli.ok("create", "sam")
    monkeypatch.setattr(cluster_commands, "running", lambda _: "10.0.0.1:6379")
    monkeypatch.setattr(cluster_commands, "open_system", opened)
    assert "`ray status`" in cli.fails("cluster", "status")


def test_rates_of_hosts_that_come_and_go() -> None:
    """A new or restarted host has no rate yet; if no time has passed between two looks, no host has a rate."""
    again = msgspec.structs.replace(host(0, messages=5), pid=9)
    each = rates(FIRST, looked(1, [again, host(1, messages=60), host(2, messages=1000)]))
    assert {key[0]: rate.messages for key, rate in each.items()} == {"shard-001": 10.0}
    assert rates(FIRST, FIRST) == {}
    assert sum_rates({}) is None


def test_control_characters_in_names_do_not_reach_the_terminal(cli: Line, runs: Callable[..., Source]) -> None:
    """Control characters in names of agents and nodes do not reach the terminal."""
    wild = HostStatus(place="sam\x1b[2J\n[red]", placement="dedicated", node="n\x1b]0;x", pid=1)
    runs(looked(0, [wild]), looked(1, [wild]))
    said = cli.ok("cluster", "status")
    assert "\x1b" not in said
    assert "\\x1b[2J" in said


def test_a_host_whose_agent_has_moved_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """Its line says "(moved)", and so does the JSON; the agent counts for its new host alone."""
    left = HostStatus(place="sam", placement="dedicated", node="10.0.0.7", pid=7, moved=True)
    status = looked(0, [host(3, active=1), left])
    show_pages.show(status_page.page(status, status))
    shown = capsys.readouterr().out
    assert "sam (moved)" in shown and "1 agent active, 0 passive" in shown
    assert [one["moved"] for one in status_page.shape(status, status)["hosts"]] == [False, True]
