"""The first reader, kept as it was: replies that it read are worked off as it read them. Pure."""

import json
from collections.abc import Callable
from typing import Any


def arguments(text: str) -> dict[str, Any]:
    """The arguments of a call as an object. Raises ValueError or TypeError, with the reason, when there is none."""
    value = _loaded(text)
    if not isinstance(value, dict):
        raise TypeError(f"expected a JSON object, found {type(value).__name__}")
    return value


def _loaded(text: str) -> object:
    """JSON as it stands, else mended."""
    try:
        value: object = _lenient.decode(text)
    except (ValueError, RecursionError):
        return _mended(text)
    half = "\\u" in text or not text.isascii()  # there may be half a character in it
    return _mended(text) if half else value


def _mended(text: str) -> object:
    """JSON with raw line breaks in strings, escaped underscores, words around it, or its last quote and braces lost."""
    try:
        return _whole(text)
    except RecursionError:
        raise ValueError("the arguments are nested too deeply") from None
    except ValueError as error:
        begin = text.find("{")
        trimmed = text[max(begin, 0) :].replace("\\_", "_")
        for attempt in (lambda: _first(trimmed), *(_closed(trimmed, ending) for ending in ("}", '"}', "}}", '"}}'))):
            try:
                return attempt()
            except ValueError:
                continue
        raise ValueError(str(error)) from error


def _whole(text: str) -> object:
    return _said(json.loads(text, strict=False))


def _first(text: str) -> object:
    """The first object of several, or of one with words after it."""
    return _said(_lenient.raw_decode(text)[0])


def _closed(text: str, ending: str) -> Callable[[], object]:
    return lambda: _whole(text.rstrip().rstrip(",") + ending)


def _said(value: object) -> object:
    """The value. Raises ValueError where it holds half a character, which nobody can keep: the reply was cut there."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ValueError("a text holds half a character (a lone surrogate)") from error
    return value


_lenient = json.JSONDecoder(strict=False)
