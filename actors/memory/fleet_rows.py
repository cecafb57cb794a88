"""Query the views of all agents of a store for functions, mail and services, which no host is asked for."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from everlog.store import SCHEMA, FileStore, Store, snapshot

if TYPE_CHECKING:
    from everlog.projections.fleet_views import FleetViews

LIVING = "agent_id NOT IN (SELECT agent_id FROM current_records WHERE type = 'agent_deleted')"
"""Condition that leaves out deleted agents."""


def fleet_rows(store: Store, query: str, *, until: int | None = None) -> Sequence[Mapping[str, Any]]:
    """Return the rows of one SELECT over the views of `FleetViews`, as of a time: microseconds UTC, None: now.

    Raises CorruptLog, StoreError.
    """
    with _views(store, until) as views:
        return views.table(query).to_pylist()


@contextmanager
def _views(store: Store, until: int | None) -> "Iterator[FleetViews]":
    # Imported here: most agents and services never look at the others.
    from everlog.projections.fleet_views import FleetViews

    if not isinstance(store, FileStore):
        with FleetViews([], _own_records(store), upto=until) as views:
            yield views
        return
    with (
        snapshot(store) as position,
        FleetViews(
            position.paths, position.fresh, upto=until, damage=position.damage, rare=position.rare_paths,
            older=position.older_paths,
        ) as views,
    ):  # fmt: skip
        yield views
        position.check_unchanged()


def _own_records(store: Store) -> pa.Table:
    """Return all records of a store without files, each under its writer: those of a fork's parents once."""
    own = []
    for name in store.agents():
        fork = store.parent_of(name)
        own.append(store.reader(name).table(name, fork[1] + 1 if fork else 1))
    return pa.concat_tables([SCHEMA.empty_table(), *own])
