"""Ask all agents one SQL question: the query is in the address, so a link is the query. It can only read.

A link that a page of another site leads to is shown, and not run, until its reader presses the button.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from everlog.events import BadInput
from everlog.events.times import iso
from everlog.interfaces.http.console.page_response import HEADERS, page
from everlog.interfaces.http.console.questions.sql_chart import chart_of
from everlog.interfaces.http.core.fleet_queries import QueryRun, over_fleet
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import HttpCall
from everlog.interfaces.http.native.sql import run_sql
from everlog.interfaces.wire.sql import SqlBody
from everlog.projections.fleet_views import FleetViews
from everlog.store import Snapshot

ROWS_MAX = 500
"""Rows that the page shows; exports have all."""
CELL_CHARS = 2000
QUERY_CHARS_MAX = 20_000
EXAMPLES = (
    ("The busiest agents", "SELECT agent_id, turns, messages FROM agents ORDER BY messages DESC LIMIT 20"),
    ("Failures by kind", "SELECT what, kind, count(*) AS n FROM failures GROUP BY ALL ORDER BY n DESC"),
    ("Edits of memory", "SELECT agent_id, label, seq, operation, value FROM memory_history ORDER BY seq DESC LIMIT 50"),
    ("Tokens of models", "SELECT model, count(*) AS calls, sum(tokens) AS tokens FROM model_calls GROUP BY ALL"),
)  # fmt: skip
"""Queries that the page offers, each with its name."""


class SqlParameters(msgspec.Struct, frozen=True):
    """Parameters of the page."""

    q: str = ""
    """One SELECT."""
    label: str = ""
    """Column of labels of the chart; empty: the first that is no number."""
    value: str = ""
    """Column of numbers of the chart; empty: the first."""


class ExportParameters(msgspec.Struct, frozen=True):
    """Parameters of an export."""

    q: str
    format: str = "csv"


class SqlOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of a query for the page, or the reason for which there is none."""

    columns: Sequence[tuple[str, bool]] = ()
    """Names, each with True if the values are numbers."""
    rows: Sequence[Sequence[str | None]] = ()
    more: bool = False
    """True: there are more rows than the page shows."""
    error: str = ""
    excerpt: str = ""
    """Line of the query with the fault, and a caret below its place."""


async def show_sql(call: HttpCall) -> Response:
    """Show the form, the views with their columns, and the answer of the query of the address."""
    query, at = _query(call.query.q), call.service.ports.clock.now()
    runs = bool(query) and not _is_from_elsewhere(call.request)

    def work(views: FleetViews, _: Snapshot, run: QueryRun) -> tuple[Any, SqlOutcome | None]:
        return views.columns(), _outcome(views, query, run) if runs else None

    try:
        columns, outcome = await over_fleet(call, work, stops_with_reader=True)
    except Refusal as refusal:  # it took too long
        columns, outcome = {}, SqlOutcome(error=refusal.problem.message)
    took_ms = (call.service.ports.clock.now() - at) / 1000
    chart = chart_of(outcome.columns, outcome.rows, call.query.label, call.query.value) if outcome else None
    values = {
        "chart": chart,
        "query": query, "views": columns, "outcome": outcome, "examples": EXAMPLES, "at": at, "took_ms": took_ms,
        "held": bool(query) and not runs,
    }  # fmt: skip
    return page(call.request, "sql.html", values)


async def export_sql(call: HttpCall) -> Response:
    """Return all rows of a query as a file."""
    given = call.query.format
    if given not in {"csv", "arrow"}:
        raise Refusal(400, "bad-input", f"An export is csv or arrow, not {given[:80]!r}.")
    if _is_from_elsewhere(call.request):
        raise Refusal(403, "wrong-origin", "Only a page of this server may ask for an export.")
    call.body = SqlBody(query=_query(call.query.q), format=given)
    answer = await run_sql(call)
    stamp = iso(call.service.ports.clock.now())[:19].replace(":", "")
    for name, value in HEADERS.items():
        answer.headers[name] = value
    answer.headers["Content-Disposition"] = f'attachment; filename="everlog-{stamp}.{given}"'
    return answer


def _query(given: str) -> str:
    if len(given) > QUERY_CHARS_MAX:
        raise Refusal(400, "bad-input", f"A query has at most {QUERY_CHARS_MAX:,} characters.")
    return given.strip()


def _is_from_elsewhere(request: Request) -> bool:
    """Return True if a page of another site led here, as the browser says."""
    return request.headers.get("sec-fetch-site", "none") not in {"none", "same-origin"}


def _outcome(views: FleetViews, query: str, run: QueryRun) -> SqlOutcome:
    rows: list[Sequence[str | None]] = []
    try:
        schema, batches = views.select(query)
        for batch in batches:
            run.check()
            rows += zip(*([_cell(value) for value in column.to_pylist()] for column in batch.columns), strict=True)
            if len(rows) > ROWS_MAX:
                break
    except BadInput as error:
        return SqlOutcome(error=str(error), excerpt=views.excerpt(query))
    columns = [(field.name, str(field.type).startswith(("int", "uint", "double", "float", "dec"))) for field in schema]
    return SqlOutcome(columns=columns, rows=rows[:ROWS_MAX], more=len(rows) > ROWS_MAX)


def _cell(value: object) -> str | None:
    """Return a value as text, shortened; None for a missing one."""
    if value is None:
        return None
    text = value.isoformat(" ") if hasattr(value, "isoformat") and hasattr(value, "hour") else str(value)
    return text if len(text) <= CELL_CHARS else f"{text[:CELL_CHARS]}… ({len(text) - CELL_CHARS:,} more characters)"
