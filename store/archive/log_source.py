"""Read the records that the archive needs from the log: by partition, by agent, or all of an agent.

Used by `write_batch` and `rebuild_table`, which must get the same records. Never writes to the log.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa

from everlog.events import Record, UnknownAgent
from everlog.store.archive.archive_metadata import FollowPosition
from everlog.store.archive.row_fold import ERASED, KINDS, MOVED
from everlog.store.base.arrow_schema import SCHEMA, records_of
from everlog.store.base.arrow_values import empty_table, text_array
from everlog.store.base.lazy_pyarrow import pc
from everlog.store.log.log_follower import LogFollower, event_id_of
from everlog.store.log.partition_reader import PartitionReader
from everlog.store.stores.file_store import FileStore

_ONE_BY_ONE_MAX = 8
"""Number of agents up to which records are read agent by agent; for more, partitions are read as a whole."""
_KINDS = text_array(KINDS)


def relevant(table: pa.Table) -> pa.Table:
    """Return the records that the archive needs."""
    return table.filter(pc.is_in(table.column("type"), _KINDS))


def end_position(table: pa.Table) -> FollowPosition:
    """Return the position at the end of some records of one partition, at least one."""
    commit = table.column("commit")[-1].as_py()
    return FollowPosition(commit, event_id_of(table, commit))


def histories(store: FileStore, agents: Iterable[str], seen: Callable[[str], str]) -> dict[str, list[Record]]:
    """Return all relevant records of these agents, in order, from every partition that each was in.

    `seen` returns a partition for an agent that was never registered.
    """
    routes = {agent_id: _route(store, agent_id, seen) for agent_id in agents}
    found: dict[str, list[Record]] = {agent_id: [] for agent_id in routes}
    if len(routes) <= _ONE_BY_ONE_MAX:
        for agent_id, route in routes.items():
            for partition in route:
                table = PartitionReader(store.partition(partition)).table(agent_id)
                found[agent_id] += records_of(relevant(table))
    else:
        names = text_array(routes)
        for partition in sorted({partition for route in routes.values() for partition in route}):
            for table in LogFollower(store.partition(partition)).since(0):
                mine = relevant(table.filter(pc.is_in(table.column("agent_id"), names)))
                for record in records_of(mine):
                    found[record.agent_id].append(record)
    for records in found.values():
        records.sort(key=lambda record: record.seq)
    return found


def _route(store: FileStore, agent_id: str, seen: Callable[[str], str]) -> Sequence[str]:
    try:
        return list(dict.fromkeys(store.route(agent_id)))
    except UnknownAgent:
        return [seen(agent_id)]


def by_agent(tables: Sequence[pa.Table]) -> Iterator[tuple[str, list[Record]]]:
    """Yield records of many partitions, agent by agent, in the order of their seqs."""
    table = pa.concat_tables([empty_table(SCHEMA), *tables])
    order = pc.sort_indices(
        table.select(["agent_id", "seq"]), sort_keys=[("agent_id", "ascending"), ("seq", "ascending")]
    )
    table = table.take(order)
    records: list[Record] = []
    for batch in table.to_batches(max_chunksize=10_000):
        for record in records_of(batch):
            if records and records[-1].agent_id != record.agent_id:
                yield records[-1].agent_id, records
                records = []
            records.append(record)
    if records:
        yield records[-1].agent_id, records


def is_whole(record: Record) -> bool:
    """Return True if the agent of this record must be read as a whole: it moved, or records of it were erased."""
    return record.type in {MOVED, ERASED}
