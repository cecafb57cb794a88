"""From text to stems: what ranked search compares. Snowball's English stemmer; a word is letters and digits."""

import re
from functools import lru_cache

from snowballstemmer import stemmer

_WORD = re.compile(r"\w+")
_english = stemmer("english")

QUESTION_WORDS = frozenset(
    [
        "what",
        "when",
        "where",
        "which",
        "who",
        "whom",
        "whose",
        "why",
        "how",
        "did",
        "does",
        "do",
        "is",
        "are",
        "was",
        "were",
        "has",
        "have",
        "had",
        "will",
        "would",
        "can",
        "could",
        "should",
        "a",
        "an",
        "the",
        "of",
        "to",
        "in",
        "on",
        "at",
        "for",
        "and",
        "or",
        "with",
        "about",
        "it",
        "its",
        "that",
        "this",
        "there",
    ]
)
"""Dropped from a query (not from documents), unless nothing else is left: they say how to answer, not what about."""


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """The stem of one lower-case word."""
    return str(_english.stemWord(word))


def stems(text: str) -> list[str]:
    """The stems of all words of `text`, in order."""
    return [stem(word) for word in _WORD.findall(text.lower())]


def query_stems(query: str) -> list[str]:
    """The stems of a query, each once, without question words where others are left."""
    words = _WORD.findall(query.lower())
    kept = [word for word in words if word not in QUESTION_WORDS] or words
    return sorted({stem(word) for word in kept})
