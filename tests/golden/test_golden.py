"""Logs that were released open for ever: today's code says of each golden log what the code of its day said."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from actors.replay import rebuild, verify
from events import HeartbeatsPaused, Unknown, event_of
from store import FileStore, check
from tests.golden.make import facts
from tests.world import World

GOLDEN = sorted(path.parent for path in Path(__file__).parent.glob("*/expected.json"))


@pytest.fixture(params=GOLDEN, ids=lambda path: path.name)
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[FileStore, dict[str, Any]]:
    """A golden store, copied so that nothing can change it, and what is expected of it."""
    shutil.copytree(request.param / "store", tmp_path / "store")
    expected = json.loads((request.param / "expected.json").read_text())
    return FileStore(tmp_path / "store", lambda: 0), expected


def test_there_is_a_golden_log() -> None:
    """The first release left one; a test over none would pass for nothing."""
    assert GOLDEN


def test_a_golden_log_says_what_it_always_said(golden: tuple[FileStore, dict[str, Any]]) -> None:
    """Chain, kinds, request and tables are those of the day on which the log was written."""
    store, expected = golden
    assert json.loads(json.dumps(facts(store))) == expected


def test_a_golden_log_checks_rebuilds_and_verifies(golden: tuple[FileStore, dict[str, Any]]) -> None:
    """No byte is out of place, and every request renders as it was sent, or its renderer is known to be gone."""
    store, _ = golden
    for partition in store.partitions():
        assert check(store.partition(partition)).ok
    world = World(store=store)
    view = world.system.look("sam")
    report = verify(view, world.system.tools)
    assert not report.faults
    assert report.checked + len(report.notes) == len(view.rows("model_calls"))
    assert not rebuild(view).faults


def test_old_shapes_are_upcast_and_unknown_kinds_carried(golden: tuple[FileStore, dict[str, Any]]) -> None:
    """A pause of version 1 has an end today, and an event from a future version is shown as unknown."""
    store, _ = golden
    events = [event_of(record) for record in store.reader("sam").read("sam")]
    pauses = [event for event in events if isinstance(event, HeartbeatsPaused)]
    assert all(pause.until > 0 for pause in pauses)
    assert any(isinstance(event, Unknown) and event.kind == "dreamt" for event in events)
