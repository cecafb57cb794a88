"""The Arrow batches that the store encodes itself equal pyarrow's, and decode to the same records."""

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everlog.events import Record
from everlog.store import SCHEMA, batch_of, records_of
from everlog.store.base.arrow_schema import batch_in, body_of, id_bytes
from tests.support.event_strategies import TEXT

INT64 = st.integers(-(2**63), 2**63 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
ID = st.uuids().map(str)
RECORDS = st.lists(
    st.builds(
        Record,
        agent_id=TEXT,
        seq=INT64,
        commit=INT64,
        event_id=ID,
        recorded_at=INT64,
        said_at=st.none() | INT64,
        type=TEXT,
        turn=INT64,
        step=INT32,
        cause=st.none() | ID,
        version=INT32,
        text=st.none() | TEXT,
        payload=TEXT,
    ),
    min_size=1,
    max_size=20,
)


def by_pyarrow(records: list[Record]) -> pa.RecordBatch:
    """Return the same batch, made by pyarrow's own builders."""
    arrays = []
    for field in SCHEMA:
        values = [getattr(record, field.name) for record in records]
        if field.type == pa.uuid():
            storage = pa.array([None if v is None else id_bytes(v) for v in values], pa.binary(16))
            arrays.append(pa.ExtensionArray.from_storage(pa.uuid(), storage))
        else:
            arrays.append(pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


@settings(max_examples=50, deadline=None)
@given(RECORDS)
def test_a_body_is_what_pyarrow_writes(records: list[Record]) -> None:
    """The body equals pyarrow's byte for byte, so every reader of Arrow reads it."""
    assert body_of(records) == by_pyarrow(records).serialize().to_pybytes()


@settings(max_examples=50, deadline=None)
@given(RECORDS)
def test_records_come_back(records: list[Record]) -> None:
    batch = batch_of(records)
    batch.validate(full=True)
    assert batch.equals(by_pyarrow(records))
    assert list(records_of(batch)) == records
    assert list(records_of(batch_in(pa.py_buffer(body_of(records))))) == records


@pytest.mark.parametrize("count", [8, 9, 500, 4097])
def test_a_long_body_is_what_pyarrow_writes(count: int) -> None:
    """Bitmaps of more than a byte, with nulls in changing positions, are read correctly."""
    records = [
        Record(
            agent_id="sam", seq=n, commit=1, event_id=f"{n:032x}", recorded_at=n, said_at=n if n % 3 else None,
            type="heartbeat", turn=n, step=0, cause=None if n % 5 else f"{n:032x}", version=1,
            text="é" * (n % 7) if n % 2 else None, payload="{}",
        )
        for n in range(1, count + 1)
    ]  # fmt: skip
    assert body_of(records) == by_pyarrow(records).serialize().to_pybytes()


def test_no_records_are_an_empty_batch() -> None:
    assert batch_of([]).schema == SCHEMA
    assert batch_of([]).num_rows == 0


def test_every_column_is_a_field_of_a_record() -> None:
    assert SCHEMA.names == [field.name for field in msgspec.structs.fields(Record)]
