"""Released logs stay readable for ever: today's code derives from each golden log what the code of its day derived."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from everlog.actors.memory.source_service import Sources
from everlog.actors.replay.rebuild_check import rebuild, verify
from everlog.events import CATALOGUE, Event, HeartbeatsPaused, UnknownEvent, event_of
from everlog.projections import PROJECTIONS
from everlog.store import FileStore, check, stream_of
from tests.golden import make
from tests.support.agent_world import World

HERE = Path(__file__).parent
GOLDEN = sorted(path.parent for path in HERE.glob("[!.]*/expected.json"))
NEWEST = "0.9-background"
"""The golden log of the newest release."""
BYTES_MAX = 1_500_000

Golden = tuple[FileStore, dict[str, Any]]


@pytest.fixture(params=GOLDEN, ids=lambda path: path.name)
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Golden:
    """Return a copy of a golden store, so that no test can change the original, and its expected facts."""
    shutil.copytree(request.param / "store", tmp_path / "store")
    expected = json.loads((request.param / "expected.json").read_text())
    return FileStore(tmp_path / "store", lambda: 0), expected


WAS_CALLED = {"context_window": "context_records"}
"""Tables that older golden logs know by another name: `context_window` had the records that the context is made of."""


def as_expected(found: Any, expected: Any) -> Any:
    """Return the found facts, without tables, columns and fields that did not exist when the golden log was made."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return {key: as_expected(found.get(key), value) for key, value in expected.items()}
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        return [as_expected(one, other) for one, other in zip(found, expected, strict=True)]
    return found


def test_there_are_golden_logs_and_they_are_small() -> None:
    """At least one golden log exists, because a test over none would prove nothing; all together are less than 1.5
    megabytes.
    """
    assert NEWEST in {path.name for path in GOLDEN}
    files = [path for folder in GOLDEN for path in folder.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < BYTES_MAX


def test_a_golden_log_says_what_it_always_said(golden: Golden) -> None:
    """Chains, kinds, requests and tables are those of the day on which the log was written."""
    store, expected = golden
    system = World(store=store, tools=make.TOOLS).system
    assert system.agents() == sorted(expected["agents"])
    for name, then in expected["agents"].items():
        tables = [table for table in PROJECTIONS if table in then or table in WAS_CALLED.values()]
        now = json.loads(json.dumps(make.facts(system, name, tables)))
        now |= {old: now[today] for old, today in WAS_CALLED.items() if today not in then}
        assert as_expected(now, then) == then, name
    sources = Sources(store, clock=World().clock, ids=World().ids)
    for name, then in expected["sources"].items():
        assert as_expected([make._plain(row) for row in sources.documents(name)], then) == then


def test_a_golden_log_checks_rebuilds_and_verifies(golden: Golden) -> None:
    """Every byte passes the check, and every request renders as it was sent, or its renderer is known to be gone."""
    store, expected = golden
    for partition in store.partitions():
        assert check(store.partition(partition)).ok
    system = World(store=store, tools=make.TOOLS).system
    for name in expected["agents"]:
        view = system.view(name)
        report = verify(view, system.tools)
        assert report.faults == [], name
        calls = report.calls
        gone = sum(map(len, calls.renderer_gone.values()))
        assert len(calls.equal) + gone + len(calls.erased) == calls.calls
        assert not calls.missing_function
        assert rebuild(view).faults == [], name


def test_old_shapes_are_upcast_and_unknown_kinds_carried(golden: Golden) -> None:
    """A pause of version 1 gets an end today, and an event of a future version is shown as unknown."""
    store, _ = golden
    records = list(store.reader("sam").read("sam"))
    (old,) = [record for record in records if (record.type, record.version) == ("heartbeats_paused", 1)]
    assert json.loads(old.payload) == {"minutes": 5}
    assert event_of(old) == HeartbeatsPaused(minutes=5, until=old.recorded_at + 5 * 60 * 10**6)
    assert any(isinstance(event, UnknownEvent) and event.kind == "dreamt" for event in map(event_of, records))


def test_unknown_events_change_nothing_else(golden: Golden) -> None:
    """The state before an event of an unknown kind equals the state after it."""
    store, _ = golden
    view = World(store=store).system.view("sam")
    last = list(view.reader.read("sam"))[-1]
    assert last.type == "dreamt"
    for table in ("core_memory", "recall_memory", "archival_memory", "turns", "model_calls", "timers", "summaries"):
        before, after = view.rows(table, last.seq - 1), view.rows(table, last.seq)
        assert [make._plain(row) for row in before] == [make._plain(row) for row in after]
    assert view.request(last.seq - 1) == view.request(last.seq)


def test_golden_logs_have_every_kind_with_every_field() -> None:
    """A new kind, version or field must have its shape in a golden log before its release."""
    missing = CATALOGUE.keys() - {kind for folder in GOLDEN for kind in _whole_kinds(folder)}
    assert not missing, f"record a golden log, `python -m tests.golden.make NAME`, for {sorted(missing)}"


def _whole_kinds(folder: Path) -> Iterator[str]:
    """Yield the kinds of events of which a golden log has a record in its current shape with every field."""
    store = FileStore(folder / "store", lambda: 0)
    streams = [*store.agents(), *map(stream_of, Sources(store, clock=World().clock, ids=World().ids).names())]
    for stream in streams:
        for record in store.reader(stream).read(stream):
            cls = CATALOGUE.get(record.type)
            if cls is not None and record.version == cls.version and _fields(cls) <= json.loads(record.payload).keys():
                yield record.type


def _fields(cls: type[Event]) -> set[str]:
    """Return the fields of an event that its payload has, without the key, which all kinds have in common."""
    return {field.encode_name for field in msgspec.structs.fields(cls)} - {"text", "by"}


def test_a_golden_log_has_records_that_name_a_key() -> None:
    """The newest golden log has records of many kinds that name the key with which they were asked for."""
    store = FileStore(HERE / NEWEST / "store", lambda: 0)
    signed = {
        record.type
        for stream in store.agents()
        for record in store.reader(stream).read(stream)
        if getattr(event_of(record), "by", "")
    }
    assert len(signed) > 30


def test_a_golden_log_is_never_made_again(capsys: pytest.CaptureFixture[str]) -> None:
    """The tool refuses a name that is taken, and leaves the existing golden log unchanged."""
    before = (HERE / NEWEST / "expected.json").read_bytes()
    assert make.main([NEWEST]) == 1
    assert "never made again" in capsys.readouterr().err
    assert (HERE / NEWEST / "expected.json").read_bytes() == before
