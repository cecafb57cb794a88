"""Laws of states: going on from a state is as good as going on from every record (P11, P13)."""

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from events import Record
from projections import DERIVER, HEAD, Projections
from store import SCHEMA, batch_of
from tests.laws.test_projections import STREAMS, loaded

PRESENT = (
    "configurations", "context_window", "core_memory", "memory_pressure", "open_turns", "standing", "timers",
    "turn_records",
)  # fmt: skip
PAST = ("agents", "recall_memory", "archival_memory", "turns", "summaries", "memory_history")


def table_of(records: list[Record]) -> pa.Table:
    return pa.Table.from_batches([batch_of(records)] if records else [], SCHEMA)


def resumed(records: list[Record], cut: int) -> Projections:
    """An engine that has the state after `cut` records, and all of them behind it."""
    engine = Projections()
    rows = DERIVER(None, table_of(records[:cut]))
    engine.resume("sam", rows, lambda head: table_of([r for r in records if r.seq <= head]))
    return engine


def rows_of(engine: Projections, names: tuple[str, ...]) -> dict[str, list[str]]:
    return {name: sorted(map(repr, engine.rows(name, "sam", HEAD))) for name in names}


@settings(max_examples=15, deadline=None)
@given(STREAMS, st.data())
def test_p11_a_state_and_what_came_after_it_is_the_whole(records: list[Record], data: st.DataObject) -> None:
    """Resumed at any record, the rest loaded or added: what is now is the same, and so is everything once it is read."""
    cut = data.draw(st.integers(1, len(records)))
    middle = data.draw(st.integers(cut, len(records)))
    with loaded(records) as whole, resumed(records, cut) as engine:
        engine.load(table_of(records[cut:middle]))
        for record in records[middle:]:
            engine.add([record])
        assert rows_of(engine, PRESENT) == rows_of(whole, PRESENT)
        assert rows_of(engine, PAST) == rows_of(whole, PAST)
        assert rows_of(engine, PRESENT) == rows_of(whole, PRESENT)


@settings(max_examples=25, deadline=None)
@given(STREAMS, st.data())
def test_p11_a_state_of_a_state_is_the_state_of_all_records(records: list[Record], data: st.DataObject) -> None:
    """Derived in steps or at once, the rows are the same; where a summary was taken back, there are none or the same."""
    cut = data.draw(st.integers(1, len(records)))
    earlier = DERIVER(None, table_of(records[:cut]))
    in_steps = DERIVER(earlier, table_of(records[cut:]))
    at_once = DERIVER(None, table_of(records))
    if any(record.type == "summary_expanded" for record in records[cut:]):
        assert in_steps.num_rows == 0
    else:
        assert in_steps.to_pylist() == at_once.to_pylist()
    assert DERIVER(earlier, SCHEMA.empty_table()).to_pylist() == earlier.to_pylist()
