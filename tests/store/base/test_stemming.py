"""Texts and queries become words in any language and script, and the same words in each Unicode form."""

import re
import unicodedata
from pathlib import Path

import msgspec
import pytest
from hypothesis import strategies as st
from snowballstemmer import stemmer

from everlog.store.base.function_words import FUNCTION_WORDS
from everlog.store.base.stemming import (
    KNOWN_MAX,
    MARKS_MAX,
    QUERY_WORDS_MAX,
    language_of,
    normal_text,
    query_stems,
    query_words,
    stem,
    stems,
)
from tests.support.law import law

LANGUAGES = (
    ("I bought a new house for my dog", "english"),
    ("Cozy fire, red wine", "english"),
    ("¿Cómo se llama mi perro?", "spanish"),
    ("como se llama mi perro", "spanish"),
    ("Meu cachorro se chama Rex e não gosta de banho", "portuguese"),
    ("Quand est-ce que j'ai acheté la voiture ?", "french"),
    ("Come si chiama il mio cane?", "italian"),
    ("Wann haben wir das Haus gekauft?", "german"),
    ("Hoe heet mijn hond en wat eet hij?", "dutch"),
    ("Vad heter min hund och när kom den?", "swedish"),
    ("Hvad hedder min hund, og hvornår kom den?", "danish"),
    ("Koirani on nimeltään Musti ja se on hyvin vanha", "finnish"),
    ("A kutyám neve Bodri és nagyon szép", "hungarian"),
    ("Câinele meu se numește Rex și este mare", "romanian"),
    ("Benim köpeğim çok güzel ve adı Karabaş", "turkish"),
    ("Com es diu el meu gos i quan va néixer?", "catalan"),
    ("Nama anjing saya dan siapa yang memberi makan dia", "indonesian"),
)


@pytest.mark.parametrize(("text", "language"), LANGUAGES)
def test_the_language_of_a_text_is_that_of_its_commonest_words(text: str, language: str) -> None:
    assert language_of(text) == language


def test_each_language_has_a_stemmer() -> None:
    from snowballstemmer import algorithms

    assert set(FUNCTION_WORDS) <= set(algorithms())


FOUND = (
    ("¿Cuándo compré las casas?", "Ayer compré una casa en la playa."),
    ("cuando compre las casas", "Ayer compré una casa en la playa."),
    ("¿Qué perros tengo?", "Perro nuevo: Rex"),
    ("Welche Häuser haben wir angesehen?", "Das Haus war mir zu teuer, und der Garten auch."),
    ("Quels sont mes chevaux ?", "Mon cheval est malade, et je ne sais pas pourquoi."),
    ("Где мои собаки?", "Моя собака любит снег."),
    ("Which cafes did I like?", "The café by the river was lovely."),
    ("CAFÉ", "cafe\u0301"),
    ("toby", "Ｔｏｂｙ"),
    ("我什么时候去的北京？", "去年我和妈妈去了北京。"),
    ("狗", "我的狗叫旺财"),
    ("旺财", "我的狗叫旺财"),
    ("犬の名前は何ですか", "犬の名前はポチです"),
    ("ラーメン", "昨日ラーメンを食べた"),
    ("강아지 이름이 뭐예요?", "우리 강아지는 초코라고 해요"),
    ("แมวชื่ออะไร", "แมวของฉันชื่อมะลิ"),
    ("कुत्ते का नाम क्या है", "मेरे कुत्ते का नाम मोती है"),
    ("كلب", "الكلب في الحديقة"),
    ("istanbul", "İstanbul'da yaşıyorum"),
    ("🎉", "We won 🎉🎉"),
    ("strasse", "Die STRAẞE ist lang, und das ist gut"),
    ("㎏", "12 kg"),
    ("iPhone手机", "我买了新手机"),
)


@pytest.mark.parametrize(("query", "text"), FOUND)
def test_a_text_is_found_by_another_form_of_its_words(query: str, text: str) -> None:
    assert set(query_stems(query)) & set(stems(text))


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("What is the name of my dog?", {"name", "dog"}),
        ("¿Cómo se llama mi perro?", {"llam", "llama", "perr", "perro"}),
        ("我什么时候去的北京？", {"去的", "的北", "北京"}),
        ("谁养狗", {"养狗"}),
        ("언제 부산에 갔어?", {"부산에", "부산", "산에", "갔어"}),
        ("Когда мы были в Москве?", {"мы", "москв"}),
    ],
)
def test_words_that_only_ask_are_dropped_from_a_query(query: str, kept: set[str]) -> None:
    assert set(query_stems(query)) == kept


