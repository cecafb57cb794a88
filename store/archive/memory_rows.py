"""Search a few memories of an agent in memory, with the answers that the table gives: to the digit.

Used by `message_vectors`. Rows are folded from the same records, embedded and ranked by the same code as those of the
table, and their vectors and words are in the same cache, so that following the log does not embed them again.
"""

from collections.abc import Sequence

import numpy as np

from everlog.events import Record
from everlog.store.archive.archive_lineage import RowSelection
from everlog.store.archive.archive_results import Matches
from everlog.store.archive.archive_table import table_of
from everlog.store.archive.embedding_cache import EmbeddingCache
from everlog.store.archive.hybrid_search import CandidatePool, find, newest
from everlog.store.archive.row_cache import RowCache
from everlog.store.archive.row_fold import RowFold
from everlog.store.base.archive_query import ArchiveQuery


class MemoryRows:
    """Rows of the memories of one agent that is not a fork."""

    def __init__(self, records: Sequence[Record], vectors: EmbeddingCache) -> None:
        """Make the rows of `records`: all that stored, changed or deleted a memory of the agent's life. Raises
        EmbedderError, ArchiveError.
        """
        fold = RowFold()
        for record in records:
            fold.apply(record)
        rows = list(fold.rows.values())
        self.embedder = vectors.embedder
        """Embedder of the vectors."""
        self.records = len(records)
        """Number of records of which the rows were made."""
        self._rows = RowCache(table_of(rows, *vectors.of(rows))) if rows else None

    def search(self, wanted: ArchiveQuery, vector: np.ndarray | None) -> Matches:
        """Return the memories that match, best first, as of the seq of `wanted`. `vector`: that of the query; None if
        it has no words.
        """
        is_search = bool(wanted.query.strip())
        if self._rows is None:
            return Matches(total=0, by_meaning=is_search and vector is not None)
        pool = CandidatePool([RowSelection(self._rows, self._rows.held(wanted.as_of), wanted.as_of)], [], wanted)
        return find(pool, wanted, vector) if is_search else newest(pool, wanted)
