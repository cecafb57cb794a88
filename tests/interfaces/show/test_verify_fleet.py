"""`verify --all` reads and queries many agents together, and says of each what `verify NAME` says of it."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from everlog.actors.replay import verify_agents
from everlog.events import Record
from everlog.store import FileStore, PartitionReader, records_of
from tests.interfaces.conftest import Line

Patch = pytest.MonkeyPatch
SHARED = ("ann", "ben", "cas", "dan")


@pytest.fixture
def fleet(cli: Line) -> Line:
    """Return a command line with agents of one shard; some of their records are sealed."""

    def make(line: Line) -> None:
        line.ok("create", SHARED[0], "--placement", "shared", "--shards", "1")
        for name in SHARED[1:]:
            line.ok("create", name, "--placement", "shared")
        for name in SHARED:
            line.ok("send", name, "Hello")
        store = FileStore(line.root, line.clock.now)
        log = store.open_partition("shard-000", "test")
        log.seal()
        log.close()
        line.ok("send", "ben", "Hello again")

    cli.begin("verified fleet", make)
    return cli


def assert_as_alone(fleet: Line, *argv: str) -> list[dict[str, Any]]:
    """Return the reports of all agents; each must equal the report of the agent alone."""
    code, out, _ = fleet("verify", "--all", "--json", *argv)
    reports: list[dict[str, Any]] = msgspec.json.decode(out)
    assert code == int(any(report["faults"] for report in reports))
    for report in reports:
        alone = fleet("verify", report["agent"], "--json", *argv)[1]
        assert report == msgspec.json.decode(alone)
    return reports


def test_each_agent_is_verified_as_it_is_alone(fleet: Line) -> None:
    """Agents of a shard and of their own, forks, agents that moved, deleted, erased and empty ones: reports of all are
    those of each, sorted by name.
    """
    fleet.ok("create", "own", "--placement", "dedicated")
    fleet.ok("send", "own", "Hi")
    fleet.ok("fork", "ben", "--new-name", "kid")
    fleet.ok("send", "kid", "Hi")
    fleet.ok("move", "cas", "--placement", "dedicated")
    fleet.ok("send", "cas", "Hi")
    fleet.ok("erase", "dan", "--match", "Hello", "--yes")
    fleet.ok("delete", "ann", "--yes")
    FileStore(fleet.root, fleet.clock.now).register("empty", shared=True)
    for argv in ([], ["--sample", "1"], ["--sample", "1", "--seed", "x"]):
        reports = assert_as_alone(fleet, *argv)
        assert [report["agent"] for report in reports] == ["ann", "ben", "cas", "dan", "kid", "own"]
        assert sum(report["checked"] for report in reports) >= 5
    assert "'ann' was deleted" in fleet("verify", "--all")[2]


@pytest.mark.parametrize("records_max", [1, 20])
def test_few_records_at_once_give_the_same_reports(fleet: Line, monkeypatch: Patch, records_max: int) -> None:
    """The limits of what is in memory change no result."""
    expected = fleet.json("verify", "--all")
    monkeypatch.setattr(verify_agents, "RECORDS_AT_ONCE", records_max)
    monkeypatch.setattr(verify_agents, "AGENTS_AT_ONCE", 3)
    monkeypatch.setattr(verify_agents, "CALLS_AT_ONCE", 2)
    assert fleet.json("verify", "--all") == expected


def test_agents_with_too_many_bytes_are_verified_one_by_one(fleet: Line, monkeypatch: Patch) -> None:
    """A shard whose agents do not fit into memory together gives the same reports."""
    expected = fleet.json("verify", "--all")
    monkeypatch.setattr(verify_agents, "BATCH_BYTES", 1)
    assert fleet.json("verify", "--all") == expected


@pytest.mark.beside_store("the record is changed where many agents are read together")
def test_a_changed_record_is_a_fault_of_its_agent_alone(fleet: Line, monkeypatch: Patch) -> None:
    """A record that differs from what was written breaks the chain of its agent; the others have no fault."""

    def changed(table: pa.Table) -> Iterator[Record]:
        for record in records_of(table):
            is_meant = record.agent_id == "cas" and record.text == "Hello"
            yield msgspec.structs.replace(record, text="Hullo") if is_meant else record

    monkeypatch.setattr(verify_agents, "records_of", changed)
    code, out, _ = fleet("verify", "--all", "--json")
    faults = {report["agent"]: report["faults"] for report in msgspec.json.decode(out)}
    assert code == 1 and [name for name, found in faults.items() if found] == ["cas"]
    assert "the chain of records 1 to" in faults["cas"][0]


def test_a_changed_request_is_told_of_each_agent(fleet: Line, monkeypatch: Patch) -> None:
    """Requests are compared byte by byte: with another text in them every agent has a mismatch."""
    monkeypatch.setattr("everlog.actors.formats.render_request.ACCESS", "(something else)")
    for report in assert_as_alone(fleet):
        assert report["mismatches"] and report["faults"]


def test_a_damaged_log_keeps_no_other_agent_from_being_verified(fleet: Line) -> None:
    """The error of an unreadable log is the fault of its agents; those of another log are verified."""
    fleet.ok("create", "own", "--placement", "dedicated")
    fleet.ok("send", "own", "Hi")
    sealed = next((fleet.root / "log" / "shard-000").glob("*.parquet"))
    whole = sealed.read_bytes()
    data = bytearray(whole)
    data[len(data) // 2] ^= 0xFF
    sealed.write_bytes(data)
    code, out, _ = fleet("verify", "--all", "--json")
    sealed.write_bytes(whole)
    faults = {report["agent"]: report["faults"] for report in msgspec.json.decode(out)}
    assert code == 1 and faults["own"] == []
    assert all(f"{sealed} is damaged" in faults[name][0] for name in SHARED)


@pytest.mark.beside_store("a server verifies each agent in a job of its own")
def test_more_agents_of_a_shard_cost_no_more_reads_and_queries(fleet: Line, monkeypatch: Patch) -> None:
    """Heads, files and contexts are read once for all agents of a shard, and the engine is asked as often."""
    counts: Counter[str] = Counter()
    reader, engine = PartitionReader, verify_agents.Projections

    def counted(owner: type, name: str) -> None:
        work = getattr(owner, name)

        def count(*args: Any, **kwargs: Any) -> Any:
            counts[name] += 1
            return work(*args, **kwargs)

        monkeypatch.setattr(owner, name, count)

    for owner, name in ((reader, "_heads"), (reader, "_pieces"), (reader, "_later_of"), (engine, "_columns")):
        counted(owner, name)
    fleet.ok("verify", "--all", "--sample", "1")
    before = counts.copy()
    for number in range(8):
        fleet.ok("create", f"more-{number}", "--placement", "shared")
        fleet.ok("send", f"more-{number}", "Hello")
    counts.clear()
    assert "12 agents: 12 of" in fleet.ok("verify", "--all", "--sample", "1")
    assert counts == before
