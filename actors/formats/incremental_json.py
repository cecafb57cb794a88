"""Parse JSON that is still streamed: report the strings at given places, as far as they are known.

All text so far is parsed again when more has arrived, and new parts are reported. Of an unfinished string only certain
text is reported: an escape when it is complete, and both halves of a surrogate pair together. The longer the text, the
more must have arrived before it is parsed again: the total cost is at most that of parsing the whole text STEPS times.
Used by `reply_preview.py` alone.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import jiter

JsonPath = tuple[str, ...]
"""Keys that lead to a value, outermost first."""

STEPS = 512
"""The text is parsed again when it has grown by one part in STEPS."""

_DEPTH_MAX = 2
"""Most objects around a string that is reported."""

_FENCE = re.compile(r"```[a-z]{0,16}[ \t\r]{0,16}\n")
_FENCE_BEGUN = re.compile(r"`{1,3}[a-z]{0,16}[ \t\r]{0,16}")
_MARK = re.compile(r'\\.|\\\Z|["\x00-\x1f]', re.DOTALL)
"""Matches the end of a string, escapes, and characters that may not occur raw in a string."""


class IncrementalJsonError(Exception):
    """The text is not JSON, or can only be understood when it is complete."""


class DuplicateKey(Exception):
    """A key occurred twice; the later value counts."""


class IncrementalJson:
    """One JSON object, and the strings at given places in it."""

    def __init__(self, places: Collection[JsonPath], *, fenced: bool = False) -> None:
        """`fenced`: the object may be in a code fence."""
        self._places = frozenset(places)
        self._fenced = fenced
        self._before = ""
        """Text before the object."""
        self._object = bytearray()
        self._parsed = 0
        """Number of bytes of the object that were parsed."""
        self._backslash = ""
        """Trailing backslash, whose escape is not known yet."""
        self._inside = False
        """True if the text ends within a string."""
        self._sent_lengths: dict[JsonPath, int] = {}
        self._ended: set[JsonPath] = set()

    def read(self, text: str) -> Iterator[tuple[JsonPath, str | None]]:
        """Yield what the text adds, by place: a part of a string, or None at its end.

        Raises IncrementalJsonError, DuplicateKey.
        """
        if not self._object:
            text = self._begun(text)
        self._object += self._strict(text).encode("utf-8", "surrogatepass")
        if self._parsed < len(self._object) <= (len(self._object) - self._parsed) * STEPS:
            self._parsed = len(self._object)
            yield from self._news(list(_leaves(_parsed(bytes(self._object)))))

    def _begun(self, text: str) -> str:
        """Return the object as far as it has arrived; empty before it begins."""
        self._before = (self._before + text).lstrip()
        if self._fenced and (fence := _FENCE.match(self._before)):
            self._before, self._fenced = self._before[fence.end() :].lstrip(), False
        if self._before.startswith("{"):
            return self._before
        if self._before and not (self._fenced and _FENCE_BEGUN.fullmatch(self._before)):
            raise IncrementalJsonError
        return ""

    def _strict(self, text: str) -> str:
        """Escape control characters in strings, which models write raw."""
        text, self._backslash = self._backslash + text, ""
        return _MARK.sub(self._marked, text)

    def _marked(self, found: re.Match[str]) -> str:
        mark = found[0]
        if mark == "\\":
            self._backslash = mark
            return ""
        if mark == '"':
            self._inside = not self._inside
        return f"\\u{ord(mark):04x}" if self._inside and mark < " " else mark

    def _news(self, leaves: list[tuple[JsonPath, Any]]) -> Iterator[tuple[JsonPath, str | None]]:
        """Yield what was not reported yet. The last string is unfinished if the text ends within a string."""
        for number, (place, value) in enumerate(leaves, 1):
            if place in self._places and isinstance(value, str) and place not in self._ended:
                sent_length, self._sent_lengths[place] = self._sent_lengths.get(place, 0), len(value)
                if len(value) > sent_length:
                    yield place, value[sent_length:]
                if number < len(leaves) or not self._inside:
                    self._ended.add(place)
                    yield place, None


def _parsed(text: bytes) -> Mapping[str, Any]:
    """Parse an object whose end may be missing."""
    try:
        return jiter.from_json(text, partial_mode="trailing-strings", catch_duplicate_keys=True, cache_mode="none")
    except ValueError:
        try:
            jiter.from_json(text, partial_mode="trailing-strings", cache_mode="none")
        except ValueError as error:
            raise IncrementalJsonError from error
        raise DuplicateKey from None


def _leaves(value: Mapping[str, Any], outer: JsonPath = ()) -> Iterator[tuple[JsonPath, Any]]:
    """Yield the values in an object and in its nested objects, in order."""
    for key, inner in value.items():
        place = (*outer, key)
        if isinstance(inner, dict) and len(place) < _DEPTH_MAX:
            yield from _leaves(inner, place)
        else:
            yield place, inner
