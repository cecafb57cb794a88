"""Query the records of the whole fleet, or of one tenant, with one SELECT over views. The engine can only read, by
construction.

The views are SQL files in `sql/fleet/`, set-oriented: one pass over millions of rows. The files in `sql/` serve a few
agents at a time, as of a seq. A law checks that both mean the same. The engine has no table of its own that lasts, and
may open no other files than its own sealed ones, so that a query has nothing to change. The engine of a tenant has a
copy of that tenant's records, and may open no file.

Used by `actors/reports` and `everlog sql`.
"""

import re
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Self

import duckdb
import msgspec
import pyarrow as pa

from everlog.events import BadInput, CorruptLog, EverlogError, StoreError
from everlog.projections.fleet.columns import (
    ArrowRows,
    as_texts,
    cast,
    columns_of,
    figures_in,
    is_odd,
    plain,
    quoted,
    records_in,
    stopper,
)
from everlog.projections.fleet.lineage_tables import forks_table, lineage_table, lives_table, names_table
from everlog.projections.price_sql import COST, COST_AT, VIEW, ListedPrice, price_list, price_of
from everlog.projections.projection_constants import FLEET_MEMORY_MB, FLEET_SCRATCH_MB
from everlog.projections.query_hints import hinted
from everlog.projections.sql_catalogue import fleet_view, sql

VIEWS = (
    "records",
    "agents",
    "messages",
    "turns",
    "steps",
    "model_calls",
    "function_calls",
    "memory_history",
    "pressure",
    "summaries",
    "heartbeats",
    "failures",
)
"""Names of all views, in the order of their creation."""
CURRENT_VIEWS = (
    "agent_messages",
    "approvals",
    "core_memory",
    "background",
    "memories",
    "facts",
    "groups",
    "insights",
    "labels",
    "memory_sources",
    "outdated",
    "entities",
    "mentions",
    "plan_items",
    "importance",
    "derivations",
)
"""Views of what agents remember now, and of calls that wait: projections of the same names, for all agents in their
current incarnation.
"""
NAMED_VIEWS = (*VIEWS, *CURRENT_VIEWS, "prices")
"""Names of everything that a query may name."""
NEEDS = {"model_calls": "prices", "cost_of": "prices", "price_of": "prices", "pressure": "read_through",
         "current_records": "read_through"}  # fmt: skip
"""Name of what must be made before each of these can be."""
ROWS_AT_ONCE = 8_192
"""Number of rows of an answer that are fetched at a time."""

_BIRTHS = """SELECT agent_id, list(seq ORDER BY seq) FROM rare WHERE type = 'agent_created' AND seq > 1 AND {wanted}
GROUP BY agent_id ORDER BY agent_id"""
_MARKS = """SELECT count(*) FILTER (type = 'records_erased'), count(*) FILTER (type = 'agent_forked')
FROM rare WHERE type IN ('records_erased', 'agent_forked')"""
_FORKS = """SELECT agent_id, payload->>'$.parent', (payload->>'$.parent_seq')::BIGINT
FROM rare WHERE type = 'agent_forked' AND {wanted} ORDER BY agent_id"""
"""Forks up to the given time. Records of forks are never erased, so each names its parent."""
_LIVED = """SELECT r.*, coalesce(l.life, 1)::BIGINT AS life, {erased} AS erased
FROM ({source}) r LEFT JOIN lives l ON l.agent_id = r.agent_id AND r.seq >= l.first AND r.seq < l.next"""
_LIVED_ONCE = "SELECT *, 1::BIGINT AS life, {erased} AS erased FROM ({source})"
_READ_THROUGH = """FROM lived UNION ALL
SELECT r.* REPLACE (a.agent_id AS agent_id, 1::BIGINT AS life)
FROM ({lived}) r JOIN lineage a ON a.ancestor = r.agent_id AND a.life = r.life AND r.seq <= a.upto"""
"""Each agent's records, and those of its ancestors that belong to it, under its name. A fork begins in life 1."""
_CURRENT = """SELECT * EXCLUDE (life, erased) REPLACE (event_id::VARCHAR AS event_id, cause::VARCHAR AS cause),
    9223372036854775807 AS ended, type IN ('user_message', 'message_sent') AND NOT erased AS said,
    if(type IN ('memory_edited', 'block_removed') AND NOT erased, 'block:' || (payload->>'$.label'), NULL) AS slot,
    NULL AS kept_from, NULL AS tokens, NULL AS ratio, NULL AS cached
FROM read_through r ANTI JOIN lives l ON l.agent_id = r.agent_id AND l.life > r.life
WHERE NOT starts_with(agent_id, 'source:') AND NOT starts_with(agent_id, 'block:')"""
"""Records of each agent's current incarnation: the columns of `records.sql` that views read; no slot but blocks."""
_IS_ERASED = "starts_with(payload, '{\"erased\":true')"
_BOUND = "FROM query('{query}') LIMIT 0"
"""Query as a part of another: there DuckDB refuses every statement but SELECT, and COPY in a WITH clause. Nothing is
run.
"""
_WORD = re.compile(r"\w+")
_PLACE = re.compile(r"LINE (\d+): (.*?)\n( *\^)", re.DOTALL)
"""DuckDB's excerpt of a query: the number of a line, the line, and the caret below it."""
_SHOW_TABLES = re.compile(r"\s*SHOW\s+TABLES\s*;?\s*", re.IGNORECASE)
"""Query that lists the views; DuckDB would also list the tables that the views are made of."""
_FAILED = (duckdb.Error, pa.ArrowException, OSError, MemoryError)
"""Errors of an answer while it is fetched: Arrow wraps DuckDB's errors in its own."""


