"""From text to stems: what ranked search compares. Snowball's English stemmer; a word is letters and digits."""

import re
from functools import cache, lru_cache
from typing import Any

_WORD = re.compile(r"\w+")

_SENTENCE = re.compile(r"[^.!?\[\]]+[.!?\]]*")

QUESTION_WORDS = frozenset(
    """
    what when where which who whom whose why how did does do is are was were has have had will would can could should
    a an the of to in on at for and or with about it its that this there
    """.split()  # noqa: SIM905  a list of single words is five times as long
)
"""Dropped from a query (not from documents), unless nothing else is left: they say how to answer, not what about."""


@cache
def _english() -> Any:
    """The stemmer, made when somebody searches: an agent's process is small until then."""
    from snowballstemmer import stemmer

    return stemmer("english")


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """The stem of one lower-case word."""
    return str(_english().stemWord(word))


def stems(text: str) -> list[str]:
    """The stems of all words of `text`, in order."""
    return [stem(word) for word in _WORD.findall(text.lower())]


def query_stems(query: str) -> list[str]:
    """The stems of a query, each once, without question words where others are left."""
    words = _WORD.findall(query.lower())
    kept = [word for word in words if word not in QUESTION_WORDS] or words
    return sorted({stem(word) for word in kept})


def stems_by_sentence(text: str) -> tuple[list[str], list[str]]:
    """The stems of its statements, and those of its questions: sentences that end in a question mark."""
    stated: list[str] = []
    asked: list[str] = []
    for sentence in _SENTENCE.findall(text):
        (asked if sentence.rstrip().endswith("?") else stated).extend(stems(sentence))
    return stated, asked
