"""Laws of the codec: an event survives encoding to a record and decoding."""

import json
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from everlog import events
from everlog.events import CATALOGUE, UnknownEvent, decode, draft, event_of, place, uuid7
from everlog.events.codec import json_schema
from everlog.events.upcast import STEPS
from tests.support import event_strategies

SCHEMA = Path(events.__file__).parent / "schema.json"


def recorded(event: events.AnyEvent) -> events.Record:
    made = draft(event, event_id=uuid7(1000, 1), recorded_at=1000, turn=1, step=1)
    return place(made, "sam", 1, 1)


@settings(max_examples=300)
@given(event_strategies.events())
def test_every_event_comes_back_from_its_record_as_it_was(event: events.Event) -> None:
    """Decoding the record of any event of the catalogue gives an equal event."""
    assert event_of(recorded(event)) == event


@given(event_strategies.events())
def test_the_words_are_in_the_text_column_and_nowhere_else(event: events.Event) -> None:
    """The payload never contains the text, so erasing and searching have one place to look."""
    record = recorded(event)
    assert "text" not in json.loads(record.payload)
    assert (record.text or "") == event.text


@given(st.text(min_size=1, max_size=20), st.integers(1, 99), st.none() | st.text(max_size=9))
def test_an_unknown_kind_is_carried_through_untouched(kind: str, version: int, text: str | None) -> None:
    """A record of an unknown kind from a newer everlog is read, kept and written again byte for byte."""
    kind = f"new_{kind}"
    payload = '{"b": 1,  "a":[2]}'
    unknown = decode(kind, version, text, payload)
    assert unknown == UnknownEvent(kind=kind, version=version, text=text, payload=payload)
    assert event_of(recorded(unknown)) == unknown
    assert recorded(unknown).payload == payload


def test_a_newer_version_of_a_known_kind_is_unknown_too() -> None:
    """A record of a newer version is never decoded with today's fields."""
    assert isinstance(decode("user_message", 99, "hi", "{}"), UnknownEvent)


def test_every_old_shape_has_a_step_to_the_next() -> None:
    """A version that was raised without an upcaster fails this test, not a user's log."""
    wanted = {(kind, version) for kind, cls in CATALOGUE.items() for version in range(1, cls.version)}
    assert wanted == set(STEPS)


def test_the_worked_upcast_gives_the_pause_an_end() -> None:
    """The heartbeats_paused event of version 1 had only minutes; today's code adds the end of the pause."""
    event = decode("heartbeats_paused", 1, None, '{"minutes":3}', recorded_at=1_000)
    assert event == events.HeartbeatsPaused(minutes=3, until=180_001_000)


def test_the_committed_schema_is_todays() -> None:
    """A changed shape of an event shows up in review: run `python -m everlog.events.schema` and check the
    difference.
    """
    assert json.loads(SCHEMA.read_text()) == json_schema()
