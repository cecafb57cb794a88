"""Search a few agents whose texts were read in one pass: by the rules of an agent's own search, and no further than
needed for the best results.

Used by `fleet_search`. A talk is indexed and ranked only if one of its results can be among the best, or if how many
results it has cannot be told otherwise. An edit must keep that an agent's results are those of `AgentSearcher.ranked`.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from everlog.actors.memory.archive_questions import kept_page, near_of
from everlog.actors.memory.derived_search import derived_page, embedded
from everlog.actors.memory.joint_search import RESULTS_MAX, message_page, span_of, together
from everlog.actors.ports.agent_constants import PASSAGE_CHARS
from everlog.actors.ports.effects import ArchiveClient, Filters, Page, Place, ThreadRunner
from everlog.actors.reports.best_hits import FoundHits
from everlog.actors.reports.searched_texts import AgentTexts
from everlog.actors.reports.talk_outline import SoughtStems, TalkOutline
from everlog.events import ArchiveDown
from everlog.projections import HEAD, RecallPage
from everlog.projections.archival_memory import memories_found, memories_passing
from everlog.projections.recall_search import rarities, without_names
from everlog.projections.search.talk_cache import AgentTalk
from everlog.store import ArchiveQuery, MeaningQuery, SaidMessages
from everlog.store.base.stemming import stems
from everlog.store.embedding.best_passage import stems_shown

_NOTHING_TO_COMPARE = np.empty(0, np.float32)


class _Outlined(NamedTuple):
    """An agent, what its talk has of the query, and the places besides messages that are searched."""

    agent: AgentTexts
    outline: TalkOutline
    others: Sequence[Place]


class _Unfinished(NamedTuple):
    """An agent with more places than its messages, of which these are ranked."""

    agent: AgentTexts
    others: Sequence[Place]
    weights: Mapping[str, float]
    messages: Page | None


class ChunkSearch:
    """One query, asked of the texts of many agents."""

    def __init__(
        self,
        query: str,
        filters: Filters,
        places: Sequence[Place],
        archive: ArchiveClient | None,
        aside: ThreadRunner,
    ) -> None:
        """`places`: those that the filters leave."""
        self._query = query
        self._filters = filters
        self._places = places
        self._archive = archive
        self._aside = aside
        self._sought = SoughtStems(query)
        self._spans: dict[str, tuple[int | None, int | None]] = {}

    async def add(self, agents: Sequence[AgentTexts], numbers: Mapping[str, int], found: FoundHits) -> None:
        """Search these agents, and add what is found. `numbers`: of each agent, by its name."""
        outlined: list[_Outlined] = await self._aside(self._outlined, agents)
        near = await self._meanings(outlined)
        left: list[_Unfinished] = await self._aside(self._messages, outlined, near, numbers, found)
        for one in left:
            pages = await self._pages(one)
            page = await self._aside(together, one.agent.name, pages, self._query, one.weights)
            found.add(numbers[one.agent.name], page)

    def _outlined(self, agents: Sequence[AgentTexts]) -> list[_Outlined]:
        some = []
        for agent in agents:
            others = agent.facts.places(self._places)
            if others or "messages" in self._places:
                some.append(_Outlined(agent, TalkOutline(agent.said, self._sought), others))
        return some

    async def _meanings(self, outlined: Sequence[_Outlined]) -> "Sequence[np.ndarray | None]":
        """Return the similarity of the messages of each agent; None for all if the archive does not answer."""
        if self._archive is None or "messages" not in self._places:
            return [_NOTHING_TO_COMPARE] * len(outlined)
        asked = [
            MeaningQuery(
                agent.name, without_names(self._query, outline.name_stems.values()),
                SaidMessages([one.seq for one in agent.said], partial(_message, agent)),
            )
            for agent, outline, _ in outlined
        ]  # fmt: skip
        try:
            return await self._archive.meanings_of_many(asked)
        except ArchiveDown:
            return [None] * len(outlined)

    def _messages(
        self,
        outlined: Sequence[_Outlined],
        meanings: "Sequence[np.ndarray | None]",
        numbers: Mapping[str, int],
        found: FoundHits,
    ) -> list[_Unfinished]:
        """Search the messages. Return the agents of which other places are left to be searched."""
        left = []
        for (agent, outline, others), near in zip(outlined, meanings, strict=True):
            number = numbers[agent.name]
            by_meaning = near is not None and len(near) > 0
            if not others and by_meaning and not self._sought.phrases:
                assert near is not None
                if not found.best.needs(number, outline.relevance_max(near)):
                    found.count(min(RESULTS_MAX, self._fitting(agent)))
                    continue
            if not by_meaning and not outline.may_match and not self._others_may_match(agent, others):
                found.add(number, Page(0, 0, 0, (), archive_down=near is None))
                continue
            talk = AgentTalk(0, agent.said).view(HEAD)
            weights = rarities(self._query, talk)
            page = None
            if "messages" in self._places:
                page = message_page(talk, self._query, 0, RESULTS_MAX, self._filters, agent.facts.zone, near)
            if others:
                left.append(_Unfinished(agent, others, weights, page))
            elif page is not None:
                found.add(number, together(agent.name, [page], self._query, weights))
        return left

    def _fitting(self, agent: AgentTexts) -> int:
        """Return the number of messages that pass the filters: if meanings are known, all of them are results."""
        filters = self._filters
        after, before = self._span(agent.facts.zone)
        if not filters.roles and after is None and before is None:
            return len(agent.said)
        return sum(
            (not filters.roles or one.role in filters.roles)
            and (after is None or one.time >= after)
            and (before is None or one.time < before)
            for one in agent.said
        )

    def _span(self, zone: str) -> tuple[int | None, int | None]:
        known = self._spans.get(zone)
        if known is None:
            known = self._spans[zone] = span_of(self._filters.start, self._filters.end, zone)
        return known

    def _others_may_match(self, agent: AgentTexts, others: Sequence[Place]) -> bool:
        """Return False if words alone can find nothing in the other places of an agent."""
        if not others:
            return False
        if self._archive is not None or not self._query.strip():
            return True
        texts = [("", row["text"]) for row in agent.kept] + [(row["name"], row["text"]) for row in agent.derived]
        any_of = self._sought.any
        return any(
            not any_of.isdisjoint(stems_shown(text, PASSAGE_CHARS)) or not any_of.isdisjoint(stems(text))
            or not any_of.isdisjoint(stems(name)) or self._sought.in_words(text)
            for name, text in texts
        )  # fmt: skip

    async def _pages(self, one: _Unfinished) -> list[Page]:
        """Return a page of each place, in their order."""
        pages = []
        for place in self._places:
            if place == "messages" and one.messages is not None:
                pages.append(one.messages)
            elif place in one.others:
                pages.append(await (self._derived(one) if place == "derived" else self._kept(one.agent, place)))
        return pages

    async def _derived(self, one: _Unfinished) -> Page:
        rows = one.agent.derived
        near, down = await near_of(self._archive, one.agent.name, self._query, embedded(rows))
        work = partial(derived_page, archive_down=down)
        page: Page = await self._aside(
            work, rows, self._query, 0, RESULTS_MAX, self._filters, one.agent.facts.zone, one.weights, near
        )
        return page

    async def _kept(self, agent: AgentTexts, place: Place) -> Page:
        """Return a page of memories or documents."""
        after, before = self._span(agent.facts.zone)
        filters, attached = self._filters, agent.attached
        wanted = ArchiveQuery(
            agent_id=agent.name, query=self._query, as_of=agent.facts.head,
            as_of_time=attached.time, sources=() if place == "archive" else attached.sources, after=after,
            before=before, tags=filters.tags, source=filters.source, own=place != "documents", first=0,
            count=RESULTS_MAX,
        )  # fmt: skip
        if place == "documents":
            return await kept_page(self._archive, wanted, None, None)

        def by_words() -> RecallPage:
            rows = memories_passing(agent.kept, filters.tags, filters.source, after, before)
            return memories_found(rows, self._query, 0, RESULTS_MAX)

        return await kept_page(self._archive, wanted, agent.known(), partial(self._aside, by_words))


def _message(agent: AgentTexts, place: int) -> tuple[str, str, str]:
    """Return role, name and text of a message."""
    one = agent.said[place]
    return one.role, one.name, one.text
