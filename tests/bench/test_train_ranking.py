"""The training of the ranking's weights finds what it is shown, and judges by what it was not shown."""

import numpy as np
import pytest

from bench.talk.ranking_rows import rows_of
from bench.talk.recast_talk import recast_talks
from bench.talk.talk_shapes import Conversation, TalkMessage, TalkQuestion
from bench.talk.train_ranking import Lessons, left_out, weights_of
from everlog.projections.search.features import WORD_FEATURES

THINGS = ("kettle", "ladder", "lantern", "rake", "tent", "violin", "drum", "anchor", "basket", "candle")
BEGIN, HOUR = 1_700_000_000_000_000, 3_600_000_000


class OneNumber:
    """Embedder whose vectors say how long a text is."""

    name, dimension = "one-number", 2

    def embed(self, texts):
        lengths = np.array([len(text) for text in texts], np.float32)
        return np.stack([np.cos(lengths / 100), np.sin(lengths / 100)], axis=1)


def chat(name: str) -> Conversation:
    """Return a chat in which Ann says the right thing about each subject, and Sam says the same."""
    messages, questions = [], []
    for number, thing in enumerate(THINGS):
        for place, speaker in enumerate(("Sam", "Ann")):
            said = TalkMessage(
                "user", speaker, f"I left the {thing} at home.", BEGIN + number * HOUR, f"{number}{place}"
            )
            messages.append(said)
        questions.append(TalkQuestion(f"Where did Ann leave the {thing}?", "single", [f"{number}1"]))
    return Conversation(name, messages, questions)


@pytest.fixture(scope="module")
def lessons() -> Lessons:
    """Return the questions of three such chats."""
    return Lessons([row for name in "abc" for row in rows_of("locomo", chat(name), OneNumber())], "words")


def test_weights_that_never_saw_a_chat_find_its_answers(lessons):
    """The speaker decides, and each chat teaches it for the others."""
    found = left_out(lessons, lessons.folds)
    assert len(found) == 30
    assert np.mean([ndcg for *_, ndcg in found.values()]) > 0.95


def test_the_same_lessons_give_the_same_weights_of_the_right_sign(lessons):
    """Training draws nothing at random, and only some features may lower a score."""
    by = dict(zip(WORD_FEATURES, lessons.learn(np.ones(30, bool)).tolist(), strict=True))
    assert by == dict(zip(WORD_FEATURES, lessons.learn(np.ones(30, bool)).tolist(), strict=True))
    assert by["named"] + by["named_states"] > 0 > by["named_other"]
    assert min(value for name, value in by.items() if name not in ("named_other", "asking")) >= 0


def test_a_feature_that_is_left_out_has_no_weight(lessons):
    """The ablation learns without the feature; the other features take its place."""
    by = dict(zip(WORD_FEATURES, lessons.learn(np.ones(30, bool), "named_other").tolist(), strict=True))
    assert by["named_other"] == 0.0


def test_the_file_says_what_was_learned_from(lessons):
    """The sizes of the kinds, the method and the command are in the file of weights."""
    file = weights_of(lessons.asked)
    assert file.trained_on == {"locomo": "30 questions, share 1.0"}
    assert tuple(file.words) == WORD_FEATURES


def test_a_recast_chat_has_a_user_without_a_name_and_long_replies():
    """The evidence of a question about the user is a message of the user; the user asks as `I`."""
    chats = [chat("a"), chat("b")]
    recast = recast_talks(chats, OneNumber())
    assert [one.name for one in recast] == ["a Ann", "a Sam", "b Ann", "b Sam"]
    told = {message.ref: message for message in recast[0].messages}
    assert {message.name for message in recast[0].messages} == {""}
    assert recast[0].questions[0].question == "Where did I leave the kettle?"
    assert told["01"].role == "user" and told["00"].role == "assistant"
    assert len(told["00"].text) > len(told["01"].text)
    assert recast == recast_talks(chats, OneNumber())
