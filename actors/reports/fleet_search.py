"""Search many agents of a store in one pass over their logs, and rank all that is found together.

Used by `AgentSystem.search` and by `everlog search --all`. An agent's results are those of its own search, by the same
functions, in the same order. What is not done for every agent: its log is not opened, and its talk is indexed and
ranked only if one of its results can be on the wanted page. Memory is bounded: the texts of a few agents are held at a
time, and the results up to the end of the page.

Agents that the pass does not have, and those of a search in few agents, are opened one after the other. An edit must
keep that an unreadable log hides no other agent.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from functools import partial
from typing import Any, TypeVar

import msgspec

from everlog.actors.agent.agent_view import AgentView
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.memory.derived_search import check_kinds
from everlog.actors.memory.joint_search import page_of, places_of, span_of
from everlog.actors.ports.effects import Filters, Page, ThreadRunner
from everlog.actors.ports.ports import Ports
from everlog.actors.reports.best_hits import FoundHits
from everlog.actors.reports.fleet_listing import list_agents
from everlog.actors.reports.search_chunk import ChunkSearch
from everlog.actors.reports.searched_texts import searched_texts
from everlog.events import CorruptLog, EverlogError, FunctionError
from everlog.events.times import moment
from everlog.projections import Projections
from everlog.projections.recall_search import check_roles
from everlog.store import FileStore

T = TypeVar("T")
ALONE_MAX = 8
"""Number of agents up to which each is opened: a pass over all logs costs more."""
STOP_S = 0.05
"""Seconds between two attempts to stop what runs in a thread."""


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
    _check(wanted.filters)
    names = list(dict.fromkeys(names))
    search = _FleetSearch(system, names, wanted, reports, aside)
    alone: Sequence[str] = names
    if len(names) > ALONE_MAX:
        try:
            alone = await search.together()
        except CorruptLog:  # the sealed files are checked only now: that reads every byte of them
            search = _FleetSearch(system, names, wanted, reports, aside)
            alone = await search.together(skip_damaged=True)
    await search.one_by_one(alone)
    return search.page()


def _check(filters: Filters) -> None:
    """Raise FunctionError for filters that no agent can answer, whatever it has."""
    places = places_of(filters)
    span_of(filters.start, filters.end, "UTC")
    if "messages" in places:
        check_roles(filters.roles)
    if "derived" in places:
        check_kinds(filters.kinds)


class _FleetSearch:
    """One search in many agents, and what it has found so far."""

    def __init__(
        self, system: LocalSystem, names: Sequence[str], wanted: FleetQuery, reports: SearchReports, aside: ThreadRunner
    ) -> None:
        self._system = system
        self._names = names
        self._numbers = {name: number for number, name in enumerate(names)}
        self._wanted = wanted
        self._reports = reports
        self._aside = aside
        self._found = FoundHits((wanted.page + 1) * wanted.count)
        self._done = 0
        self._answered = False

    async def together(self, *, skip_damaged: bool = False) -> Sequence[str]:
        """Search the agents in one pass. Return those that are left: the pass has no record of them, not all, or not
        what is wanted of them. `skip_damaged`: leave out damaged logs. Raises CorruptLog.
        """
        wanted, stop = self._wanted, StopSignal()
        places = places_of(wanted.filters)
        opened = searched_texts(self._system.store, wanted.until, opened=stop.opened, skip_damaged=skip_damaged)
        async with _entered(opened, self._aside, stop) as texts:
            lost = await self._aside(texts.lost, self._names)
            from_sources = {name for name, facts in texts.facts.items() if wanted.filters.source and facts.documents}
            alone = [name for name in self._names if name in lost or name in from_sources]
            chunk_search = ChunkSearch(wanted.text, wanted.filters, places, self._system.archive, self._aside)
            waiting = texts.chunks(self._numbers.keys() - set(alone), places)
            while some := await _uncut(self._aside(stop.watched, next, waiting, ()), stop.stop):
                await _uncut(chunk_search.add(some, self._numbers, self._found))
                self._answered = True
                self._progressed(len(some))
        return alone

    async def one_by_one(self, names: Sequence[str]) -> None:
        """Open these agents one after the other, and search each."""
        if not names:
            return
        refused: FunctionError | None = None
        engine = await self._aside(Projections)
        try:
            for name in names:
                self._progressed(1)
                try:
                    found = await _uncut(self._opened_and_searched(name, engine))
                except FunctionError as error:
                    if not self._wanted.filters.source:
                        raise
                    refused = error
                except EverlogError as error:
                    self._reports.failed(name, error)
                    await self._aside(engine.forget, name)
                else:
                    self._answered = True
                    self._found.add(self._numbers[name], found)
        finally:
            await self._aside(engine.close)
        if refused is not None and not self._answered:
            raise refused

    async def _opened_and_searched(self, name: str, engine: Projections) -> Page:
        until = None if self._wanted.until is None else moment(self._wanted.until)
        view: AgentView = await self._aside(partial(self._system.view, name, engine, as_of=until))
        try:
            searcher = await self._aside(view.searcher, None, self._aside)
            found: Page = await searcher.ranked(self._wanted.text, self._wanted.filters)
            return found
        finally:
            await self._aside(view.close)

    def _progressed(self, agents: int) -> None:
        self._done += agents
        self._reports.progress(self._done, len(self._names))

    def page(self) -> Page:
        """Return the wanted page."""
        return page_of(self._found.page(), self._wanted.page, self._wanted.count)


class _StoppedError(Exception):
    """Signal that an engine was stopped, because the search was cancelled."""


class StopSignal:
    """Stops engines that read in a thread, from the event loop."""

    def __init__(self) -> None:
        self._stops: list[Callable[[], None]] = []
        self._stopped = False

    def opened(self, stop: Callable[[], None]) -> None:
        """Keep the function that stops an engine."""
        self._stops.append(stop)
        if self._stopped:
            raise KeyboardInterrupt

    def stop(self) -> None:
        """Stop what runs now. It may have to be said again: an engine may be between two statements."""
        self._stopped = True
        for stop in self._stops:
            stop()

    def watched(self, work: Callable[..., T], *arguments: Any) -> T:
        """Return what `work` returns. An engine that was stopped raises KeyboardInterrupt, which would end the loop."""
        try:
            return work(*arguments)
        except KeyboardInterrupt as error:
            if self._stopped:
                raise _StoppedError from error
            raise


@asynccontextmanager
async def _entered(opened: AbstractContextManager[T], aside: ThreadRunner, stop: StopSignal) -> AsyncIterator[T]:
    """Enter and leave a context in a thread."""
    value = await _uncut(aside(stop.watched, opened.__enter__), stop.stop)
    try:
        yield value
    finally:
        await aside(opened.__exit__, *sys.exc_info())


async def _uncut(work: Awaitable[T], stop: Callable[[], None] = lambda: None) -> T:
    """Return the result of work that uses an engine. If it is cancelled, it ends before this does: `stop` makes its
    thread end early.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            stop()
            await asyncio.wait((task,), timeout=STOP_S)
        if not task.cancelled():
            task.exception()  # looked at, so that the loop reports nothing
        raise
