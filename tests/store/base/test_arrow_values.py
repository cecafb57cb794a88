"""Arrow values that are made without pandas are those that pyarrow makes."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everlog.store import SCHEMA
from everlog.store.base.arrow_values import (
    TRUE,
    empty_table,
    fixed_bytes,
    int_array,
    int_value,
    numbers_of,
    text_array,
    text_lists,
    text_value,
    typed_array,
)

KINDS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.string(): st.text(),
    pa.bool_(): st.booleans(),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(allow_nan=False),
}


@pytest.mark.parametrize("kind", KINDS, ids=str)
@settings(deadline=None)  # the first example imports pandas, for pyarrow
@given(data=st.data())
def test_an_array_is_that_of_pyarrow(kind: pa.DataType, data: st.DataObject) -> None:
    """Values of each kind, with and without None, any number of them, give the array that `pa.array` gives."""
    values = data.draw(st.lists(KINDS[kind] | st.none(), max_size=20) | st.lists(KINDS[kind], max_size=20))
    made = typed_array(values, kind)
    made.validate(full=True)
    assert made.equals(pa.array(values, kind))


@settings(deadline=None)
@given(lists=st.lists(st.lists(st.text(), max_size=4), max_size=8), values=st.lists(st.binary(min_size=4, max_size=4)))
def test_lists_and_bytes_are_those_of_pyarrow(lists: list[list[str]], values: list[bytes]) -> None:
    """Lists of texts, and byte strings of one size, give the arrays that `pa.array` gives."""
    assert text_lists(lists).equals(pa.array(lists, pa.list_(pa.string())))
    assert fixed_bytes(values, 4).equals(pa.array(values, pa.binary(4)))


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1), max_size=4), st.integers(0, 3))
def test_numbers_are_those_of_pyarrow(chunks: list[list[int]], skipped: int) -> None:
    """A column in any number of chunks, or a part of it, gives the array that `to_numpy` gives."""
    column = pa.chunked_array([pa.array(chunk, pa.int64()) for chunk in chunks], pa.int64()).slice(skipped)
    assert numbers_of(column, "<i8").tolist() == column.to_numpy().tolist()


def test_scalars_are_those_of_pyarrow() -> None:
    """A scalar has the value and the type that `pa.scalar` gives."""
    assert text_value("grüße").equals(pa.scalar("grüße"))
    assert int_value(2**63 - 2).equals(pa.scalar(2**63 - 2))
    assert TRUE.equals(pa.scalar(True))


def test_arrays_are_made_of_any_collection() -> None:
    """Sets, tuples and dictionaries of texts, and lists of numbers, give arrays in their order."""
    assert text_array({"a": 1, "b": 2}).to_pylist() == ["a", "b"]
    assert text_array(frozenset({"a"})).to_pylist() == ["a"]
    assert text_array(()).type == pa.string()
    assert int_array([3, 1]).to_pylist() == [3, 1]


def test_an_empty_table_has_the_schema_and_no_rows() -> None:
    """The table equals that of `Schema.empty_table`, and stays so when it is joined and combined."""
    assert empty_table(SCHEMA).equals(SCHEMA.empty_table())
    assert pa.concat_tables([empty_table(SCHEMA)]).combine_chunks().column("agent_id").type == pa.string()
