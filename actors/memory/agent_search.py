"""Search one agent's memory: by words in its own log, by meaning in the archive, if the archive answers.

Used by the agent's search functions through `local_system.py`, by `AgentView`, and by the commands for archival memory.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from everlog.actors.memory.reranked_search import reranked
from everlog.actors.ports.agent_constants import PAGE_RESULTS, PAGES_MAX
from everlog.actors.ports.effects import ANYTHING, ArchiveClient, Filters, Hit, Page, ThreadRunner
from everlog.actors.prompt.context import Context
from everlog.events import ArchiveDown, FunctionError
from everlog.projections import ArchivalSearch, Projections, RecallPage, RecallSearch
from everlog.store import ArchiveQuery, SaidMessages


async def in_place(work: Callable[..., Any], /, *arguments: Any) -> Any:
    """Run work here and now: a `ThreadRunner` without a thread, for hosts, whose engine belongs to their loop."""
    return work(*arguments)


class AgentSearcher:
    """Searches for functions and commands. See `effects.Searcher` for the contract of each method."""

    def __init__(
        self,
        projections: Projections,
        agent_id: str,
        as_of: int,
        zone: str,
        *,
        said_by: int | None = None,
        archive: ArchiveClient | None = None,
        aside: ThreadRunner = in_place,
    ) -> None:
        """`as_of`: seq up to which records count, inclusive; `said_by`: search messages up to that seq instead.

        `archive` None: compare words only. `aside` runs the queries of `recall`, `recall_between` and `archival`; one
        at a time, because the engine is not thread-safe.
        """
        self._aside = aside
        self._agent_id = agent_id
        self._as_of = as_of
        self._search = RecallSearch(projections, agent_id, as_of if said_by is None else said_by, zone)
        self._kept = ArchivalSearch(projections, agent_id, as_of)
        self._archive = archive
        self.zone = zone
        """IANA zone in which days are counted."""

    @classmethod
    def during(
        cls, projections: Projections, context: Context, turn: int, archive: ArchiveClient | None = None
    ) -> "AgentSearcher":
        """Make the searcher for a function of `turn`. Messages of the turn are left out: the model sees them."""
        opened = [message.seq for message in context.messages if message.turn == turn]
        said_by = min(opened, default=context.as_of + 1) - 1
        return cls(projections, context.agent_id, context.as_of, context.config.zone, said_by=said_by, archive=archive)

    async def recall(self, query: str, page: int, count: int = PAGE_RESULTS, filters: Filters = ANYTHING) -> Page:
        """Search the messages, best match first."""
        return await reranked(self._archive, query, page, count, partial(self._recall, query, filters=filters))

    async def _recall(self, query: str, page: int, count: int, filters: Filters) -> Page:
        page = _bounded(page)
        talk = await self._aside(self._talk, filters)
        meanings = await self._meanings(self._search.without_names(query, talk), talk)
        find = partial(
            self._search.recall, query, page * count, count, roles=filters.roles, start=filters.start, end=filters.end,
            meanings=meanings, talk=talk,
        )  # fmt: skip
        found = await self._aside(find)
        return _page(found, page, count, by_meaning=bool(meanings), archive_down=meanings is None)

    async def recall_between(self, start: str, end: str, page: int, count: int = PAGE_RESULTS) -> Page:
        """Return the messages from day `start` to day `end`, both inclusive, in order."""
        page = _bounded(page)
        return _page(await self._aside(self._between, start, end, page * count, count), page, count)

    async def archival(self, query: str, page: int, count: int = PAGE_RESULTS, filters: Filters = ANYTHING) -> Page:
        """Search archival memory and documents, best match first."""
        return await reranked(self._archive, query, page, count, partial(self._archival, query, filters=filters))

    async def _archival(self, query: str, page: int, count: int, filters: Filters) -> Page:
        page = _bounded(page)
        after, before, attached = await self._aside(self._attached, filters)
        if self._archive is not None:
            wanted = ArchiveQuery(
                agent_id=self._agent_id, query=query, as_of=self._as_of, as_of_time=attached.time,
                sources=attached.sources, after=after, before=before, tags=filters.tags, source=filters.source,
                first=page * count, count=count,
            )  # fmt: skip
            with suppress(ArchiveDown):
                return await self._archive.search(wanted)
        find = partial(
            self._kept.search, query, page * count, count, tags=filters.tags, source=filters.source, after=after,
            before=before,
        )  # fmt: skip
        found = await self._aside(find)
        return _page(found, page, count, archive_down=self._archive is not None)

    def listed(self, page: int, count: int = PAGE_RESULTS, filters: Filters = ANYTHING) -> Page:
        """List archival memory in order, from the log alone, independent of any index."""
        after, before = self._span(filters.start, filters.end)
        found = self._kept.listed(
            page * count, count, tags=filters.tags, source=filters.source, after=after, before=before
        )
        return _page(found, page, count)

    async def kept(self, text: str) -> str:
        """Return the id of a memory that holds exactly this text; empty if there is none.

        The agent's own log is searched, because an index lags behind the log.
        """
        return self._kept.holding(text)

    async def memories_holding(self, texts: Sequence[str]) -> Mapping[str, str]:
        """Return, by text, the ids of memories that hold one of these texts, which have no white space around them."""
        return self._kept.ids_of_texts(texts)

    async def memory(self, memory_id: str) -> Hit | None:
        """Return the memory of that id as it is now; None if there is none, or if it was deleted."""
        row = self._kept.memory(memory_id)
        return None if row is None else msgspec.convert(row, Hit)

    def _talk(self, filters: Filters) -> Any:
        """Return the agent's messages for a search. Raise FunctionError for invalid days."""
        self._span(filters.start, filters.end)
        return self._search.talk()

    def _between(self, start: str, end: str, first: int, count: int) -> RecallPage:
        self._span(start, end)
        return self._search.recall_between(start, end, first, count)

    def _attached(self, filters: Filters) -> tuple[int | None, int | None, Any]:
        """Return the span of the filters, and the attached sources. Raise FunctionError for invalid filters."""
        after, before = self._span(filters.start, filters.end)
        attached = self._kept.attached()
        if filters.source and filters.source not in attached.sources:
            self._check_source(filters.source, attached.sources)
        return after, before, attached

    async def _meanings(self, about: str, talk: Any) -> Mapping[int, float] | None:
        """Return values by seq; None if there is an archive and it does not answer."""
        if self._archive is None:
            return {}
        said = SaidMessages(talk.seq, lambda place: (talk.role[place], talk.name[place], talk.text[place]))
        try:
            cosines = await self._archive.meanings(self._agent_id, about, said)
        except ArchiveDown:
            return None
        return dict(zip(talk.seq, cosines.tolist(), strict=True)) if len(cosines) else {}

    def _check_source(self, source: str, attached: Sequence[str]) -> None:
        known = sorted({*attached, *self._kept.sources()})
        if source not in known:
            known_sources = f"there are {', '.join(map(repr, known))}" if known else "none was loaded"
            raise FunctionError(f"There is no source {source!r} to search; {known_sources}.")

    def _span(self, start: str, end: str) -> tuple[int | None, int | None]:
        """Convert two days to microseconds UTC. Raise FunctionError for an invalid day, or days in the wrong order."""
        after, before = self._search.days(start, end)
        if after is not None and before is not None and before <= after:
            raise FunctionError(f"The last day, {end}, is before the first, {start}. Both days count.")
        return after, before


def _bounded(page: int) -> int:
    """Limit a page number to the range from 0 to PAGES_MAX."""
    return min(max(page, 0), PAGES_MAX)


def _page(found: RecallPage, page: int, count: int, *, by_meaning: bool = False, archive_down: bool = False) -> Page:
    hits = [msgspec.convert(row, Hit) for row in found]
    return Page(
        total=found.total, page=page, pages=-(-found.total // count), results=hits, by_meaning=by_meaning,
        archive_down=archive_down,
    )  # fmt: skip
