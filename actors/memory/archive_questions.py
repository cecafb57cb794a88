"""Ask the archive for results, similarities and the order of a reranker, and do without if it does not answer.

Used by `agent_search.py` for one agent, and by `actors/reports/fleet_search.py` for many. Without a reranker, a search
must cost and return what it does without `reranked`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from everlog.actors.memory.joint_search import page_from
from everlog.actors.ports.effects import ArchiveClient, Hit, Page
from everlog.events import ArchiveDown
from everlog.projections import RecallPage
from everlog.store import ArchiveQuery, SaidMessages

if TYPE_CHECKING:
    from everlog.projections.search.memory_cache import KnownMemories

RERANKED = 50
"""Number of best results of a search that a reranker puts in order."""
RERANK_CHARS_MAX = 2_000
"""Characters of a text, and of the query, that a reranker gets: about the 512 tokens that such models read."""


async def kept_page(
    archive: ArchiveClient | None,
    wanted: ArchiveQuery,
    known: "KnownMemories | None",
    by_words: Callable[[], Awaitable[RecallPage]] | None,
) -> Page:
    """Return a page of memories and documents. `known`: see `ArchiveClient.search`. `by_words` searches the agent's own
    log if the archive does not; None: the log has nothing of what is wanted.
    """
    if archive is not None:
        with suppress(ArchiveDown):
            return await archive.search(wanted, known)
    page, down = wanted.first // wanted.count, archive is not None
    if by_words is None:
        return Page(0, page, 0, (), archive_down=down)
    return page_from(await by_words(), page, wanted.count, archive_down=down)


async def near_of(
    archive: ArchiveClient | None, agent_id: str, query: str, said: SaidMessages
) -> tuple[Mapping[int, float] | None, bool]:
    """Return the similarity of each text of an agent to the query, by seq; None if it is not known. Return True as the
    second value if there is an archive that does not answer.
    """
    if archive is None or not len(said.seqs):
        return None, False
    try:
        cosines = await archive.meanings(agent_id, query, said)
    except ArchiveDown:
        return None, True
    seqs: Sequence[int] = [int(seq) for seq in said.seqs]
    return (dict(zip(seqs, cosines.tolist(), strict=True)) if len(cosines) else None), False


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
