"""Vectors of messages: each message is embedded once, by any process, and an erasure takes its vector along."""

import logging
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from everlog.events import ArchiveError, EmbedderError, uuid7
from everlog.store import MeaningQuery, SaidMessages
from everlog.store.archive import MessageVectors, ServingTable, drop_messages, message_vectors_of
from everlog.store.archive import message_vectors as module
from everlog.store.archive.archive_metadata import NOTES, ArchiveMetadata
from tests.support.store.archive_world import NOW, Hashed, World

TEXTS = ("the cat sleeps by the river", "bread and coffee", "...", "another cat")


def said(*texts: str, first: int = 1) -> SaidMessages:
    """Return messages with these texts, one seq after the other."""
    return SaidMessages(range(first, first + len(texts)), [("user", "", text) for text in texts].__getitem__)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "store")
    yield world
    world.close()


def vectors_of(world: World) -> MessageVectors:
    """Return the vectors of the world's store, made with its embedder."""
    return message_vectors_of(world.store, lambda _: world.embedder)


def embedded(embedder: Hashed) -> list[str]:
    """Return what the embedder was asked for since the last call."""
    asked, embedder.asked = embedder.asked, []
    return asked


def test_meanings_are_of_exactly_the_given_messages(world: World) -> None:
    """Each message has a similarity, the nearer the higher; one without words has none at all, which is 0."""
    world.embedder = Hashed(dimension=256)
    vectors = vectors_of(world)
    meanings = vectors.near("sam", "user cat river", said(*TEXTS))
    assert meanings.dtype == np.float32 and len(meanings) == 4
    assert min(meanings[0], meanings[3]) > meanings[1] and meanings[2] == 0
    assert vectors.near("sam", "user cat river", said(*TEXTS[:2])).tolist() == meanings[:2].tolist()
    assert len(vectors.near("sam", "?!", said(*TEXTS))) == 0 == len(vectors.near("sam", "cat", said()))
    vectors.close()


