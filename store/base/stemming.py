"""The words of a text and of a query as every search compares them. Pure.

A word is letters, digits and underscores, and of Chinese and Japanese each character. English words are compared by
their stems (Snowball).
"""

import re
from functools import cache, lru_cache
from typing import Any

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
WORD = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+")
_PHRASE = re.compile(r'["\u201c\u201d]([^"\u201c\u201d]+)["\u201c\u201d]')

_ASKING = """
what when where which who whom whose why how did does do is are was were has have had will would can could should
a an the of to in on at for and or with about it its that this there
"""
QUESTION_WORDS = frozenset(_ASKING.split())
"""Dropped from a query (not from texts), unless nothing else is left: they say how to answer, not what about."""


@cache
def _english() -> Any:
    """The stemmer, made when somebody searches: an agent's process is small until then."""
    from snowballstemmer import stemmer

    return stemmer("english")


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """Return the stem of one lower-case word. One that has more than letters in it is nobody's plural."""
    return str(_english().stemWord(word)) if word.isalpha() else word


def stems(text: str) -> list[str]:
    """Return the stems of all words of `text`, in order."""
    return [stem(word) for word in WORD.findall(text.lower())]


def query_stems(query: str) -> list[str]:
    """Return the stems of a query, each once and sorted, without question words where others are left."""
    words = WORD.findall(query.lower())
    kept = [word for word in words if word not in QUESTION_WORDS] or words
    return sorted({stem(word) for word in kept})


def phrases_in(query: str) -> tuple[list[str], str]:
    """Return the phrases in double quotes, which a result must hold, and the query without them, in lower case."""
    found = [phrase.strip().lower() for phrase in _PHRASE.findall(query)]
    return [phrase for phrase in found if phrase], _PHRASE.sub(" ", query).strip().lower()
