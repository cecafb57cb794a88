"""Search one agent's memory: by words in its own log, by meaning in the archive, if the archive answers.

Used by the agent's search functions through `local_system.py`, by `AgentView`, and by the commands for archival memory.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from everlog.actors.memory.archive_questions import kept_page, near_of, reranked
from everlog.actors.memory.joint_search import (
    RESULTS_MAX,
    covered,
    message_page,
    page_from,
    page_of,
    places_of,
    span_of,
    together,
    with_passages,
)
from everlog.actors.ports.agent_constants import PAGE_RESULTS, PAGES_MAX, PASSAGE_CHARS
from everlog.actors.ports.effects import (
    ANYTHING,
    ArchiveClient,
    Filters,
    Hit,
    OtherAgents,
    Page,
    Place,
    ThreadRunner,
    in_place,
)
from everlog.actors.ports.journal import Journal
from everlog.actors.prompt.context import Context
from everlog.events import ArchiveDown, FunctionError
from everlog.projections import ArchivalSearch, AttachedSources, Projections, RecallPage, RecallSearch
from everlog.projections.search.talk_index import TalkView
from everlog.store import ArchiveQuery, SaidMessages
from everlog.store.base.stemming import query_stems
from everlog.store.embedding.best_passage import passage_around

if TYPE_CHECKING:
    import numpy as np


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
        journal: Journal | None = None,
        others: OtherAgents | None = None,
    ) -> None:
        """`as_of`: seq up to which records count, inclusive; `said_by`: search messages up to that seq instead.

        `archive` None: compare words only. `aside` runs the queries of `recall`, `recall_between` and `archival`; one
        at a time, because the engine is not thread-safe. `journal` reads messages and rows, for many agents at once;
        None: they are read for this search. `others` finds other agents; None: there are none.
        """
        self._others = others
        self._aside = aside
        self._agent_id = agent_id
        self._as_of = as_of
        self._said_by = as_of if said_by is None else said_by
        self._journal = journal
        self._rows = partial(projections.rows, agent_id=agent_id, as_of=as_of)
        self._search = RecallSearch(projections, agent_id, self._said_by, zone)
        self._kept = ArchivalSearch(projections, agent_id, as_of)
        self._projections = projections
        self._archive = archive
        self.zone = zone
        """IANA zone in which days are counted."""

    @classmethod
    def during(
        cls,
        projections: Projections,
        context: Context,
        turn: int,
        archive: ArchiveClient | None = None,
        journal: Journal | None = None,
        others: OtherAgents | None = None,
    ) -> "AgentSearcher":
        """Make the searcher for a function of `turn`. Messages of the turn are left out: the model sees them."""
        opened = [message.seq for message in context.messages if message.turn == turn]
        said_by = min(opened, default=context.as_of + 1) - 1
        return cls(
            projections, context.agent_id, context.as_of, context.config.zone, said_by=said_by, archive=archive,
            journal=journal, others=others,
        )  # fmt: skip

    async def recall(self, query: str, page: int, count: int = PAGE_RESULTS, filters: Filters = ANYTHING) -> Page:
        """Search the messages, best match first."""
        talk = await self._talk(filters)
        weights = await self._aside(self._search.rarities, query, talk)

        async def search(page: int, count: int) -> Page:
            found = await self._recalled(query, page, count, filters, talk)
            return with_passages(self._agent_id, found, query, weights)[0]

        return await reranked(self._archive, query, _bounded(page), count, search)

    async def recall_between(self, start: str, end: str, page: int, count: int = PAGE_RESULTS) -> Page:
        """Return the messages from day `start` to day `end`, both inclusive, in order."""
        page = _bounded(page)
        found = page_from(await self._aside(self._between, start, end, page * count, count), page, count)
        return with_passages(self._agent_id, found, "", {})[0]

    async def archival(self, query: str, page: int, count: int = PAGE_RESULTS, filters: Filters = ANYTHING) -> Page:
        """Search archival memory and documents, best match first."""
        return await self._kept_results(query, _bounded(page), count, filters)

    async def derived(self, query: str, page: int, count: int = PAGE_RESULTS, filters: Filters = ANYTHING) -> Page:
        """Search insights, facts and items of plans, best match first."""
        talk = await self._talk(filters)
        weights = await self._aside(self._search.rarities, query, talk)

        async def search(page: int, count: int) -> Page:
            return await self._derived_page(query, page, count, filters, weights)

        return await reranked(self._archive, query, _bounded(page), count, search)

    async def everything(self, query: str, page: int, count: int = PAGE_RESULTS, filters: Filters = ANYTHING) -> Page:
        """Search all places, and rank their results together, as `joint_search` says, best match first.

        Of each place the best RESULTS_MAX take part. A search that the filters limit to one place is that place's own,
        with its scores and without this limit. Raises FunctionError for an invalid filter.
        """
        page = _bounded(page)
        places = places_of(filters)
        if places == ("messages",):
            return await self.recall(query, page, count, filters)
        if places == ("derived",):
            return await self.derived(query, page, count, filters)
        if len(places) == 1:
            return await self._kept_results(query, page, count, filters, places[0])
        ranked = await self.ranked(query, filters)

        async def search(page: int, count: int) -> Page:
            return page_of(ranked, page, count)

        return await reranked(self._archive, query, page, count, search)

    async def ranked(self, query: str, filters: Filters = ANYTHING) -> Page:
        """Return the best results of all places on one page, ranked together. See `everything`."""
        talk = await self._talk(filters)
        weights = await self._aside(self._search.rarities, query, talk)
        pages = []
        filled = {"messages", *await self._aside(self._kept.places)}  # opening an index takes seconds
        for place in [place for place in places_of(filters) if place in filled]:
            if place == "messages":
                pages.append(await self._recalled(query, 0, RESULTS_MAX, filters, talk))
            elif place == "derived":
                pages.append(await self._derived_page(query, 0, RESULTS_MAX, filters, weights))
            else:
                pages.append(await self._kept_page(query, 0, RESULTS_MAX, filters, place))
        return await self._aside(together, self._agent_id, pages, query, weights)

    async def _recalled(self, query: str, page: int, count: int, filters: Filters, talk: Any) -> Page:
        meanings = await self._meanings(self._search.without_names(query, talk), talk)
        return await self._aside(message_page, talk, query, page, count, filters, self.zone, meanings)

    async def _derived_page(
        self, query: str, page: int, count: int, filters: Filters, weights: Mapping[str, float]
    ) -> Page:
        # Imported here: of most agents nothing was derived.
        from everlog.actors.memory.derived_search import derived_page, embedded
        from everlog.projections import DerivedRows

        self._span(filters.start, filters.end)
        rows = await self._aside(DerivedRows(self._projections, self._agent_id, self._as_of).all)
        near, down = await self.near(query, embedded(rows))
        found = derived_page(rows, query, page, count, filters, self.zone, weights, near, archive_down=down)
        results = [msgspec.structs.replace(hit, agent=self._agent_id) for hit in found.results]
        return msgspec.structs.replace(found, results=results)

    async def near(self, query: str, said: SaidMessages) -> tuple[Mapping[int, float] | None, bool]:
        """Return the similarity of each text to the query, by seq; None if it is not known. Return True as the second
        value if there is an archive that does not answer.
        """
        return await near_of(self._archive, self._agent_id, query, said)

    async def word_shares(self, query: str, texts: Sequence[tuple[str, str]]) -> Sequence[float]:
        """Return the share of the query that each text covers, from 0 to 1. `texts`: pairs of a name and a text."""
        weights = await self._aside(self._search.rarities, query)
        return [covered(passage_around(text, weights, PASSAGE_CHARS), name, weights) for name, text in texts]

    async def _kept_results(
        self, query: str, page: int, count: int, filters: Filters, place: Place | None = None
    ) -> Page:
        """Return a page of memories and documents with their passages."""
        weights = dict.fromkeys(query_stems(query), 1.0)

        async def search(page: int, count: int) -> Page:
            found = await self._kept_page(query, page, count, filters, place)
            return with_passages(self._agent_id, found, query, weights)[0]

        return await reranked(self._archive, query, page, count, search)

    async def _kept_page(self, query: str, page: int, count: int, filters: Filters, place: Place | None = None) -> Page:
        """Return a page of memories and documents; of one of them if there is a `place`."""
        known = self._kept.known() if place != "documents" and not filters.source else None
        if known is None:
            after, before, attached = await self._aside(self._attached, filters)
        else:
            (after, before), attached = self._span(filters.start, filters.end), AttachedSources((), 0)
        wanted = ArchiveQuery(
            agent_id=self._agent_id, query=query, as_of=self._as_of, as_of_time=attached.time,
            sources=() if place == "archive" else attached.sources, after=after, before=before, tags=filters.tags,
            source=filters.source, own=place != "documents", first=page * count, count=count,
        )  # fmt: skip
        find = partial(
            self._kept.search, query, page * count, count, tags=filters.tags, source=filters.source, after=after,
            before=before,
        )  # fmt: skip
        # The agent's own log has no documents.
        return await kept_page(
            self._archive, wanted, known, None if place == "documents" else partial(self._aside, find)
        )

    def listed(self, page: int, count: int = PAGE_RESULTS, filters: Filters = ANYTHING) -> Page:
        """List archival memory in order, from the log alone, independent of any index."""
        after, before = self._span(filters.start, filters.end)
        found = self._kept.listed(
            page * count, count, tags=filters.tags, source=filters.source, after=after, before=before
        )
        return page_from(found, page, count)

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

    async def rows(self, name: str) -> Sequence[Mapping[str, Any]]:
        """Return the rows of a projection of the agent."""
        if self._journal is not None:
            return await self._journal.rows(name, self._agent_id, self._as_of)
        return await self._aside(self._rows, name)

    @property
    def agent_id(self) -> str:
        """Name of the agent in the store."""
        return self._agent_id

    @property
    def others(self) -> OtherAgents:
        """The other agents of the store. Raise FunctionError if the agent is looked at outside of a store."""
        if self._others is None:
            raise FunctionError("There are no other agents here.")
        return self._others

    async def message(self, seq: int) -> Hit | None:
        """Return the message of that seq; None if it cannot be found by a search."""
        row = await self._aside(self._search.message, seq)
        return None if row is None else msgspec.convert(row, Hit)

    async def document(self, document_id: str, first: int, count: int) -> Page:
        """Return parts `first` (from 0) to `first + count` (exclusive) of a document of the agent's sources."""
        attached = await self._aside(self._kept.attached)
        if not attached.sources:
            return Page(0, 0, 0, ())
        wanted = ArchiveQuery(
            agent_id=self._agent_id, query="", as_of=self._as_of, as_of_time=attached.time, sources=attached.sources,
            memory=document_id, own=False, first=first, count=count,
        )  # fmt: skip
        if self._archive is not None:
            with suppress(ArchiveDown):
                return await self._archive.search(wanted)
        raise FunctionError("The archive does not answer, so documents cannot be read now. Try again later.")

    async def _talk(self, filters: Filters) -> TalkView:
        """Return the agent's messages for a search. Raise FunctionError for invalid days."""
        self._span(filters.start, filters.end)
        if self._journal is None:
            talk: TalkView = await self._aside(self._search.talk)
            return talk
        return await self._journal.talk(self._agent_id, self._said_by)

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

    async def _meanings(self, about: str, talk: TalkView) -> "np.ndarray | None":
        """Return the similarity of each message, an empty array if there is none to compare with; None if there is an
        archive and it does not answer.
        """
        if self._archive is None:
            return talk.time[:0]
        try:
            return await self._archive.meanings(self._agent_id, about, SaidMessages(talk.seq, talk.message))
        except ArchiveDown:
            return None

    def _check_source(self, source: str, attached: Sequence[str]) -> None:
        known = sorted({*attached, *self._kept.sources()})
        if source not in known:
            known_sources = f"there are {', '.join(map(repr, known))}" if known else "none was loaded"
            raise FunctionError(f"There is no source {source!r} to search; {known_sources}.")

    def _span(self, start: str, end: str) -> tuple[int | None, int | None]:
        """Convert two days to microseconds UTC. Raise FunctionError for an invalid day, or days in the wrong order."""
        return span_of(start, end, self.zone)


def _bounded(page: int) -> int:
    """Limit a page number to the range from 0 to PAGES_MAX."""
    return min(max(page, 0), PAGES_MAX)
