"""The archive of a store: what an erasure takes along, and what is embedded when a large agent is loaded."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from everlog.actors.archive.archive_index import catch_up, message_meanings
from everlog.actors.archive.message_meanings import NOTHING_SAID
from everlog.actors.ports.agent_constants import EMBED_AHEAD_RECORDS
from everlog.store.archive.archive_metadata import NOTES, ArchiveMetadata
from everlog.store.embedding.embedder import DEFAULT_EMBEDDER
from tests.support.store.archive_world import World

MESSAGES = ("I sail.", "Do you?", "Every summer.")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "store")
    for number, text in enumerate(MESSAGES):
        world.say("sam", text, sent=number == 1)
    yield world
    world.close()


def kept(world: World, agent_id: str) -> list[int]:
    """Return the seqs of the messages whose vectors are in the file."""
    notes = ArchiveMetadata(world.root / "archive" / NOTES)
    try:
        return list(notes.message_vectors(DEFAULT_EMBEDDER, agent_id))
    finally:
        notes.close()


def begun(world: World, records: int) -> None:
    """Load an agent with so many records in a process that stays."""

    async def begin() -> None:
        service = message_meanings(lambda: world.store, note=pytest.fail, ahead_from=0)
        service.begin("sam", records)
        await service.near("sam", "boat", NOTHING_SAID)  # answered after the background is done
        await service.close()

    asyncio.run(begin())


def test_a_large_agent_is_embedded_when_it_is_loaded(world: World) -> None:
    """All that was said to and by the agent has its vector before the first search."""
    begun(world, EMBED_AHEAD_RECORDS)
    assert kept(world, "sam") == [1, 2, 3]


def test_a_small_agent_writes_nothing_when_it_is_loaded(world: World) -> None:
    """Only the embedder is loaded: the folder of the archive is not made."""
    begun(world, 3)
    assert not (world.root / "archive").exists()


def test_an_erasure_drops_vectors_of_messages_and_makes_no_table(world: World) -> None:
    """In a store in which only messages were searched, an erasure drops their vectors without LanceDB."""
    begun(world, EMBED_AHEAD_RECORDS)
    world.erase("sam", 1, 1)
    catch_up(world.store, ["sam"])
    assert kept(world, "sam") == []
    assert not list((world.root / "archive").glob("*.lance"))
