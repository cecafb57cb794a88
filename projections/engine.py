"""Run projections in one DuckDB in memory, which is filled from the log.

The engine contains nothing that is not in the log: it can be dropped at any moment and filled again. Rows of a commit
are added in one transaction. Only SQL decides what the rows mean; see `sql/`. Used by activations, hosts and replay.
Not thread-safe: each host has its own engine.
"""

import weakref
from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Self

import duckdb
import pyarrow as pa

from everlog.events import Record, upcast_record
from everlog.projections.hot.hot_database import HotDatabase
from everlog.projections.hot.parsed_statements import plain_text
from everlog.projections.hot.record_insert import upcast_table
from everlog.projections.hot.row_updates import COUNTED, SUMMARIES, OlderRowChanges
from everlog.projections.hot.rows import KEPT_COLUMNS, KeptRows, Row, Rows, Wanted, answers, place_of
from everlog.projections.projection_constants import (
    COMPACT_ROWS_MIN,
    CONTEXTS_BYTES_MAX,
    FEW_AGENTS,
    FEW_RECORDS,
    HEAD,
    HOT_OPTIMIZERS,
    MANY_AGENTS,
    MEMORY_MB,
    OF_A_STATE,
    PENDING_BYTES_MAX,
    PENDING_RECORDS_MAX,
    SHRUNK_AT_ONCE,
    THREADS,
)
from everlog.projections.resumed_agents import ResumedAgents, values_of_kinds
from everlog.projections.search_caches import SearchCaches
from everlog.projections.sql_catalogue import CHANGES, PROJECTIONS, batch_query, context_by_bounds, macro, sql
from everlog.store import LogReader, batch_of
from everlog.store.base.arrow_values import text_array
from everlog.store.base.lazy_pyarrow import pc


def _is_call_now(name: str, one: Wanted) -> bool:
    return name == "context_window" and one[1] == HEAD and len(one) == 3


def _free(caches: SearchCaches, hot: HotDatabase) -> None:
    caches.clear()
    hot.close()


