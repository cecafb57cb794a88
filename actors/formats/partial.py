"""JSON that is still coming, read once from left to right: what strings at some places hold, as far as it is known.

A string is told while it comes, in parts that are certain: an escape is told when it is whole, and two halves of a
character together. Each character is looked at once.
"""

import re
from collections.abc import Callable, Collection, Iterator

Place = tuple[str, ...]
"""The keys that lead to a value, from the outermost object on."""

_SPACE = re.compile(r"[ \t\n\r]*")
_PLAIN = re.compile(r'[^"\\]*')
_BARE = re.compile(r"[^\s,:\[\]{}\"]*")
_VALUE = re.compile(r"true|false|null|-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_FENCE = re.compile(r"```[a-z]*")
_SHORT = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_DEPTH_MAX = 2
"""Objects around a string that is told."""
_FENCE_CHARS_MAX = 20


class Unreadable(Exception):
    """This is no JSON, or not as it stands: what it holds can only be known when it is whole."""


class Repeated(Exception):
    """A key came twice, and the later one counts."""


class _Half(Exception):
    """An escape stands for half a character, and the other half does not follow."""


class Strings:
    """One JSON object, and the strings at some places in it."""

    def __init__(self, places: Collection[Place], *, fenced: bool = False) -> None:
        """`fenced`: it may stand in a code fence."""
        self._places = frozenset(places)
        self._watched = self._places | {place[:-1] for place in self._places}
        self._fenced = fenced
        self._seen: set[Place] = set()
        self._objects: list[str | None] = []
        """The containers that are open, outermost first: an object's key of now, or None for a list."""
        self._reads: Callable[[str, int], int] = self._begin
        self._parts: list[str] = []
        """Of a key, or of a number, as far as it came."""
        self._escape = ""
        self._ending: list[str] = []
        """White space and commas that came last in a string: of a text that is cut there they may not count."""
        self._place: Place | None = None
        """Where the string is that is read; None: it is not told."""
        self._key = False
        self._silent = False
        """Nothing more is told: there was half a character, and only a key that comes twice makes that good."""
        self._told: list[tuple[Place, str | None]] = []

    def read(self, text: str) -> Iterator[tuple[Place, str | None]]:
        """What the text adds, by place: a part of a string, or None at its end. Raises Unreadable, Repeated."""
        at = 0
        try:
            while at < len(text):
                at = self._reads(text, at)
        finally:
            told, self._told = self._told, []
            yield from told

    def _begin(self, text: str, at: int) -> int:
        at = _spaces(text, at)
        if at < len(text):
            if text[at] == "`" and self._fenced:
                self._reads = self._fence
            elif text[at] == "{":
                return self._value(text, at)
            else:
                raise Unreadable
        return at

    def _fence(self, text: str, at: int) -> int:
        end = text.find("\n", at)
        self._parts.append(text[at:] if end < 0 else text[at:end])
        fence = "".join(self._parts).rstrip()
        if len(fence) > _FENCE_CHARS_MAX:
            raise Unreadable
        if end < 0:
            return len(text)
        if not _FENCE.fullmatch(fence):
            raise Unreadable
        self._parts, self._fenced, self._reads = [], False, self._begin
        return end + 1

    def _value(self, text: str, at: int) -> int:
        at = _spaces(text, at)
        if at == len(text):
            return at
        match text[at]:
            case '"':
                place = self._here()
                self._begin_string(place if place in self._places else None, key=False)
            case "{":
                self._objects.append("")
                self._reads = self._first_key
            case "[":
                self._objects.append(None)
                self._reads = self._first_item
            case _:
                self._reads = self._bare
                return at
        return at + 1

    def _here(self) -> Place | None:
        """The place of the value that begins; None where nothing is told."""
        if len(self._objects) > _DEPTH_MAX or None in self._objects:
            return None
        return tuple(key for key in self._objects if key is not None)

    def _first_item(self, text: str, at: int) -> int:
        return self._end_or(text, at, "]", self._value)

    def _first_key(self, text: str, at: int) -> int:
        return self._end_or(text, at, "}", self._next_key)

    def _end_or(self, text: str, at: int, end: str, otherwise: Callable[[str, int], int]) -> int:
        at = _spaces(text, at)
        if at < len(text):
            if text[at] == end:
                self._close()
                return at + 1
            self._reads = otherwise
        return at

    def _next_key(self, text: str, at: int) -> int:
        at = _spaces(text, at)
        if at < len(text):
            if text[at] != '"':
                raise Unreadable
            self._begin_string(None, key=True)
            return at + 1
        return at

    def _colon(self, text: str, at: int) -> int:
        at = _spaces(text, at)
        if at < len(text):
            if text[at] != ":":
                raise Unreadable
            self._reads = self._value
            return at + 1
        return at

    def _after_value(self, text: str, at: int) -> int:
        at = _spaces(text, at)
        if at == len(text):
            return at
        listed = self._objects[-1] is None
        if text[at] == ",":
            self._reads = self._value if listed else self._next_key
        elif text[at] == ("]" if listed else "}"):
            self._close()
        else:
            raise Unreadable
        return at + 1

    def _close(self) -> None:
        self._objects.pop()
        self._reads = self._after_value if self._objects else _rest

    def _bare(self, text: str, at: int) -> int:
        """A number, or a word such as true."""
        end = _end(_BARE, text, at)
        self._parts.append(text[at:end])
        if end < len(text):
            if not _VALUE.fullmatch("".join(self._parts)):
                raise Unreadable
            self._parts = []
            self._reads = self._after_value
        return end

    def _begin_string(self, place: Place | None, *, key: bool) -> None:
        self._place, self._key, self._reads = place, key, self._string

    def _string(self, text: str, at: int) -> int:
        if self._escape:
            return self._escaped(text, at)
        end = _end(_PLAIN, text, at)
        if end > at:
            sure = _sure(text, at, end)
            if sure > at:
                self._take(text[at:sure])
            self._ending.append(text[sure:end])
        if end < len(text):
            if text[end] == '"':
                self._take("")
                self._end_string()
            else:
                self._escape = "\\"
        return end + 1

    def _escaped(self, text: str, at: int) -> int:
        self._escape += text[at]
        try:
            character = _escaped(self._escape)
        except _Half:
            self._silent = True
            self._escape = self._escape[6:]
            if self._escape and not self._escape.startswith("\\"):
                self._escape = ""
                return at
            character = _escaped(self._escape) if len(self._escape) > 1 else None
        if character is not None:
            self._escape = ""
            self._take(character)
        return at + 1

    def _take(self, text: str) -> None:
        """The string goes on with the text, after what was its end so far."""
        ending, self._ending = "".join(self._ending), []
        text = ending + text
        if not text:
            return
        if self._key:
            self._parts.append(text)
        elif self._place is not None and not self._silent:
            self._told.append((self._place, text))

    def _end_string(self) -> None:
        if not self._key:
            if self._place is not None and not self._silent:
                self._told.append((self._place, None))
            self._reads = self._after_value
            return
        self._objects[-1] = "".join(self._parts)
        self._parts = []
        place = self._here()
        if place in self._watched and place is not None:
            if place in self._seen:
                raise Repeated
            self._seen.add(place)
        self._reads = self._colon


def _rest(text: str, _at: int) -> int:
    """What comes after the object is none of it."""
    return len(text)


def _sure(text: str, at: int, end: int) -> int:
    """Where the white space and commas begin that a part of a string ends with."""
    while end > at and (text[end - 1] == "," or text[end - 1].isspace()):
        end -= 1
    return end


def _spaces(text: str, at: int) -> int:
    return _end(_SPACE, text, at)


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()


def _escaped(escape: str) -> str | None:
    """The character of an escape; None while it is not whole. Raises Unreadable for what stands for none, _Half."""
    if escape[1] != "u":
        if escape[1] not in _SHORT:
            raise Unreadable
        return _SHORT[escape[1]]
    if len(escape) < 6:
        return None
    high = _unit(escape[2:6])
    if not 0xD800 <= high <= 0xDFFF:
        return chr(high)
    if high > 0xDBFF or not r"\u".startswith(escape[6:8]):
        raise _Half
    if len(escape) < 12:
        return None
    low = _unit(escape[8:12])
    if not 0xDC00 <= low <= 0xDFFF:
        raise _Half
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))


def _unit(digits: str) -> int:
    if not _HEX.fullmatch(digits):
        raise Unreadable
    return int(digits, 16)
