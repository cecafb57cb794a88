"""Names that a talk introduces join the words of a question, from the message on that introduced them."""

from collections.abc import Sequence

import pytest
from hypothesis import strategies as st

from everlog.projections.search import aliases
from everlog.projections.search.aliases import (
    EXPANSIONS_MAX,
    MESSAGE_ALIASES_MAX,
    MESSAGES_MAX,
    aliases_in,
    with_aliases,
)
from everlog.projections.search.talk_index import TalkIndex, Utterance
from everlog.store.base.stemming import query_stems, query_words
from tests.support.law import law

TABLE = (
    ("I took my puppy Toby to the vet.", "puppi", "tobi"),
    ("My sister, Ana, is here", "sister", "ana"),
    ("A dog named Rex barked", "dog", "rex"),
    ("My puppy's name is Toby", "puppi", "tobi"),
    ("The name of my dog is Rex.", "dog", "rex"),
    ("Toby is my new puppy.", "puppi", "tobi"),
    ("This is my son, Tim!", "son", "tim"),
    ("I love my hometown, Boston", "hometown", "boston"),
    ("mi perro se llama Rex", "perr", "rex"),
    ("Tengo un perro llamado Rex y es muy bueno", "perr", "rex"),
    ("mon chien s'appelle Rex", "chien", "rex"),
    ("il mio cane si chiama Fido", "can", "fid"),
    ("Mein Hund heißt Bello", "hund", "bello"),
    ("мою собаку зовут Рекс", "собак", "рекс"),
    ("我的狗叫旺财", "狗", "旺财"),
    ("我养了一只猫叫咪咪，很可爱", "猫", "咪咪"),
    ("我妹妹的名字叫小丽", "妹妹", "小丽"),
    ("关于蛋白质，我问了陈静，也就是我的教练。", "教练", "陈静"),
    ("对了，王芳是我的大学同学", "同学", "王芳"),
    ("我的钢琴老师吴倩过来帮忙", "老师", "吴倩"),
    ("Le pregunté a Inés, mi entrenadora, qué hacer", "entren", "ines"),
    ("Por cierto, mi madrina es Lucía", "madrin", "luc"),
    ("By the way, my boss is Tom", "boss", "tom"),
    ("犬の名前はポチです", "犬", "ポチ"),
)


@pytest.mark.parametrize(("text", "noun", "name"), TABLE)
def test_a_message_introduces_a_name(text: str, noun: str, name: str) -> None:
    assert [(alias.noun, alias.name) for alias in aliases_in(text)] == [((noun,), (name,))]


@pytest.mark.parametrize(
    "text",
    ["my house, I think", "my favorite Netflix show", "our trip to Paris", "my friend and I", "my mom. She left",
     "I told my boss Friday's plan", "my trip Monday was fun", "Thanks for your support, Gina!", "I love my job, Jon."],
)  # fmt: skip
def test_other_capital_letters_introduce_none(text: str) -> None:
    assert aliases_in(text) == ()


def said(*texts: str, names: Sequence[str] = ()) -> TalkIndex:
    """Return the index of messages, a minute apart; the speakers take turns."""
    index = TalkIndex()
    speakers = [*names, ""] if names else [""]
    index.append(
        Utterance(place + 1, place * 60_000_000, "user", speakers[place % len(speakers)], text, "")
        for place, text in enumerate(texts)
    )
    return index


def expanded(talk: TalkIndex, query: str, count: int | None = None) -> list[list[str]]:
    """Return the stems that each word of a query gets from the first `count` messages."""
    words = query_words(query, talk.view(count).languages)
    return [list(more[len(word) :]) for word, more in zip(words, with_aliases(words, talk.view(count)), strict=True)]


def test_a_question_gets_the_other_word_of_a_pair_from_its_message_on() -> None:
    talk = said("Hi", "My puppy Toby is ill", "Poor puppy", "We renamed my puppy Rex")
    assert expanded(talk, "puppy", 1) == [[]]
    assert expanded(talk, "puppy", 3) == [["tobi"]]
    assert expanded(talk, "puppy") == [["rex", "tobi"]]
    assert expanded(talk, "Rex vet") == [["puppi"], []]
    assert expanded(talk, "puppy Toby") == [["rex"], []]


def test_a_name_of_a_speaker_is_no_other_word() -> None:
    talk = said("My friend Jon and my dog Rex", "Hi", names=["Jon"])
    assert expanded(talk, "friend dog") == [[], ["rex"]]
    assert expanded(talk, "Jon") == [[]]


def test_a_chinese_question_gets_the_name_of_the_animal_in_it() -> None:
    talk = said("我的狗叫旺财")
    assert ["旺财"] in expanded(talk, "我的狗几岁了")
    assert ["狗"] in expanded(talk, "旺财几岁了")


MESSAGES = st.lists(st.sampled_from([text for text, _, _ in TABLE]) | st.text(max_size=30), max_size=12)


@law(MESSAGES, st.integers(0, 12), few=50, many=2_000)
def test_an_expansion_as_of_a_moment_is_that_of_a_talk_cut_there(texts, count):
    whole, cut = said(*texts), said(*texts[:count])
    for word in ("puppy", "dog", "perro", "Rex", "我的狗", "Toby"):
        asked = [(stem,) for stem in query_stems(word)]
        assert with_aliases(asked, whole.view(min(count, len(texts)))) == with_aliases(asked, cut.view())


def test_expansions_pairs_and_messages_are_bounded() -> None:
    names = ["".join(chr(65 + (number // 26**n) % 26).lower() for n in range(4)).title() for number in range(300)]
    assert len(expanded(said(*(f"my dog {name}x barks" for name in names)), "dog")[0]) == EXPANSIONS_MAX
    assert len(aliases_in(" ".join(f"my dog {name}x barks." for name in names))) == MESSAGE_ALIASES_MAX
    assert aliases_in("my dog " + "A" * 100_000) == ()


def test_a_query_reads_a_bounded_number_of_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(aliases, "aliases_in", lambda text: read.append(text) or ())
    words = ("dog", "cat", "boat", "tree", "house")
    talk = said(*(f"my {word} is number {number}" for number in range(50) for word in words))
    assert expanded(talk, " ".join(words)) == [[]] * 5
    assert len(read) == MESSAGES_MAX