class Projections:
    """All projections over the records that were added. Not thread-safe: one host, one engine."""

    def __init__(self, *, threads: int = THREADS, memory_mb: int = MEMORY_MB) -> None:
        # Only an engine needs these two.
        from everlog.projections.hot.kept_contexts import KeptContexts
        from everlog.projections.hot.row_sizes import RowSizes

        self._hot = HotDatabase(
            sql, few=FEW_RECORDS, few_agents=FEW_AGENTS, optimizers=HOT_OPTIMIZERS, threads=threads,
            memory_mb=memory_mb,
        )  # fmt: skip
        self._pending: list[Record] = []  # added, and not inserted before a query needs them
        self._pending_bytes = 0
        self.resumed = ResumedAgents()
        self.contexts = KeptContexts(CONTEXTS_BYTES_MAX)
        self.caches = SearchCaches()
        """Memory of searches, filled with the records that are added."""
        self._held: set[str] = set()  # agents with rows
        self._altered: set[str] = set()  # agents with records that change how others are shown
        self._sizes = RowSizes()
        self._changed = 0  # rows added and dropped since the last compaction
        self._compact_at = COMPACT_ROWS_MIN
        # The database and its function hold each other: without this, an engine that is dropped would stay for good.
        self._free = weakref.finalize(self, _free, self.caches, self._hot)

    def close(self) -> None:
        """Free the memory. Idempotent. An engine that is dropped, or open when the process ends, closes itself."""
        self._free()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, records: Sequence[Record]) -> None:
        """Add the records of one group of commits. Raise duckdb.Error, also later, from the next query or `flush`.

        The records wait for the next query, so that the commits between two queries are one insert: in one transaction,
        all of them or none.
        """
        if records:
            # First: a summary that was undone may need records that a state does not have.
            self._complete(self.resumed.reaching([(r.agent_id, r.payload) for r in records if r.type in SUMMARIES]))
            records = [upcast_record(record) for record in records]
            self._pending.extend(records)
            self._held.update([record.agent_id for record in records])
            self._altered.update([record.agent_id for record in records if record.type in CHANGES])
            self.caches.note(records)
            self.contexts.note(records)
            self._pending_bytes += self._sizes.note(records)
            self._changed += len(records)
            if len(self._pending) >= PENDING_RECORDS_MAX or self._pending_bytes >= PENDING_BYTES_MAX:
                self.flush()
            self._compact_if_due()

    @property
    def pending(self) -> set[str]:
        """Names of agents with records that were added, and that the next query inserts."""
        return {record.agent_id for record in self._pending}

    def flush(self) -> None:
        """Insert the records that wait. Raise duckdb.Error: they still wait, and each query raises the error."""
        if not self._pending:
            return
        pending, self._pending = self._pending, []
        try:
            self._add([batch_of(pending)], OlderRowChanges.by(pending))
        except duckdb.Error:
            self._pending = pending
            raise
        self._pending_bytes = 0

    def load(self, table: pa.Table) -> None:
        """Add many records at once: an Arrow table of the log's schema, in commit order."""
        if table.num_rows:
            self.caches.forget(self._load(table))

    def _load(self, table: pa.Table) -> list[str]:
        """Add these records, of which searches may have the words already. Return the names of their agents."""
        table = upcast_table(table)
        kinds = table.column("type").to_pylist()
        births = [birth for birth in values_of_kinds(table, kinds, ("agent_created",), "seq") if birth[1] > 1]
        summaries = values_of_kinds(table, kinds, SUMMARIES, "payload")
        self.flush()
        self._complete(self.resumed.reaching(summaries))
        count = "count_all" if not COUNTED.isdisjoint(kinds) else None
        self._add(table.to_batches(), OlderRowChanges(births, count))
        self._sizes.note_table(table)
        return self._note(table)

    def resume(self, rows: pa.Table, readers: Mapping[str, LogReader]) -> None:
        """Continue from states, the result of `states`. For questions about now they replace all records.

        A question that needs more of an agent than its state makes the engine read all the agent's records, once, by
        its reader.
        """
        self.restore(rows)
        self.resumed.note(rows, readers)

    def restore(self, rows: pa.Table) -> None:
        """Add state rows of any agents."""
        self._hot.states.insert(rows)
        self.caches.forget(self._note(rows))

    def _note(self, added: pa.Table) -> list[str]:
        """Take note of rows that were added. Return the names of their agents."""
        agents: list[str] = added.column("agent_id").unique().to_pylist()
        self._held.update(agents)
        self.contexts.forget(agents)
        altering = added.filter(pc.is_in(added.column("type"), text_array(sorted(CHANGES))))
        self._altered.update(altering.column("agent_id").unique().to_pylist())
        self._changed += added.num_rows
        return agents

    def states(self, agents: Sequence[str]) -> pa.Table:
        """Return the state of each agent: rows of `records`, by agent and seq, that are enough to continue from."""
        self.flush()
        return self._hot.states.found(batch_query("state"), [list(agents), [HEAD] * len(agents)])

    def surplus(self, bytes_max: int) -> list[str]:
        """Return up to SHRUNK_AT_ONCE agents to `shrink`; none if at most `bytes_max` bytes came since their states."""
        return self._sizes.longest_unread(bytes_max, SHRUNK_AT_ONCE)

    def shrink(self, readers: Mapping[str, LogReader]) -> None:
        """Replace the rows of these agents by their states, as if they had been resumed. What searches keep of them
        stays. Raise duckdb.Error: nothing has changed.
        """
        rows = self.states(agents := list(readers))
        with self._hot.transaction():
            dropped = self._hot.updates.delete(agents)
            self._hot.states.insert(rows)
        self._leave(agents)
        self._changed += dropped
        self._note(rows)
        self.resumed.note(rows, readers)
        self._compact_if_due()

    def _complete(self, agents: Collection[str] | None) -> None:
        """Load all records of these agents (None: of all), as if they had not been resumed from a state."""
        for agent_id, head in self.heads(self.resumed.among(agents)).items():
            records = self.resumed.records(agent_id, head)
            self._drop([agent_id])
            self._load(records)
        self._sizes.note_read(agents or ())

    def heads(self, agents: Sequence[str]) -> dict[str, int]:
        """Return the newest seq of each of these agents that has records here."""
        if not agents:
            return {}
        newest = "SELECT agent_id, max(seq) AS seq FROM records WHERE list_contains(?, agent_id) GROUP BY agent_id"
        return {row["agent_id"]: row["seq"] for row in self._query(newest, [list(agents)])}

    def _add(self, batches: Sequence[pa.RecordBatch], changes: OlderRowChanges) -> None:
        """Insert the batches, and update older rows that the new ones change, in one transaction."""
        self._hot.insert.set(batches)
        try:
            if not any(changes) and self._hot.insert.is_one_statement:
                self._hot.insert.run()
                return
            with self._hot.transaction():
                self._hot.insert.run()
                self._hot.updates.end_lives(changes.births)
                if changes.counting is not None:
                    self._hot.updates.count(changes.counting)
        finally:
            self._hot.insert.set(())

    def forget(self, agent_id: str) -> None:
        """Drop the rows of one agent, as if they had never been added."""
        self.forget_many([agent_id])

    def forget_many(self, agents: Sequence[str]) -> None:
        """Drop the rows of these agents, as if they had never been added."""
        gone = frozenset(agents)
        self._pending = [record for record in self._pending if record.agent_id not in gone]
        self.caches.forget(agents)
        self._drop(agents)
        self._compact_if_due()

    def _drop(self, agents: Sequence[str]) -> None:
        """Drop the inserted rows of these agents. What searches keep of them stays."""
        self._changed += self._hot.updates.delete(agents)
        self._leave(agents)

    def _leave(self, agents: Sequence[str]) -> None:
        """Know nothing any more of the rows of these agents."""
        self._held.difference_update(agents)
        self._altered.difference_update(agents)
        self.contexts.forget(agents)
        self._sizes.forget(agents)
        self.resumed.forget(agents)

    def _compact_if_due(self) -> None:
        if self._changed >= self._compact_at:
            self.compact()

    def rest(self) -> None:
        """Give back the memory that only work needs."""
        self.caches.rest()
        self.contexts.rest()
        self.compact()

    def compact(self) -> None:
        """Compress added rows, and free the memory of dropped rows and of finished queries. Takes about 1 us for each
        row, and 6 us for each query since the last time. The engine also compacts itself from time to time.
        """
        self._hot.compact()
        left = self._query("SELECT count(*) AS n FROM records")[0]["n"]
        self._changed, self._compact_at = 0, max(COMPACT_ROWS_MIN, left)

    def batch(self, name: str, wanted: Sequence[Wanted]) -> list[Row]:
        """Return the rows of projection `name` for each (agent, as_of) of `wanted`, in the order of the log.

        There is one query for all of them. Times are microseconds UTC.
        """
        columns = self._columns(name, wanted)
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        place = place_of(columns)
        return sorted(rows, key=itemgetter(place)) if place else rows

    def answers(self, name: str, wanted: Sequence[Wanted]) -> list[Rows | KeptRows]:
        """Return one answer, the rows that `rows` returns, for each (agent, as_of) of `wanted`, in its order.

        With a turn in each of `wanted`, the context is that of a call in this turn. There is one query for all that are
        not kept. The answers share memory: do not keep them for long.
        """
        distinct = list(dict.fromkeys(wanted))
        calls = [one for one in distinct if _is_call_now(name, one) and one[0] not in self._altered]
        found: dict[Wanted, Rows | KeptRows] = {**self.contexts.answers(calls, self._read_contexts)}
        others = [one for one in distinct if one not in found]
        if others:
            found |= zip(others, answers(self._columns(name, others), others), strict=True)
        return [found[one] for one in wanted]

    def known(self, name: str, one: Wanted) -> KeptRows | None:
        """Return the rows of one of `answers` if they take no query; else None."""
        return self.contexts.find(one) if _is_call_now(name, one) else None

    def _read_contexts(self, agents: Sequence[str]) -> Iterator[tuple[str, Iterator[tuple[Any, ...]]]]:
        """Yield the rows of agents' contexts as of now in any turn, by their bounds: values of `KEPT_COLUMNS`."""
        self.flush()
        bounds = self.contexts.bounds
        if unknown := bounds.unknown(agents):
            statement = self._statement("context_bounds", few=self._few(unknown), changed=False)
            found = self._hot.db.execute(statement, [unknown, [HEAD] * len(unknown)]).fetchall()
            bounds.keep(unknown, found)
        statement = self._hot.parsed.parsed(context_by_bounds(few=self._few(agents)))
        columns = self._hot.columns(statement, bounds.given(agents, HEAD), many=len(agents) > FEW_AGENTS)
        for agent_id, rows in zip(agents, answers(columns, [(name, HEAD) for name in agents]), strict=True):
            yield agent_id, rows.values(*KEPT_COLUMNS)

    def _columns(self, name: str, wanted: Sequence[Wanted]) -> dict[str, list[Any]]:
        """Return the columns of a projection."""
        parameters: list[list[Any]] = [list(values) for values in zip(*wanted, strict=True)] or [[], []]
        agents, moments = parameters[:2]
        is_now = all(as_of == HEAD for as_of in moments)
        self.flush()
        if not (is_now and name in OF_A_STATE):
            self._complete(agents)
        changed = not self._altered.isdisjoint(agents)
        statement = self._statement(name, few=self._few(wanted), changed=changed, in_turns=len(parameters) > 2)
        return self._hot.columns(statement, parameters, many=len(wanted) > FEW_AGENTS)

    def _few(self, wanted: Sequence[object]) -> bool:
        """Return True if selecting the rows of these agents first is worth its 0.3 ms."""
        return len(wanted) <= FEW_AGENTS and len(self._held) >= MANY_AGENTS

    def _statement(
        self, name: str, *, few: bool, changed: bool, in_turns: bool = False, rest: Sequence[object] = ()
    ) -> duckdb.Statement:
        """Return the batched query, parsed once. DuckDB still plans a query each time that it reads a table."""
        text = batch_query(name, few=few, changed=changed, in_turns=in_turns)
        return self._hot.parsed.plain(text, [["-"], [0], *([[0]] if in_turns else []), *rest])

    def rows(self, name: str, agent_id: str, as_of: int = HEAD) -> list[Row]:
        """Return the rows of projection `name` for one agent, as of a seq (inclusive): a batch of one."""
        return self.batch(name, [(agent_id, as_of)])

    def search(self, name: str, agent_id: str, as_of: int, *parameters: object) -> list[Row]:
        """Return the rows of one agent's search, in the order of its SQL; `parameters` follow the agents and as_of."""
        return self._query(self._searching(name, [agent_id], parameters), [[agent_id], [as_of], *parameters])

    def search_many(self, name: str, wanted: Sequence[tuple[str, int]]) -> list[Row]:
        """Return the rows of a search for each (agent, as_of) of `wanted`, in the order of its SQL: one query."""
        agents, moments = [agent_id for agent_id, _ in wanted], [as_of for _, as_of in wanted]
        return self._query(self._searching(name, agents, ()), [agents, moments])

    def _searching(self, name: str, agents: Sequence[str], rest: Sequence[object]) -> duckdb.Statement:
        self.flush()
        self._complete(agents)
        changed = not self._altered.isdisjoint(agents)
        return self._statement(name, few=self._few(agents), changed=changed, rest=rest)

    def query(
        self, statement: str, parameters: Sequence[object] = (), agents: Sequence[str] | None = None
    ) -> list[Row]:
        """Return the rows of any SELECT over records of these `agents`; None: of all agents."""
        self._complete(agents)
        return self._query(statement, parameters)

    def _query(self, statement: str | duckdb.Statement, parameters: Sequence[object] = ()) -> list[Row]:
        self.flush()
        return self._hot.rows(statement, parameters)

    def sql(self, statement: str, parameters: Sequence[object] = ()) -> list[Row]:
        """Return the rows of a SELECT that a person wrote. It can read `records` and a macro for each projection."""
        self._define_macros()
        return self.query(plain_text(self._hot.db, statement, parameters), parameters)

    def execute(self, statement: str, parameters: Sequence[object] = ()) -> None:
        """Run a statement that returns no rows."""
        self.flush()
        self._hot.db.execute(statement, list(parameters))

    def checksum(self, name: str, agent_id: str, as_of: int = HEAD) -> str:
        """Return a digest of a projection's rows that does not depend on their order: equal tables, equal checksums."""
        statement = (
            f"SELECT count(*) AS n, coalesce(bit_xor(hash(answer)), 0) AS h FROM ({batch_query(name)}) AS answer"
        )
        row = self.query(statement, [[agent_id], [as_of]], [agent_id])[0]
        return f"{row['n']}:{row['h']:016x}"

    def _define_macros(self) -> None:
        if not self._hot.for_people:
            self._hot.open_to_people([macro(name) for name in PROJECTIONS])
