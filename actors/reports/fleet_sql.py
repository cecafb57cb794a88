"""SQL over every agent of a store: the views of `everlog.projections.fleet_views` over one `everlog.store.snapshot`.

It reads what is there and asks no host, so that writers go on as they were; it may run while they do.
"""

from collections.abc import Iterator
from contextlib import contextmanager

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
    skip_damaged: bool = False,
    limits: QueryLimits = QUERY_LIMITS,
    prices: PriceList | None = None,
) -> Iterator[tuple[FleetViews, Snapshot]]:
    """The views of the whole fleet, and the position that they are of, while the block runs.

    `as_of`: only what was recorded by then, microseconds UTC, inclusive. `agent`: only the records of that one; a name
    that nobody has gives none. `skip_damaged`: every sealed file is checked first, and partitions with damage are left
    out (`Snapshot.left_out`). `prices`: what calls cost; None: as the
    store's `models.toml` and the list that everlog ships say. Raises CorruptLog, StoreError, BadInput.
    """
    if limits.memory_mb < MEMORY_MB_MIN:
        raise BadInput(f"A query cannot do with {limits.memory_mb} MB of memory: give it at least {MEMORY_MB_MIN}.")
    name = None if agent is None else name_of(agent)
    with (
        snapshot(store, skip_damaged=skip_damaged) as position,
        FleetViews(
            position.paths,
            position.fresh,
            upto=as_of,
            agent_id=name,
            limits=limits,
            damage=position.damage,
            prices=(prices or PriceList(own_prices(catalogue_of(store.root).models))).listed,
        ) as views,
    ):
        yield views, position
        position.check_unchanged()


def fleet_sql(
    store: FileStore, query: str, *, as_of: int | None = None, agent: str | None = None, prices: PriceList | None = None
) -> pa.Table:
    """The answer of one SELECT over the views of the whole fleet. See `fleet_views`."""
    with fleet_views(store, as_of=as_of, agent=agent, prices=prices) as (views, _):
        return views.table(query)
