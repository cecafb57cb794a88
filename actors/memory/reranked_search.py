"""Let a reranker put the best results of a search in order, if the store has one.

Used by `agent_search.py`. Without a reranker, a search must cost and return what it does without this file.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import msgspec

from everlog.actors.ports.effects import ArchiveClient, Hit, Page
from everlog.events import ArchiveDown

RERANKED = 50
"""Number of best results of a search that a reranker puts in order."""
RERANK_CHARS_MAX = 2_000
"""Characters of a text, and of the query, that a reranker gets: about the 512 tokens that such models read."""


async def reranked(
    archive: ArchiveClient | None,
    query: str,
    page: int,
    count: int,
    search: Callable[[int, int], Awaitable[Page]],
) -> Page:
    """Return a page of the results of `search(page, count)`: the best RERANKED in the order of the reranker, then the
    others in their own. If the reranker gives no answer, the page has the order without it, and says so.
    """
    page = max(page, 0)
    if archive is None or not archive.reranks or not query.strip() or page * count >= RERANKED:
        return await search(page, count)
    best = await search(0, RERANKED)
    order: Sequence[int] = range(len(best.results))
    answered = False
    with suppress(ArchiveDown):
        order = await archive.rerank(query, list(map(_sent, best.results))) if best.results else order
        answered = True
    hits: list[Hit] = [best.results[number] for number in order][page * count : (page + 1) * count]
    if (page + 1) * count > RERANKED and best.total > RERANKED:
        hits += (await search(page, count)).results[len(hits) :]
    return msgspec.structs.replace(
        best, page=page, pages=-(-best.total // count), results=hits, reranked=answered, reranker_down=not answered
    )


def _sent(hit: Hit) -> str:
    """Return the text of a result that is sent: the whole, or its best passage if it is too long."""
    return hit.text if len(hit.text) <= RERANK_CHARS_MAX else hit.passage or hit.text
