"""Split texts and queries into the words that every search compares. Pure.

A word is a run of letters, digits and underscores; in Chinese and Japanese, each character is a word. English words are
compared by their stems (Snowball).

Used by `embedding.tokenizer` and by the searches of `projections`. The archive stores hashes of stems, so a change of a
stem needs a new `CHUNKER` in `archive_constants`.
"""

import re
from functools import cache, lru_cache
from typing import Any

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
WORD = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+")
_PHRASE = re.compile(r'["\u201c\u201d]([^"\u201c\u201d]+)["\u201c\u201d]')

_QUESTION_WORDS_TEXT = """
what when where which who whom whose why how did does do is are was were has have had will would can could should
a an the of to in on at for and or with about it its that this there
i me my mine we us our you your he him his she her they their them
be been being by from as not no any some take took
"""
QUESTION_WORDS = frozenset(_QUESTION_WORDS_TEXT.split())
"""Words dropped from a query (not from texts) unless no others are left: they say how to answer, not what the question
is about.
"""


@cache
def _english() -> Any:
    """Return the stemmer. It is created on the first search, so that an agent that never searches stays small."""
    from snowballstemmer import stemmer

    return stemmer("english")


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """Return the stem of one lower-case word; a word with anything but letters in it is returned unchanged."""
    return str(_english().stemWord(word)) if word.isalpha() else word


def stems(text: str) -> list[str]:
    """Return the stems of all words of `text`, in order."""
    return [stem(word) for word in WORD.findall(text.lower())]


def query_stems(query: str) -> list[str]:
    """Return the stems of a query, without duplicates and sorted; question words are dropped unless no others are
    left.
    """
    words = WORD.findall(query.lower())
    kept = [word for word in words if word not in QUESTION_WORDS] or words
    return sorted({stem(word) for word in kept})


def phrases_in(query: str) -> tuple[list[str], str]:
    """Return the phrases in double quotes, which a result must contain, and the query without the phrases, in lower
    case.
    """
    found = [phrase.strip().lower() for phrase in _PHRASE.findall(query)]
    return [phrase for phrase in found if phrase], _PHRASE.sub(" ", query).strip().lower()
