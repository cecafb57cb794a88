"""Decoding many events at once gives the same events as decoding each alone."""

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everlog.events import Event, Record, UnknownEvent, draft, event_of, place, tombstone, uuid7
from everlog.store import SCHEMA, FileStore, batch_of, events_of
from everlog.store.base.arrow_schema import EVENTS_AT_ONCE
from tests.contract.draft_builders import Drafts
from tests.support.event_strategies import TEXT, events


def record_of(event: Event | UnknownEvent, seq: int) -> Record:
    return place(draft(event, event_id=uuid7(seq * 1000, seq), recorded_at=seq * 1000, turn=1, step=0), "sam", seq, seq)


@st.composite
def odd(draw: st.DrawFn) -> Event | UnknownEvent:
    """Return events that cannot be decoded directly: unknown, newer than this everlog, or older."""
    return draw(
        st.one_of(
            st.builds(
                UnknownEvent, kind=st.just("dreamt"), version=st.just(1), text=st.none() | TEXT, payload=st.just("{}")
            ),
            st.builds(
                UnknownEvent,
                kind=st.just("user_message"),
                version=st.just(99),
                text=st.none() | TEXT,
                payload=st.just("[]"),
            ),
            st.builds(
                UnknownEvent,
                kind=st.just("heartbeats_paused"),
                version=st.just(1),
                text=st.none(),
                payload=st.integers(0, 99).map(lambda minutes: f'{{"minutes":{minutes}}}'),
            ),
        )
    )


@st.composite
def records(draw: st.DrawFn) -> list[Record]:
    """Return records of every kind, old, new, unknown and erased."""
    found = [
        record_of(event, seq)
        for seq, event in enumerate(draw(st.lists(events() | odd(), min_size=1, max_size=6)), start=1)
    ]
    return [tombstone(record) if draw(st.integers(0, 4)) == 0 else record for record in found]


@settings(max_examples=50, deadline=None)
@given(records())
def test_events_of_a_batch_are_those_of_its_records(found: list[Record]) -> None:
    batch = batch_of(found)
    expected = [event_of(record) for record in found]
    assert list(events_of(batch)) == expected
    assert [type(event) for event in events_of(batch)] == [type(event) for event in expected]
    table = pa.Table.from_batches([batch.slice(0, 1), batch.slice(1)])
    assert list(events_of(table)) == expected


def test_more_events_than_are_decoded_at_once() -> None:
    """In each part of a long batch the special events keep their positions."""
    event = UnknownEvent(kind="heartbeats_paused", version=1, text=None, payload='{"minutes":1}')
    found = [record_of(event, seq) for seq in range(1, 2 * EVENTS_AT_ONCE + 3)]
    assert list(events_of(batch_of(found))) == [event_of(record) for record in found]


def test_no_records_are_no_events() -> None:
    assert list(events_of(SCHEMA.empty_table())) == []
    assert list(events_of(batch_of([]))) == []


def test_a_payload_that_does_not_fit_is_an_error() -> None:
    """A payload that does not fit its type is an error, as for a single event: the log never wrote such a payload."""
    wrong = UnknownEvent(kind="timer_set", version=1, text=None, payload="{}")
    with pytest.raises(msgspec.ValidationError):
        list(events_of(batch_of([record_of(wrong, 1)])))


@pytest.mark.parametrize("kept", ["frames", "parquet", "both"])
def test_a_reader_gives_the_events_of_a_stream(
    store: FileStore, filled: list[list[Record]], drafts: Drafts, kept: str
) -> None:
    """For sealed records, open records and both, a reader gives the events between two seqs."""
    log = store.open("sam", "seal")
    if kept != "frames":
        log.seal()
    if kept == "both":
        log.append("sam", log.head("sam").seq, drafts.some(3))
    log.close()
    reader = store.reader("sam")
    for from_seq, to_seq in [(1, None), (3, None), (2, 5), (8, 8), (99, None)]:
        expected = [event_of(record) for record in reader.read("sam", from_seq, to_seq)]
        assert list(reader.events("sam", from_seq, to_seq)) == expected
        assert expected or from_seq == 99
    assert list(reader.events("nobody")) == []
