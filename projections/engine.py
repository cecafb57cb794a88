"""One DuckDB in memory, filled from the log, from which every projection is read.

It holds nothing that the log does not: it can be dropped at any moment and filled again. Rows of a commit are added in
one transaction. Nothing but SQL decides what the rows mean; see `sql/`.
"""

import atexit
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any, Self

import duckdb
import msgspec
import pyarrow as pa

from events import CATALOGUE, Record, current, is_erased
from store import SCHEMA, batch_of, records_of
from store.lazy import pc

from .catalogue import PROJECTIONS, batched, live, macro, sql
from .constants import MEMORY_MB, THREADS

Row = dict[str, Any]

HEAD = 2**63 - 2
"""`as_of` for "now": above every seq, below the `ended` of the living."""

_HOT_OPTIMIZERS = frozenset(
    {"build_side_probe_side", "cte_inlining", "deliminator", "filter_pushdown", "unnest_rewriter", "unused_columns"}
)
"""What the agent's own queries gain from. The others cost 0.8 ms a query and gain nothing over a window of records."""
_OLD_SHAPES = "SELECT 1 FROM incoming WHERE " + " OR ".join(
    f"(type = '{kind}' AND version < {cls.version})" for kind, cls in CATALOGUE.items() if cls.version > 1
)
_COUNTED = ("memory_edited", "agent_configured", "summary", "summary_expanded")
"""Kinds of records whose moment the memory header tells of."""
_SUMMARIES = ("summary", "summary_expanded")
_LIVE = ("context_window",)
"""Projections whose rows of now are all in the hot table."""
_OF_A_STATE = frozenset(
    {
        "configurations", "context_window", "core_memory", "memory_pressure", "open_turns", "standing", "timers",
        "turn_records",
    }
)  # fmt: skip
"""Projections whose rows of now a state is enough for. Any other reads all records, however long ago."""
_SUMMARY_ROWS = "SELECT agent_id, payload FROM incoming WHERE type IN ('summary', 'summary_expanded')"
_SUMMARIZED = "SELECT DISTINCT agent_id FROM incoming WHERE type IN ('summary', 'summary_expanded')"
_BIRTHS = "SELECT agent_id, seq FROM incoming WHERE type = 'agent_created' AND seq > 1 ORDER BY seq"


History = Callable[[int], pa.Table]
"""All records of an agent up to a seq (inclusive), in commit order."""


def kept_from(rows: pa.Table) -> dict[str, int]:
    """The first seq that the context of each agent shows, by its newest summary among `rows` of hot tables."""
    summaries = rows.filter(pc.equal(rows.column("slot"), "summary")).select(["agent_id", "seq", "kept_from"])
    return {row["agent_id"]: row["kept_from"] for row in summaries.sort_by("seq").to_pylist()}


def shown_from(payload: str) -> int:
    """The first seq that a summary, or one that is taken back, leaves in view; none if it was erased."""
    return int(HEAD if is_erased(payload) else msgspec.json.decode(payload).get("kept_from", 0))


class _Incoming:
    """What the prepared insert reads: a relation whose content is the batch set last."""

    def __init__(self) -> None:
        self.batches: Sequence[pa.RecordBatch] = ()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return pa.RecordBatchReader.from_batches(SCHEMA, self.batches).__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return SCHEMA.__arrow_c_schema__()


