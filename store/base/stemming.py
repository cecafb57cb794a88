"""English words as searches compare them: their stems (Snowball), and those that only say how to answer. Pure."""

from functools import cache, lru_cache
from typing import Any

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
    """The stem of one lower-case word."""
    return str(_english().stemWord(word))
