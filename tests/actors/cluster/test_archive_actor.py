"""The archive's actor answers for its status at once, with the figures of before if its index is busy."""

import asyncio
from typing import Any

from everlog.actors.cluster import archive_actor
from everlog.actors.cluster.archive_actor import ArchiveActor
from everlog.actors.hosting.cluster_status import ArchiveStatus
from everlog.events import ArchiveDown
from everlog.store.archive import IndexSizes, IndexStatus

SIZES = IndexSizes(9, 30, 7_000, 4, 500, 1_000, 60, 100)
FIGURES = IndexStatus("hashed", 16, 1, 3, 8, 2, 1, 11, 7_000, SIZES)


class Index:
    """An archive service whose status arrives when the test allows it."""

    def __init__(self) -> None:
        self.free = asyncio.Event()
        self.asked = 0
        self.down = False

    async def status(self) -> IndexStatus:
        self.asked += 1
        await self.free.wait()
        if self.down:
            raise ArchiveDown("no index")
        return FIGURES


def actor_of(index: Index) -> ArchiveActor:
    """Return the actor, without Ray, before its first question."""
    actor: Any = ArchiveActor.__new__(ArchiveActor)
    actor._archivist, actor._looking, actor._seen = index, None, None
    return actor


def test_a_busy_archive_answers_with_the_figures_of_before_and_their_age(monkeypatch: Any) -> None:
    """Status has every size with its limit. While the index is busy it has those of before, with their age; several
    questions ask the index once.
    """
    monkeypatch.setattr(archive_actor, "STATUS_S", 0.001)

    async def ask() -> list[ArchiveStatus | None]:
        index = Index()
        actor = actor_of(index)
        before = await actor.status()
        index.free.set()
        await actor._looking
        found = [before, await actor.status()]
        index.free.clear()
        await actor._looking
        actor._seen = (actor._seen[0], actor._seen[1] - 12)
        asked = index.asked
        found += [await actor.status(), await actor.status()]
        assert index.asked == asked + 1
        index.free.set()
        await actor._looking
        return found

    before, fresh, aged, again = asyncio.run(ask())
    assert before is None and fresh is not None and aged is not None and again is not None
    assert (fresh.memories, fresh.messages, fresh.behind, fresh.embedder) == (3, 8, 1, "hashed")
    assert (fresh.versions, fresh.files, fresh.disk_bytes) == (9, 30, 7_000)
    assert (fresh.row_cache_bytes, fresh.row_cache_bytes_max) == (500, 1_000)
    assert (fresh.table_cache_bytes, fresh.table_cache_bytes_max) == (60, 100)
    assert fresh.age_s < 12 <= aged.age_s <= again.age_s and fresh.memory_bytes > 0
    assert aged.versions == 9


def test_an_archive_that_cannot_be_opened_has_no_status() -> None:
    """No figures of before are shown once the index cannot be opened."""

    async def ask() -> tuple[ArchiveStatus | None, ArchiveStatus | None]:
        index = Index()
        index.free.set()
        actor = actor_of(index)
        found = await actor.status()
        index.down = True
        return found, await actor.status()

    found, lost = asyncio.run(ask())
    assert found is not None and lost is None
