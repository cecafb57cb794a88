"""Logs that were released open for ever: today's code says of each golden log what the code of its day said."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from everlog.actors.memory.sources import Sources
from everlog.actors.replay.replay import rebuild, verify
from everlog.events import CATALOGUE, HeartbeatsPaused, Unknown, event_of
from everlog.store import FileStore, check
from tests.golden import make
from tests.golden.kinds import REAL
from tests.support.world import World

GOLDEN = sorted(path.parent for path in Path(__file__).parent.glob("[!.]*/expected.json"))
BYTES_MAX = 1_000_000
ALL_KINDS = ("0.1-before-parts", "0.1-parts", "0.1-models")
"""Golden logs with every kind that there was in their day."""

Golden = tuple[FileStore, dict[str, Any]]


@pytest.fixture(params=GOLDEN, ids=lambda path: path.name)
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Golden:
    """A golden store, copied so that nothing can change it, and what is expected of it."""
    shutil.copytree(request.param / "store", tmp_path / "store")
    expected = json.loads((request.param / "expected.json").read_text())
    return FileStore(tmp_path / "store", lambda: 0), expected


def agents_of(expected: dict[str, Any]) -> dict[str, Any]:
    """What is expected of each agent; the first golden log had one only."""
    return {"sam": expected} if isinstance(expected["agents"], list) else dict(expected["agents"])


def as_expected(found: Any, expected: Any) -> Any:
    """What was found, of what is expected: tables, columns and fields that came later are left out."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return {key: as_expected(found.get(key), value) for key, value in expected.items()}
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        return [as_expected(one, other) for one, other in zip(found, expected, strict=True)]
    return found


def test_there_are_golden_logs_and_they_are_small() -> None:
    """A test over none would pass for nothing; all together they are less than a megabyte."""
    assert {path.name for path in GOLDEN} >= {"0.1", *ALL_KINDS}
    files = [path for folder in GOLDEN for path in folder.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < BYTES_MAX


def test_a_golden_log_says_what_it_always_said(golden: Golden) -> None:
    """Chains, kinds, requests and tables are those of the day on which the log was written."""
    store, expected = golden
    system = World(store=store, tools=make.TOOLS).system
    assert system.agents() == sorted(agents_of(expected))
    for name, then in agents_of(expected).items():
        now = json.loads(json.dumps(make.facts(system, name)))
        if then is expected:  # the first one kept its tables in another order, and whole
            then, now = in_one_order(then), in_one_order(now)
        assert as_expected(now, then) == then, name
    sources = Sources(store, clock=World().clock, ids=World().ids)
    for name, then in expected.get("sources", {}).items():
        assert as_expected([make._plain(row) for row in sources.documents(name)], then) == then


def in_one_order(facts: dict[str, Any]) -> dict[str, Any]:
    """Tables by the text of their rows, with long values short."""
    return {
        key: sorted(({n: make._short(v) for n, v in row.items()} for row in value), key=repr)
        if isinstance(value, list) and value and isinstance(value[0], dict)
        else (make._short(value) if key == "request" else value)
        for key, value in facts.items()
    }


def test_a_golden_log_checks_rebuilds_and_verifies(golden: Golden) -> None:
    """No byte is out of place, and every request renders as it was sent, or its renderer is known to be gone."""
    store, expected = golden
    for partition in store.partitions():
        assert check(store.partition(partition)).ok
    system = World(store=store, tools=make.TOOLS).system
    for name in agents_of(expected):
        view = system.view(name)
        report = verify(view, system.tools)
        assert report.faults == [], name
        calls = report.calls
        gone = sum(map(len, calls.renderer_gone.values()))
        assert len(calls.equal) + gone + len(calls.erased) == calls.calls
        assert not calls.missing_function
        assert rebuild(view).faults == [], name


def test_old_shapes_are_upcast_and_unknown_kinds_carried(golden: Golden) -> None:
    """A pause of version 1 has an end today, and an event from a future version is shown as unknown."""
    store, _ = golden
    events = [event_of(record) for record in store.reader("sam").read("sam")]
    pauses = [event for event in events if isinstance(event, HeartbeatsPaused)]
    assert all(pause.until > 0 for pause in pauses)
    assert any(isinstance(event, Unknown) and event.kind == "dreamt" for event in events)


def test_what_is_unknown_changes_nothing_else(golden: Golden) -> None:
    """The state before a kind of the future, and after it, is the same."""
    store, _ = golden
    view = World(store=store).system.view("sam")
    last = list(view.reader.read("sam"))[-1]
    assert last.type == "dreamt"
    for table in ("core_memory", "recall_memory", "archival_memory", "turns", "model_calls", "timers", "summaries"):
        before, after = view.rows(table, last.seq - 1), view.rows(table, last.seq)
        assert [make._plain(row) for row in before] == [make._plain(row) for row in after]
    assert view.request(last.seq - 1) == view.request(last.seq)


@pytest.mark.parametrize("name", ALL_KINDS)
def test_a_golden_log_has_every_kind(name: str, tmp_path: Path) -> None:
    """Whoever adds a kind or a version leaves its shape in a golden log, before the shape is released."""
    expected = json.loads((Path(__file__).parent / name / "expected.json").read_text())
    shapes = {s for a in expected["agents"].values() for s in zip(a["kinds"], a["versions"], strict=True)}
    kinds = {kind for kind, _ in shapes}
    assert kinds >= REAL - {"agent_forked"}
    assert expected["sources"]["handbook"]
    if name == ALL_KINDS[-1]:
        assert kinds >= {kind for kind in CATALOGUE if kind not in {"document_loaded", "document_removed", *REAL}}
        released = {(kind, cls.version) for kind, cls in CATALOGUE.items()}
        missing = released - shapes - {("agent_forked", 1)}
        assert not missing, f"record a golden log, `python -m tests.golden.make NAME`, for {sorted(missing)}"


def test_a_golden_log_is_never_made_again(capsys: pytest.CaptureFixture[str]) -> None:
    """The tool refuses a name that is taken, and leaves what is there."""
    before = (Path(__file__).parent / "0.1" / "expected.json").read_bytes()
    assert make.main(["0.1"]) == 1
    assert "never made again" in capsys.readouterr().err
    assert (Path(__file__).parent / "0.1" / "expected.json").read_bytes() == before