class Projections:
    """Every projection over the records that were added. Not thread-safe: one host, one engine."""

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
        self._incoming = _Incoming()
        self._db.register("incoming", self._incoming)
        self._db.execute(f"PREPARE add_records AS {sql('add')}")
        self._set_optimizers(keep=_HOT_OPTIMIZERS)
        self._macros = False
        self._resumed: dict[str, History] = {}
        self._kept_from: dict[str, int] = {}
        """Of those that were resumed: the first seq that their state shows."""
        self._prepared: set[str] = set()
        atexit.register(self.close)

    def close(self) -> None:
        """Let go of the memory. Idempotent."""
        atexit.unregister(self.close)
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
            self._complete(self._reaching([(r.agent_id, r.payload) for r in records if r.type in _SUMMARIES]))
            batches = [batch_of([current(record) for record in records])]
            self._add(batches, births, "count_new" if counted else None, summarized)

    def load(self, table: pa.Table) -> None:
        """Add many records at once: an Arrow table of the log's schema, in commit order."""
        if table.num_rows:
            self._incoming.batches = table.to_batches()
            if self._query(_OLD_SHAPES):
                self._incoming.batches = [batch_of([current(record) for record in records_of(table)])]
            births = [(row["agent_id"], row["seq"]) for row in self._query(_BIRTHS)]
            summarized = [row["agent_id"] for row in self._query(_SUMMARIZED)]
            batches = self._incoming.batches
            summaries = self._query(_SUMMARY_ROWS) if self._resumed else []
            self._complete(self._reaching([(row["agent_id"], row["payload"]) for row in summaries]))
            self._add(batches, births, "count_all", summarized)

    def resume(self, agent_id: str, rows: pa.Table, history: History) -> None:
        """Go on from a state, the `states` of an engine before: as good as all records up to its seq, for what is now.

        Who asks for more than a state is enough for makes the engine read the `history`, once.
        """
        self.restore(rows)
        self._resumed[agent_id] = history
        self._kept_from[agent_id] = kept_from(rows).get(agent_id, 0)

    def restore(self, rows: pa.Table) -> None:
        """Add state rows of any agents."""
        self._db.register("resuming", rows)
        self._db.execute("INSERT INTO hot FROM resuming")
        self._db.unregister("resuming")

    def states(self, agents: Sequence[str]) -> pa.Table:
        """What is enough to go on from, of each agent: rows of the hot table, by agent and seq."""
        return self._db.sql(batched("state"), params=[list(agents), [HEAD] * len(agents)]).to_arrow_table()

    def _reaching(self, summaries: Sequence[tuple[str, str]]) -> set[str]:
        """The resumed agents of whose summaries (agent and payload) one shows what their state does not."""
        return {a for a, payload in summaries if a in self._resumed and shown_from(payload) < self._kept_from[a]}

    def _complete(self, agents: Iterable[str]) -> None:
        """Have all records of these agents, as if none had been resumed from a state."""
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
        """Add, and bring up to date what the new rows change in others, in one transaction."""
        self._db.execute("BEGIN")
        try:
            self._db.execute("EXECUTE add_records")
            for birth in births:
                for table in ("hot", "cold"):
                    self._db.execute(sql("end_life").format(table=table), birth)
            if count is not None:
                self._db.execute(sql(count))
            if summarized:
                self._settle(summarized)
            self._db.execute("COMMIT")
        except duckdb.Error:
            self._db.execute("ROLLBACK")
            raise

    def _settle(self, agents: Sequence[str]) -> None:
        """After a summary: what the context of now no longer needs goes cold, what it needs again comes back."""
        for row in self._query(sql("thaw"), [agents]):
            self._db.execute("INSERT INTO hot FROM cold WHERE agent_id = ?", [row["agent_id"]])
            self._db.execute("DELETE FROM cold WHERE agent_id = ?", [row["agent_id"]])
        self._db.execute(f"INSERT INTO settled {live('settle')}", [agents, [HEAD] * len(agents)])
        self._db.execute(
            "INSERT INTO cold SELECT h.* FROM hot h JOIN settled s ON s.agent_id = h.agent_id AND s.seq = h.seq"
        )
        self._db.execute("DELETE FROM hot USING settled s WHERE hot.agent_id = s.agent_id AND hot.seq = s.seq")
        self._db.execute("DELETE FROM settled")

    def forget(self, agent_id: str) -> None:
        """Drop the rows of one agent, as if they had never been added."""
        self._resumed.pop(agent_id, None)
        for table in ("hot", "cold"):
            self._db.execute(f"DELETE FROM {table} WHERE agent_id = ?", [agent_id])

    def batch(self, name: str, wanted: Sequence[tuple[str, int]]) -> list[Row]:
        """Rows of projection `name` for each (agent, as_of) of `wanted`, all in one query, in the order of the log.

        Times come as microseconds UTC.
        """
        is_now = all(as_of == HEAD for _, as_of in wanted)
        if not (is_now and name in _OF_A_STATE):
            self._complete([agent_id for agent_id, _ in wanted])
        now = is_now and name in _LIVE
        prepared = f"live_{name}" if now else f"batch_{name}"
        if prepared not in self._prepared:
            statement = self._without_timestamps((live if now else batched)(name), [["-"], [0]])
            self._db.execute(f"PREPARE {prepared} AS {statement}")
            self._prepared.add(prepared)
        rows = self._query(f"EXECUTE {prepared}({_agents(wanted)}, {[as_of for _, as_of in wanted]})")
        place = next((column for column in ("seq", "turn") if rows and column in rows[0]), None)
        return sorted(rows, key=itemgetter(place)) if place else rows

    def rows(self, name: str, agent_id: str, as_of: int = HEAD) -> list[Row]:
        """Rows of projection `name` for one agent, as of a seq (inclusive): a batch of one."""
        return self.batch(name, [(agent_id, as_of)])

    def query(self, statement: str, parameters: Sequence[object] = ()) -> list[Row]:
        """Rows of any SELECT."""
        self._complete(list(self._resumed))
        return self._query(statement, parameters)

    def _query(self, statement: str, parameters: Sequence[object] = ()) -> list[Row]:
        self._db.execute(statement, list(parameters))
        names = [column[0] for column in self._db.description or ()]
        return [dict(zip(names, row, strict=True)) for row in self._db.fetchall()]

    def sql(self, statement: str, parameters: Sequence[object] = ()) -> list[Row]:
        """Rows of a SELECT that a person wrote: `records` and a macro for each projection can be read."""
        self._define_macros()
        return self.query(self._without_timestamps(statement, parameters), parameters)

    def execute(self, statement: str, parameters: Sequence[object] = ()) -> None:
        """Run a statement that gives no rows back (the tables that a search builds for itself)."""
        self._db.execute(statement, list(parameters))

    def fill(self, name: str, agent_id: str, columns: pa.Table) -> None:
        """Add rows of one agent to a table that a search built for itself; `columns` follow `agent_id` in its order."""
        self._db.register("filling", columns)
        self._db.execute(f"INSERT INTO {name} SELECT ?, * FROM filling", [agent_id])
        self._db.unregister("filling")

    def checksum(self, name: str, agent_id: str, as_of: int = HEAD) -> str:
        """A digest of a projection's rows that does not depend on their order: equal tables, equal checksums."""
        statement = f"SELECT count(*) AS n, coalesce(bit_xor(hash(answer)), 0) AS h FROM ({batched(name)}) AS answer"
        row = self.query(statement, [[agent_id], [as_of]])[0]
        return f"{row['n']}:{row['h']:016x}"

    def _without_timestamps(self, statement: str, parameters: Sequence[object]) -> str:
        """The statement with every point in time as an integer: microseconds UTC, and no time zone library needed."""
        columns = self._query(f"DESCRIBE {statement}", parameters)
        times = [c["column_name"] for c in columns if c["column_type"] == "TIMESTAMP WITH TIME ZONE"]
        if not times:
            return statement
        replaced = ", ".join(f'epoch_us("{name}") AS "{name}"' for name in times)
        return f"SELECT * REPLACE ({replaced}) FROM ({statement})"

    def _set_optimizers(self, keep: frozenset[str] | None) -> None:
        """Run only the optimizers in `keep`; None for all. Planning is half the cost of a query over few rows."""
        names = {row["name"] for row in self._query("SELECT name FROM duckdb_optimizers()")} if keep else set()
        self._db.execute(f"SET disabled_optimizers = '{','.join(sorted(names - (keep or set())))}'")

    def _define_macros(self) -> None:
        if not self._macros:
            self._set_optimizers(keep=None)
            for name in PROJECTIONS:
                self._db.execute(macro(name))
            self._macros = True


def _agents(wanted: Sequence[tuple[str, int]]) -> str:
    """The agents' names as a SQL list: an EXECUTE takes literals only, and saves the planning of the statement."""
    names = ("'" + agent.replace("'", "''") + "'" for agent, _ in wanted)
    return f"[{', '.join(names)}]"
