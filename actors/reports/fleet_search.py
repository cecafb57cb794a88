"""Search many agents of a store, one after the other, and rank all that is found together.

Used by `AgentSystem.search` and by `everlog search --all`. Memory is bounded: one agent is loaded at a time, and only
the results that can be on the wanted page are kept. An edit must keep that the results of one agent stay in the order
of that agent's own search, and that an unreadable log hides no other agent.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Sequence
from functools import partial
from typing import Any

import msgspec

from everlog.actors.agent.agent_view import AgentView
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.memory.joint_search import merged, page_of, places_of
from everlog.actors.ports.effects import Filters, Hit, Page, ThreadRunner
from everlog.actors.ports.ports import Ports
from everlog.actors.reports.fleet_listing import list_agents
from everlog.events import EverlogError, FunctionError
from everlog.events.times import moment
from everlog.projections import Projections
from everlog.store import FileStore


class FleetQuery(msgspec.Struct, frozen=True):
    """A search in many agents."""

    text: str
    page: int
    """Page of the results, from 0."""
    count: int
    """Results on one page."""
    filters: Filters
    until: int | None = None
    """Time up to which records count: microseconds UTC, inclusive; None: all."""


class SearchReports(msgspec.Struct, frozen=True):
    """Callbacks of a search in many agents."""

    failed: Callable[[str, EverlogError], None]
    """Called with the name and the error of an agent whose log cannot be read. The others are searched."""
    progress: Callable[[int, int], None] = lambda _done, _all: None
    """Called with the number of agents that were searched, and with their number in all."""


def searched_agents(store: FileStore, until: int | None = None) -> tuple[Sequence[str], Collection[str]]:
    """Return the names of the agents that are not deleted at a time, sorted, and the errors of unreadable partitions.

    `until`: as in `FleetQuery`. Raises StoreError.
    """
    listing = list_agents(store, store.register_files.scan().routes, until=until)
    return [row["agent_id"] for row in listing.rows], listing.damaged


async def search_fleet(
    system: LocalSystem, store: FileStore, names: Sequence[str] | None, wanted: FleetQuery, ports: Ports
) -> Page:
    """Search the agents of these names, or all (None), as `search_agents` does. Logs that cannot be read are noted, and
    the page has their errors.

    Raises UnknownAgent.
    """
    for name in names or ():
        await ports.aside(system.check_exists, name)
    unread: list[str] = []
    if names is None:
        names, damaged = await ports.aside(searched_agents, store, wanted.until)
        unread += damaged
    reports = SearchReports(lambda name, error: unread.append(f"{name!r} was not searched: {error}"))
    found = await search_agents(system, names, wanted, reports, ports.aside)
    for error in unread:
        ports.note(error)
    return msgspec.structs.replace(found, unread=unread)


async def search_agents(
    system: LocalSystem, names: Sequence[str], wanted: FleetQuery, reports: SearchReports, aside: ThreadRunner
) -> Page:
    """Search these agents, and return one page of the results, most relevant first.

    Equally relevant results are listed in the order of `names`. Days of the filters are those of each agent's zone.
    `aside` runs queries and reads the disk. Raises FunctionError for an invalid filter, also for a source that none of
    the agents can search.
    """
    places_of(wanted.filters)
    best: list[Hit] = []
    total = searched = 0
    by_meaning, down = True, False
    refused: FunctionError | None = None
    engine = await aside(Projections)
    try:
        for number, name in enumerate(names):
            reports.progress(number, len(names))
            try:
                found = await _uncut(_searched(system, name, engine, wanted, aside))
            except FunctionError as error:
                if not wanted.filters.source:
                    raise
                refused = error
                continue
            except EverlogError as error:
                reports.failed(name, error)
                await aside(engine.forget, name)
                continue
            searched += 1
            total += found.total
            by_meaning = by_meaning and (found.by_meaning or not found.results)
            down = down or found.archive_down
            best = merged([best, found.results])[: (wanted.page + 1) * wanted.count]
    finally:
        await aside(engine.close)
    if refused is not None and not searched:
        raise refused
    whole = Page(total, 0, 1, best, by_meaning=by_meaning and bool(best), archive_down=down)
    return page_of(whole, wanted.page, wanted.count)


async def _uncut(search: Coroutine[Any, Any, Page]) -> Page:
    """Return the result of the search of one agent. A search that is cancelled ends before this does: its thread uses
    the engine.
    """
    task = asyncio.ensure_future(search)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait((task,))
        raise


async def _searched(
    system: LocalSystem, name: str, engine: Projections, wanted: FleetQuery, aside: ThreadRunner
) -> Page:
    until = None if wanted.until is None else moment(wanted.until)
    view: AgentView = await aside(partial(system.view, name, engine, as_of=until))
    try:
        searcher = await aside(view.searcher, None, aside)
        found: Page = await searcher.ranked(wanted.text, wanted.filters)
        return found
    finally:
        await aside(view.close)
