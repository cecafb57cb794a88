"""Split texts and queries into the words that every search compares. Pure.

A word is a run of letters, digits, marks and underscores, or an emoji. Words are compared by their stems (Snowball), in
the language of their text: `language_of` finds it by the commonest words of each language. Scripts without spaces
become pairs of neighbouring characters. A text has the same stems in each of its Unicode forms.

Used by `embedding.tokenizer` and by the searches of `projections`. The archive stores hashes of stems, so a change of a
stem needs a new `CHUNKER` in `archive_constants`.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from threading import Lock
from typing import Any

from everlog.store.base.function_words import (
    ENGLISH,
    FUNCTION_WORDS,
    LETTERS,
    OTHER_SCRIPTS,
    QUERY_CHARACTERS,
    QUERY_PHRASES,
    QUERY_WORDS_OF_OTHER_SCRIPTS,
    QUESTION_WORDS,
)

QUERY_WORDS_MAX = 256
"""Number of words of a query that are searched for: the first. Later ones are ignored."""
PHRASES_MAX = 16
"""Number of phrases in quotes that a result must contain: the first. Later ones are ignored."""
STEMMED_CHARS_MAX = 64
"""Length above which a word is neither stemmed nor cached: characters, inclusive."""
KNOWN_MAX = 100_000
"""Number of words of each language whose stems are cached."""
LANGUAGE_WORDS = 300
"""Number of words of a text, from its beginning, that decide its language."""
MARKS_MAX = 30
"""Number of characters in a row that are no letters, digits or spaces; the rest of a longer run is dropped. Sorting
marks takes time that grows with the square of their number. The number is that of Unicode's stream-safe text format.
"""

_HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_PAIRED = rf"\u3040-\u30ff\u3100-\u312f\u31f0-\u31ff{_HAN}"
_STACKED = "\u0e01-\u0e3a\u0e40-\u0e4e\u0e80-\u0eff\u1000-\u109f\u1780-\u17d3"
_HANGUL = "\uac00-\ud7a3"
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963"
    "\u0981-\u0983\u09bc-\u09cd\u0a01-\u0a03\u0a3c-\u0a4d\u0a81-\u0a83\u0abc-\u0acd\u0b01-\u0b03\u0b3c-\u0b4d"
    "\u0b82\u0bbe-\u0bcd\u0c00-\u0c04\u0c3e-\u0c4d\u0c81-\u0c83\u0cbc-\u0ccd\u0d00-\u0d03\u0d3b-\u0d4d"
    "\u0dca-\u0ddf\u1dc0-\u1dff\u20d0-\u20ff"
)
_EMOJI = "\u2600-\u27bf\u2b50\u2b55\U0001f1e6-\U0001f1ff\U0001f300-\U0001f3fa\U0001f400-\U0001faff"
_FLAG = "[\U0001f1e6-\U0001f1ff]{2}"
WORD = re.compile(
    rf"[{_PAIRED}]+|[{_STACKED}]+|[{_HANGUL}]+|{_FLAG}|[{_EMOJI}]|(?:[^\W{_PAIRED}{_STACKED}{_HANGUL}]|[{_MARKS}])+"
)
_ASCII_WORD = re.compile(r"[a-z0-9_]+")
_PHRASE = re.compile(r'["\u201c\u201d]([^"\u201c\u201d]+)["\u201c\u201d]')
_NEVER_ALONE = re.compile(rf"[{_PAIRED}{_STACKED}{_HANGUL}]")
_SEVERAL_HAN = re.compile(rf"[{_HAN}]")
_CLUSTER = re.compile(
    "[\u0e40-\u0e44\u0ec0-\u0ec4]?[^\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e"
    "\u17b4-\u17d3](?:[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u1038\u103a-\u103e"
    "\u17b4-\u17d1\u17d3]|[\u1039\u17d2].?)*|."
)
_NO_LETTERS = re.compile(rf"([^\w\s]{{{MARKS_MAX}}})[^\w\s]+")
_ENGLISH_ENDING = re.compile("(?:[eilsy]|ant|ed|ent|er|ic|ing|ion|ism|ist|or)$")
"""Ends of English words that the stemmer may change. It leaves all others as they are, and takes 30 us to do so."""
_ACCENT = re.compile("[\u0300-\u036f\u0591-\u05c7]")
_BASE_LETTERS = str.maketrans({"ı": "i", "ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe", "ё": "е"})
_PHRASES = re.compile("|".join(map(re.escape, sorted(QUERY_PHRASES, key=len, reverse=True))))

_SHIFT = 16
"""Bits for the count of one language in a sum over words: more than LANGUAGE_WORDS."""
_COUNT = (1 << _SHIFT) - 1


@cache
def _stemmer(language: str) -> Any:
    """Return a stemmer. It is created on the first search, so that an agent that never searches stays small."""
    from snowballstemmer import stemmer

    return stemmer(language)


@cache
def _evidence() -> tuple[Mapping[str, int], frozenset[str]]:
    """Return for each function word the languages that have it, one count for each, SHIFT bits apart, English lowest;
    and the words that English does not have.

    Words count without their accents, too, because people leave accents out.
    """
    found: dict[str, int] = {}
    for place, words in enumerate(FUNCTION_WORDS.values()):
        for word in words | {_plain(word) for word in words}:
            found[word] = found.get(word, 0) + (1 << place * _SHIFT)
    return found, frozenset(found) - FUNCTION_WORDS[ENGLISH]


_known: dict[str, dict[str, str]] = {}
_learning = Lock()
"""Held while a stemmer works: it keeps its state in itself."""


def normal_text(text: str) -> str:
    """Return a text in the form in which words are compared: Unicode's form KC, without upper case."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", _NO_LETTERS.sub(r"\1", text)).casefold()
    return unicodedata.normalize("NFKC", _NO_LETTERS.sub(r"\1", text))


