"""Hand Arrow batches to a prepared statement of DuckDB.

Used by `engine`, whose prepared inserts read one. The statement keeps the object, so the object must not be replaced.
"""

from collections.abc import Sequence

import pyarrow as pa


class BatchRelation:
    """Relation that a prepared insert reads: its content is the batches set last. Registering takes 1 ms."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.batches: Sequence[pa.RecordBatch] = ()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return pa.RecordBatchReader.from_batches(self.schema, self.batches).__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()
