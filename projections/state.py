"""Derive states: extracts of an agent's records next to its log, so that activation does not slow down with history.

A state is a part of the records, with values that the engine computed from them: enough for questions about now, and
never the only copy of anything. A state names its maker, so that another version of the projections ignores it.

Used by hosts and `everlog log seal`, which hand `DERIVER` to the store, and by activations, which resume from states.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress

import duckdb
import pyarrow as pa

from everlog.events import CATALOGUE
from everlog.projections.engine import Projections
from everlog.projections.projection_constants import BATCH_BYTES, STATE_VERSION
from everlog.projections.resumed_agents import kept_from, shown_from
from everlog.projections.sql_catalogue import batch_query, sql
from everlog.store import SCHEMA, LogReader
from everlog.store.base.arrow_values import empty_table, int_value, text_array
from everlog.store.base.lazy_pyarrow import pc
from everlog.store.sealed.parquet_file import where


class SqlStateDeriver:
    """Deriver of the states of a store: its `Derive`."""

    @property
    def maker(self) -> str:
        """Digest of everything that a state depends on. It covers the text of SQL files, comments included."""
        parts = [sql(name) for name in ("records", "add", "count_all", "end_life")]
        parts += [batch_query("state"), f"state {STATE_VERSION}"]
        parts += [f"{kind} {cls.version}" for kind, cls in sorted(CATALOGUE.items())]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]

    def __call__(self, earlier: pa.Table | None, records: pa.Table) -> pa.Table:
        """Return the states after `records`, of every agent in `earlier` or in `records`.

        An agent has no state if a later summary shows more than its earlier state has, because that needs earlier
        records; nor if it is too large for the engine, which could not run the agent either.
        """
        if earlier is not None:
            unclear = _reaching_agents(earlier, records)
            records = where(records, pc.invert(_rows_of_agents(records, unclear)))
            earlier = where(earlier, pc.invert(_rows_of_agents(earlier, unclear)))
        tables = [records] if earlier is None else [earlier, records]
        found = []
        for names in _batches(tables):
            with Projections() as engine:
                if earlier is not None:
                    engine.restore(where(earlier, _rows_of_agents(earlier, names)))
                with suppress(duckdb.OutOfMemoryException):
                    engine.load(where(records, _rows_of_agents(records, names)))
                    found.append(engine.states(names.to_pylist()))
        return pa.concat_tables(found) if found else _none()


def _rows_of_agents(table: pa.Table, agents: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    """Return which rows of `table` are of these agents."""
    return pc.is_in(table.column("agent_id"), agents)


def _reaching_agents(earlier: pa.Table, records: pa.Table) -> pa.Array:
    """Return the agents with a summary in `records` that shows more than their `earlier` state has."""
    known = kept_from(earlier)
    kinds = pc.is_in(records.column("type"), text_array(["summary", "summary_expanded"]))
    summaries = records.filter(kinds).select(["agent_id", "payload"]).to_pylist()
    return text_array({r["agent_id"] for r in summaries if shown_from(r["payload"]) < known.get(r["agent_id"], 0)})


def _none() -> pa.Table:
    """Return an empty table of states."""
    with Projections() as engine:
        return engine.states([])


def _batches(tables: Sequence[pa.Table]) -> Iterator[pa.Array]:
    """Yield the names of all agents in `tables`, sorted, in batches of at most BATCH_BYTES;
    one empty batch if there are none.
    """
    sizes: Counter[str] = Counter()
    for table in tables:
        texts = pc.coalesce(pc.binary_length(table.column("text")), int_value(0))
        words = pc.add(pc.binary_length(table.column("payload")), texts)
        # Not summed by Arrow, whose `group_by` and `to_numpy` import pandas, if it is installed.
        agents = table.column("agent_id").combine_chunks().dictionary_encode()
        names = agents.dictionary.to_pylist()
        for place, size in zip(agents.indices.to_pylist(), words.to_pylist(), strict=True):
            sizes[names[place]] += size
    batch: list[str] = []
    weight = 0
    for name, size in sorted(sizes.items()):
        if batch and weight + size > BATCH_BYTES:
            yield text_array(batch)
            batch, weight = [], 0
        batch.append(name)
        weight += size
    yield text_array(batch)


DERIVER = SqlStateDeriver()


def activate(projections: Projections, reader: LogReader, agent_id: str, as_of: int | None = None) -> bool:
    """Fill `projections` with an agent: from its newest state and the records after it, or from all records. Return
    True if there was a state.

    With `as_of`, no later record is read: "now" in these projections is then that seq.
    """
    return bool(activate_many(projections, reader, [agent_id], as_of))


def activate_many(
    projections: Projections, reader: LogReader, agents: Sequence[str], as_of: int | None = None
) -> Sequence[str]:
    """Fill `projections` with agents of one partition, each once. A batch costs hardly more than one agent: each part
    of a file is read once, whatever the number of its agents, and there is one insert of states and one of records.
    Return the agents that continue from a state.

    `as_of`: a seq after which nothing is read, for all of them. Everything is read before anything is added, so that an
    error while reading (CorruptLog, NewerFormat) leaves `projections` unchanged.
    """
    rows, later = _together(reader, agents) if as_of is None and len(agents) > 1 else _each(reader, agents, as_of)
    names: Sequence[str] = ()
    try:
        if rows:
            states = pa.concat_tables(rows)
            names = states.column("agent_id").unique().to_pylist()
            projections.resume(states, dict.fromkeys(names, reader))
        projections.load(pa.concat_tables(later) if later else empty_table(SCHEMA))
    except duckdb.Error:
        projections.forget_many(agents)
        raise
    return names


def _together(reader: LogReader, agents: Sequence[str]) -> tuple[list[pa.Table], list[pa.Table]]:
    """Return the newest states of agents, and the records after them, in tables for some hundred agents each."""
    found = list(reader.states(DERIVER.maker, agents))
    return [one.rows for one in found if one.rows is not None], [one.after for one in found]


def _each(reader: LogReader, agents: Sequence[str], as_of: int | None) -> tuple[list[pa.Table], list[pa.Table]]:
    """Return the state of each agent that has one, and the records after it up to `as_of`, in a table for each agent.

    Unlike `_together`, this finds checkpoints before `as_of`, and for one agent it decodes no rows of others.
    """
    states = {name: state for name in agents if (state := reader.state(name, DERIVER.maker, as_of)) is not None}
    later = [reader.table(name, states[name].seq + 1 if name in states else 1, as_of) for name in agents]
    return [state.rows for state in states.values()], later
