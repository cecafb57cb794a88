"""Run projections in one DuckDB in memory, which is filled from the log.

The engine contains nothing that is not in the log: it can be dropped at any moment and filled again. Rows of a commit
are added in one transaction. Only SQL decides what the rows mean; see `sql/`. Used by activations, hosts and replay.
Not thread-safe: each host has its own engine.
"""

import atexit
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Self, cast

import duckdb
import msgspec
import pyarrow as pa

from everlog.events import CATALOGUE, Record, is_erased, upcast_record
from everlog.projections.batch_relation import BatchRelation
from everlog.projections.projection_constants import (
    COMPACT_ROWS_MIN,
    FEW_AGENTS,
    HOT_OPTIMIZERS,
    MANY_AGENTS,
    MEMORY_MB,
    OF_A_STATE,
    THREADS,
)
from everlog.projections.rows import Row, Rows, Wanted, answers, place_of
from everlog.projections.search_caches import SearchCaches
from everlog.projections.sql_catalogue import CHANGES, HEAD, PROJECTIONS, batch_query, macro, sql
from everlog.store import SCHEMA, batch_of, records_of
from everlog.store.base.lazy_pyarrow import pc

_COUNTED = ("memory_edited", "block_removed", "agent_configured", "summary", "summary_expanded")  # of the header
_SUMMARIES = ("summary", "summary_expanded")
_LIVE = ("context_records", "context_window")  # all rows of now are hot
_SUMMARIES_OF = "SELECT agent_id, payload FROM incoming WHERE type IN ('summary', 'summary_expanded')"
_BIRTHS = "SELECT agent_id, seq FROM incoming WHERE type = 'agent_created' AND seq > 1 ORDER BY seq"

_PLAIN = {"TIMESTAMP WITH TIME ZONE": 'epoch_us("{0}") AS "{0}"', "UUID": '"{0}"::VARCHAR AS "{0}"'}
"""Conversion of columns of these types into plain Python values."""


HistoryLoader = Callable[[int], pa.Table]
"""Reader of all records of an agent up to a seq (inclusive), in commit order."""


def kept_from(rows: pa.Table) -> dict[str, int]:
    """Return the first seq that the context of each agent shows, by its newest summary among `rows` of hot tables."""
    summaries = rows.select(["agent_id", "seq", "kept_from"]).filter(pc.equal(rows.column("slot"), "summary"))
    return {row["agent_id"]: row["kept_from"] for row in summaries.sort_by("seq").to_pylist()}


def shown_from(payload: str) -> int:
    """Return the first seq that a summary, or the undoing of one, leaves in view; HEAD if it was erased."""
    return int(HEAD if is_erased(payload) else msgspec.json.decode(payload).get("kept_from", 0))


