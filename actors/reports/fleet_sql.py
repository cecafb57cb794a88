"""Run SQL over all agents of a store: the views of `everlog.projections.fleet_views` over a snapshot of the logs.

Used by `AgentSystem`, and by `everlog sql`, `everlog cost` and `everlog report`. The snapshot is checked after the
query: an answer from files that changed meanwhile is an error.

Only files are read and no host is asked, so writers are not blocked.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pyarrow as pa

from everlog.actors.models.model_catalogue import catalogue_of
from everlog.actors.models.prices import PriceList, own_prices
from everlog.events import BadInput
from everlog.projections.fleet_views import QUERY_LIMITS, FleetViews, QueryLimits
from everlog.store import FileStore, Snapshot, name_of, snapshot

MEMORY_MB_MIN = 64


@contextmanager
def fleet_views(
    store: FileStore,
    *,
    as_of: int | None = None,
    agent: str | None = None,
    tenant: str = "",
    opened: Callable[[Callable[[], None]], None] = lambda _: None,
    skip_damaged: bool = False,
    limits: QueryLimits = QUERY_LIMITS,
    prices: Callable[[], PriceList] | None = None,
) -> Iterator[tuple[FleetViews, Snapshot]]:
    """Open the views of the whole fleet, with the position of the logs that they show, while the block runs.

    `as_of`: only records up to this time, microseconds UTC, inclusive. `agent`: only records of this agent; an unknown
    name gives none. `tenant`, `opened`: see `FleetViews`. `skip_damaged`: check every sealed file first, and leave out
    damaged partitions (`Snapshot.left_out`). `prices` is called by a query that needs prices of calls; None: those of
    the store's `models.toml` and of the list that everlog ships. Raises CorruptLog, StoreError, BadInput.
    """
    if limits.memory_mb < MEMORY_MB_MIN:
        raise BadInput(f"A query needs at least {MEMORY_MB_MIN} MB of memory, not {limits.memory_mb}: raise the limit.")
    name = None if agent is None else name_of(agent)
    with (
        snapshot(store, skip_damaged=skip_damaged) as position,
        FleetViews(
            position.paths,
            position.fresh,
            upto=as_of,
            agent_id=name,
            tenant=tenant,
            opened=opened,
            limits=limits,
            damage=position.damage,
            rare=position.rare_paths,
            older=position.older_paths,
            prices=lambda: (prices or partial(_own_prices, store))().listed,
            names=store.aliases.shown(),
        ) as views,
    ):
        yield views, position
        position.check_unchanged()


def _own_prices(store: FileStore) -> PriceList:
    return PriceList(own_prices(catalogue_of(store.root).models))


def fleet_sql(store: FileStore, query: str, *, as_of: int | None = None, agent: str | None = None) -> pa.Table:
    """Return the rows of one SELECT over the views of the whole fleet. See `fleet_views`."""
    with fleet_views(store, as_of=as_of, agent=agent) as (views, _):
        return views.table(query)
