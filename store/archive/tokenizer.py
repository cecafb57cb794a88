"""From text to the words that are compared: stems of English, and whole identifiers, each as a number of 32 bits.

A word is letters and digits, and of Chinese and Japanese each character; `3f2a-77` or `store.archive` is its parts, and
also one word as a whole, so that an id is found exactly. What is kept is a hash: two of 100,000 words share one in a
case of ten thousand.
"""

import re
from array import array
from functools import lru_cache
from typing import TYPE_CHECKING
from zlib import crc32

from everlog.store.base.stemming import QUESTION_WORDS, stem

if TYPE_CHECKING:
    import numpy as np

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+")
_IDENTIFIER = re.compile(r"\b\w+(?:[-./:@_]\w+)+")
KNOWN_MAX = 300_000
"""Pieces of text whose words are remembered."""


@lru_cache(maxsize=100_000)
def _stem_number(word: str) -> int:
    return crc32(stem(word).encode())


def _number(word: str) -> int:
    """The number of a word in lower case. One with a digit in it is nobody's plural."""
    return _stem_number(word) if word.isalpha() else crc32(word.encode())


def _whole(identifier: str) -> int:
    return crc32(f"={identifier}".encode())


_known: dict[str, tuple[int, ...]] = {}


def _numbers_in(piece: str) -> tuple[int, ...]:
    """The words of a piece of text without spaces, in lower case, and the identifiers in it."""
    words = _WORD.findall(piece)
    found = [_number(word) for word in words]
    if len(words) > 1:
        found += [_whole(identifier) for identifier in _IDENTIFIER.findall(piece)]
    if len(_known) >= KNOWN_MAX:
        _known.clear()
    numbers = _known[piece] = tuple(found)
    return numbers


def numbers_of(text: str) -> list[int]:
    """The words of a text in order, each identifier after its parts."""
    found: list[int] = []
    known = _known.get
    for piece in text.lower().split():
        numbers = known(piece)
        found += _numbers_in(piece) if numbers is None else numbers
    return found


def words_of(text: str) -> list[int]:
    """The words of a text in order, without identifiers."""
    return [_number(word) for word in _WORD.findall(text.lower())]


def packed(text: str) -> bytes:
    """`numbers_of` as bytes: what a row keeps."""
    return array("I", numbers_of(text)).tobytes()


def unpacked(data: bytes) -> "np.ndarray":
    """The numbers that were `packed`, of any number of rows one after the other."""
    import numpy as np

    return np.frombuffer(data, dtype="<u4")


def query_numbers(query: str) -> list[int]:
    """The words of a query, each once, without question words where others are left."""
    words = [word for piece in query.lower().split() for word in _WORD.findall(piece)]
    kept = [word for word in words if word not in QUESTION_WORDS] or words
    found = {_number(word) for word in kept}
    found.update(_whole(identifier) for identifier in _IDENTIFIER.findall(query.lower()))
    return sorted(found)


_QUOTED = re.compile(r'["“”]([^"“”]*)["“”]')


def phrases_in(query: str) -> list[str]:
    """What stands in quotes, in lower case: a result must hold all of it."""
    return [phrase for phrase in (match.strip().lower() for match in _QUOTED.findall(query)) if phrase]


def without_quotes(query: str) -> str:
    """The query as one phrase."""
    return re.sub(r'["“”]', "", query).strip().lower()
