"""Run SQL over all agents of a store: the views of `everlog.projections.fleet_views` over a snapshot of the logs.

Used by reports, commands and searches, and by functions, mail and services that look at other agents. The snapshot is
checked after the query: an answer from files that changed meanwhile is an error.

Only files are read and no host is asked, so writers are not blocked.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from everlog.events import BadInput
from everlog.store import SCHEMA, FileStore, SkippedPartition, Snapshot, Store, name_of, snapshot

if TYPE_CHECKING:
    from everlog.actors.models.prices import PriceList
    from everlog.projections.fleet_views import FleetViews, QueryLimits
    from everlog.projections.price_sql import ListedPrice

MEMORY_MB_MIN = 64
LIVING = "agent_id NOT IN (SELECT agent_id FROM current_records WHERE type = 'agent_deleted')"
"""Condition that leaves out deleted agents."""


@contextmanager
def fleet_views(
    store: FileStore,
    *,
    as_of: int | None = None,
    agent: str | None = None,
    tenant: str = "",
    opened: Callable[[Callable[[], None]], None] = lambda _: None,
    skip_damaged: bool = False,
    limits: "QueryLimits | None" = None,
    prices: "Callable[[], PriceList] | None" = None,
) -> "Iterator[tuple[FleetViews, Snapshot]]":
    """Open the views of the whole fleet, with the position of the logs that they show, while the block runs.

    `as_of`: only records up to this time, microseconds UTC, inclusive. `agent`: only records of this agent; an unknown
    name gives none. `tenant`, `opened`: see `FleetViews`. `skip_damaged`: check every sealed file first, and leave out
    damaged partitions (`Snapshot.left_out`). `limits` None: the usual ones. `prices` is called by a query that needs
    prices of calls; None: those of the store's `models.toml` and of the list that everlog ships. Raises CorruptLog,
    StoreError, BadInput.
    """
    # Imported here: most agents and services never look at the others.
    from everlog.projections.fleet_views import QUERY_LIMITS, FleetViews

    limits = limits or QUERY_LIMITS
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
            prices=lambda: _listed_prices(store) if prices is None else prices().listed,
            names=store.aliases.shown(),
        ) as views,
    ):
        yield views, position
        position.check_unchanged()


def _listed_prices(store: FileStore) -> "Sequence[ListedPrice]":
    from everlog.actors.models.model_catalogue import catalogue_of
    from everlog.actors.models.prices import PriceList, own_prices

    return PriceList(own_prices(catalogue_of(store.root).models)).listed


def fleet_sql(store: FileStore, query: str, *, as_of: int | None = None, agent: str | None = None) -> pa.Table:
    """Return the rows of one SELECT over the views of the whole fleet. See `fleet_views`."""
    with fleet_views(store, as_of=as_of, agent=agent) as (views, _):
        return views.table(query)


def fleet_rows(store: Store, query: str, *, until: int | None = None) -> Sequence[Mapping[str, Any]]:
    """Return the rows of one SELECT over the views of any store, as of a time: microseconds UTC, None: now.

    Raises CorruptLog, StoreError.
    """
    with views_of(store, until=until) as (views, _):
        return views.table(query).to_pylist()


@contextmanager
def views_of(
    store: Store,
    *,
    until: int | None = None,
    opened: Callable[[Callable[[], None]], None] = lambda _: None,
    skip_damaged: bool = False,
) -> "Iterator[tuple[FleetViews, Sequence[SkippedPartition]]]":
    """Open the views of a store of any kind while the block runs, with the damaged partitions that they leave out; see
    `fleet_views`.
    """
    if isinstance(store, FileStore):
        with fleet_views(store, as_of=until, opened=opened, skip_damaged=skip_damaged) as (views, position):
            yield views, position.left_out
        return
    from everlog.projections.fleet_views import FleetViews

    with FleetViews([], _own_records(store), upto=until, opened=opened) as views:
        yield views, ()


def _own_records(store: Store) -> pa.Table:
    """Return all records of a store without files, each under its writer: those of a fork's parents once."""
    own = []
    for name in store.agents():
        fork = store.parent_of(name)
        own.append(store.reader(name).table(name, fork[1] + 1 if fork else 1))
    return pa.concat_tables([SCHEMA.empty_table(), *own])
