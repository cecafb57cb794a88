"""List the agents of a store from columns of the fleet's views: no log is read whole, and no host is asked.

Used by `everlog agents`, `pressure` and `cost`, and by commands that take patterns. A listing is checked against the
heads that the partitions themselves record, so that it never shows an agent at another place than its log ends at.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from everlog.actors.memory.fleet_sql import fleet_views
from everlog.actors.models.prices import PriceList
from everlog.actors.reports.call_costs import ANSWERED, SUMS
from everlog.events import CorruptLog
from everlog.projections.fleet_views import FleetViews
from everlog.projections.sql_catalogue import fleet_query
from everlog.store import FileStore, Snapshot

FleetRow = Mapping[str, Any]
"""One agent of a listing, by column; times are microseconds UTC."""

_COSTS = """{answered}, listed AS ({listing}),
sums AS (SELECT agent_id, {sums} FROM answered GROUP BY agent_id)
SELECT l.agent_id, l.head, l.deleted, coalesce(s.calls, 0) AS calls, coalesce(s.prompt_tokens, 0) AS prompt_tokens,
    coalesce(s.cached_tokens, 0) AS cached_tokens, coalesce(s.completion_tokens, 0) AS completion_tokens,
    coalesce(s.tokens, 0) AS tokens, s.cost, coalesce(s.unpriced, 0) AS unpriced, coalesce(s.estimated, 0) AS estimated
FROM listed l LEFT JOIN sums s ON s.agent_id = l.agent_id ORDER BY l.agent_id"""


class FleetListing(NamedTuple):
    """Agents of a store, and the partitions that could not be read."""

    rows: list[FleetRow]
    """One row for each agent that has records, sorted by name."""
    damaged: list[str]
    """Errors of damaged partitions, of which no agent is listed."""


def list_agents(
    store: FileStore, registered: Collection[str], *, until: int | None = None, deleted: bool = False
) -> FleetListing:
    """List the agents among `registered` that are not deleted, with `deleted` those too.

    The columns are agent_id, events, messages, head, turns, last_active, deleted, parent and parent_seq; the records of
    its ancestors count as a fork's own. `until`: only records up to this time, microseconds UTC. Raises StoreError,
    CorruptLog if a partition and its records disagree.
    """
    return _list(store, registered, fleet_query("listing"), until=until, deleted=deleted)


def list_pressure(store: FileStore, registered: Collection[str], *, until: int | None = None) -> FleetListing:
    """List how full the context window of each agent among `registered` is that is not deleted.

    The columns are agent_id, head, deleted, tokens (of the last call), window (None without a configuration), used (a
    fraction of the window), fraction, warned, summary_seq and summaries; see the projection `memory_pressure`. `until`
    and errors are as for `list_agents`.
    """
    return _list(store, registered, pressure_query(), until=until)


def pressure_query() -> str:
    """Return the SELECT of `list_pressure`, which has deleted agents too."""
    return fleet_query("pressure_listing").format(listing=fleet_query("listing"))


def list_costs(
    store: FileStore, registered: Collection[str], *, today: str, days: int, prices: PriceList
) -> FleetListing:
    """List the tokens and costs of each agent among `registered` in the last `days` days, `today` (an ISO date)
    included. A deleted agent is listed too: its calls were made.

    The columns are agent_id, head, deleted and those of `call_costs.SUMS`; a cost is None if no price is known. Errors
    are as for `list_agents`.
    """
    return _list(store, registered, _costs_query(today, days), deleted=True, prices=prices)


def costs_by_agent(views: FleetViews, today: str, days: int) -> list[FleetRow]:
    """Return the rows of `list_costs` from views that are open, of all agents that these have."""
    rows: list[FleetRow] = views.table(_costs_query(today, days)).to_pylist()
    return rows


def _costs_query(today: str, days: int) -> str:
    answered = ANSWERED.format(today=today, days=days)
    return _COSTS.format(answered=answered, listing=fleet_query("listing"), sums=SUMS)


def _list(
    store: FileStore,
    registered: Collection[str],
    query: str,
    *,
    until: int | None = None,
    deleted: bool = False,
    prices: PriceList | None = None,
) -> FleetListing:
    known = None if prices is None else lambda: prices
    try:
        with fleet_views(store, as_of=until, prices=known) as (views, position):
            rows, damaged = _read(views, query, position, until), []
    except CorruptLog:
        # The sealed files are checked only now: that reads every byte of them.
        with fleet_views(store, as_of=until, prices=known, skip_damaged=True) as (views, position):
            rows, damaged = _read(views, query, position, until), [left.reason for left in position.left_out]
    chosen = [row for row in rows if row["agent_id"] in registered and (deleted or not row["deleted"])]
    return FleetListing(chosen, damaged)


def _read(views: FleetViews, query: str, position: Snapshot, until: int | None) -> list[FleetRow]:
    rows: list[FleetRow] = views.table(query).to_pylist()
    if until is None:
        _check_heads(rows, position.heads())
    return rows


def _check_heads(rows: Sequence[FleetRow], heads: Mapping[str, int]) -> None:
    for row in rows:
        name, head = row["agent_id"], heads.get(row["agent_id"])
        if row["head"] != head:
            raise CorruptLog(
                f"The columns of the sealed files end {name!r} at seq {row['head']}, but the manifests at seq {head}: "
                "one of the two is damaged. Nothing was changed; `everlog log check --all` shows where."
            )
