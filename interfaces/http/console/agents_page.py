"""Show the fleet at a glance: who is at work, who fails, whose context window is nearly full, and since when.

A question over all agents takes longer than a page may: its answer is kept for each tenant, the page says how old it
is, and a newer one is made beside it. The answer is a copy of what the logs say, so other servers need not know of it.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
from starlette.responses import Response

from everlog.events.times import MICROSECONDS
from everlog.interfaces.http.console.page_response import TEMPLATES, page
from everlog.interfaces.http.core.fleet_queries import over_fleet
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import HttpCall
from everlog.projections.sql_catalogue import fleet_query

FleetAgent = Mapping[str, Any]
"""One row of `fleet/console_listing`."""
FRESH_US = 2 * MICROSECONDS
"""Age up to which an answer is given as it is."""
REST = 50
"""Times as long as an answer took until the next one is made: pages that stay open use a fiftieth of a core at most."""
STALE_US = 300 * MICROSECONDS
"""Age from which a page waits for a newer answer."""
FAILURES_US = 24 * 3600 * MICROSECONDS
"""Time in which failures count."""
TENANTS_MAX = 32
PAGE_AGENTS = 100
Sort = Literal["name", "active", "used", "failures", "messages"]
Filter = Literal["all", "working", "full", "failing", "forks"]
FILTERS: Mapping[Filter, tuple[str, Callable[[FleetAgent], bool]]] = {
    "all": ("All", lambda _: True),
    "working": ("At work", lambda row: row["open_turns"] > 0),
    "full": ("Nearly full", lambda row: (row["used"] or 0) >= row["fraction"]),
    "failing": ("Failing", lambda row: row["failures"] > 0),
    "forks": ("Forks", lambda row: row["parent"] is not None),
}
"""Filters, each with its label."""
SORTS: Mapping[Sort, tuple[str, Callable[[FleetAgent], Any]]] = {
    "active": ("Last active", lambda row: -(row["last_active"] or 0)),
    "name": ("Name", lambda row: row["agent_id"]),
    "used": ("Context", lambda row: -(row["used"] or 0)),
    "failures": ("Failures", lambda row: -row["failures"]),
    "messages": ("Messages", lambda row: -row["messages"]),
}
"""Orders, each with its label; agents that are equal are ordered by name."""


class FleetParameters(msgspec.Struct, frozen=True):
    """Parameters of the list of agents."""

    q: str = ""
    """Part of a name, in any case."""
    show: Filter = "all"
    sort: Sort = "active"
    after: str = ""
    """Name of the last agent of the page before."""


class FleetAnswer(NamedTuple):
    """All agents that a tenant sees, at one time."""

    at: int
    """Microseconds UTC."""
    rows: Sequence[FleetAgent]
    took: int
    """Time that it took, microseconds."""


class FleetGlance:
    """Answers about the fleet, the newest of each tenant. Belongs to one event loop."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, FleetAnswer] = OrderedDict()
        self._working: set[str] = set()

    async def answer(self, call: HttpCall) -> FleetAnswer:
        """Return an answer that is at most `STALE_US` old, and have a newer one made if it is not fresh."""
        now, tenant = call.service.ports.clock.now(), call.names.tenant
        known = self._answers.get(tenant)
        if known is None or now - known.at > STALE_US:
            return await self._ask(call)
        if now - known.at > max(FRESH_US, REST * known.took) and tenant not in self._working:
            self._working.add(tenant)
            call.service.detach(self._renew(call))
        return known

    async def _renew(self, call: HttpCall) -> None:
        try:
            await self._ask(call)
        except Refusal:  # it took too long: the page says how old the answer is
            return
        finally:
            self._working.discard(call.names.tenant)

    async def _ask(self, call: HttpCall) -> FleetAnswer:
        at = call.service.ports.clock.now()
        query = fleet_query("console_listing").format(since=at - FAILURES_US)
        rows = await over_fleet(call, lambda views, _position, _run: views.table(query).to_pylist())
        took = call.service.ports.clock.now() - at
        answer = FleetAnswer(at, [row for row in rows if not row["deleted"]], took)
        self._answers[call.names.tenant] = answer
        self._answers.move_to_end(call.names.tenant)
        while len(self._answers) > TENANTS_MAX:
            self._answers.popitem(last=False)
        return answer


def agents_page(glance: FleetGlance) -> Callable[[HttpCall], Any]:
    """Return the handler of the list of agents. `glance`: the answers that the server keeps."""

    async def show_agents(call: HttpCall) -> Response:
        """List the agents that the caller sees: filtered, ordered, page by page."""
        query: FleetParameters = call.query
        # Beside the query, which takes another processor: a server's first list would wait for both.
        compiled = call.service.ports.aside(TEMPLATES.compile, "parts.html", "agents.html")
        answer, _ = await asyncio.gather(glance.answer(call), compiled)
        words = query.q.casefold().strip()
        named = [row for row in answer.rows if words in row["agent_id"].casefold()]
        counts = {name: sum(map(test, named)) for name, (_, test) in FILTERS.items()}
        order = SORTS[query.sort][1]
        rows = sorted(filter(FILTERS[query.show][1], named), key=lambda row: (order(row), row["agent_id"]))
        start = next((n + 1 for n, row in enumerate(rows) if row["agent_id"] == query.after), 0) if query.after else 0
        shown = rows[start : start + PAGE_AGENTS]
        values = {
            "rows": shown, "start": start, "total": len(rows), "counts": counts, "query": query, "at": answer.at,
            "next": shown[-1]["agent_id"] if start + PAGE_AGENTS < len(rows) else "", "everyone": len(answer.rows),
            "now": call.service.ports.clock.now(), "filters": {name: label for name, (label, _) in FILTERS.items()},
            "sorts": {name: label for name, (label, _) in SORTS.items()},
        }  # fmt: skip
        return page(call.request, "agents.html", values)

    return show_agents
