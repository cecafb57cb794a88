"""Insert log records into the hot table by `add.sql`: few at once by a plan that is made once, many by a new plan.

Used by `engine`. DuckDB plans a statement again each time that it reads a table or a registered object, and planning is
most of the cost of inserting a few records. It keeps the plan of a statement that reads only the result of a function.
"""

import struct
from collections.abc import Sequence

import duckdb
import pyarrow as pa
from duckdb.func import PythonUDFType

from everlog.events import CATALOGUE, upcast_record
from everlog.projections.hot.batch_relation import BatchRelation
from everlog.store import SCHEMA, batch_of, records_of

_FUNCTION = "added_records"
_INCOMING = "FROM incoming"
_COLUMN_TYPES = {
    pa.string(): "VARCHAR", pa.int64(): "BIGINT", pa.int32(): "INTEGER", pa.uuid(): "UUID",
    pa.timestamp("us", "UTC"): "TIMESTAMPTZ",
}  # fmt: skip
_FIELDS = ", ".join([f'"{field.name}" {_COLUMN_TYPES[field.type]}' for field in SCHEMA])
_ROWS = f"STRUCT({_FIELDS})[]"
"""Type of the function's result in DuckDB: the records as a list."""


def upcast_table(table: pa.Table) -> pa.Table:
    """Return a table of records with each record in its newest version: the same table if all are."""
    shapes = set(zip(table.column("type").to_pylist(), table.column("version").to_pylist(), strict=True))
    if all(version >= CATALOGUE[kind].version for kind, version in shapes if kind in CATALOGUE):
        return table
    return pa.Table.from_batches([batch_of([upcast_record(record) for record in records_of(table)])])


class RecordInsert:
    """Prepared insert of one DuckDB. `incoming` is a relation with the records that are being inserted."""

    def __init__(self, db: duckdb.DuckDBPyConnection, add: str, few: int) -> None:
        """Plan the insert, whose text is `add`. Up to `few` records, inclusive, are inserted by this plan."""
        self._db, self._add, self._few = db, add, few
        self._open = True
        self._incoming = BatchRelation(SCHEMA)
        db.register("incoming", self._incoming)
        # Declared to have side effects, or DuckDB would take the first result for a constant.
        db.create_function(_FUNCTION, self._list, ["BIGINT"], _ROWS, type=PythonUDFType.ARROW, side_effects=True)
        self.prepare()

    def prepare(self) -> None:
        """Plan the insert. DuckDB drops the plan without a word when something is created in its catalogue."""
        rows = f"FROM (SELECT unnest({_FUNCTION}(0), recursive := true)) AS incoming"
        self._db.execute(f"PREPARE {_FUNCTION} AS {self._add.replace(_INCOMING, rows)}")

    def close(self) -> None:
        """Remove the function. Idempotent."""
        if self._open:
            self._open = False
            self._db.remove_function(_FUNCTION)

    def set(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Set the records that `incoming` has, and that `run` inserts. Empty: release them."""
        self._incoming.batches = batches

    def run(self) -> None:
        """Insert the records that were set."""
        if sum(batch.num_rows for batch in self._incoming.batches) <= self._few:
            self._db.execute(f"EXECUTE {_FUNCTION}")
        else:
            self._db.execute(self._add)

    def _list(self, _: object) -> pa.ListArray:
        """Return the records as one value, a list of structs."""
        table = pa.Table.from_batches(self._incoming.batches, SCHEMA).combine_chunks()
        columns = [column.chunk(0) for column in table.columns]
        rows = pa.StructArray.from_arrays(columns, fields=list(SCHEMA))
        offsets = pa.py_buffer(struct.pack("<2i", 0, len(rows)))
        return pa.ListArray.from_buffers(pa.list_(rows.type), 1, [None, offsets], children=[rows])
