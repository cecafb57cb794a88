"""Ask the archive, and go by words if there is none or it does not answer.

Used by `agent_search.py` for one agent, and by `actors/reports/fleet_search.py` for many.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from everlog.actors.memory.place_results import page_from
from everlog.actors.ports.effects import ArchiveClient, Page
from everlog.events import ArchiveDown
from everlog.projections import RecallPage
from everlog.store import ArchiveQuery, SaidMessages

if TYPE_CHECKING:
    from everlog.projections.search.memory_cache import KnownMemories


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
