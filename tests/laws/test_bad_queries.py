"""Each search answers each query, however long or odd it is: within its limits, and with what it finds otherwise.

Nothing here measures time. What a query costs is bounded by the number of its words and phrases.
"""

from collections.abc import Iterator

import pytest
from hypothesis import strategies as st

from everlog.events import AgentCreated, ArchivalInserted, MessageSent, UserMessage, draft, place, uuid7
from everlog.projections import HEAD, ArchivalSearch, Projections, RecallSearch
from everlog.store.archive import Archive
from everlog.store.archive.embedding_cache import embed_checked
from everlog.store.base.stemming import PHRASES_MAX, QUERY_WORDS_MAX, phrases_in, query_stems
from everlog.store.embedding.embedder import embedder_of
from everlog.store.embedding.tokenizer import query_numbers
from tests.support.law import law
from tests.support.seeds import split
from tests.support.store.archive_world import World, search

TEXTS = (
    "My dog Rex has a red ball ((((", "It costs 100% of .* and \\", "我的狗叫旺财 🎉", "Собака спит, la perra también",
    "an odd \x01 one", "nothing of it", "the of and",
)  # fmt: skip
LONG = {
    "a word of 100 kB": "x" * 100_000,
    "15,000 words": " ".join(f"w{number}" for number in range(15_000)),
    "50,000 stop words": "the of " * 25_000,
    "100,000 brackets": "((((" * 25_000,
    "25,000 phrases": " ".join(f'"p{number}"' for number in range(25_000)),
    "the same phrase often": '"dog" ' * 20_000,
    "100 kB of emoji": "🎉" * 25_000,
    "100 kB of Chinese": "的狗" * 17_000,
    "40,000 marks": "a" + "\u0301\u0323" * 20_000,
    "10,000 dates": "2023-05-03 last week " * 5_000,
    "identifiers": "a-b_c.d/" * 12_000,
    "nested patterns": "(a+)+$" * 15_000,
}
ODD = (
    "((((", ")", "[", "[a-z]+", "(a+)+$", "\\", "\\\\", "\\1", "*", ".*", "%", "_", "100%", "?", "??", '"', '""',
    '"((("', '" "', "'", "';--", "$(rm)", "the of and", "什么", "🎉", "🎊", "👨‍👩‍👧", "dog 狗 собака 🎉", "", " ",
    "\t\n", "\x00", "dog\x00ball", "\ud800", "dog \udfff", "\ufeff", "\u200b", "\u202edog",
    "a\u0301", "NULL", "0", "-1", "\U0010ffff",
)  # fmt: skip


@pytest.fixture(scope="module")
def searches() -> Iterator[tuple[RecallSearch, ArchivalSearch]]:
    """Return searches of an agent that said and stored these texts."""
    events = [AgentCreated(), *(UserMessage(text=text, name="Ann", imported=True) for text in TEXTS)]
    events += [MessageSent(text=text, imported=True) for text in TEXTS]
    events += [ArchivalInserted(text=text, tags=[]) for text in TEXTS]
    records = []
    for number, event in enumerate(events, start=1):
        time = 1_683_500_000_000_000 + number
        made = draft(event, event_id=uuid7(time, number), recorded_at=time, turn=0, step=0)
        records.append(place(made, "sam", number, number))
    with Projections() as engine:
        engine.add(records)
        yield RecallSearch(engine, "sam", HEAD), ArchivalSearch(engine, "sam", HEAD)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """Return an archive that has these texts."""
    world = World(tmp_path_factory.mktemp("bad_queries") / "store")
    for text in TEXTS:
        world.insert("sam", text)
    archive = world.archive()
    archive.follow()
    yield archive
    archive.close()
    world.close()


def all_searches(searches: tuple[RecallSearch, ArchivalSearch], archive: Archive, query: str) -> list[list[str]]:
    """Return the texts that each search finds, without repeats: each search is asked twice, and answers the same."""
    recall, kept = searches
    answers = []
    for _ in range(2):
        pages = [recall.recall(query, 0, 100), kept.search(query, 0, 100)]
        matches = search(archive, query, count=100)
        assert [page.total for page in pages] == [len(page) for page in pages]
        assert matches.total == len(matches.results)
        answers.append([*([row["text"] for row in page] for page in pages), [one.text for one in matches.results]])
    assert answers[0] == answers[1]
    return [list(dict.fromkeys(texts)) for texts in answers[0]]


@pytest.mark.parametrize("query", ODD, ids=ascii)
def test_each_odd_query_is_answered(searches, archive, query: str) -> None:
    for texts in all_searches(searches, archive, query):
        assert set(texts) <= set(TEXTS)


@pytest.mark.parametrize("name", split(sorted(LONG), 2, label="long queries", part="laws"))
def test_a_query_of_100_kb_is_answered_by_a_bounded_number_of_words(searches, archive, name: str) -> None:
    query = LONG[name]
    assert len(query) >= 20_000
    assert len(query_stems(query)) <= QUERY_WORDS_MAX
    assert len(query_numbers(query)) <= 2 * QUERY_WORDS_MAX
    assert len(phrases_in(query)[0]) <= PHRASES_MAX
    for texts in all_searches(searches, archive, query):
        assert set(texts) <= set(TEXTS)


@pytest.mark.parametrize(
    ("query", "text"),
    [("((((", TEXTS[0]), (".*", TEXTS[1]), ("100%", TEXTS[1]), ("\\", TEXTS[1]), ("🎉", TEXTS[2]), ("狗", TEXTS[2]),
     ("собаки", TEXTS[3]), ("dog " + "zz " * 30_000, TEXTS[0]), ("what is the ball", TEXTS[0])],
)  # fmt: skip
def test_what_a_text_contains_is_found_first_by_each_search(searches, archive, query: str, text: str) -> None:
    """Signs of patterns mean themselves, and a flood of other words hides nothing."""
    assert [texts[0] for texts in all_searches(searches, archive, query)] == [text] * 3


@law(st.text(st.characters(), max_size=30), few=20, many=1_000)
def test_any_text_can_be_embedded_as_a_query(query):
    """Lone surrogates included, which a tokenizer refuses."""
    embedder = embedder_of()
    assert embed_checked(embedder, [query]).shape == (1, embedder.dimension)


def test_a_query_that_looks_like_a_program_changes_nothing(searches, archive) -> None:
    before = all_searches(searches, archive, "dog")
    for query in ("'; DROP TABLE events; --", "../../etc/passwd", "{{dog}}", "%s %n"):
        all_searches(searches, archive, query)
    assert all_searches(searches, archive, "dog") == before
