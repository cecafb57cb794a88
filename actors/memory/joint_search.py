"""Rank what was found in several places together: messages, memories, documents and what was derived. Pure.

Each place has its own search, whose scores are relative to that place. What compares is the relevance of a result:

    relevance = 0.8 covered + 0.2 near

`covered` is the share of the query's words that are in the passage shown, or in the speaker's name, each word by its
rarity among the agent's messages. `near` is the similarity in meaning, a cosine; below 0 counts as 0. If some of the
results were found by words alone, the relevance is `covered`. Both parts are from 0 to 1, whatever else an agent has,
so results of several agents compare, too.

A place's own order knows more, such as the question that a message answers. So the relevances of one place are replaced
by the nearest sequence that does not rise: an edit must keep that the results of one place stay in the order of that
place's own search.

The caller reads what is searched, and knows what is near in meaning: `agent_search.py` for one agent, and
`actors/reports/fleet_search.py` for many, so that both rank by one rule.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from everlog.actors.ports.agent_constants import PASSAGE_CHARS
from everlog.actors.ports.effects import Filters, Hit, Page, Place
from everlog.events import FunctionError
from everlog.store.base.stemming import phrases_in, stems
from everlog.store.embedding.best_passage import Passage, passage_around

if TYPE_CHECKING:
    import numpy as np

    from everlog.projections import RecallPage
    from everlog.projections.search.talk_index import TalkView

PLACES: Sequence[Place] = ("messages", "archive", "documents", "derived")
"""Places that a search covers, in the order in which equally relevant results are listed."""
RESULTS_MAX = 50
"""Results of each place that are ranked together with those of the others."""
COVERED = 0.8
"""Weight of the covered share in a relevance; that of meaning is the rest. Cosines of one query are lower among
messages, from which the speakers' names are left out, than among memories.
"""
DIGITS = 4
"""Decimal places of a relevance."""


def places_of(filters: Filters) -> tuple[Place, ...]:
    """Return the places that can have what the filters ask for. Raise FunctionError if there is none.

    Messages have roles, memories and documents have tags, documents have a source, and what was derived has kinds.
    """
    if unknown := sorted(set(filters.places) - set(PLACES)):
        raise FunctionError(f"There is no place {unknown[0]!r} to search. Places are: {', '.join(PLACES)}.")
    allowed = {
        "messages": not filters.tags and not filters.source and not filters.kinds,
        "archive": not filters.roles and not filters.source and not filters.kinds,
        "documents": not filters.roles and not filters.kinds,
        "derived": not filters.roles and not filters.tags and not filters.source,
    }
    found = tuple(place for place in PLACES if allowed[place] and (not filters.places or place in filters.places))
    if not found:
        raise FunctionError(
            "No place has all that the search asks for: messages have roles, memories and documents have tags, "
            "documents have a source, and derived memories have kinds."
        )
    return found


def covered(passage: Passage, name: str, weights: Mapping[str, float]) -> float:
    """Return the share of a query that a passage and the speaker's name cover, from 0 to 1. `weights`: rarity of each
    stem of the query.
    """
    whole = sum(weights.values())
    have = passage.stems | (weights.keys() & set(stems(name)))
    return sum(weights[stem] for stem in sorted(have)) / whole if whole else 0.0


def relevance(share: float, near: float | None, *, by_meaning: bool) -> float:
    """Return how relevant a result is, from 0 to 1. `near`: cosine; None counts as 0."""
    return COVERED * share + (1 - COVERED) * max(near or 0.0, 0.0) if by_meaning else share


def falling(values: Iterable[float]) -> list[float]:
    """Return the sequence nearest to `values`, by the sum of squares, in which no value is above the one before it.

    Values that rise are replaced by their mean (pool adjacent violators).
    """
    groups: list[tuple[float, int]] = []
    for value in values:
        mean, count = value, 1
        while groups and groups[-1][0] < mean:
            last, others = groups.pop()
            mean, count = (mean * count + last * others) / (count + others), count + others
        groups.append((mean, count))
    return [mean for mean, count in groups for _ in range(count)]


def scored(hits: Sequence[Hit], relevances: Iterable[float]) -> list[Hit]:
    """Return the results of one place, in their order, with their relevance as their score."""
    return [
        msgspec.structs.replace(hit, score=round(value, DIGITS))
        for hit, value in zip(hits, falling(relevances), strict=True)
    ]


def merged(found: Iterable[Sequence[Hit]]) -> list[Hit]:
    """Return the results of several places or agents, most relevant first; equal ones in the order given."""
    return sorted(chain.from_iterable(found), key=lambda hit: -hit.score)


def page_of(ranked: Page, page: int, count: int) -> Page:
    """Return one page, counted from 0, of results that are all on one page."""
    results = ranked.results[page * count : (page + 1) * count]
    return msgspec.structs.replace(ranked, page=page, pages=-(-ranked.total // count), results=results)


def span_of(start: str, end: str, zone: str) -> tuple[int | None, int | None]:
    """Convert two days to microseconds UTC. Raise FunctionError for an invalid day, or days in the wrong order."""
    from everlog.projections.recall_search import days_between

    after, before = days_between(start, end, zone)
    if after is not None and before is not None and before <= after:
        raise FunctionError(f"The last day, {end}, is before the first, {start}. Both days count.")
    return after, before


def message_page(
    talk: "TalkView",
    query: str,
    page: int,
    count: int,
    filters: Filters,
    zone: str,
    meanings: "np.ndarray | None",
) -> Page:
    """Return a page of the messages of a talk. `meanings`: similarity of each; empty if there is nothing to compare;
    None if the archive did not answer.
    """
    from everlog.projections.recall_search import MessageFilters, recalled  # a host that never searches loads no index

    wanted = MessageFilters(filters.roles, filters.start, filters.end)
    found = recalled(talk, query, page * count, count, wanted, zone=zone, meanings=meanings)
    compared = meanings is not None and len(meanings) > 0
    return page_from(found, page, count, by_meaning=compared, archive_down=meanings is None)


def together(agent_id: str, pages: Sequence[Page], query: str, weights: Mapping[str, float]) -> Page:
    """Return the results of an agent's places on one page, ranked together. `weights`: weight of each stem of the
    query.
    """
    by_meaning = all(page.by_meaning for page in pages if page.results)
    lists = []
    for found in pages:
        shown, shares = with_passages(agent_id, found, query, weights)
        values = zip(shares, (hit.near for hit in shown.results), strict=True)
        lists.append(scored(shown.results, (relevance(*value, by_meaning=by_meaning) for value in values)))
    hits = merged(lists)
    down = any(page.archive_down for page in pages)
    return Page(len(hits), 0, int(bool(hits)), hits, by_meaning=bool(hits) and by_meaning, archive_down=down)


def with_passages(agent_id: str, found: Page, query: str, weights: Mapping[str, float]) -> tuple[Page, Sequence[float]]:
    """Return a page whose hits have their passages and the agent, and for each hit the share of the query that it
    covers. `weights`: weight of each stem of the query.
    """
    phrases, rest = phrases_in(query)
    sought = [*phrases, rest] if rest else phrases
    hits, shares = [], []
    for hit in found.results:
        passage = passage_around(hit.text, weights, PASSAGE_CHARS, sought)
        short = "" if passage.text == hit.text else passage.text
        hits.append(msgspec.structs.replace(hit, passage=short, agent=agent_id))
        shares.append(covered(passage, hit.name, weights))
    return msgspec.structs.replace(found, results=hits), shares


def page_from(
    found: "RecallPage", page: int, count: int, *, by_meaning: bool = False, archive_down: bool = False
) -> Page:
    """Return rows of a search as a page."""
    hits = [msgspec.convert(row, Hit) for row in found]
    return Page(
        total=found.total, page=page, pages=-(-found.total // count), results=hits, by_meaning=by_meaning,
        archive_down=archive_down,
    )  # fmt: skip
