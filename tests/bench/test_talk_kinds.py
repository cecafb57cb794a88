"""The scripted chats, on which the search is developed, have the right evidence and are as hard as real talk."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.talk.assistant_talk import CHATS, assistant_talk
from bench.talk.floors import PlainWords, words_of
from bench.talk.talk_kinds import kinds
from bench.talk.talk_shapes import Conversation, lines
from bench.talk.vocabulary import LANGUAGES, vocabulary
from everlog.actors.agent.conversation_import import conversation
from everlog.store.base.function_words import QUESTION_WORDS

SPANISH = frozenset(re.findall(r"\w+", "a al con de del el en es la las lo los me mi no qué por se su un una y que"))
CATEGORIES = {
    "single", "changed", "preference", "list", "temporal", "order", "advice", "paraphrase", "multi-hop",
}  # fmt: skip


def chats(language: str) -> Sequence[Conversation]:
    """Return all conversations of a language."""
    return [assistant_talk(language, number) for number in range(CHATS)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_number_always_gives_the_same_conversation(language: str) -> None:
    """The same language and number give the same conversation, and another number another one."""
    assert assistant_talk(language, 0) == assistant_talk(language, 0) != assistant_talk(language, 1)


@pytest.mark.parametrize("language", LANGUAGES)
def test_evidence_is_in_the_conversation_and_holds_the_answer(language: str) -> None:
    """Each question has evidence among the messages; the newest piece holds the answer of a fact, in its own words."""
    for talk in chats(language):
        texts = {one.ref: one.text for one in talk.messages}
        for one in talk.questions:
            assert one.evidence and set(one.evidence) <= texts.keys()
            if one.category in {"single", "changed", "advice", "multi-hop"}:
                assert one.answer.lower().removeprefix("el ") in texts[one.evidence[-1]].lower()


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_language_has_all_kinds_of_questions(language: str) -> None:
    """Facts, changes, preferences, lists, dates, orders, advice, paraphrases and second hops are all asked."""
    assert {one.category for talk in chats(language) for one in talk.questions} == CATEGORIES


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_user_without_a_name_is_brief_and_the_assistant_answers_at_length(language: str) -> None:
    """Speakers have no names, replies are several times as long as messages, and time never goes back."""
    for talk in chats(language):
        assert 150 <= len(talk.messages) <= 700 and {one.name for one in talk.messages} == {""}
        said, replied = ([len(one.text) for one in talk.messages if one.role == role] for role in ("user", "assistant"))
        assert sum(replied) > 5 * sum(said)
        assert all(a.time < b.time for a, b in zip(talk.messages, talk.messages[1:], strict=False))


@pytest.mark.parametrize("language", ["en", "es"])
def test_paraphrases_share_no_content_word_with_their_evidence(language: str) -> None:
    """A paraphrase and its statement have no stem in common, apart from question words."""
    small = QUESTION_WORDS | SPANISH
    for topic in vocabulary(language).topics:
        for said, asked in topic.pairs:
            shared = set(words_of(said)) & set(words_of(asked)) - small
            assert all(len(word) < 4 for word in shared), (said, asked)


@pytest.mark.parametrize("language", LANGUAGES)
def test_plain_words_find_a_part_of_the_evidence(language: str) -> None:
    """Plain BM25 finds between three and six tenths of the evidence: neither a toy nor a riddle."""
    found = [
        len(set(one.evidence) & set(words.find(one.question, 10))) / len(one.evidence)
        for talk in chats(language)
        for words in [PlainWords(talk)]
        for one in talk.questions
    ]
    assert 0.3 < sum(found) / len(found) < 0.6


def test_a_conversation_can_be_imported() -> None:
    """Its JSON lines are what `everlog import` reads."""
    talk = assistant_talk("zh", 0)
    assert [one.event.ref for one in conversation(lines(talk), "chat")] == [one.ref for one in talk.messages]  # type: ignore[attr-defined]


def test_kinds_without_data_are_left_out(tmp_path: Path) -> None:
    """A folder without public data leaves the scripted kinds."""
    assert list(kinds(tmp_path)) == [f"assistant_{language}" for language in LANGUAGES]


def test_public_kinds_are_read_with_their_evidence(data_dir: Path) -> None:
    """LoCoMo's dev conversations keep their 709 questions that have an answer, and the meetings their 87."""
    found = kinds(data_dir)
    assert [sum(len(talk.questions) for talk in found[name]) for name in ("locomo", "meetings")] == [709, 87]
