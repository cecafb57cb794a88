"""Erase records: replace their content by tombstones, which keep their place in the stream.

A tombstone keeps the envelope (seq, ids, times, type) and the digest of the original, so that order, counts and the
chain verify as before. `records_erased` events in the log itself name the records to erase: they are the intent,
durable before any file is changed, and sealing carries them out.

Used by `seal_pass` and `MemoryStore`.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from everlog.events import ERASED_PREFIX, AgentForked, AgentMoved, RecordsErased, event_of, tombstone
from everlog.store.base.arrow_schema import SCHEMA, batch_of, records_of
from everlog.store.base.arrow_values import int_value, text_array, text_value
from everlog.store.base.lazy_pyarrow import pc

CONNECTING_KINDS = (AgentMoved.kind, AgentForked.kind)
"""Kinds of records that connect a stream over partitions and forks. They hold no content and are never erased."""


class SeqRange(NamedTuple):
    """A range of records of one stream, both ends inclusive."""

    from_seq: int
    to_seq: int

    def holds(self, seq: int) -> bool:
        """Return True if `seq` is in the range."""
        return self.from_seq <= seq <= self.to_seq


Erasures = Mapping[str, Sequence[SeqRange]]
"""Records to erase, by agent."""


def erasures_in(table: pa.Table) -> Erasures:
    """Return the ranges that the `records_erased` in `table` name. No range reaches beyond the record that names it."""
    found: dict[str, list[SeqRange]] = defaultdict(list)
    for record in records_of(table.filter(pc.equal(table.column("type"), text_value(RecordsErased.kind)))):
        event = event_of(record)
        if isinstance(event, RecordsErased):
            found[record.agent_id].append(SeqRange(event.from_seq, min(event.to_seq, record.seq - 1)))
    return found


def erase_records(table: pa.Table, erasures: Erasures) -> tuple[pa.Table, int]:
    """Return `table` with tombstones for the records to erase, and their number. The order of rows may change."""
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
    """Return a mask of the rows that `erasures` names and that are not tombstones yet; None if it names none.

    CONNECTING_KINDS are excluded.
    """
    found = None
    for agent_id, spans in erasures.items():
        for span in spans:
            seq = table.column("seq")
            after = pc.greater_equal(seq, int_value(span.from_seq))
            inside = pc.and_(after, pc.less_equal(seq, int_value(span.to_seq)))
            mine = pc.and_(inside, pc.equal(table.column("agent_id"), text_value(agent_id)))
            found = mine if found is None else pc.or_(found, mine)
    if found is None:
        return None
    joints = pc.is_in(table.column("type"), text_array(CONNECTING_KINDS))
    return pc.and_(found, pc.invert(pc.or_(pc.starts_with(table.column("payload"), ERASED_PREFIX), joints)))
