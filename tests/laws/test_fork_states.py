"""Laws of forks: at any seq, the fork's first state equals the parent's state at that seq, and the fold of the log."""

import msgspec
import pyarrow as pa
from hypothesis import strategies as st

from everlog.events import Draft, Record, uuid7
from everlog.projections import HEAD, PROJECTIONS, Projections, Row, activate
from everlog.store import MemoryStore, batch_of
from tests.laws.test_projections import STREAMS
from tests.support.law import law

LATER = 2_000_000_000_000_000
OF_THE_HEAD = {"standing", "agents", "turn_records", "group_talk"}
"""Projections that show the last record, of whatever kind, or the fork itself."""


def tables(engine: Projections, name: str, as_of: int) -> dict[str, object]:
    """Return every projection as plain rows, without agent names and times of the query."""
    return {
        projection: sorted(
            ({k: str(v) for k, v in row.items() if k not in ("as_of", "agent_id")} for row in rows if _is_lasting(row)),
            key=repr,
        )
        for projection in PROJECTIONS
        for rows in [engine.rows(projection, name, as_of)]
    }


def _is_lasting(row: Row) -> bool:
    """Return False for the row of `sources` that only holds the time of the last record."""
    return row.get("source", " ") != ""


def kept(records: list[Record]) -> MemoryStore:
    """Return a store with the records of sam, each in a commit of its own."""
    store = MemoryStore(now=lambda: LATER)
    store.register("sam")
    log = store.open("sam", "law")
    for record in records:
        fields = {name: getattr(record, name) for name in Draft.__struct_fields__}
        fields["event_id"] = uuid7(LATER, record.seq)
        log.append("sam", record.seq - 1, [msgspec.convert(fields, Draft)])
    log.close()
    return store


@law(STREAMS, st.data(), few=2, many=40)
def test_the_first_state_of_a_fork_is_the_parents_state_and_the_fold_of_the_log(
    records: list[Record], data: st.DataObject
) -> None:
    """state_at(k) = fold(log[:k]) = first state of fork(k) = first state of a fork of a fork: only the head differs."""
    store = kept(records)
    at = data.draw(st.integers(1, len(records)))
    later = data.draw(st.integers(at, len(records)))
    store.fork("sam", later, "wide", event_id=uuid7(LATER, 10_000))
    store.fork("wide", at, "deep", event_id=uuid7(LATER, 10_001))
    store.fork("sam", at, "tom", event_id=uuid7(LATER, 10_002))
    with Projections() as engine, Projections() as fold:
        for name in ("sam", "wide", "deep", "tom"):
            activate(engine, store.reader(name), name)
        table = pa.Table.from_batches([batch_of(list(store.reader("sam").read("sam", 1, at)))])
        fold.load(table)
        expected = tables(fold, "sam", HEAD)
        assert all(tables(engine, name, at) == expected for name in ("sam", "wide", "deep", "tom"))
        for name in ("deep", "tom"):
            first = tables(engine, name, HEAD)
            assert [one for one in PROJECTIONS if first[one] != expected[one] and one not in OF_THE_HEAD] == []
