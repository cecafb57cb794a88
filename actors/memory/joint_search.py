"""Rank what was found in several places together: messages, memories, documents and what was derived. Pure.

Each place has its own search, whose scores are relative to that place. What compares is the relevance of a result:

    relevance = 0.8 covered + 0.2 near

`covered` is the share of the query's words that are in the passage shown, or in the speaker's name, each word by its
rarity among the agent's messages. `near` is the similarity in meaning, a cosine; below 0 counts as 0. If some of the
results were found by words alone, the relevance is `covered`. Both parts are from 0 to 1, whatever else an agent has,
so results of several agents compare, too.

A place's own order knows more, such as the question that a message answers. So the relevances of one place are replaced
by the nearest sequence that does not rise: an edit must keep that the results of one place stay in the order of that
place's own search. Used by `agent_search.py` and `actors/reports/fleet_search.py`.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import msgspec

from everlog.actors.ports.effects import Filters, Hit, Page, Place
from everlog.events import FunctionError
from everlog.store.base.stemming import stems
from everlog.store.embedding.best_passage import Passage

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
