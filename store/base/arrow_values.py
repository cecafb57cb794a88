"""Make Arrow arrays and scalars of Python values, from buffers.

Used by `store`, `projections` and hosts in place of `pa.array`, `pa.scalar`, `to_numpy` and `Schema.empty_table`, and
of plain values as arguments of `pyarrow.compute`. All of those import pandas, if it is installed, to learn if a value
is one of its arrays: half a second and 25 MB in each process that opens a log.
"""

import struct
from collections.abc import Collection, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    import numpy as np

_LAYOUTS = {pa.int64(): "q", pa.int32(): "i", pa.float64(): "d"}
"""Format of `struct` by type."""


def typed_array(values: Sequence[str | int | float | None], kind: pa.DataType) -> pa.Array:
    """Return the values as an array of `kind`: string, bool, int32, int64 or float64. None becomes null. Raise
    KeyError.
    """
    valid = _bits([value is not None for value in values]) if None in values else None
    if kind == pa.bool_():
        return pa.Array.from_buffers(kind, len(values), [valid, _bits(values)])
    if kind == pa.string():
        parts = [value.encode() if isinstance(value, str) else b"" for value in values]
        offsets = struct.pack(f"<{len(parts) + 1}i", 0, *accumulate(map(len, parts)))
        return pa.Array.from_buffers(kind, len(parts), [valid, pa.py_buffer(offsets), pa.py_buffer(b"".join(parts))])
    data = struct.pack(f"<{len(values)}{_LAYOUTS[kind]}", *[0 if value is None else value for value in values])
    return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(data)])


def _bits(values: Sequence[object]) -> pa.Buffer:
    """Return one bit for each value, as Arrow orders them: 1 if the value is true."""
    bits = "".join(["1" if value else "0" for value in reversed(values)])
    return pa.py_buffer(int(bits or "0", 2).to_bytes((len(values) + 7) // 8, "little"))


def text_array(values: Collection[str]) -> pa.StringArray:
    """Return the values as an array of strings."""
    return typed_array([*values], pa.string())


def text_value(value: str) -> pa.StringScalar:
    """Return the value as a scalar."""
    return text_array([value])[0]


def text_lists(lists: Sequence[Collection[str]]) -> pa.ListArray:
    """Return the lists as an array of lists of strings."""
    offsets = typed_array([0, *accumulate(map(len, lists))], pa.int32())
    return pa.ListArray.from_arrays(offsets, text_array([value for values in lists for value in values]))


def fixed_bytes(values: Sequence[bytes], size: int) -> pa.FixedSizeBinaryArray:
    """Return the values, each of `size` bytes, as an array."""
    return pa.Array.from_buffers(pa.binary(size), len(values), [None, pa.py_buffer(b"".join(values))])


def int_array(values: Sequence[int]) -> pa.Int64Array:
    """Return the values as an array of int64."""
    return typed_array(values, pa.int64())


def int_value(value: int) -> pa.Int64Scalar:
    """Return the value as a scalar of int64."""
    return int_array([value])[0]


def numbers_of(column: pa.Array | pa.ChunkedArray, kind: str) -> "np.ndarray":
    """Return the values of a column without nulls as an array of a type of NumPy, which is that of the column."""
    import numpy as np

    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    size = np.dtype(kind).itemsize
    parts = [np.frombuffer(chunk.buffers()[1], kind, len(chunk), chunk.offset * size) for chunk in chunks if len(chunk)]
    return np.concatenate([np.empty(0, kind), *parts])


TRUE: pa.BooleanScalar = typed_array([True], pa.bool_())[0]


def empty_table(schema: pa.Schema) -> pa.Table:
    """Return a table without rows."""
    return pa.Table.from_batches([], schema)