def test_many_agents_are_compared_as_each_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The similarities of many agents are those of each; a query is embedded once for all of them; what is in memory
    stays within its bound and is counted.
    """
    monkeypatch.setattr(module, "MESSAGE_CACHE_BYTES_MAX", 300)
    asked = [
        MeaningQuery("ann", "cat", said(*TEXTS)), MeaningQuery("bob", "cat", said(*TEXTS[:2])),
        MeaningQuery("cid", "...", said(*TEXTS)), MeaningQuery("dan", "cat", said()),
        MeaningQuery("eve", "river", said(*TEXTS[1:])), MeaningQuery("ann", "river", said(*TEXTS[:3])),
    ]  # fmt: skip
    vectors = vectors_of(world)
    together = [found.tolist() for found in vectors.near_many(asked)]
    questions = [text for text in embedded(world.embedder) if not text.startswith("user")]
    assert questions.count("cat") == questions.count("river") == 1
    assert vectors._used == sum(stream.size for stream in vectors._streams.values()) <= 300
    assert together == [vectors.near(*one).tolist() for one in asked]
    vectors.rest()
    assert vectors._used == 0
    vectors.close()


def test_the_nearest_passage_of_a_message_counts(world: World) -> None:
    """One sentence in a long reply is as near as it would be alone; a part without words changes nothing."""
    world.embedder = Hashed(dimension=256)
    vectors = vectors_of(world)
    filler = "Bread, coffee and butter are for sale. " * 30
    reply = f"{filler}\n\nThe cat sleeps by the river.\n\n{'- ' * 400}\n\n{filler}"
    alone, long = vectors.near("sam", "user cat river", said("The cat sleeps by the river.", reply)).tolist()
    assert alone == long > 0
    texts = embedded(world.embedder)[1:]
    assert len(texts) > 3 and all(text.startswith("user: ") and len(text) < 520 for text in texts)
    again = vectors_of(world)
    assert again.near("sam", "user cat river", said("The cat sleeps by the river.", reply)).tolist() == [alone, long]
    assert len(embedded(world.embedder)) == 1
    vectors.close()
    again.close()


def test_a_message_of_any_size_has_a_bounded_number_of_passages() -> None:
    """Of 10 MB the first 100,000 characters are embedded."""
    assert 200 <= len(module.embedded_texts("user", "", "word " * 2_000_000)) < 210
    assert module.embedded_texts("user", "Ann", " . " * 10_000) == [""]


def test_at_rest_no_vector_is_in_memory_and_none_is_made_again(world: World) -> None:
    """After a rest the answer is the same to the digit, and only the query is embedded: the rest is in the file."""
    vectors = vectors_of(world)
    before = vectors.near("sam", "cat", said(*TEXTS)).tolist()
    embedded(world.embedder)
    vectors.rest()
    assert not vectors._streams
    assert vectors.near("sam", "cat", said(*TEXTS)).tolist() == before
    assert embedded(world.embedder) == ["cat"]
    vectors.close()


def test_messages_may_be_added_in_any_order(world: World) -> None:
    """Searches of parts of the talk, the later part first, find what one search of all of it finds."""
    at_once, bit_by_bit = vectors_of(world), vectors_of(world)
    texts = ("a cat", "a river " * 100, "bread", "another cat", "coffee " * 200)
    whole = at_once.near("ann", "cat river", said(*texts)).tolist()
    for first, last in ((3, 5), (0, 1), (2, 3), (0, 5), (1, 5)):
        found = bit_by_bit.near("sam", "cat river", said(*texts[first:last], first=first + 1)).tolist()
        assert found == whole[first:last]
    at_once.close()
    bit_by_bit.close()


def test_vectors_of_other_rules_are_made_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kept vectors of another version of the rules, or of another dimension, are not compared; the table of a release
    that kept one vector for a message is dropped.
    """
    vectors = vectors_of(world)
    right = vectors.near("sam", "cat", said(*TEXTS)).tolist()
    vectors.close()
    notes = ArchiveMetadata(world.root / "archive" / NOTES)
    with notes.change():
        notes._db.execute("UPDATE passage SET rules = 0 WHERE seq = 1")
        notes._db.execute("UPDATE passage SET numbers = x'00' WHERE seq = 2")
        notes._db.execute("CREATE TABLE message (model TEXT)")
    notes.close()
    embedded(world.embedder)
    vectors = vectors_of(world)
    assert vectors.near("sam", "cat", said(*TEXTS)).tolist() == right
    assert embedded(world.embedder) == ["cat", f"user: {TEXTS[0]}", f"user: {TEXTS[1]}"]
    assert not vectors._opened()._read("SELECT name FROM sqlite_master WHERE name = 'message'")
    vectors.close()


def test_a_message_is_embedded_once_in_all_processes(world: World) -> None:
    """A second search, and a search of another process, embed only the query and what is new."""
    first = vectors_of(world)
    before = first.near("sam", "cat", said(*TEXTS)).tolist()
    embedded(world.embedder)
    assert first.near("sam", "cat", said(*TEXTS)).tolist() == before
    first.close()
    second = vectors_of(world)
    assert second.near("sam", "cat", said(*TEXTS)).tolist() == before
    assert embedded(world.embedder) == ["cat", "cat"]
    assert second.near("sam", "cat", said(*TEXTS, "a new cat"))[:4].tolist() == before
    assert embedded(world.embedder) == ["cat", "user: a new cat"]
    second.close()