DamageCheck = Callable[[], CorruptLog | None]
"""Function that returns the damage of a file, if reading failed because of it."""


class QueryLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of the resources of a query over the fleet."""

    threads: int | None = None
    """Number of threads; None: one for each processor."""
    memory_mb: int = FLEET_MEMORY_MB
    scratch_mb: int = FLEET_SCRATCH_MB
    """Maximum MB on disk for data that does not fit into the memory."""


QUERY_LIMITS = QueryLimits()


class FleetViews:
    """Views of `VIEWS` over sealed files and records that are not sealed. A view is made when a query names it. Not
    thread-safe.
    """

    def __init__(
        self,
        paths: Sequence[str],
        fresh: pa.Table,
        *,
        upto: int | None = None,
        agent_id: str | None = None,
        tenant: str = "",
        opened: Callable[[Callable[[], None]], None] = lambda _: None,
        rare: Sequence[str] | None = None,
        older: Collection[str] = (),
        limits: QueryLimits = QUERY_LIMITS,
        damage: DamageCheck = lambda: None,
        prices: Callable[[], Sequence[ListedPrice]] = tuple,
        names: Mapping[str, str] | None = None,
    ) -> None:
        """Make the views. `paths` are sealed files, which have the columns of `FIGURES`;
        `fresh` are records without these.

        `rare`: those of `paths` that may hold records of `RARE_KINDS`; None: all. `older`: those of `paths` that were
        written before sealed files had `f_owed`.
        `upto`: only records written until then (microseconds UTC, inclusive). `agent_id`: only records of this agent.
        `tenant`: only records of the streams whose names begin with this prefix, under the names without it: see
        `tenant_records`; empty: all. `opened` gets functions that stop what runs, from another thread.
        `damage` is called to find out whether a file is the reason of a failure.
        `prices` is called by a query that needs them: the first that fits a model counts.
        `names`: newest name of each agent that was given another one.

        The files must exist until the views are closed. Raise CorruptLog, BadInput.
        """
        self._damage = damage
        self._scratch = tempfile.TemporaryDirectory(prefix="everlog-sql-")
        config = {
            "memory_limit": f"{limits.memory_mb}MB",
            "max_temp_directory_size": f"{limits.scratch_mb}MB",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "python_enable_replacements": "false",
            "preserve_insertion_order": "false",
            **({} if limits.threads is None else {"threads": str(limits.threads)}),
        }
        self._db = duckdb.connect(":memory:", config={**config, "temp_directory": self._scratch.name})
        self._unmade: dict[str, Callable[[], list[str]]] = {"prices": lambda: _price_statements(prices())}
        self._unmade["current_records"] = lambda: [f"CREATE VIEW current_records AS {_CURRENT}"]
        self._unmade |= {view: partial(_view_statements, view) for view in (*VIEWS, *CURRENT_VIEWS)}
        """Statements that make the views that no query has named yet. Making all of them takes longer than a count."""
        try:
            opened(stopper(self._db))
            if tenant:
                # Imported here: a query of the operator starts with a module less.
                from everlog.projections.fleet.tenant_records import names_of_tenant, tenant_records

                names = names_of_tenant(names or {}, tenant)
                with tenant_records(paths, ArrowRows(fresh), tenant, config, opened) as records:
                    self._keep(records)
                paths, rare, older = (), (), ()
            else:
                self._db.register("fresh", ArrowRows(fresh))
            self._db.register("given_names", ArrowRows(names_table(names or {})))
            self._make(paths, paths if rare is None else rare, older, upto, agent_id)
        except _FAILED as error:
            self.close()
            raise _error(error, damage) from error
        except KeyboardInterrupt:  # stopped before it began
            self.close()
            raise

    def _make_views(self, names: Collection[str] = NAMED_VIEWS) -> None:
        """Make views that are not made yet: those of these names, and what they need."""
        named = {*names}
        if not named.isdisjoint(CURRENT_VIEWS):
            named |= {"current_records", "read_through"}
        named |= {NEEDS[name] for name in names if name in NEEDS}
        for name in [name for name in self._unmade if name in named]:
            for statement in self._unmade.pop(name)():
                self._db.execute(statement)

    def _keep(self, records: pa.RecordBatchReader) -> None:
        """Copy the records of a tenant into this engine, which uses its folder for what its memory cannot hold."""
        self._db.register("arriving", records)
        self._db.execute("CREATE TABLE fresh AS FROM arriving")
        self._db.unregister("arriving")

    def _make(
        self, paths: Sequence[str], rare: Sequence[str], older: Collection[str], upto: int | None, agent_id: str | None
    ) -> None:
        run = self._db.execute
        run("SET TimeZone = 'UTC'")
        if paths:
            run(f"SET allowed_paths = [{quoted(paths)}]")
        # From here on the engine opens no file but the sealed ones.
        # The order matters: the paths cannot be changed afterwards.
        run("SET enable_external_access = false")
        sealed = figures_in(paths, older, sql("shared/owed"))
        run(f"CREATE VIEW everything AS {sql('fleet/figured')}{sealed}")
        run(f"CREATE VIEW rare AS FROM fresh{records_in(rare)}")
        self._make_lives(upto, agent_id)
        # Last, so that a query cannot lift the limits above.
        run("SET lock_configuration = true")

    def _make_lives(self, upto: int | None, agent_id: str | None) -> None:
        """Make the tables of incarnations and of forks' ancestors, and the views that they give.
        The tables are computed once, and cost nothing if they are empty.
        """
        run = self._db.execute
        by_then = "true" if upto is None else f"recorded_at <= make_timestamptz({upto})"
        of_agent = "true" if agent_id is None else "agent_id = '" + agent_id.replace("'", "''") + "'"
        wanted = f"{by_then} AND {of_agent}"
        erased, forked = run(_MARKS).fetchall()[0]
        found = run(_FORKS.format(wanted=by_then)).fetchall() if forked else []
        forks = {name: (parent, cut) for name, parent, cut in found}
        births = dict(run(_BIRTHS.format(wanted=by_then if forks else wanted)).fetchall())
        mine = {name: cut for name, cut in forks.items() if agent_id in (None, name)}
        self._db.register("lives", ArrowRows(lives_table(births)))
        self._db.register("forks", ArrowRows(forks_table(mine)))
        self._db.register("lineage", ArrowRows(lineage_table(forks, births, mine)))
        lived = partial((_LIVED if births else _LIVED_ONCE).format, erased=_IS_ERASED if erased else "false")
        run(f"CREATE VIEW lived AS {lived(source=f'FROM everything WHERE {wanted}')}")
        source = lived(source=f"FROM everything WHERE {by_then}")
        through = _READ_THROUGH.format(lived=source) if mine else "FROM lived"
        self._unmade = {"read_through": lambda: [f"CREATE VIEW read_through AS {through}"]} | self._unmade

    def close(self) -> None:
        """Free the memory and the temporary folder. Idempotent."""
        self._db.close()
        self._scratch.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def interrupt(self) -> None:
        """Stop the query that runs in another thread."""
        self._db.interrupt()

    def table(self, query: str) -> pa.Table:
        """Return the whole answer of one SELECT. Raise BadInput, CorruptLog."""
        schema, batches = self.select(query)
        return pa.Table.from_batches(list(batches), schema)

    def select(self, query: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """Return the columns of one SELECT, and its rows as they arrive.

        Raise BadInput for any other statement and for a query that cannot be answered; CorruptLog. Both can also be
        raised while the rows are fetched.
        """
        if _SHOW_TABLES.fullmatch(query):
            query = f"SELECT unnest({sorted(NAMED_VIEWS)}) AS name"
        try:
            self._make_views(_WORD.findall(query.lower()))
            statements = self._db.extract_statements(query)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                kinds = " and ".join(statement.type.name for statement in statements) or "nothing"
                raise BadInput(
                    f"The query has to be one SELECT; this is {kinds}. Nothing was run: views are only read. To keep "
                    "an answer in a file use --format and --out."
                )
            self._db.sql(_BOUND.format(query=query.replace("'", "''")))
            reader = self._as_written(query).to_arrow_reader(ROWS_AT_ONCE)
        except _FAILED as error:
            raise _error(error, self._damage, lambda said: hinted(said, query, self.columns())) from error
        schema = pa.schema([plain(field) for field in reader.schema])
        return schema, self._fetched(reader, schema)

    def columns(self) -> dict[str, list[tuple[str, str]]]:
        """Return the columns of each view, `prices` included: name and type, in their order."""
        return columns_of(self._db, NAMED_VIEWS, self._make_views)

    def excerpt(self, query: str) -> str:
        """Return the line of a refused query with the fault, and a caret below its place, as DuckDB writes them.

        Return an empty text if DuckDB names no place. Nothing is run.
        """
        try:
            self._make_views(_WORD.findall(query.lower()))
            statements = self._db.extract_statements(query)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                return ""
            # Only EXPLAIN of the query itself tells the place: as a part of another query the text is a literal.
            self._db.execute(f"EXPLAIN\n{query}")
        except duckdb.ParserException as error:
            return _place(error, 0)
        except duckdb.Error as error:
            return _place(error, 1)
        return ""

    def _as_written(self, query: str) -> duckdb.DuckDBPyRelation:
        """Run the query, with columns of types that few tools know as texts."""
        found = self._db.sql(query)
        odd = [is_odd(kind) for kind in found.types]
        if not any(odd):
            return found
        return self._db.sql(as_texts(query, found.columns, odd))

    def _fetched(self, reader: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        try:
            for batch in reader:
                yield batch if schema == reader.schema else cast(batch, schema)
        except _FAILED as error:
            raise _error(error, self._damage) from error


def _view_statements(view: str) -> list[str]:
    return [f"CREATE VIEW {view} AS {fleet_view(view) if view in CURRENT_VIEWS else sql(f'fleet/{view}')}"]


def _price_statements(prices: Sequence[ListedPrice]) -> list[str]:
    return [price_list(prices), price_of(prices), COST_AT, COST, VIEW]


_OF_THE_QUERY = (
    "Binder Error",
    "Catalog Error",
    "Conversion Error",
    "Out of Range Error",
    "Parser Error",
    "Syntax Error",
)
"""Beginnings of DuckDB's errors that are the query's fault. Any other error may be the fault of a file."""


def _error(error: Exception, damage: DamageCheck, hint: Callable[[str], str] = str) -> EverlogError:
    """Return DuckDB's error as one of everlog's, with advice. Raise KeyboardInterrupt if the query was interrupted.

    `hint` adds to the message of a query that could not be understood.
    """
    said = _first(error)
    if "Query interrupted" in said or said.startswith("INTERRUPT"):
        raise KeyboardInterrupt from error
    if isinstance(error, MemoryError) or "Out of Memory Error" in said or "bad_alloc" in said:
        return BadInput(
            f"The query needs more memory than it may have: {said.rstrip('.')}. Nothing was changed. Ask for fewer "
            "columns or rows, aggregate before you sort, or give it more (--memory)."
        )
    if "Too many open files" in said:
        return StoreError(f"{said.rstrip('.')}: this process may have too few files open at once. Raise `ulimit -n`.")
    if "is not an table" in said or "a COPY statement" in said:
        return BadInput(f"The query would write, and views are only read. Nothing was changed. ({said})")
    if "disabled" in said:
        return BadInput(f"The query may read the views of the fleet and nothing else: {said}")
    found = None if said.startswith(_OF_THE_QUERY) else damage()
    return found or BadInput(f"The query failed: {hint(said)}")


def _first(error: Exception) -> str:
    """Return DuckDB's message without the excerpt that marks the position."""
    return " ".join(str(error).split("\n\n", 1)[0].split())


def _place(error: duckdb.Error, lines_before: int) -> str:
    """Return DuckDB's excerpt, or an empty text. The user's query begins after `lines_before` lines."""
    found = _PLACE.search(str(error))
    if found is None:
        return ""
    head, own = f"LINE {found[1]}: ", f"LINE {int(found[1]) - lines_before}: "
    return f"{own}{found[2]}\n{' ' * (len(found[3]) - 1 + len(own) - len(head))}^"
