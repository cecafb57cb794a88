"""Compute the changes of rows that new records cause: rows to write, and vectors to drop. Reads only.

Used by `archive_writer`; `archive` and `row_caches` read its `WriteBatch`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from everlog.events import Record
from everlog.store.archive.archive_lineage import Lineage
from everlog.store.archive.archive_metadata import FollowPosition
from everlog.store.archive.archive_table import Table, equal, in_conditions, rows_in, table_of, vectors_in
from everlog.store.archive.embedding_cache import EmbeddingCache, TextFeatures, content_of
from everlog.store.archive.log_source import end_position, histories, is_whole, relevant
from everlog.store.archive.row_fold import ERASED, ArchiveRow, NeededRows, RowFold, fold_stream
from everlog.store.base.arrow_schema import records_of
from everlog.store.stores.file_store import FileStore


class WriteBatch(msgspec.Struct):
    """Changes to write. Writing them twice has the same effect as once."""

    rows: pa.Table | None
    """Rows that are new or changed; None if there are none."""
    whole: Sequence[str]
    """Agents of which `rows` has all rows: their other rows are deleted."""
    erased: frozenset[str]
    """Agents of which erased bytes must be removed from the disk."""
    forget: set[bytes]
    """Keys of vectors to drop from the cache."""
    positions: Mapping[str, FollowPosition]
    ahead: Mapping[str, int]
    commits: int


class RowFeatures(NamedTuple):
    """Searchable features of a row that existed before."""

    vector: np.ndarray
    words: bytes


def batch_of(tables: Sequence[tuple[str, pa.Table]], store: FileStore, table: Table, vectors: EmbeddingCache,
             ahead: Mapping[str, int], positions: Mapping[str, FollowPosition]) -> WriteBatch:  # fmt: skip
    """Return the changes that new records, given by partition, make to the rows."""
    reach = {partition: end_position(found) for partition, found in tables}
    seen: dict[str, str] = {}
    records: list[Record] = []
    for partition, found in tables:
        for record in records_of(relevant(found)):
            if record.seq > ahead.get(record.agent_id, 0):
                records.append(record)
                seen[record.agent_id] = partition
    whole = {record.agent_id for record in records if is_whole(record)}
    erasing = frozenset(record.agent_id for record in records if record.type == ERASED)
    is_fork = Lineage(store).is_fork
    fold, old = _fold_records(table, [record for record in records if record.agent_id not in whole], is_fork)
    rows = list(fold.touched.values())
    ends = {}
    for agent_id, history in histories(store, whole, lambda name: seen[name]).items():
        rows += fold_stream(history, is_fork).values()
        ends[agent_id] = history[-1].seq if history else 0
    forget = _keys_of(table, erasing) - {content_of(row) for row in rows if row.agent_id in erasing}
    commits = sum(position.commit - positions[name].commit for name, position in reach.items() if name in positions)
    return WriteBatch(
        rows=table_of(rows, *_content_of(rows, old, vectors)) if rows else None, whole=sorted(whole),
        erased=erasing, forget=forget, positions=reach, ahead=ends, commits=commits,
    )  # fmt: skip


def _fold_records(
    table: Table, records: Iterable[Record], is_fork: Callable[[str], bool]
) -> tuple[RowFold, Mapping[str, RowFeatures]]:
    """Return the rows that the records make or end, and the features of those that existed before."""
    records = list(records)
    needs = NeededRows()
    for record in records:
        needs.of(record)
    conditions = [
        *in_conditions("memory", needs.memories),
        *in_conditions("agent_id", needs.agents),
        *(
            f"{equal('agent_id', stream)} AND {some}"
            for stream, documents in needs.documents.items()
            for some in in_conditions("document", documents)
        ),
    ]
    old: dict[str, RowFeatures] = {}
    rows: dict[str, ArchiveRow] = {}
    for condition in conditions:
        found = table.read(condition)
        words = map(bytes.fromhex, found.column("words").to_pylist())
        for row, *content in zip(rows_in(found), vectors_in(found), words, strict=True):
            rows[row.memory_id], old[row.memory_id] = row, RowFeatures(*content)
    fold = RowFold(rows.values(), is_fork)
    for record in records:
        fold.apply(record)
    return fold, old


def _content_of(rows: Sequence[ArchiveRow], old: Mapping[str, RowFeatures], vectors: EmbeddingCache) -> TextFeatures:
    """Return the features of each row; a row that existed before keeps its own."""
    new = vectors.of([row for row in rows if row.memory_id not in old])
    if not old:
        return new
    fresh = zip(*new, strict=True)
    content = [old[row.memory_id] if row.memory_id in old else next(fresh) for row in rows]
    return TextFeatures(np.stack([vector for vector, _ in content]), [words for _, words in content])


def _keys_of(table: Table, agents: Iterable[str]) -> set[bytes]:
    """Return the cache keys of all rows of some agents."""
    found: set[bytes] = set()
    for condition in in_conditions("agent_id", agents):
        rows = rows_in(table.read(condition))
        found.update(map(content_of, rows))
    return found
