"""From text to the words that are compared: stems (`everlog.store.base.stemming`) and whole identifiers, each a number
of 32 bits.

`3f2a-77` or `store.archive` is its parts, and also one word as a whole, so that an id is found exactly. What is kept
is a hash: two of 100,000 words share one in a case of ten thousand.
"""

import re
from array import array
from typing import TYPE_CHECKING
from zlib import crc32

from everlog.store.base.stemming import query_stems, stems

if TYPE_CHECKING:
    import numpy as np

_IDENTIFIER = re.compile(r"\b\w+(?:[-./:@_]\w+)+")
KNOWN_MAX = 300_000
"""Pieces of text whose words are remembered."""


def _number(stem: str) -> int:
    return crc32(stem.encode())


def _whole(identifier: str) -> int:
    return crc32(f"={identifier}".encode())


_known: dict[str, tuple[int, ...]] = {}


def _numbers_in(piece: str) -> tuple[int, ...]:
    """The words of a piece of text without spaces, in lower case, and the identifiers in it."""
    found = [_number(stem) for stem in stems(piece)]
    if len(found) > 1:
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
    return [_number(stem) for stem in stems(text)]


def pack_numbers(text: str) -> bytes:
    """`numbers_of` as bytes: what a row keeps."""
    return array("I", numbers_of(text)).tobytes()


def unpacked(data: bytes) -> "np.ndarray":
    """The numbers that were `pack_numbers`, of any number of rows one after the other."""
    import numpy as np

    return np.frombuffer(data, dtype="<u4")


def query_numbers(query: str) -> list[int]:
    """The words of a query, each once, without question words where others are left."""
    found = {_number(stem) for stem in query_stems(query)}
    found.update(_whole(identifier) for identifier in _IDENTIFIER.findall(query.lower()))
    return sorted(found)


def without_quotes(query: str) -> str:
    """The query as one phrase."""
    return re.sub(r'["“”]', "", query).strip().lower()
