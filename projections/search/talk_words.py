"""Turn new passages into postings: which stems each has, and how often in statements and in questions.

Used by `talk_index`. Words are counted for many messages at once, because a sort of a million numbers takes less time
than a dictionary for each message. An edit must not make a posting depend on how many messages come at once.
"""

import re
from collections.abc import Sequence

import numpy as np

from everlog.store.base.stemming import language_of, stem, words_and_language
from everlog.store.embedding.chunks import MESSAGE_CHARS_MAX, PASSAGE_CHARS, passages

COUNT_MAX = 255
"""Maximum count of a stem in one passage: more occurrences count as this many."""
UNIT_SHIFT, STATED_SHIFT = 16, 8
"""Bits of a posting below the unit, and below the count in statements. The count in questions is last."""

_SENTENCE = re.compile(r"[^.!?。！？\[\]]+[.!?。！？\]]*")
_QUESTION_MARKS = ("?", "？")


def statements_and_questions(passage: str) -> tuple[str, str]:
    """Return all statements of a passage, and all questions: sentences that end in a question mark."""
    if not _asks(passage):
        return passage, ""
    stated: list[str] = []
    asked: list[str] = []
    for sentence in _SENTENCE.findall(passage):
        (asked if sentence.rstrip().endswith(_QUESTION_MARKS) else stated).append(sentence)
    return " ".join(stated), " ".join(asked)


def _asks(text: str) -> bool:
    return "?" in text or "？" in text


def stems_and_language(text: str) -> tuple[set[str], str]:
    """Return the stems of a message that postings are made of, and its language: the same as `NewWords` finds."""
    if len(text) <= PASSAGE_CHARS:
        words, language = words_and_language(text)
        return {stem(word, language) for word in words}, language
    language = language_of(text[:MESSAGE_CHARS_MAX])
    parts = (words_and_language(passage, language)[0] for passage in passages(text))
    return {stem(word, language) for words in parts for word in words}, language


class StemNumbers(dict[str, int]):
    """Number of each stem, in the order of their first occurrence."""

    def __missing__(self, one: str) -> int:
        number = self[one] = len(self)
        return number


class NewWords:
    """Words of new passages as numbers of their stems, in one flat list: statements, then questions of each passage."""

    def __init__(self, numbers: StemNumbers, first_unit: int) -> None:
        """Begin with the unit `first_unit`; new stems are added to `numbers`."""
        self._numbers = numbers
        self._by_word: dict[str, _WordNumbers] = {}
        self._first_unit = self._end = first_unit
        self._flat: list[int] = []
        self._counts: list[int] = []

    def add(self, text: str) -> tuple[int, str]:
        """Add a message. Return the number of units up to its end, and its language."""
        if len(text) <= PASSAGE_CHARS and not _asks(text):
            words, language = words_and_language(text)
            self._add_passage(words, (), language)
        else:
            language = language_of(text[:MESSAGE_CHARS_MAX])
            for passage in passages(text):
                stated, asked = statements_and_questions(passage)
                asked_words = words_and_language(asked, language)[0] if asked else ()
                self._add_passage(words_and_language(stated, language)[0], asked_words, language)
        return self._end, language

    def _add_passage(self, stated: Sequence[str], asked: Sequence[str], language: str) -> None:
        number = (self._by_word.get(language) or self._language(language)).__getitem__
        self._flat += map(number, stated)
        self._flat += map(number, asked)
        self._counts += len(stated), len(asked)
        self._end += 1

    def _language(self, language: str) -> "_WordNumbers":
        return self._by_word.setdefault(language, _WordNumbers(self._numbers, language))

    def lengths(self) -> np.ndarray:
        """Return the number of stems of the statements and of the questions of each unit, a row for each unit."""
        return np.array(self._counts, np.float32).reshape(-1, 2)

    def take_postings(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the stem and the posting of each pair of stem and unit, by stem, then by unit, and forget them."""
        kinds = np.repeat(np.arange(len(self._counts)), self._counts)  # twice the unit, and 1 for questions
        keys, times = np.unique(np.array(self._flat, np.int64) << 32 | kinds, return_counts=True)
        times = np.minimum(times, COUNT_MAX)
        pairs = keys >> 1
        first = np.flatnonzero(np.diff(pairs, prepend=-1))
        pairs = pairs[first]
        counted = np.where(keys & 1, times, times << STATED_SHIFT)
        total = np.add.reduceat(counted, first) if len(first) else counted
        units = (pairs & (1 << 31) - 1) + self._first_unit
        self._first_unit = self._end
        self._flat.clear()
        self._counts.clear()
        return pairs >> 31, (units << UNIT_SHIFT | total).astype(np.uint64)


class _WordNumbers(dict[str, int]):
    """Number of the stem of each word in one language."""

    def __init__(self, numbers: StemNumbers, language: str) -> None:
        super().__init__()
        self._numbers = numbers
        self._language = language

    def __missing__(self, word: str) -> int:
        number = self[word] = self._numbers[stem(word, self._language)]
        return number