def language_of(text: str) -> str:
    """Return the language of the words of a text that are in the Latin script, as the name of a stemmer.

    A text is in the language that has most of its words among its commonest ones; in English, unless another language
    has at least two of them and more than English. Letters that one language alone has count as one such word.
    """
    text = normal_text(text)
    return _language(text, _words(text))


def _words(text: str) -> list[str]:
    """Return the words of a text in the form of `normal_text`, before `_parts`."""
    return _ASCII_WORD.findall(text) if text.isascii() else WORD.findall(text)


def _language(text: str, words: Sequence[str]) -> str:
    """Return the language of a text in the form of `normal_text`, which has these words."""
    evidence, foreign = _evidence()
    words = words[:LANGUAGE_WORDS]
    letters = {LETTERS[one] for one in LETTERS.keys() & set(text)} if not text.isascii() else ()
    if not letters and foreign.isdisjoint(words):
        return ENGLISH
    counts = sum(filter(None, map(evidence.get, set(words))))
    best, most = ENGLISH, max(counts & _COUNT, 1)
    for place, language in enumerate(FUNCTION_WORDS):
        count = (counts >> place * _SHIFT & _COUNT) + (language in letters)
        if count > most:
            best, most = language, count
    return best


def stem(word: str, language: str = ENGLISH) -> str:
    """Return the stem of one word in the form of `normal_text`. A word with digits is returned unchanged, and so is one
    in a script without a stemmer. Words of other scripts than the Latin have the language of their script.
    """
    known = _known.setdefault(language, {})
    found = known.get(word)
    return _learn(known, word, language) if found is None else found


def stems(text: str, language: str | None = None) -> list[str]:
    """Return the stems of all words of `text`, in order. `language` is that of `language_of`; None: of this text.

    A run of Chinese or Japanese becomes its characters in pairs, each Chinese character also alone, so that a query of
    one character finds it. A Korean word is itself and its syllables in pairs. Thai, Lao, Khmer and Burmese become
    pairs of letters with their marks.
    """
    words, language = words_and_language(text, language)
    known = _known.setdefault(language, {})
    return [known.get(word) or _learn(known, word, language) for word in words]


def words_and_language(text: str, language: str | None = None) -> tuple[list[str], str]:
    """Return the words of which `stems` returns the stems, each of which `stem` stems, and the language of `text`."""
    text = normal_text(text)
    words = _words(text)
    language = language or _language(text, words)
    if not text.isascii() and _NEVER_ALONE.search(text):
        words = [part for word in words for part in _parts(word)]
    return words, language


