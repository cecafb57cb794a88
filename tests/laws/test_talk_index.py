"""Laws of the talk index: what it says of a message does not depend on later ones, or on how many came at once."""

import re
from collections import Counter
from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from everlog.projections.search.talk_index import (
    TalkIndex,
    TalkView,
    Utterance,
)
from everlog.projections.search.talk_words import COUNT_MAX, statements_and_questions
from everlog.store.base.stemming import language_of, stems
from everlog.store.embedding.chunks import MESSAGE_CHARS_MAX, PASSAGE_CHARS, passages
from tests.support.law import law

HOUR_US = 3_600_000_000
WORDS = ("sail", "el perro", "de la casa", "sailing", "boat?", "Boat.", "the", "猫好？", "8", "[x]", "!", "a" * 480,
         "z" * 700)  # fmt: skip
SAID = st.tuples(
    st.sampled_from(["Sam", "Ann", ""]),
    st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join),
    st.sampled_from([1, 3599, 3600, 90_000]),
)
STEMS = ("sail", "boat", "the", "猫", "猫好", "8", "x", "a" * 480, "zebra")


def uttered(life: list[tuple[str, str, int]]) -> list[Utterance]:
    """Return messages by turns of user and assistant, at every second seq."""
    time, said = 1_683_500_000_000_000, []
    for number, (name, text, seconds) in enumerate(life):
        time += seconds * 1_000_000
        role = "assistant" if number % 2 else "user"
        said.append(Utterance(2 * number + 3, time, role, name, text, f"r{number}"))
    return said


def facts(view: TalkView) -> dict[str, object]:
    """Return everything that a view says, as plain values."""
    messages = ("seq", "time", "role", "speaker", "chars", "linked")
    units = ("first_unit", "unit_words", "unit_asked", "message_of")
    return {
        **{name: getattr(view, name).tolist() for name in (*messages, *units)},
        "names": list(view.names),
        "languages": view.languages,
        "postings": {stem: [part.tolist() for part in view.postings(stem)] for stem in STEMS},
        "texts": [(view.text(place), view.ref(place), view.name(place)) for place in range(len(view))],
        "passages": [view.passage(unit) for unit in range(view.units)],
    }


@law(st.lists(SAID, max_size=12), st.data(), few=6, many=200)
def test_a_view_of_the_first_messages_is_that_of_an_index_without_the_others(life, data):
    """A view of the first n messages of an index, which was filled in any steps, equals the whole of an index that was
    given these n at once.
    """
    said = uttered(life)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(said)), max_size=4)))
    grown, early = TalkIndex(), []
    for start, end in zip([0, *cuts], [*cuts, len(said)], strict=True):
        grown.append(said[start:end])
        early.append((end, grown.view()))
    for count, view in [*early, *((count, grown.view(count)) for count in range(len(said) + 1))]:
        alone = TalkIndex()
        alone.append(said[:count])
        assert facts(view) == facts(alone.view())


@law(st.lists(SAID, max_size=12), few=6, many=200)
def test_postings_count_the_stems_of_each_passage(life):
    """Postings, lengths, links and names are those that a plain count of each passage gives."""
    said = uttered(life)
    index = TalkIndex()
    index.append(said)
    view = index.view()
    units = [(place, passage) for place, one in enumerate(said) for passage in passages(one.text)]
    assert view.message_of.tolist() == [place for place, _ in units]
    spoken = [language_of(one.text) for one in said]
    assert set(view.languages) == set(spoken)
    counted = [
        tuple(Counter(stems(part, spoken[place])) for part in statements_and_questions(passage))
        for place, passage in units
    ]
    assert view.unit_asked.tolist() == [asked.total() for _, asked in counted]
    assert view.unit_words.tolist() == [stated.total() + asked.total() for stated, asked in counted]
    for stem in STEMS:
        wanted = [(unit, s[stem], a[stem]) for unit, (s, a) in enumerate(counted) if stem in s or stem in a]
        assert list(zip(*(part.tolist() for part in view.postings(stem)), strict=True)) == wanted
    times = [one.time for one in said]
    linked = [False, *(after - before < HOUR_US for before, after in pairwise(times))]
    assert view.linked.tolist() == linked[: len(said)]
    assert [view.names[speaker] for speaker in view.speaker] == [one.name for one in said]


def test_passages_are_short_and_leave_out_nothing():
    """A message above 500 characters is split into passages that have all of its words."""
    text = "I went sailing. " * 100
    assert all(len(passage) <= PASSAGE_CHARS for passage in passages(text))
    assert " ".join(passages(text)).split() == text.split()
    assert passages("") == [""]


def test_the_words_of_questions_are_counted_apart():
    """A sentence that ends in a question mark, also in a Chinese one, is a question."""
    assert statements_and_questions("I sail. Do you?") == ("I sail.", " Do you?")
    assert statements_and_questions("No questions") == ("No questions", "")
    assert statements_and_questions("猫好。8？") == ("猫好。", "8？")


def test_a_huge_message_is_indexed_up_to_a_limit():
    """Of a message of ten million characters the first 100,000 are indexed, and all of it can be shown."""
    text = "boat " * 2_000_000
    index = TalkIndex()
    index.append([Utterance(1, 0, "user", "", text, ""), Utterance(2, 0, "user", "", "boat", "")])
    view = index.view()
    assert view.text(0) == text
    assert MESSAGE_CHARS_MAX / PASSAGE_CHARS <= view.first_unit[1] <= 1.1 * MESSAGE_CHARS_MAX / PASSAGE_CHARS
    units, stated, asked = view.postings("boat")
    assert len(units) == view.units
    assert stated.max() <= COUNT_MAX
    assert not asked.any()


def test_ten_thousand_messages_of_one_word_have_one_posting_each():
    """Messages of one word, appended one by one or at once, are found by that word, in order."""
    index = TalkIndex()
    for number in range(20):
        index.append([Utterance(number, number, "user", "", "boat", "")])
    index.append(Utterance(number, number, "user", "", "boat", "") for number in range(20, 10_000))
    units, stated, asked = index.view().postings("boat")
    assert np.array_equal(units, np.arange(10_000))
    assert set(stated.tolist()) == {1}
    assert set(asked.tolist()) == {0}


def test_more_than_255_of_one_word_count_as_255(monkeypatch):
    """A count of 300 in one passage does not overflow into the count of the other kind."""
    letters = "everlog.projections.search.talk_words.words_and_language"
    monkeypatch.setattr(letters, lambda text, language: (re.findall("[a-z]", text), language))
    index = TalkIndex()
    index.append([Utterance(1, 0, "user", "", "a" * 300 + ". " + "a" * 100 + "?", "")])
    _, stated, asked = index.view().postings("a")
    assert (stated.tolist(), asked.tolist()) == ([COUNT_MAX], [100])


def test_the_size_grows_with_what_is_indexed():
    """An index counts its memory: more words, more bytes, and never fewer than the texts have."""
    index, sizes = TalkIndex(), []
    for number in range(5):
        index.append([Utterance(number, number, "user", "", f"word{number} " * 50, "")])
        sizes.append(index.size)
    assert sizes == sorted(sizes)
    assert sizes[-1] > 5 * 50 * 6
