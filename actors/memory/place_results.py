"""Search one place of an agent's memory, and rank the results of all of its places together. Pure: the caller reads
what is searched, and knows what is near in meaning.

Used by `agent_search.py` for one agent, and by `actors/reports/fleet_search.py` for many: so both rank by one rule.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from everlog.actors.memory import derived_search
from everlog.actors.memory.joint_search import covered, merged, places_of, relevance, scored
from everlog.actors.ports.agent_constants import PASSAGE_CHARS
from everlog.actors.ports.effects import Filters, Hit, Page
from everlog.events import FunctionError
from everlog.projections import RecallPage
from everlog.projections.recall_search import MessageFilters, check_roles, days_between, recalled
from everlog.projections.rows import Row
from everlog.projections.search.talk_index import TalkView
from everlog.store.base.stemming import phrases_in
from everlog.store.embedding.best_passage import passage_around

if TYPE_CHECKING:
    import numpy as np


def span_of(start: str, end: str, zone: str) -> tuple[int | None, int | None]:
    """Convert two days to microseconds UTC. Raise FunctionError for an invalid day, or days in the wrong order."""
    after, before = days_between(start, end, zone)
    if after is not None and before is not None and before <= after:
        raise FunctionError(f"The last day, {end}, is before the first, {start}. Both days count.")
    return after, before


def check_filters(filters: Filters) -> None:
    """Raise FunctionError for filters that no agent can answer, whatever it has."""
    places = places_of(filters)
    span_of(filters.start, filters.end, "UTC")
    if "messages" in places:
        check_roles(filters.roles)
    if "derived" in places:
        derived_search.check_kinds(filters.kinds)


def message_page(
    talk: TalkView,
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
    wanted = MessageFilters(filters.roles, filters.start, filters.end)
    found = recalled(talk, query, page * count, count, wanted, zone=zone, meanings=meanings)
    compared = meanings is not None and len(meanings) > 0
    return page_from(found, page, count, by_meaning=compared, archive_down=meanings is None)


def derived_page(
    rows: Sequence[Row],
    query: str,
    page: int,
    count: int,
    filters: Filters,
    zone: str,
    weights: Mapping[str, float],
    near: Mapping[int, float] | None,
    *,
    archive_down: bool,
) -> Page:
    """Return a page of insights, facts and items of plans. `near`: similarity of each record, by seq, if it is known.

    Raises FunctionError for invalid filters.
    """
    after, before = span_of(filters.start, filters.end, zone)
    hits = derived_search.found_among(derived_search.passing(rows, filters, after, before), query, weights, near)
    by_meaning = bool(hits) and near is not None
    results = hits[page * count :][:count]
    return Page(len(hits), page, -(-len(hits) // count), results, by_meaning=by_meaning, archive_down=archive_down)


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
    found: RecallPage, page: int, count: int, *, by_meaning: bool = False, archive_down: bool = False
) -> Page:
    """Return rows of a search as a page."""
    hits = [msgspec.convert(row, Hit) for row in found]
    return Page(
        total=found.total, page=page, pages=-(-found.total // count), results=hits, by_meaning=by_meaning,
        archive_down=archive_down,
    )  # fmt: skip
