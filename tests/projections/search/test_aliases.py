"""Names that a talk introduces join the words of a question, from the message on that introduced them."""

import pytest
from hypothesis import strategies as st

from everlog.projections.search.aliases import (
    EXPANSIONS_MAX,
    MESSAGE_ALIASES_MAX,
    AliasIndex,
    aliases_in,
)
from everlog.store.base.stemming import query_stems
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


def test_a_question_gets_the_other_word_of_a_pair_from_its_message_on() -> None:
    known = AliasIndex()
    known.append(3, "My puppy Toby is ill")
    known.append(8, "We renamed my puppy Rex")
    assert known.expansions(["puppi"], 3) == []
    assert known.expansions(["puppi"], 4) == ["tobi"]
    assert known.expansions(["puppi"], 9) == ["rex", "tobi"]
    assert known.expansions(["rex", "vet"], 9) == ["puppi"]
    assert known.expansions(["puppi", "tobi"], 9) == ["rex"]


def test_a_name_of_a_speaker_is_no_other_word() -> None:
    known = AliasIndex()
    known.append(0, "My friend Jon and my dog Rex")
    assert known.expansions(["friend", "dog"], 1, speakers=["jon"]) == ["rex"]
    assert known.expansions(["jon"], 1, speakers=["jon"]) == []


def test_a_chinese_question_gets_the_name_of_the_animal_in_it() -> None:
    known = AliasIndex()
    known.append(0, "我的狗叫旺财")
    assert known.expansions(query_stems("我的狗几岁了"), 1) == ["旺财"]
    assert known.expansions(query_stems("旺财几岁了"), 1) == ["狗"]


MESSAGES = st.lists(st.sampled_from([text for text, _, _ in TABLE]) | st.text(max_size=30), max_size=12)


@law(MESSAGES, st.integers(0, 12), few=50, many=2_000)
def test_an_expansion_as_of_a_moment_is_that_of_a_talk_cut_there(texts, count):
    whole, cut = AliasIndex(), AliasIndex()
    for place, text in enumerate(texts):
        whole.append(place, text)
        if place < count:
            cut.append(place, text)
    for word in ("puppi", "dog", "perr", "rex", "狗", "的狗", "tobi"):
        assert whole.expansions([word], count) == cut.expansions([word], len(texts))


def test_expansions_and_pairs_are_bounded() -> None:
    known = AliasIndex()
    names = ["".join(chr(65 + (number // 26**n) % 26).lower() for n in range(4)).title() for number in range(300)]
    for place, name in enumerate(names):
        known.append(place, f"my dog {name}x barks")
    assert len(known.expansions(["dog"], 300)) == EXPANSIONS_MAX
    assert len(aliases_in(" ".join(f"my dog {name}x barks." for name in names))) == MESSAGE_ALIASES_MAX
    assert aliases_in("my dog " + "A" * 100_000) == ()
