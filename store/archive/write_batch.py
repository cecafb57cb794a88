"""What some new records make of the rows: which are written, and which vectors go. Reads, and writes nothing."""

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
    """What is to be written. Writing it twice is as good as once."""

    rows: pa.Table | None
    """None if no row changes."""
    whole: Sequence[str]
    """Agents of which these are all the rows."""
    erased: bool
    """Whether bytes have to go from the disk."""
    forget: set[bytes]
    """Vectors that go from the cache, by content."""
    positions: Mapping[str, FollowPosition]
    ahead: Mapping[str, int]
    commits: int


class RowFeatures(NamedTuple):
    """What is searched of a row that was there."""

    vector: np.ndarray
    words: bytes


def batch_of(tables: Sequence[tuple[str, pa.Table]], store: FileStore, table: Table, vectors: EmbeddingCache,
             ahead: Mapping[str, int], positions: Mapping[str, FollowPosition]) -> WriteBatch:  # fmt: skip
    """What records that were appended since, by partition, make of the rows."""
    reach = {partition: end_position(found) for partition, found in tables}
    seen: dict[str, str] = {}
    records: list[Record] = []
    for partition, found in tables:
        for record in records_of(relevant(found)):
            if record.seq > ahead.get(record.agent_id, 0):
                records.append(record)
                seen[record.agent_id] = partition
    whole = {record.agent_id for record in records if is_whole(record)}
    erasing = {record.agent_id for record in records if record.type == ERASED}
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
        erased=bool(erasing), forget=forget, positions=reach, ahead=ends, commits=commits,
    )  # fmt: skip


def _fold_records(
    table: Table, records: Iterable[Record], is_fork: Callable[[str], bool]
) -> tuple[RowFold, Mapping[str, RowFeatures]]:
    """The rows that the records make or end, and the vectors of those that were there."""
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
        words = found.column("words").to_pylist()
        for row, *content in zip(rows_in(found), vectors_in(found), words, strict=True):
            rows[row.memory_id], old[row.memory_id] = row, RowFeatures(*content)
    fold = RowFold(rows.values(), is_fork)
    for record in records:
        fold.apply(record)
    return fold, old


def _content_of(rows: Sequence[ArchiveRow], old: Mapping[str, RowFeatures], vectors: EmbeddingCache) -> TextFeatures:
    """What is searched of each row: one that was there keeps what it had."""
    new = vectors.of([row for row in rows if row.memory_id not in old])
    if not old:
        return new
    fresh = zip(*new, strict=True)
    content = [old[row.memory_id] if row.memory_id in old else next(fresh) for row in rows]
    return TextFeatures(np.stack([vector for vector, _ in content]), [words for _, words in content])


def _keys_of(table: Table, agents: Iterable[str]) -> set[bytes]:
    """The contents of all rows of some agents."""
    found: set[bytes] = set()
    for condition in in_conditions("agent_id", agents):
        rows = rows_in(table.read(condition))
        found.update(map(content_of, rows))
    return found
