"""Forty memories, each found by a question that shares no word with it: by its meaning alone."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from everlog.store.archive import Archive, Match
from everlog.store.base.stemming import query_stems, stems
from everlog.store.embedding.embedder import embedder_of
from tests.support.store.archive_world import Hashed, World, search

FACTS = (
    ("The harbour master of Bergen is called Olaf.", "Who is in charge of the port"),
    ("My sister keeps bees behind the barn.", "honey insects that a relative looks after"),
    ("Dad had his hip replaced in March.", "surgery of my father"),
    ("The car failed its inspection because of the brakes.", "what is wrong with the vehicle"),
    ("Anna plays the cello in a youth orchestra.", "which musical instrument does the girl practise"),
    ("We are vegetarian since last autumn.", "do they eat meat"),
    ("The flat is on the fourth floor without a lift.", "how many stairs to the apartment"),
    ("Leo is allergic to peanuts.", "what food makes the boy ill"),
    ("The mortgage runs until 2041.", "when is the house loan paid off"),
    ("Our landlord raised the rent by ten percent.", "cost increase of housing"),
    ("I broke my wrist while skiing in Davos.", "winter sports accident"),
    ("The dentist found two cavities.", "problems with teeth"),
    ("Grandma was born in a village near Kiev.", "where does the family come from in Ukraine"),
    ("Tom proposed to Eva on the beach.", "engagement to be married by the sea"),
    ("The dog is afraid of fireworks.", "pet scared by loud noises"),
    ("I quit smoking two years ago.", "gave up cigarettes"),
    ("The server room is cooled with lake water.", "how are the computers kept from overheating"),
    ("Her thesis is about glaciers in Patagonia.", "research on ice in South America"),
    ("The bakery on the corner closes at noon on Saturdays.", "weekend opening hours of the bread shop"),
    ("Peter speaks Portuguese because he grew up in Lisbon.", "language of his childhood"),
    ("The insurance refused to pay for the flooded cellar.", "claim for water damage in the basement denied"),
    ("My first job was washing dishes in a hotel.", "early employment in a kitchen"),
    ("The twins start kindergarten in August.", "children going to school soon"),
    ("We planted three apple trees in the garden.", "fruit growing in the yard"),
    ("The wifi password is on the back of the router.", "how to connect to the internet"),
    ("Mia wants to become a veterinarian.", "career with animals she dreams of"),
    ("The concert was cancelled because the singer lost her voice.", "why did the music event not take place"),
    ("I sleep badly when the moon is full.", "insomnia at night"),
    ("Our flight to Tokyo leaves at six in the morning.", "early plane to Japan"),
    ("The company was bought by a Swedish investor.", "who acquired the firm"),
    ("Uncle Karl collects old postage stamps.", "hobby of a philatelist"),
    ("The recipe needs a pinch of saffron.", "which spice goes into the dish"),
    ("Sara ran the marathon in under four hours.", "long distance race result of an athlete"),
    ("The painting in the hall is a forgery.", "fake art"),
    ("Lightning struck the church tower in 1987.", "storm that damaged a religious building"),
    ("I owe Ben fifty euros.", "debt to a friend"),
    ("The lawyer charges by the hour.", "attorney fees"),
    ("Our cat had five kittens last night.", "baby animals were born"),
    ("The museum is free on Sundays.", "when is admission without a ticket"),
    ("Max was promoted to captain of the fire brigade.", "advancement of a firefighter"),
)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """Return the archive of an agent with all memories, and with the embedder that ships."""
    world = World(tmp_path_factory.mktemp("paraphrases") / "store")
    world.embedder = embedder_of()  # type: ignore[assignment]
    for fact, _ in FACTS:
        world.insert("sam", fact)
    archive = world.archive()
    archive.follow()
    yield archive
    archive.close()
    world.close()


def results(archive: Archive, query: str) -> Sequence[Match]:
    return search(archive, query, count=len(FACTS)).results


def test_no_question_shares_a_word_with_its_answer() -> None:
    """Only meaning can find what these questions are about."""
    assert [query for fact, query in FACTS if set(query_stems(query)) & set(stems(fact))] == []


@pytest.mark.parametrize("query", ["Who is in charge of the port", "head of the marina"])
def test_meaning_alone_finds_the_harbour_master(archive: Archive, query: str) -> None:
    """A question that is far in meaning from every memory still finds the nearest, and says how near it is."""
    fact = FACTS[0][0]
    (found,) = [match for match in results(archive, query)[:10] if match.text == fact]
    assert found.near is not None and 0 < found.near < 0.2


def test_forty_paraphrases_are_found(archive: Archive) -> None:
    """Every question finds its answer; at least 38 of 40 among the first ten, and 34 among the first five."""
    places = [[match.text for match in results(archive, query)].index(fact) for fact, query in FACTS]
    assert sum(place < 10 for place in places) >= 38 and sum(place < 5 for place in places) >= 34


class TwoSubjects(Hashed):
    """An embedder for which texts about ports are near each other, and far from all others."""

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return a unit vector for each text, one of two."""
        rows = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[int("port" in text or "harbour" in text)] = 1
        return rows


def test_a_common_word_alone_does_not_outweigh_meaning(tmp_path: Path) -> None:
    """Memories that share only a common word with a question come after the one that is near in meaning."""
    world = World(tmp_path / "store")
    world.embedder = TwoSubjects()
    for number in range(20):
        world.insert("sam", f"item {number} was found on the list")
    world.insert("sam", FACTS[0][0])
    archive = world.archive()
    archive.follow()
    matches = search(archive, "found whoever runs the port").results
    assert (matches[0].text, matches[0].near, matches[1].near) == (FACTS[0][0], 1, 0)
    archive.close()
    world.close()
