"""Parse JSON as models write it, and name each repair step that was needed. Pure.

Strict parsing comes first. Other text is read in one pass from left to right, which never tries several endings and
never searches for a better beginning: everything that the pass skips or adds is a named repair step. Used by
`call_extraction.py`, `call_arguments.py` and `call_dialects.py`. Raise `parse_reply.READER` if a text may be parsed
differently.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, NoReturn

import msgspec

DEPTH_MAX = 100

_SPACE = re.compile(r"[ \t\r\n]*")
_RUN = re.compile(r'[^"\\]*')
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,400})(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.+-])", re.ASCII)
_WORD = re.compile(r"-?[A-Za-z_][A-Za-z0-9_]*")
_CONTROL = re.compile(r"[\x00-\x1f]")
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_ESCAPED = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_JSON = {"true": True, "false": False, "null": None}
_PYTHON = {
    "True": True, "False": False, "None": None, "NaN": float("nan"), "Infinity": float("inf"),
    "-Infinity": float("-inf"),
}  # fmt: skip
_FENCED = re.compile(r"```\s*\Z")


class UnrepairableJson(ValueError):
    """The text cannot be read as JSON; the message says what was found and where."""


class RepairedJson(msgspec.Struct, frozen=True):
    """A value, where it ends in the text, and the repair steps that were needed."""

    value: Any
    end: int
    repairs: Sequence[str] = ()


def parse_strict(text: str) -> Any:
    """Parse strict JSON. Raise UnrepairableJson, also for a repeated key and for half a character."""
    try:
        return _check_text(_strict.decode(text), text)
    except (ValueError, RecursionError) as error:
        raise UnrepairableJson(str(error) or type(error).__name__) from None


def begun(text: str, at: int) -> RepairedJson:
    """Parse the value that begins at `at`, strictly if possible. Raise UnrepairableJson."""
    try:
        value, end = _strict.raw_decode(text, at)
        return RepairedJson(_check_text(value, text), end)
    except (ValueError, RecursionError):
        return _JsonRepairer(text, at).run()


def _check_text(value: Any, text: str) -> Any:
    """Return the value if it can be stored. Half a character (a lone surrogate) cannot: the reply was cut there."""
    if text.isascii() and "\\u" not in text:
        return value
    try:
        _encoder.encode(value).encode()
    except UnicodeEncodeError:
        raise UnrepairableJson("a text holds half a character (a lone surrogate)") from None
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise UnrepairableJson("a key is there twice")
    return found


def _constant(name: str) -> NoReturn:
    raise UnrepairableJson(f"{name} is no JSON")


_encoder = json.JSONEncoder(ensure_ascii=False)
_strict = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_constant=_constant)


class _JsonRepairer:
    """One repairing pass over a text."""

    def __init__(self, text: str, at: int) -> None:
        self._text, self._at = text, at
        self._repairs: dict[str, None] = {}

    def run(self) -> RepairedJson:
        value = _check_text(self._value(0), self._text)
        return RepairedJson(value, self._at, tuple(self._repairs))

    def _note(self, repair_step: str) -> None:
        self._repairs[repair_step] = None

    def _fail(self, expected: str) -> NoReturn:
        found = self._text[self._at : self._at + 20]
        raise UnrepairableJson(f"expected {expected}, found {found!r} at character {self._at}")

    def _next(self, at: int | None = None) -> str:
        """Return the next character that is not a space; empty at the end, which may be a code fence. Moves there."""
        match = _SPACE.match(self._text, self._at if at is None else at)
        place = match.end() if match else self._at
        if at is None:
            self._at = place
        return "" if _FENCED.match(self._text, place) else self._text[place : place + 1]

    def _value(self, depth: int) -> Any:
        if depth > DEPTH_MAX:
            raise UnrepairableJson("the arguments are nested too deeply")
        char = self._next()
        if char == "{":
            return self._object(depth)
        if char == "[":
            return self._array(depth)
        if char == '"':
            return self._string("}],")
        if char == "'":
            return self._single()
        return self._plain()

    def _object(self, depth: int) -> dict[str, Any]:
        self._at += 1
        found: dict[str, Any] = {}
        char = self._next()
        while char != "}":
            if not char:
                self._note("closed" if found else "cut")
                return found
            if char == "]":
                self._note("missing")
                return found
            if not self._pair(found, depth):
                return found
            char = self._separated("}")
        self._at += 1
        return found

    def _pair(self, found: dict[str, Any], depth: int) -> bool:
        """Read a key and its value. Return False if the text ends before the value."""
        key = self._key()
        char = self._next()
        if char == ":":
            self._at += 1
        elif char:
            self._note("missing")
        if not self._next():
            self._note("cut")
            return False
        if key in found:
            self._note("repeated")
        found[key] = self._value(depth + 1)
        return True

    def _key(self) -> str:
        char = self._next()
        if char == '"':
            return self._string(":")
        if char == "'":
            return self._single()
        word = _WORD.match(self._text, self._at)
        if word is None:
            self._fail("a key")
        self._note("bare")
        self._at = word.end()
        return word.group()

    def _array(self, depth: int) -> list[Any]:
        self._at += 1
        found: list[Any] = []
        char = self._next()
        while char != "]":
            if not char:
                self._note("closed" if found else "cut")
                return found
            if char == "}":
                self._note("missing")
                return found
            found.append(self._value(depth + 1))
            char = self._separated("]")
        self._at += 1
        return found

    def _separated(self, closing: str) -> str:
        """Skip the comma after an item. Return the character after it."""
        char = self._next()
        if char != ",":
            if char and char in "\"'{[":
                self._note("missing")
            elif char and char not in "}]":
                self._fail("a comma")
            return char
        self._at += 1
        char = self._next()
        if not char:
            self._note("cut")
        elif char == closing:
            self._note("comma")
        return char

    def _string(self, follows: str) -> str:
        """Read a quoted text; line breaks and quotes in it may be raw. `follows`: characters that may come after it."""
        out: list[str] = []
        self._at += 1
        while True:
            run = _RUN.match(self._text, self._at)
            out.append(run.group() if run else "")
            self._at += len(out[-1])
            if _CONTROL.search(out[-1]):
                self._note("breaks")
            if self._at >= len(self._text):
                self._note("cut")
                break
            if self._text[self._at] == "\\":
                out.append(self._escape())
            elif self._ends(follows):
                self._at += 1
                break
            else:
                self._note("inner")
                out.append('"')
                self._at += 1
        return "".join(out)

    def _ends(self, follows: str) -> bool:
        """Return True if the quote here ends its text: the next character is one that may follow a text."""
        char = self._next(self._at + 1)
        return not char or char in follows

    def _escape(self) -> str:
        """Return the character that a backslash escapes here."""
        char = self._text[self._at + 1 : self._at + 2]
        self._at += 2
        if not char:
            self._note("cut")
            return ""
        if char in _ESCAPED:
            return _ESCAPED[char]
        if char == "u":
            return self._unicode()
        if char in "_'":
            self._note("escapes")
            return char
        self._note("backslash")
        return "\\" + char

    def _unicode(self) -> str:
        """Return the character of a four-digit code, or of a surrogate pair."""
        code = _HEX.match(self._text, self._at)
        if code is None:
            self._note("backslash")
            return "\\u"
        self._at = code.end()
        high = int(code.group(), 16)
        low = _HEX.match(self._text, self._at + 2) if self._text.startswith("\\u", self._at) else None
        if not 0xD800 <= high < 0xDC00 or low is None or not 0xDC00 <= int(low.group(), 16) < 0xE000:
            return chr(high)
        self._at = low.end()
        return chr(0x10000 + ((high - 0xD800) << 10) + int(low.group(), 16) - 0xDC00)

    def _single(self) -> str:
        """Read a text between apostrophes."""
        match = _QUOTED.match(self._text, self._at)
        if match is None:
            self._fail("the end of a text")
        self._note("quotes")
        self._at = match.end()
        return match.group(1).replace("\\'", "'").replace("\\n", "\n")

    def _plain(self) -> Any:
        """Read a number or one of the few words that are values."""
        number = _NUMBER.match(self._text, self._at)
        if number is not None:
            self._at = number.end()
            if not self._next():
                self._note("cut")
            return json.loads(number.group())
        word = _WORD.match(self._text, self._at)
        if word is None:
            self._fail("a value")
        self._at = word.end()
        if word.group() in _JSON:
            return _JSON[word.group()]
        if word.group() in _PYTHON:
            self._note("literals")
            return _PYTHON[word.group()]
        self._note("bare" if self._next() else "cut")
        return word.group()
