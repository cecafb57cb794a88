"""The archive of a store: what an erasure takes along, and what is embedded when a large agent is loaded."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from everlog.actors.archive.archive_index import catch_up, index_of, message_meanings
from everlog.actors.archive.embedder_choice import embedder_for
from everlog.actors.archive.message_meanings import NOTHING_SAID
from everlog.actors.ports.agent_constants import EMBED_AHEAD_RECORDS
from everlog.store import SaidMessages
from everlog.store.archive.archive_metadata import NOTES, ArchiveMetadata
from everlog.store.embedding.embedder import DEFAULT_EMBEDDER
from tests.support.models.loopback_server import serving
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


def test_an_endpoint_embeds_messages_too(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a rebuild with a model of an endpoint, its vectors compare the messages; each is sent once."""
    boat, other = [0.0, 1.0], [1.0, 0.0]

    def rows(*some: list[float]) -> tuple[int, str]:
        return 200, json.dumps({"data": [{"index": n, "embedding": row} for n, row in enumerate(some)]})

    with serving(rows(other), rows(other), rows(boat), rows(boat, other, boat), rows(boat)) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        index = index_of(world.store)
        assert index.rebuild(embedder_for("some-model")).embedder == f"some-model at {server.url}/"
        index.close()
        assert asyncio.run(meanings(world)) == [1, 0, 1] == asyncio.run(meanings(world))
    sent = [json.loads(body)["input"] for body in server.bodies]
    assert sent[2:] == [["boat"], ["user: I sail.", "assistant: Do you?", "user: Every summer."], ["boat"]]


async def meanings(world: World) -> list[float]:
    """Return the similarity of the messages to "boat", by the embedder of the store."""
    service = message_meanings(lambda: world.store, note=pytest.fail, ahead_from=None)
    roles = ("user", "assistant", "user")
    said = SaidMessages([1, 2, 3], [(role, "", text) for role, text in zip(roles, MESSAGES, strict=True)].__getitem__)
    try:
        return (await service.near("sam", "boat", said)).tolist()
    finally:
        await service.close()
