"""From text to the words that are compared: stems of English, and whole identifiers, each as a number of 32 bits.

A word is letters and digits; `3f2a-77` or `store.archive` is its parts, and also one word as a whole, so that an id is
found exactly. What is kept is a hash: two of 100,000 words share one in a case of ten thousand.
"""

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any
from zlib import crc32

if TYPE_CHECKING:
    import numpy as np

_WORD = re.compile(r"\w+")
_IDENTIFIER = re.compile(r"\w+(?:[-./:@_]\w+)+")

_ASKING = """
what when where which who whom whose why how did does do is are was were has have had will would can could should
a an the of to in on at for and or with about it its that this there
"""
QUESTION_WORDS = frozenset(_ASKING.split())
"""Dropped from a query (not from texts), unless nothing else is left: they say how to answer, not what about."""


@cache
def _english() -> Any:
    from snowballstemmer import stemmer

    return stemmer("english")


@lru_cache(maxsize=200_000)
def _number(word: str) -> int:
    """The number of a word in lower case."""
    return crc32(str(_english().stemWord(word)).encode())


@lru_cache(maxsize=10_000)
def _whole(identifier: str) -> int:
    return crc32(f"={identifier}".encode())


def numbers_of(text: str) -> list[int]:
    """The words of a text in order, then its identifiers."""
    lower = text.lower()
    found = [_number(word) for word in _WORD.findall(lower)]
    if len(found) > 1:
        found += [_whole(identifier) for identifier in _IDENTIFIER.findall(lower)]
    return found


def packed(text: str) -> bytes:
    """`numbers_of` as bytes: what a row keeps."""
    import numpy as np

    return np.array(numbers_of(text), dtype="<u4").tobytes()


def unpacked(data: bytes) -> "np.ndarray":
    """The numbers that were `packed`, of any number of rows one after the other."""
    import numpy as np

    return np.frombuffer(data, dtype="<u4")


def query_numbers(query: str) -> list[int]:
    """The words of a query, each once, without question words where others are left."""
    lower = query.lower()
    words = _WORD.findall(lower)
    kept = [word for word in words if word not in QUESTION_WORDS] or words
    found = {_number(word) for word in kept}
    found.update(_whole(identifier) for identifier in _IDENTIFIER.findall(lower) if len(words) > 1)
    return sorted(found)


_QUOTED = re.compile(r'["“”]([^"“”]*)["“”]')


def phrases_in(query: str) -> list[str]:
    """What stands in quotes, in lower case: a result must hold all of it."""
    return [phrase for phrase in (match.strip().lower() for match in _QUOTED.findall(query)) if phrase]


def without_quotes(query: str) -> str:
    """The query as one phrase."""
    return re.sub(r'["“”]', "", query).strip().lower()