def test_preparing_leaves_nothing_for_the_search(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """After `prepare` a search embeds the query alone; a process that closes stops between two batches."""
    monkeypatch.setattr(module, "EMBED_PASSAGES", 2)
    vectors = vectors_of(world)
    closing = iter((False, True))
    vectors.prepare("sam", said(*TEXTS), lambda: next(closing))
    assert len(embedded(world.embedder)) == 1 + 2
    vectors.prepare("sam", said(*TEXTS), lambda: False)
    embedded(world.embedder)
    vectors.near("sam", "cat", said(*TEXTS))
    assert embedded(world.embedder) == ["cat"]
    with pytest.raises(ArchiveError, match="the process closes"):
        vectors.near("ann", "cat", said(*TEXTS), lambda: True)
    vectors.close()


def test_a_fork_uses_the_vectors_of_its_ancestors(world: World) -> None:
    """Messages before the fork point are embedded under the parent; the same seq after it is the fork's own."""
    for text in TEXTS:
        world.say("sam", text)
    world.store.fork("sam", 2, "tom", event_id=uuid7(NOW, 77))
    vectors = vectors_of(world)
    whole = vectors.near("sam", "cat", said(*TEXTS))
    embedded(world.embedder)
    fork = vectors.near("tom", "cat", said(*TEXTS[:2], "cat cat cat"))
    assert embedded(world.embedder) == ["cat", "user: cat cat cat"]
    assert fork[:2].tolist() == whole[:2].tolist() and fork[2] > whole[2]
    vectors.close()


def test_another_embedder_of_the_table_is_taken_over(world: World) -> None:
    """After a rebuild with another embedder no vector of the old one is compared."""
    made: list[ServingTable | None] = []

    def embedder_of(serving: ServingTable | None) -> Hashed:
        made.append(serving)
        return Hashed() if serving is None else Hashed(serving.embedder, serving.dimension)

    vectors = message_vectors_of(world.store, embedder_of)
    vectors.near("sam", "cat", said(*TEXTS))
    archive = world.archive(Hashed("other", 8))
    world.insert("sam", "a memory")
    archive.follow()
    other = vectors.near("sam", "cat", said(*TEXTS))
    archive.close()
    vectors.close()
    assert [serving and serving.embedder for serving in made] == [None, "other"]
    fresh = message_vectors_of(world.store, embedder_of)
    assert fresh.near("sam", "cat", said(*TEXTS)).tolist() == other.tolist()
    fresh.close()


def kept(world: World, agent_id: str) -> Sequence[int]:
    """Return the seqs of a stream whose vectors are in the file."""
    notes = ArchiveMetadata(world.root / "archive" / NOTES)
    try:
        return list(notes.message_vectors("hashed", agent_id))
    finally:
        notes.close()


def test_an_erasure_drops_the_vectors_of_its_streams_alone(world: World) -> None:
    """Both ways of an erasure drop vectors: the command, and the index that follows the log. Others stay."""
    world.say("sam", "the secret")
    vectors = vectors_of(world)
    for agent_id in ("sam", "ann", "bea"):
        vectors.near(agent_id, "cat", said("the secret"))
    vectors.close()
    drop_messages(world.store, ["ann"])
    assert [list(kept(world, agent_id)) for agent_id in ("sam", "ann", "bea")] == [[1], [], [1]]
    world.erase("sam", 1, 1)
    archive = world.archive()
    archive.follow()
    archive.close()
    assert [list(kept(world, agent_id)) for agent_id in ("sam", "ann", "bea")] == [[], [], [1]]


def test_memory_for_streams_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """With more streams than fit into memory, those searched last are kept there, and all searches are right."""
    monkeypatch.setattr(module, "MESSAGE_CACHE_BYTES_MAX", 3 * len(TEXTS) * 16 * 4)
    vectors = vectors_of(world)
    for _ in range(2):
        for number in range(10):
            assert len(vectors.near(f"agent {number}", "cat", said(*TEXTS))) == 4
    assert 0 < len(vectors._streams) < 10
    vectors.close()


def test_a_failure_of_the_embedder_keeps_what_was_embedded_before(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The texts before a failure are not embedded again."""
    monkeypatch.setattr(module, "EMBED_PASSAGES", 1)

    class Failing(Hashed):
        def embed(self, texts):
            if "user: another cat" in texts:
                raise EmbedderError("busy")
            return super().embed(texts)

    failing = message_vectors_of(world.store, lambda _: Failing())
    with pytest.raises(EmbedderError, match="busy"):
        failing.near("sam", "cat", said(*TEXTS))
    failing.close()
    vectors = vectors_of(world)
    vectors.near("sam", "cat", said(*TEXTS))
    assert embedded(world.embedder) == ["cat", "user: another cat"]
    vectors.close()


def test_embedding_imports_no_lancedb_and_configures_no_logging() -> None:
    """A process that embeds loads neither LanceDB nor the package wordllama, and its root logger stays as it was."""
    probe = (
        "import logging, sys; import everlog.store.archive; "
        "from everlog.store.embedding.embedder import embedder_of; embedder_of().embed(['hello']); "
        "print([name for name in ('lancedb', 'wordllama', 'ray', 'openai') if name in sys.modules], "
        "logging.getLogger().handlers, logging.getLogger().level)"
    )
    run = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == f"[] [] {logging.WARNING}" and run.stderr == ""