class Projections:
    """All projections over the records that were added. Not thread-safe: one host, one engine."""

    def __init__(self, *, threads: int = THREADS, memory_mb: int = MEMORY_MB, temp_directory: str = "") -> None:
        self._db = duckdb.connect(
            ":memory:",
            config={
                "threads": threads,
                "memory_limit": f"{memory_mb}MB",
                "temp_directory": temp_directory,
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
            },
        )
        self._db.execute("SET TimeZone = 'UTC'")
        self._db.execute(sql("hot"))
        self._incoming = BatchRelation(SCHEMA)
        self._restoring: BatchRelation | None = None
        self._db.register("incoming", self._incoming)
        self._db.execute(f"PREPARE add_records AS {sql('add')}")
        self._set_optimizers(keep=HOT_OPTIMIZERS)
        self._macros = False
        self._resumed: dict[str, HistoryLoader] = {}
        self._kept_from: dict[str, int] = {}  # first seq that the state of a resumed agent shows
        self._statements: dict[tuple[object, ...], duckdb.Statement] = {}
        self.caches = SearchCaches()
        """Memory of searches, filled with the records that are added."""
        self._held: set[str] = set()  # agents with rows
        self._settled: set[str] = set()  # agents of whose rows some may be cold
        self._altered: set[str] = set()  # agents with records that change how others are shown
        self._changed = 0  # rows added and dropped since the last compaction
        self._compact_at = COMPACT_ROWS_MIN
        atexit.register(self.close)

    def close(self) -> None:
        """Free the memory. Idempotent."""
        atexit.unregister(self.close)
        self.caches.clear()
        self._statements.clear()  # DuckDB prints a complaint if statements outlive it
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, records: Sequence[Record]) -> None:
        """Add the records of one group of commits, in one transaction: all of them or none."""
        if records:
            births = [(r.agent_id, r.seq) for r in records if r.type == "agent_created" and r.seq > 1]
            counted = any(record.type in _COUNTED for record in records)
            summarized = sorted({record.agent_id for record in records if record.type in _SUMMARIES})
            # Before the insert: a summary that was undone may need records that a state does not have.
            self._complete(self._reaching([(r.agent_id, r.payload) for r in records if r.type in _SUMMARIES]))
            records = [upcast_record(record) for record in records]
            batches = [batch_of(records)]
            self._add(batches, births, "count_new" if counted else None, summarized)
            self._held.update([record.agent_id for record in records])
            self._altered.update([record.agent_id for record in records if record.type in CHANGES])
            self.caches.note(records)
            self._changed += len(records)
            self._compact_if_due()

    def load(self, table: pa.Table) -> None:
        """Add many records at once: an Arrow table of the log's schema, in commit order."""
        if not table.num_rows:
            return
        batches = table.to_batches()
        shapes = set(zip(table.column("type").to_pylist(), table.column("version").to_pylist(), strict=True))
        if any(version < CATALOGUE[kind].version for kind, version in shapes if kind in CATALOGUE):
            batches = [batch_of([upcast_record(record) for record in records_of(table)])]
        self._incoming.batches = batches
        kinds = {kind for kind, _ in shapes}
        births = self._query(_BIRTHS) if "agent_created" in kinds else []
        summaries = self._query(_SUMMARIES_OF) if not kinds.isdisjoint(_SUMMARIES) else []
        counted = not kinds.isdisjoint(_COUNTED)
        self._complete(self._reaching([(row["agent_id"], row["payload"]) for row in summaries]))
        self._add(
            batches,
            [(row["agent_id"], row["seq"]) for row in births],
            "count_all" if counted else None,
            sorted({row["agent_id"] for row in summaries}),
        )
        self._note(table)

    def resume(self, rows: pa.Table, histories: Mapping[str, HistoryLoader]) -> None:
        """Continue from states, the result of `states`. For questions about now they replace all records.

        A question that needs more of an agent than its state makes the engine read the agent's history, once.
        """
        self.restore(rows)
        shown = kept_from(rows)
        for agent_id, history in histories.items():
            self._resumed[agent_id] = history
            self._kept_from[agent_id] = shown.get(agent_id, 0)

    def restore(self, rows: pa.Table) -> None:
        """Add state rows of any agents."""
        if self._restoring is None or self._restoring.schema != rows.schema:
            self._restoring = BatchRelation(rows.schema)
            self._db.register("restoring", self._restoring)
            self._db.execute("PREPARE restore AS INSERT INTO hot FROM restoring")
        self._restoring.batches = rows.to_batches()
        try:
            self._db.execute("EXECUTE restore")
        finally:
            self._restoring.batches = ()
        self._note(rows)

    def _note(self, added: pa.Table) -> None:
        agents = added.column("agent_id").unique().to_pylist()
        self._held.update(agents)
        self.caches.forget(agents)
        altering = added.filter(pc.is_in(added.column("type"), pa.array(sorted(CHANGES))))
        self._altered.update(altering.column("agent_id").unique().to_pylist())
        self._changed += added.num_rows

    def states(self, agents: Sequence[str]) -> pa.Table:
        """Return the state of each agent: rows of the hot table, by agent and seq, that are enough to continue from."""
        return self._db.sql(batch_query("state"), params=[list(agents), [HEAD] * len(agents)]).to_arrow_table()

    def _reaching(self, summaries: Sequence[tuple[str, str]]) -> set[str]:
        """Return the resumed agents with a summary, among (agent, payload), that shows more than their state has."""
        return {a for a, payload in summaries if a in self._resumed and shown_from(payload) < self._kept_from[a]}

    def _complete(self, agents: Iterable[str]) -> None:
        """Load all records of these agents, as if they had not been resumed from a state."""
        for agent_id in sorted(self._resumed.keys() & set(agents)):
            head = self._query("SELECT max(seq) AS head FROM records WHERE agent_id = ?", [agent_id])[0]["head"]
            records = self._resumed[agent_id](head)
            self.forget(agent_id)
            self.load(records)

    def _add(
        self,
        batches: Sequence[pa.RecordBatch],
        births: Sequence[tuple[str, int]],
        count: str | None,
        summarized: Sequence[str],
    ) -> None:
        self._incoming.batches = batches
        try:
            if not births and count is None:
                self._db.execute("EXECUTE add_records")
            else:
                self._add_and_follow(births, count, summarized)
        finally:
            self._incoming.batches = ()

    def _add_and_follow(self, births: Sequence[tuple[str, int]], count: str | None, summarized: Sequence[str]) -> None:
        """Add the batches, and update older rows that the new ones change, in one transaction."""
        self._db.execute("BEGIN")
        try:
            self._db.execute("EXECUTE add_records")
            for birth in births:
                for table in ("hot", "cold"):
                    self._db.execute(sql("end_life").format(table=table), birth)
            if count is not None:
                self._db.execute(sql(count))
            if summarized:
                self._evict_and_reload(summarized)
            self._db.execute("COMMIT")
        except duckdb.Error:
            self._db.execute("ROLLBACK")
            raise

    def _evict_and_reload(self, agents: Sequence[str]) -> None:
        """Move the rows that the context no longer needs after a summary into `cold`, and back those it needs again."""
        self._settled.update(agents)
        for row in self._query(sql("thaw"), [agents]):
            self._db.execute("INSERT INTO hot FROM cold WHERE agent_id = ?", [row["agent_id"]])
            self._db.execute("DELETE FROM cold WHERE agent_id = ?", [row["agent_id"]])
        changed = not self._altered.isdisjoint(agents)
        settle = batch_query("settle", "hot", few=self._few(agents), changed=changed)
        self._db.execute(f"INSERT INTO settled {settle}", [agents, [HEAD] * len(agents)])
        self._db.execute(
            "INSERT INTO cold SELECT h.* FROM hot h JOIN settled s ON s.agent_id = h.agent_id AND s.seq = h.seq"
        )
        self._db.execute("DELETE FROM hot USING settled s WHERE hot.agent_id = s.agent_id AND hot.seq = s.seq")
        self._db.execute("DELETE FROM settled")

    def forget(self, agent_id: str) -> None:
        """Drop the rows of one agent, as if they had never been added."""
        self.forget_many([agent_id])

    def forget_many(self, agents: Sequence[str]) -> None:
        """Drop the rows of these agents, as if they had never been added."""
        self._held.difference_update(agents)
        self._settled.difference_update(agents)
        self._altered.difference_update(agents)
        self.caches.forget(agents)
        for agent_id in agents:
            self._resumed.pop(agent_id, None)
            self._kept_from.pop(agent_id, None)
        few = len(agents) <= FEW_AGENTS
        among = "list_contains($1::VARCHAR[], agent_id)" if few else "agent_id IN (SELECT unnest($1::VARCHAR[]))"
        for table in ("hot", "cold"):
            dropped = self._db.execute(f"DELETE FROM {table} WHERE {among}", [list(agents)]).fetchone()
            self._changed += cast("tuple[int]", dropped)[0]
        self._compact_if_due()

    def _compact_if_due(self) -> None:
        if self._changed >= self._compact_at:
            self.compact()

    def rest(self) -> None:
        """Give back the memory that only work needs."""
        self.caches.rest()
        self.compact()

    def compact(self) -> None:
        """Compress added rows, and free the memory of dropped rows. Takes about 1 us for each row.
        The engine also compacts itself from time to time.
        """
        self._db.execute("CHECKPOINT")
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

    def answers(self, name: str, wanted: Sequence[Wanted]) -> list[Rows]:
        """Return one answer, the rows that `rows` returns, for each (agent, as_of) of `wanted`, in its order.

        With a turn in each of `wanted`, the context is that of a call in this turn. There is one query for all of them.
        The answers share memory: do not keep them for long.
        """
        return answers(self._columns(name, list(dict.fromkeys(wanted))), wanted)

    def _columns(self, name: str, wanted: Sequence[Wanted]) -> dict[str, list[Any]]:
        """Return the columns of a projection."""
        parameters: list[list[Any]] = [list(values) for values in zip(*wanted, strict=True)] or [[], []]
        agents, moments = parameters[:2]
        is_now = all(as_of == HEAD for as_of in moments)
        if not (is_now and name in OF_A_STATE):
            self._complete(agents)
        hot = (is_now and name in _LIVE) or self._settled.isdisjoint(agents)
        statement = self._statement(
            name, hot=hot, few=self._few(wanted), changed=not self._altered.isdisjoint(agents),
            in_turns=len(parameters) > 2,
        )  # fmt: skip
        if len(wanted) > FEW_AGENTS:
            found = self._db.sql(statement, params=parameters).to_arrow_table()
            return cast("dict[str, list[Any]]", found.to_pydict())
        self._db.execute(statement, parameters)
        names = [column[0] for column in self._db.description or ()]
        rows = self._db.fetchall()
        return dict(zip(names, map(list, zip(*rows, strict=True)) if rows else ([] for _ in names), strict=True))

    def _few(self, wanted: Sequence[object]) -> bool:
        """Return True if selecting the rows of these agents first is worth its 0.3 ms."""
        return len(wanted) <= FEW_AGENTS and len(self._held) >= MANY_AGENTS

    def _statement(
        self, name: str, *, hot: bool, few: bool, changed: bool, in_turns: bool = False, rest: Sequence[object] = ()
    ) -> duckdb.Statement:
        """Return the batched query, parsed once. DuckDB still plans a query each time that it reads a table."""
        if (key := (name, hot, few, changed, in_turns)) not in self._statements:
            text = batch_query(name, "hot" if hot else "records", few=few, changed=changed, in_turns=in_turns)
            examples = [["-"], [0], *([[0]] if in_turns else []), *rest]
            self._statements[key] = self._db.extract_statements(self._plain(text, examples))[0]
        return self._statements[key]

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
        self._complete(agents)
        hot, changed = self._settled.isdisjoint(agents), not self._altered.isdisjoint(agents)
        return self._statement(name, hot=hot, few=self._few(agents), changed=changed, rest=rest)

    def query(
        self, statement: str, parameters: Sequence[object] = (), agents: Sequence[str] | None = None
    ) -> list[Row]:
        """Return the rows of any SELECT over records of these `agents`; None: of all agents."""
        self._complete(self._resumed if agents is None else agents)
        return self._query(statement, parameters)

    def _query(self, statement: str | duckdb.Statement, parameters: Sequence[object] = ()) -> list[Row]:
        self._db.execute(statement, list(parameters))
        names = [column[0] for column in self._db.description or ()]
        return [dict(zip(names, row, strict=True)) for row in self._db.fetchall()]

    def sql(self, statement: str, parameters: Sequence[object] = ()) -> list[Row]:
        """Return the rows of a SELECT that a person wrote. It can read `records` and a macro for each projection."""
        self._define_macros()
        return self.query(self._plain(statement, parameters), parameters)

    def execute(self, statement: str, parameters: Sequence[object] = ()) -> None:
        """Run a statement that returns no rows."""
        self._db.execute(statement, list(parameters))

    def checksum(self, name: str, agent_id: str, as_of: int = HEAD) -> str:
        """Return a digest of a projection's rows that does not depend on their order: equal tables, equal checksums."""
        statement = (
            f"SELECT count(*) AS n, coalesce(bit_xor(hash(answer)), 0) AS h FROM ({batch_query(name)}) AS answer"
        )
        row = self.query(statement, [[agent_id], [as_of]], [agent_id])[0]
        return f"{row['n']}:{row['h']:016x}"

    def _plain(self, statement: str, parameters: Sequence[object]) -> str:
        """Return the statement with times as integers (microseconds UTC) and ids as text: Python needs no library."""
        columns = self._query(f"DESCRIBE {statement}", parameters)
        replaced = ", ".join(
            _PLAIN[c["column_type"]].format(c["column_name"]) for c in columns if c["column_type"] in _PLAIN
        )
        return f"SELECT * REPLACE ({replaced}) FROM ({statement})" if replaced else statement

    def _set_optimizers(self, keep: frozenset[str] | None) -> None:
        """Run only the optimizers in `keep`; None: all. Planning is half the cost of a query over few rows."""
        names = {row["name"] for row in self._query("SELECT name FROM duckdb_optimizers()")} if keep else set()
        self._db.execute(f"SET disabled_optimizers = '{','.join(sorted(names - (keep or set())))}'")

    def _define_macros(self) -> None:
        if not self._macros:
            self._set_optimizers(keep=None)
            for name in PROJECTIONS:
                self._db.execute(macro(name))
            self._macros = True
