"""Erasure: what was said goes, its place in the stream stays.

A tombstone keeps the envelope (seq, ids, times, type) and the digest of what it was, so that order, counts and the
chain verify as before. What is to be erased is said by `records_erased` events in the log itself: they are the intent,
durable before anything is touched, and sealing carries them out.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from everlog.events import ERASED_PREFIX, AgentForked, AgentMoved, RecordsErased, event_of, tombstone
from everlog.store.base.arrow_schema import SCHEMA, batch_of, records_of
from everlog.store.base.lazy_pyarrow import pc

JOINTS = (AgentMoved.kind, AgentForked.kind)
"""Kinds of records by which a stream hangs together over partitions and forks: no content, and never erased."""


class SeqRange(NamedTuple):
    """Records of one stream, both ends inclusive."""

    from_seq: int
    to_seq: int

    def holds(self, seq: int) -> bool:
        """Whether the record `seq` is one of them."""
        return self.from_seq <= seq <= self.to_seq


Erasures = Mapping[str, Sequence[SeqRange]]
"""What is to be erased, by agent."""


def erasures_in(table: pa.Table) -> Erasures:
    """What the `records_erased` among the records of `table` ask for; none reaches beyond its own record."""
    found: dict[str, list[SeqRange]] = defaultdict(list)
    for record in records_of(table.filter(pc.equal(table.column("type"), RecordsErased.kind))):
        event = event_of(record)
        if isinstance(event, RecordsErased):
            found[record.agent_id].append(SeqRange(event.from_seq, min(event.to_seq, record.seq - 1)))
    return found


def erase_records(table: pa.Table, erasures: Erasures) -> tuple[pa.Table, int]:
    """`table` with tombstones for what is to be erased, and how many records that changed. The order may change."""
    gone = _erased_rows(table, erasures)
    if gone is None:
        return table, 0
    content = table.filter(gone)
    if not content.num_rows:
        return table, 0
    tombstones = [tombstone(record) for record in records_of(content)]
    kept = table.filter(pc.invert(gone))
    return pa.concat_tables([kept, pa.Table.from_batches([batch_of(tombstones)], SCHEMA)]), len(tombstones)


def _erased_rows(table: pa.Table, erasures: Erasures) -> pa.ChunkedArray | None:
    """Which rows of `table` are named by `erasures` and are no tombstones yet.

    JOINTS are spared.
    """
    found = None
    for agent_id, spans in erasures.items():
        for span in spans:
            seq = table.column("seq")
            inside = pc.and_(pc.greater_equal(seq, span.from_seq), pc.less_equal(seq, span.to_seq))
            mine = pc.and_(inside, pc.equal(table.column("agent_id"), agent_id))
            found = mine if found is None else pc.or_(found, mine)
    if found is None:
        return None
    joints = pc.is_in(table.column("type"), pa.array(JOINTS))
    return pc.and_(found, pc.invert(pc.or_(pc.starts_with(table.column("payload"), ERASED_PREFIX), joints)))
