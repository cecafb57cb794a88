"""Searches of memories that the host has do not wait for the archive."""

import asyncio

import pytest

from everlog.actors.archive import archive_service
from everlog.actors.archive.archive_service import ClusterArchiveClient
from everlog.actors.ports.effects import Page
from everlog.events import ArchiveDown, Record, uuid7
from everlog.projections.search.memory_cache import KnownMemories
from tests.actors.archive.test_archive_service import OFF, WANTED, run, wanted
from tests.support.store.message_vectors import Vectors, meant

RECORD = Record(
    agent_id="ann", seq=2, commit=1, event_id=uuid7(1, 1), recorded_at=1, said_at=None, type="archival_inserted",
    turn=0, step=0, cause=None, version=1, text="wifi", payload="{}",
)  # fmt: skip


@pytest.mark.parametrize("archive", ["dies", "hangs", "answers late"])
def test_an_archive_without_an_answer_holds_up_only_those_who_need_it(archive: str, monkeypatch) -> None:
    """Of searches that wait together, those of agents whose memories are known are answered at once; the others get an
    error, or their answer when it comes.
    """
    monkeypatch.setattr(archive_service, "SEARCH_S", 0.001 if archive == "hangs" else 60)
    known = KnownMemories(since=1)
    known.records.append(RECORD)

    async def ask():
        answered, release = [], asyncio.Event()

        async def send(questions):
            if archive == "dies":
                raise ArchiveDown("the archive is gone")
            await release.wait()
            return [Page(7, 0, 1, ())] * len(questions)

        clerk = ClusterArchiveClient(send, meant(Vectors()), OFF)
        needy = asyncio.gather(clerk.search(WANTED), clerk.search(wanted("bob")), return_exceptions=True)
        answered = await asyncio.gather(clerk.search(wanted("ann"), known), clerk.search(wanted("cid"), known))
        assert archive == "dies" or not needy.done() or archive == "hangs"
        if archive == "answers late":
            release.set()
        rest = await needy
        release.set()
        await asyncio.gather(*clerk._calls, return_exceptions=True)
        return answered, rest

    answered, rest = run(ask())
    assert [page.total for page in answered] == [1, 1]
    if archive == "answers late":
        assert [page.total for page in rest] == [7, 7]
    else:
        assert all(isinstance(error, ArchiveDown) for error in rest)


def test_searches_of_known_memories_start_the_archive_once() -> None:
    """The first search of a known memory starts the archive, which follows the log from then on; no later search asks
    it anything.
    """
    known, calls = KnownMemories(since=1), []

    async def ask():
        async def send(questions):
            calls.append(list(questions))
            return []

        clerk = ClusterArchiveClient(send, meant(Vectors()), OFF)
        await clerk.search(wanted("ann"), known)
        assert calls == []
        known.records.append(RECORD)
        for _ in range(3):
            await clerk.search(wanted("ann"), known)
        await asyncio.gather(*clerk._calls)

    run(ask())
    assert calls == [[]]
