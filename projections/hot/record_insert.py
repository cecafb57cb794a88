"""Insert log records into the table `records` by `add.sql`: few by a plan that is made once, many by a new plan.

Used by `engine`. DuckDB plans a statement again each time that it reads a table or a registered object, and planning is
most of the cost of inserting a few records. It keeps the plan of a statement that reads only the result of a function.
"""

import struct
from collections.abc import Iterator, Sequence

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
PORTION_BYTES = 8 * 2**20
"""Bytes of records that are inserted at once: what reading their JSON takes is many times as much, and is freed after
each insert.
"""


def upcast_table(table: pa.Table) -> pa.Table:
    """Return a table of records with each record in its newest version: the same table if all are."""
    shapes = set(zip(table.column("type").to_pylist(), table.column("version").to_pylist(), strict=True))
    if all(version >= CATALOGUE[kind].version for kind, version in shapes if kind in CATALOGUE):
        return table
    return pa.Table.from_batches([batch_of([upcast_record(record) for record in records_of(table)])])


def portions_of(batches: Sequence[pa.RecordBatch]) -> Sequence[Sequence[pa.RecordBatch]]:
    """Return the records, in their order, in portions of at most PORTION_BYTES; a larger record is a portion alone."""
    if sum(batch.nbytes for batch in batches) <= PORTION_BYTES:
        return [batches]
    return [[part] for batch in batches for part in _parts(batch)]


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if batch.nbytes <= PORTION_BYTES or batch.num_rows == 1:
        yield batch
        return
    middle = batch.num_rows // 2
    yield from _parts(batch.slice(0, middle))
    yield from _parts(batch.slice(middle))


class RecordInsert:
    """Prepared insert of one DuckDB. `incoming` is a relation with the portion that is being inserted, and afterwards
    with all records: rows of their agents are counted.
    """

    def __init__(self, db: duckdb.DuckDBPyConnection, add: str, few: int) -> None:
        """Plan the insert, whose text is `add`. Up to `few` records, inclusive, are inserted by this plan."""
        self._db, self._add, self._few = db, add, few
        self._open = True
        self._portions: Sequence[Sequence[pa.RecordBatch]] = ()
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
        """Set the records that `run` inserts. Empty: release them."""
        self._portions = portions_of(batches)
        self._incoming.batches = batches

    @property
    def is_one_statement(self) -> bool:
        """True if `run` needs no transaction around it."""
        return len(self._portions) == 1

    def run(self) -> None:
        """Insert the records that were set."""
        batches = self._incoming.batches
        for portion in self._portions:
            self._incoming.batches = portion
            if sum(batch.num_rows for batch in portion) <= self._few:
                self._db.execute(f"EXECUTE {_FUNCTION}")
            else:
                self._db.execute(self._add)
        self._incoming.batches = batches

    def _list(self, _: object) -> pa.ListArray:
        """Return the records as one value, a list of structs."""
        table = pa.Table.from_batches(self._incoming.batches, SCHEMA).combine_chunks()
        columns = [column.chunk(0) for column in table.columns]
        rows = pa.StructArray.from_arrays(columns, fields=list(SCHEMA))
        offsets = pa.py_buffer(struct.pack("<2i", 0, len(rows)))
        return pa.ListArray.from_buffers(pa.list_(rows.type), 1, [None, offsets], children=[rows])
