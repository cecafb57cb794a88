"""The meanings of messages: loaded once, embedded ahead for large agents, and noted when something is broken."""

import asyncio
import threading
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from everlog.actors.archive import message_meanings
from everlog.actors.archive.message_meanings import NOTHING_SAID
from everlog.actors.ports.agent_constants import EMBED_AHEAD_RECORDS
from everlog.events import ArchiveDown, EmbedderError
from everlog.store import MeaningQuery
from tests.support.store.message_vectors import Vectors, meant


def test_only_a_large_agent_is_embedded_ahead_and_the_embedder_is_loaded_once() -> None:
    """Of small agents the first loads the embedder; the messages of a large one are embedded when it is loaded. A host
    of a cluster, whose memory counts, does the second alone, and a process that ends soon neither.
    """

    async def begin(ahead_from: int | None) -> list[tuple[str, int]]:
        vectors = Vectors()
        service = meant(vectors, ahead_from=ahead_from)
        for agent_id, records in (("ann", 5), ("bea", 6), ("sam", EMBED_AHEAD_RECORDS)):
            service.begin(agent_id, records)
        await service.near("sam", "wifi", NOTHING_SAID)
        await service.close()
        return vectors.prepared

    assert asyncio.run(begin(0)) == [("ann", 0), ("sam", 1)]
    assert asyncio.run(begin(EMBED_AHEAD_RECORDS)) == [("sam", 1)]
    assert asyncio.run(begin(None)) == []


def test_a_service_at_rest_gives_back_what_it_has_opened() -> None:
    """Resting reaches opened vectors once each time, opens none, and does nothing after the end."""

    async def main() -> None:
        vectors = Vectors()
        service = meant(vectors)
        service.rest()
        await service.near("sam", "wifi", NOTHING_SAID)
        assert vectors.rested == 0
        service.rest()
        await service.near("sam", "wifi", NOTHING_SAID)
        assert vectors.rested == 1
        await service.close()
        service.rest()

    asyncio.run(main())


def test_vectors_that_break_are_noted_once_and_opened_again() -> None:
    """A failure is an ArchiveDown and one note, in the background too; the next search opens the vectors again."""
    notes: list[str] = []

    async def ask():
        vectors = Vectors()
        service = meant(vectors, notes, ahead_from=0)
        vectors.fails = EmbedderError("no key")
        service.begin("sam", 1)
        for _ in range(2):
            with pytest.raises(ArchiveDown, match="no key"):
                await service.near("sam", "wifi", NOTHING_SAID)
        vectors.fails = None
        found = await service.near("sam", "wifi", NOTHING_SAID)
        await service.close()
        return found.tolist(), vectors.opened

    assert asyncio.run(ask()) == ([0.5], 4)
    assert notes == ["messages cannot be compared by meaning, and searches go by words alone: no key"]


def test_a_bug_while_embedding_ahead_is_noted() -> None:
    """An unexpected error of the background is reported, because no caller awaits it."""
    notes: list[str] = []

    async def ask() -> None:
        vectors = Vectors()
        vectors.fails = ZeroDivisionError("ours")
        service = meant(vectors, notes, ahead_from=0)
        service.begin("sam", 1)
        await service.close()

    asyncio.run(ask())
    assert "ZeroDivisionError" in notes[0]


def test_after_a_slow_embedder_later_searches_do_not_wait_for_it(monkeypatch) -> None:
    """An embedder that does not answer holds up one search, not all that follow."""
    monkeypatch.setattr(message_meanings, "SEARCH_S", 0.001)
    answer = threading.Event()

    class Slow(Vectors):
        def near_many(self, asked: Sequence[MeaningQuery], is_closing: Callable[[], bool]) -> list[np.ndarray]:
            answer.wait()
            return [np.empty(0, np.float32) for _ in asked]

    async def ask() -> None:
        service = meant(Slow())
        with pytest.raises(ArchiveDown, match="no answer in"):
            await service.near("sam", "wifi", NOTHING_SAID)
        with pytest.raises(ArchiveDown, match="a moment ago"):
            await service.near("ann", "wifi", NOTHING_SAID)
        answer.set()
        await service.close()

    asyncio.run(ask())