def query_words(query: str, languages: Iterable[str] = ()) -> list[tuple[str, ...]]:
    """Return the words of a query in order, each as its possible stems: in the query's language, in English, and in
    `languages`, those of the texts that are searched. A word counts as found if any of its stems is.

    Function words are dropped unless no others are left. Only the first QUERY_WORDS_MAX words count.
    """
    text = normal_text(query)
    own = _language(text, _words(text))
    spoken = dict.fromkeys((own, ENGLISH, *languages))
    dropped = QUESTION_WORDS if own == ENGLISH else QUESTION_WORDS | FUNCTION_WORDS[own]
    kept = list(_content(_PHRASES.sub(" ", text), dropped)) or [
        part for word in WORD.findall(text) for part in _query_parts(word)
    ]
    first = list(dict.fromkeys(kept))[:QUERY_WORDS_MAX]
    return [tuple(dict.fromkeys(stem(word, language) for language in spoken)) for word in first]


def query_stems(query: str, languages: Iterable[str] = ()) -> list[str]:
    """Return all stems of `query_words`, without duplicates and sorted."""
    return sorted({stem for word in query_words(query, languages) for stem in word})


def phrases_in(query: str) -> tuple[list[str], str]:
    """Return the phrases in double quotes, which a result must contain, and the query without the phrases, in lower
    case. Of more than PHRASES_MAX different phrases only the first count.
    """
    found = dict.fromkeys(phrase.strip().lower() for phrase in _PHRASE.findall(query))
    return [phrase for phrase in found if phrase][:PHRASES_MAX], _PHRASE.sub(" ", query).strip().lower()


def _content(text: str, dropped: Collection[str]) -> Iterator[str]:
    """Yield the words of a query that say something about its subject."""
    for word in WORD.findall(text):
        if word in dropped or word in QUERY_WORDS_OF_OTHER_SCRIPTS:
            continue
        yield from (part for part in _query_parts(word) if not QUERY_CHARACTERS.issuperset(part))


def _parts(word: str) -> Sequence[str]:
    """Return the words that a word of a text becomes."""
    if not _NEVER_ALONE.match(word):
        return (word,)
    pairs = _query_parts(word)
    alone = _SEVERAL_HAN.findall(word) if len(word) > 1 else ()
    return [*alone, *pairs]


def _query_parts(word: str) -> Sequence[str]:
    """Return the words that a word of a query becomes: pairs of characters, if it is in such a script."""
    if not _NEVER_ALONE.match(word):
        return (word,)
    characters = _CLUSTER.findall(word) if "\u0e01" <= word[0] <= "\u17d3" else word
    pairs = [one + next_one for one, next_one in pairwise(characters)] or [word]
    return pairs if word[0] < "\uac00" or word[0] > "\ud7a3" or len(word) < 3 else [word, *pairs]


def _learn(known: dict[str, str], word: str, language: str) -> str:
    """Return the stem of a word that is not known yet, and cache it."""
    if len(word) > STEMMED_CHARS_MAX:
        return _plain(word)
    with _learning:
        found = _stemmed(word, language)
    if len(known) >= KNOWN_MAX:
        known.clear()
    known[word] = found
    return found


def _stemmed(word: str, language: str) -> str:
    if word.isascii():
        unchanged = not word.isalpha() or (language == ENGLISH and not _ENGLISH_ENDING.search(word))
        return word if unchanged else str(_stemmer(language).stemWord(word))
    if any(char.isdigit() or char == "_" for char in word):
        return _plain(word)
    if _is_latin(word[0]):
        # The English stemmer knows no accents: `cafés` must become what `cafes` becomes.
        ready = _plain(word) if language == ENGLISH else word
        return _plain(str(_stemmer(language).stemWord(ready)))
    script = next((language for first, last, language in OTHER_SCRIPTS if first <= word[0] <= last), "")
    return _plain(str(_stemmer(script).stemWord(word))) if script else _plain(word)


def _is_latin(letter: str) -> bool:
    return letter < "\u0250" or "\u1e00" <= letter <= "\u1eff"


def _plain(word: str) -> str:
    """Return a word without accents on Latin, Greek and Hebrew letters, and without marks that have no letter."""
    if word.isascii():
        return word
    if word[0] < "\u0400" or "\u1e00" <= word[0] <= "\u1fff" or "\u0590" <= word[0] <= "\u05ff":
        plain = unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFD", word)))
        return plain.translate(_BASE_LETTERS) or word
    return word.translate(_BASE_LETTERS)
