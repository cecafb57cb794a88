"""Turn text into the words that are compared: stems (`store.base.stemming`) and whole identifiers, each a 32-bit
number.

`3f2a-77` or `store.archive` gives its parts and also one word for the whole, so that an id is found exactly. A number
is a hash: the chance that a word shares its number with one of 100,000 others is about 1 in 43,000.

Used by `embedding_cache`, `hybrid_search` and `row_cache`. The numbers are stored with the rows, so a change of a
number needs a new `CHUNKER`.
"""

import re
from array import array
from typing import TYPE_CHECKING
from zlib import crc32

from everlog.store.base.stemming import (
    QUERY_WORDS_MAX,
    STEMMED_CHARS_MAX,
    language_of,
    normal_text,
    query_stems,
    stems,
)

if TYPE_CHECKING:
    import numpy as np

_IDENTIFIER = re.compile(r"\b\w+(?:[-./:@_]\w+)+")
KNOWN_MAX = 300_000
"""Number of pieces of text of each language whose words are cached."""


def _number(stem: str) -> int:
    return crc32(stem.encode())


def _whole(identifier: str) -> int:
    return crc32(f"={identifier}".encode())


_known: dict[str, dict[str, tuple[int, ...]]] = {}
"""Words of pieces of text, by the language of the text."""


def _numbers_in(piece: str, language: str) -> tuple[int, ...]:
    """Return the words of a normal piece of text without spaces, and of the identifiers in it."""
    found = [_number(stem) for stem in stems(piece, language)]
    if len(found) > 1:
        found += [_whole(identifier) for identifier in _IDENTIFIER.findall(piece)]
    return tuple(found)


def numbers_of(text: str) -> list[int]:
    """Return the words of a text in order, each identifier after its parts."""
    found: list[int] = []
    language = language_of(text)
    known = _known.setdefault(language, {})
    for piece in normal_text(text).split():
        numbers = known.get(piece)
        if numbers is None:
            numbers = _numbers_in(piece, language)
            if len(known) >= KNOWN_MAX:
                known.clear()
            if len(piece) <= STEMMED_CHARS_MAX:
                known[piece] = numbers
        found += numbers
    return found


def words_of(text: str) -> list[int]:
    """Return the words of a text in order, without identifiers."""
    return [_number(stem) for stem in stems(text)]


def pack_numbers(text: str) -> bytes:
    """Return `numbers_of` as bytes, the form in which they are cached with a vector."""
    return array("I", numbers_of(text)).tobytes()


def token_of(word: int) -> str:
    """Return a word as it is written in `written_words`."""
    return word.to_bytes(4, "little").hex()


def written_words(packed: bytes) -> str:
    """Return the output of `pack_numbers` as text, in which a full-text index finds each word: 8 digits and a space."""
    return packed.hex(" ", 4)


def unpacked_text(written: str) -> "np.ndarray":
    """Return the numbers in the output of `written_words`, of any number of rows joined by spaces."""
    return unpacked(bytes.fromhex(written))


def unpacked(data: bytes) -> "np.ndarray":
    """Return the numbers in the output of `pack_numbers`, of any number of rows one after the other."""
    import numpy as np

    return np.frombuffer(data, dtype="<u4")


def query_numbers(query: str) -> list[int]:
    """Return the words of a query without duplicates; function words are dropped unless no others are left."""
    found = {_number(stem) for stem in query_stems(query)}
    found.update(map(_whole, _IDENTIFIER.findall(normal_text(query))[:QUERY_WORDS_MAX]))
    return sorted(found)


def without_quotes(query: str) -> str:
    """Return the query as one phrase, without quotes and in lower case."""
    return re.sub(r'["“”]', "", query).strip().lower()
