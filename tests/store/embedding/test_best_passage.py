"""The passage of a long text that a search shows."""

import pytest
from hypothesis import strategies as st

from everlog.store.base.stemming import query_stems, stems
from everlog.store.embedding.best_passage import LOOKED_CHARS_MAX, MARK, passage_around
from tests.support.law import law

CHARS = 260
FILLER = "The weather is mild and the bread is fresh. "
PIECES = (
    "boat",
    "boats.",
    "Sail!",
    "oak\n\n",
    "gold",
    "the",
    "a",
    "猫好",
    "👨\u200d👩\u200d👧",
    "1990s?",
    "- x\n",
    "é" * 50,
)
TEXTS = st.lists(st.sampled_from(PIECES), max_size=120).map(" ".join)
QUERIES = st.lists(st.sampled_from(["boat", "sail", "gold", "猫"]), max_size=3).map(" ".join)


def even(query: str) -> dict[str, float]:
    """Return the stems of a query, all of weight 1."""
    return dict.fromkeys(query_stems(query), 1.0)


@law(TEXTS, QUERIES, st.integers(40, 300), few=40, many=2000)
def test_a_passage_is_a_part_of_its_text(text: str, query: str, chars: int) -> None:
    """It is no longer than asked for, is found in the text without its marks, has a mark exactly where something is
    left out, and its stems are those of the query that it has.
    """
    found = passage_around(text, even(query), chars)
    assert len(found.text) <= max(chars, len(text) if len(text) <= chars else 0)
    bare = found.text.removeprefix(f"{MARK} ").removesuffix(f" {MARK}")
    assert bare in text
    assert found.stems == even(query).keys() & set(stems(bare))
    if found.text != text:
        before, _, after = text.partition(bare)
        assert found.text.startswith(MARK) or not before.strip()
        assert found.text.endswith(MARK) or not after.strip()


def test_the_passage_is_around_what_was_found() -> None:
    """It has the sentence with the words of the query, whole, wherever that is in the text."""
    told = "Vera is a red boat of oak."
    for place in range(0, 60, 7):
        found = passage_around(FILLER * place + told + " " + FILLER * (60 - place), even("a boat of oak"), CHARS)
        assert told in found.text
        assert len(found.text) <= CHARS


def test_a_rare_word_counts_more_than_common_ones() -> None:
    """The passage with one rare word is shown rather than the one with two common words."""
    text = f"They went to the sea. {FILLER * 20}It was in Bergen. {FILLER * 20}"
    weights = {"went": 0.3, "sea": 0.5, "bergen": 4.0}
    assert "Bergen" in passage_around(text, weights, CHARS).text
    assert "went to the sea" in passage_around(text, {**weights, "bergen": 0.1}, CHARS).text


def test_words_together_count_more_than_words_apart() -> None:
    """Of two places, the one with both words of the query is shown, and the first one where all are equal."""
    text = f"A boat. {FILLER * 20}An oak. {FILLER * 20}A boat of oak. {FILLER * 20}A boat of oak in May."
    assert "A boat of oak. " in passage_around(text, even("boat oak"), CHARS).text


def test_a_phrase_decides_first() -> None:
    """The passage with the phrase is shown, even if another one has more words of the query."""
    text = f"Oak, boat, gold and sail. {FILLER * 20}The gold of May. {FILLER * 20}"
    assert "gold of May" in passage_around(text, even("oak boat gold sail"), CHARS, ["gold of may"]).text


@pytest.mark.parametrize("query", ["", "zebra", "👋"])
def test_without_a_word_of_the_query_the_beginning_is_shown(query: str) -> None:
    """A text that was found by its meaning alone is shown from its beginning."""
    found = passage_around(FILLER * 30, even(query), CHARS)
    assert FILLER.strip() in found.text
    assert not found.text.startswith(MARK)
    assert found.text.endswith(MARK)


def test_a_message_of_ten_million_characters_is_looked_at_in_part() -> None:
    """The passage is chosen from the beginning of an enormous text."""
    found = passage_around("x" * 10_000_000 + " gold", even("gold"), CHARS)
    assert found.text == "x" * (len(found.text) - 2) + f" {MARK}"
    early = passage_around(f"{FILLER * 100}gold. {FILLER * 100_000}", even("gold"), CHARS)
    assert "gold" in early.text
    assert LOOKED_CHARS_MAX < 10_000_000
