"""Compute chain values in the middle of a stream: start at the nearest known value and extend it over the records after
it.

Used by `partition_reader`, `memory_store` and `sealed.checkpoints`.
"""

from collections.abc import Iterable

import pyarrow as pa

from everlog.events import GENESIS, BadInput
from everlog.store.base.arrow_schema import records_of
from everlog.store.base.contract import Head, LogReader
from everlog.store.partition.append_rules import follow
from everlog.store.partition.manifest import Manifest

BEGINNING = Head(0, GENESIS)


def nearest_known(manifest: Manifest, name: str, seq: int) -> Head:
    """Return the last position at or before `seq` whose chain value is in the manifest, which a checksum protects."""
    nearest = BEGINNING
    for entry in manifest.files:
        end = entry.chains.get(name)
        for place, chain in [*entry.marks.get(name, ()), *([end] if end is not None else [])]:
            if nearest.seq < place <= seq:
                nearest = Head(place, bytes.fromhex(chain))
    return nearest


def chain_over(known: Head, records: Iterable[pa.Table], name: str, where: str) -> Head:
    """Return the position after the `records` that follow `known` in one stream. Raises CorruptLog, naming `where`, for
    a gap.
    """
    heads = {name: known}
    for table in records:
        follow(heads, list(records_of(table)), where)
    return heads[name]


def no_record_error(reader: LogReader, name: str, seq: int) -> BadInput:
    """Return the error for a seq at which a reader has no record."""
    head = reader.head(name).seq
    if not 0 <= seq <= head:
        return BadInput(f"{name!r} has no chain value at seq {seq}: it has records 1 to {head}.")
    return BadInput(
        f"{name!r} was not in {reader.partition} at seq {seq}: read the agent through the store, which knows all "
        "of its partitions."
    )
