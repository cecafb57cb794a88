"""JSON that is still coming: what strings at some places in it hold, as far as it is known.

All of the text so far is parsed again when more of it has come, and what is new is told. Of a string that has not ended
only what is certain is told: an escape when it is whole, and two halves of a character together. The larger the text,
the more must have come: reading a whole one costs as if it were parsed STEPS times.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import jiter

JsonPath = tuple[str, ...]
"""The keys that lead to a value, from the outermost object on."""

STEPS = 512
"""The text is parsed again when it is longer by one part of so many."""

_DEPTH_MAX = 2
"""Objects around a string that is told."""

_FENCE = re.compile(r"```[a-z]{0,16}[ \t\r]{0,16}\n")
_FENCE_BEGUN = re.compile(r"`{1,3}[a-z]{0,16}[ \t\r]{0,16}")
_MARK = re.compile(r'\\.|\\\Z|["\x00-\x1f]', re.DOTALL)
"""What says where a string ends, and what may not stand in one as it is."""


class IncrementalJsonError(Exception):
    """This is no JSON, or not as it stands: what it holds can only be known when it is whole."""


class DuplicateKey(Exception):
    """A key came twice, and the later one counts."""


class IncrementalJson:
    """One JSON object, and the strings at some places in it."""

    def __init__(self, places: Collection[JsonPath], *, fenced: bool = False) -> None:
        """`fenced`: it may stand in a code fence."""
        self._places = frozenset(places)
        self._fenced = fenced
        self._before = ""
        """What came before the object began."""
        self._object = bytearray()
        self._parsed = 0
        """Bytes of the object that were parsed."""
        self._backslash = ""
        """A backslash that came last: what it stands for is not known yet."""
        self._inside = False
        """The text ends within a string."""
        self._told: dict[JsonPath, int] = {}
        self._ended: set[JsonPath] = set()

    def read(self, text: str) -> Iterator[tuple[JsonPath, str | None]]:
        """What the text adds, by place: a part of a string, or None at its end. Raises Unreadable, Repeated."""
        if not self._object:
            text = self._begun(text)
        self._object += self._strict(text).encode("utf-8", "surrogatepass")
        if self._parsed < len(self._object) <= (len(self._object) - self._parsed) * STEPS:
            self._parsed = len(self._object)
            yield from self._news(list(_leaves(_parsed(bytes(self._object)))))

    def _begun(self, text: str) -> str:
        """What has come of the object; nothing before it begins."""
        self._before = (self._before + text).lstrip()
        if self._fenced and (fence := _FENCE.match(self._before)):
            self._before, self._fenced = self._before[fence.end() :].lstrip(), False
        if self._before.startswith("{"):
            return self._before
        if self._before and not (self._fenced and _FENCE_BEGUN.fullmatch(self._before)):
            raise IncrementalJsonError
        return ""

    def _strict(self, text: str) -> str:
        """The text with control characters in strings escaped, which models write as they are."""
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
        """What was not told yet. The last string has not ended if the text ends within one."""
        for number, (place, value) in enumerate(leaves, 1):
            if place in self._places and isinstance(value, str) and place not in self._ended:
                told, self._told[place] = self._told.get(place, 0), len(value)
                if len(value) > told:
                    yield place, value[told:]
                if number < len(leaves) or not self._inside:
                    self._ended.add(place)
                    yield place, None


def _parsed(text: bytes) -> Mapping[str, Any]:
    """What an object holds whose end may not have come."""
    try:
        return jiter.from_json(text, partial_mode="trailing-strings", catch_duplicate_keys=True, cache_mode="none")
    except ValueError:
        try:
            jiter.from_json(text, partial_mode="trailing-strings", cache_mode="none")
        except ValueError as error:
            raise IncrementalJsonError from error
        raise DuplicateKey from None


def _leaves(value: Mapping[str, Any], outer: JsonPath = ()) -> Iterator[tuple[JsonPath, Any]]:
    """The values in an object and in objects of it, in their order."""
    for key, inner in value.items():
        place = (*outer, key)
        if isinstance(inner, dict) and len(place) < _DEPTH_MAX:
            yield from _leaves(inner, place)
        else:
            yield place, inner