@pytest.mark.parametrize("query", ["what is the", "¿qué es?", "什么", "的", "무엇", "что это"])
def test_a_query_of_nothing_else_keeps_them(query: str) -> None:
    assert query_stems(query)


def test_a_query_has_also_the_stems_of_the_languages_that_it_searches() -> None:
    """An English question finds a name in a Spanish text, where it has another stem."""
    assert query_words("Where is Toby?") == [("tobi",)]
    assert query_words("Where is Toby?", ["spanish"]) == [("tobi", "toby")]
    assert "toby" in stems("Mi perro se llama Toby y come mucho")


def test_english_words_have_their_snowball_stems() -> None:
    assert stems("I was running_1 to the houses, 3 times; Anna's 3f2a!") == [
        "i", "was", "running_1", "to", "the", "hous", "3", "time", "anna", "s", "3f2a",
    ]  # fmt: skip


def test_every_conversation_of_the_english_data_sets_is_english(data_dir: Path) -> None:
    """A text in English must not get the stems of another language because of a name in it."""
    files = [*data_dir.glob("locomo/dev/*.jsonl"), *data_dir.glob("meetings/dev/*.jsonl")]
    texts = [text for file in files for line in file.read_text().splitlines() if len(text := str(_content(line))) > 40]
    assert [text for text in texts if language_of(text) != "english"] == []


def _content(line: str) -> object:
    said = msgspec.json.decode(line)
    return said.get("content") or said.get("question") or ""


ANY = st.text(st.characters(), max_size=40)
"""Any text, lone surrogates and NULs included."""


@law(ANY, st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]), few=200, many=20_000)
def test_each_unicode_form_of_a_text_has_the_same_stems(text, form):
    assert stems(unicodedata.normalize(form, text)) == stems(text)
    assert query_words(unicodedata.normalize(form, text)) == query_words(text)


@law(ANY, few=200, many=20_000)
def test_any_text_has_bounded_stems_that_can_be_encoded(text):
    """Stems contain no spaces, which separate them elsewhere."""
    found = [*stems(text), *query_stems(text)]
    assert len(stems(text)) <= 3 * len(normal_text(text))
    assert all(one and one.encode() and not any(char.isspace() for char in one) for one in found)
    assert len(query_words(text)) <= QUERY_WORDS_MAX


@law(ANY, ANY, few=100, many=5_000)
def test_the_words_of_a_text_do_not_depend_on_texts_before(text, other):
    first = stems(text)
    stems(other)
    assert stems(text) == first


def test_a_long_query_is_searched_by_its_first_words() -> None:
    words = [f"word{number}x" for number in range(20_000)]
    assert query_stems(" ".join(words)) == sorted(words[:QUERY_WORDS_MAX])


def test_a_flood_of_marks_is_cut_before_they_are_sorted() -> None:
    """Sorting a million marks into Unicode's order would take hours."""
    flood = "a" + "\u0301\u0323" * 500_000
    assert len(normal_text(flood)) <= MARKS_MAX + 1
    assert stems(flood) == ["a"]


def test_the_cache_of_stems_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    from everlog.store.base import stemming

    monkeypatch.setattr(stemming, "KNOWN_MAX", 10)
    monkeypatch.setattr(stemming, "_known", {})
    stems(" ".join(f"word{number}x" for number in range(100)))
    assert all(len(known) <= 10 for known in stemming._known.values())
    assert KNOWN_MAX > 10


BEGINNINGS = st.sampled_from(["past", "out", "exc", "later", "inter", "gener", "arsen", "cann", "sky", "boy", "y"])
ENDINGS = st.sampled_from(["ment", "th", "bb", "at", "iz", "bl", "ing", "ist", "ogist", "yd", "ism", "al", "ed"])


@law(BEGINNINGS, st.text("abdeghilnorstyz", max_size=6), ENDINGS, few=200, many=20_000)
def test_english_words_have_the_stems_of_snowball(beginning, middle, ending):
    """Words that are not given to the stemmer, because of their ends, would have come back unchanged."""
    word = beginning + middle + ending
    assert stem(word) == stemmer("english").stemWord(word)


def test_the_words_of_the_manual_have_the_stems_of_snowball():
    """The same holds for each English word of this project's pages."""
    pages = Path(__file__).parents[3].joinpath("docs").rglob("*.md")
    words = {word for page in pages for word in re.findall("[a-z]+", page.read_text("utf-8").lower())}
    english = stemmer("english")
    assert [word for word in sorted(words) if stem(word) != english.stemWord(word)] == []
