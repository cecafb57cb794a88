"""Insert rows of states into the hot table.

Used by `engine`.
"""

import duckdb
import pyarrow as pa

from everlog.projections.hot.batch_relation import BatchRelation


class StateInsert:
    """Prepared insert of one DuckDB, made for the columns of the first rows: states of one maker have the same."""

    def __init__(self, db: duckdb.DuckDBPyConnection) -> None:
        self._db = db
        self._restoring: BatchRelation | None = None

    def run(self, rows: pa.Table) -> None:
        """Insert the rows, which have the columns of the hot table."""
        if self._restoring is None or self._restoring.schema != rows.schema:
            self._restoring = BatchRelation(rows.schema)
            self._db.register("restoring", self._restoring)
            self._db.execute("PREPARE restore AS INSERT INTO hot FROM restoring")
        self._restoring.batches = rows.to_batches()
        try:
            self._db.execute("EXECUTE restore")
        finally:
            self._restoring.batches = ()
