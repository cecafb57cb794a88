"""Promises of the ranking for each kind of talk, shown by short scripted talks."""

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest

from everlog.events.times import MICROSECONDS
from everlog.projections.recall_search import described, known_dates
from everlog.projections.search import ranking
from everlog.projections.search.features import MEANING_FEATURES, WORD_FEATURES
from everlog.projections.search.ranking import FIXED_WEIGHTS, RankingWeights, RecallQuery, rank, weights
from everlog.projections.search.talk_index import TalkIndex, TalkView, Utterance

BEGIN = 1_700_000_000 * MICROSECONDS
DAY, MINUTE = 86_400 * MICROSECONDS, 60 * MICROSECONDS
FILLING = "Plan a quiet evening and write down what you need. "
Said = tuple[str, str, str]
"""Role, name and text."""


def talk_of(said: Sequence[Said], apart: int = DAY) -> TalkView:
    """Return the view of a talk whose messages are `apart` microseconds apart."""
    index = TalkIndex()
    index.append(
        Utterance(number + 1, BEGIN + number * apart, role, name, text, "")
        for number, (role, name, text) in enumerate(said)
    )
    return index.view()


def found(talk: TalkView, query: str, meanings: Sequence[float] | None = None) -> list[int]:
    """Return the places of the results, best first."""
    asked = RecallQuery(query.lower(), (), described(query, talk))
    near = None if meanings is None else np.array(meanings, np.float32)
    return rank(talk, asked, near, known_dates(query, talk))[0].tolist()


def assistant_talk() -> TalkView:
    """Return a talk in which an assistant without a name answers at length, and repeats the user's words."""
    said: list[Said] = []
    for thing in ("rake", "ladder", "kettle", "lantern"):
        said.append(("user", "", f"I put the {thing} into the shed."))
        said.append(("assistant", "", FILLING * 20 + f"The {thing} in the shed, the {thing}: I would oil the {thing}."))
    return talk_of(said, MINUTE)


def test_what_the_user_said_comes_before_the_long_reply():
    """An assistant without a name that repeats the word three times at the end of a long reply comes later."""
    places = found(assistant_talk(), "Where is the kettle?")
    assert places[0] == 4 and 5 in places


def test_a_question_about_what_the_assistant_said_finds_the_reply():
    """`What did you say ...` speaks to the assistant, so the reply comes first."""
    assert found(assistant_talk(), "What did you say about the kettle?")[0] == 5


def test_the_best_passage_of_a_long_message_counts():
    """A long message with all words in one passage comes before one with the words far apart."""
    apart = "The kettle is blue. " + FILLING * 30 + "The shed is old."
    together = FILLING * 15 + "The kettle is in the shed. " + FILLING * 15
    talk = talk_of([("user", "Ann", apart), ("user", "Ann", together), ("user", "Ann", "Good evening to all of you.")])
    assert found(talk, "kettle shed")[0] == 1


def test_a_question_joins_the_short_reply_to_it_and_not_a_long_message():
    """`Two years ago.` answers the question about sailing. A long message after such a question is about itself."""
    asked = ("user", "Sam", "When did you learn sailing?")
    short = talk_of([asked, ("user", "Ann", "Two years ago."), ("user", "Ann", "I like tea.")], MINUTE)
    long = talk_of([asked, ("user", "Ann", FILLING * 7), ("user", "Ann", "I like tea.")], MINUTE)
    query = described("sailing", short)
    by_short, by_long = (ranking.measure(talk, query).features["document"][1] for talk in (short, long))
    assert by_short > 0 and by_long == 0


def test_the_named_speaker_comes_first():
    """Of two speakers who say the same, the one whom the query names comes first."""
    talk = talk_of([("user", "Sam", "I bought a red tent."), ("user", "Ann", "I bought a red tent.")])
    assert found(talk, "Which tent did Ann buy?")[0] == 1
    assert found(talk, "Which tent did Sam buy?")[0] == 0


def test_a_question_for_a_time_finds_the_message_that_tells_one():
    """Of two messages on the subject, `when` prefers the one that tells a time."""
    talk = talk_of([("user", "Ann", "I love my tent a lot."), ("user", "Ann", "I lost my tent yesterday.")])
    assert found(talk, "When did the thing with the tent happen?")[0] == 1
    talk = talk_of([("user", "Ann", "I lost my tent yesterday."), ("user", "Ann", "I love my tent a lot.")])
    assert found(talk, "When did the thing with the tent happen?")[0] == 0


def test_a_date_raises_its_day_and_leaves_no_other_out():
    """The message of the named day comes first; the others are still results."""
    talk = talk_of([("user", "Ann", "We met in the park.")] * 30)
    assert found(talk, "Who met in the park on 20 November 2023?")[0] == 6  # the talk begins on 14 November
    assert len(found(talk, "Who met in the park on 20 November 1993?")) == 30


@pytest.mark.parametrize("query", ["", "?!", "the of and", "😀", "(((((", "\\", ".*", "\x00", "kettle " * 5_000])
def test_every_query_is_answered(query):
    """No query is an error, with and without meanings, and in a talk without messages."""
    talk = assistant_talk()
    for meanings in (None, [0.0] * len(talk)):
        assert sorted(set(found(talk, query, meanings))) == sorted(found(talk, query, meanings))
    assert found(talk_of([]), query) == []


def test_the_file_has_a_weight_for_each_feature_and_says_where_they_come_from():
    """If a feature is added or removed, the weights must be learned again."""
    file = msgspec.json.decode(ranking.WEIGHTS_FILE.read_bytes(), type=RankingWeights)
    assert tuple(file.words) == WORD_FEATURES
    assert tuple(file.meaning) == (*WORD_FEATURES, *MEANING_FEATURES)
    assert len(file.meaning) + len(file.words) < 60
    assert file.trained_on and "--write" in file.command


def test_the_verbatim_score_is_more_than_all_features_reach():
    """A text with the query word for word comes first, whatever the features say: none of them is above 2."""
    for by_meaning in (True, False):
        assert 2 * sum(map(abs, weights(by_meaning=by_meaning).values())) < ranking.VERBATIM_SCORE


def test_a_file_of_other_features_is_replaced_by_fixed_weights(tmp_path, monkeypatch):
    """A search with weights of another version would rank at random."""
    file = RankingWeights({}, "", "", {"unknown": 1.0}, {"unknown": 1.0})
    (tmp_path / "weights.json").write_bytes(msgspec.json.encode(file))
    monkeypatch.setattr(ranking, "WEIGHTS_FILE", tmp_path / "weights.json")
    weights.cache_clear()
    try:
        assert weights(by_meaning=True) is FIXED_WEIGHTS
        assert FIXED_WEIGHTS.keys() <= {*WORD_FEATURES, *MEANING_FEATURES}
        assert found(assistant_talk(), "Where is the kettle?")[0] == 4
    finally:
        weights.cache_clear()
