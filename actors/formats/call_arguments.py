"""Parse the arguments of a call: JSON text as the model wrote it, into an object. Pure.

Used by `parse_reply.py`, `native_format.py` and `call_dialects.py`. Raise `parse_reply.READER` if a text may be parsed
differently.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from everlog.actors.formats import json_repair
from everlog.actors.formats.call_extraction import split_outside, unnested


class ParsedArguments(msgspec.Struct, frozen=True):
    """Arguments, and the repair steps that were needed to read them."""

    value: dict[str, Any]
    repairs: Sequence[str] = ()


def arguments(text: str) -> ParsedArguments:
    """Parse the arguments in `text`. Raise ValueError or TypeError, with the reason, if the result is not an object."""
    try:
        value = json_repair.parse_strict(text)
    except json_repair.UnrepairableJson as error:
        return _repair_arguments(text, str(error))
    repairs: list[str] = []
    if isinstance(value, str):
        value = unnested(value, repairs)
    if not isinstance(value, dict):
        raise TypeError(f"expected a JSON object, found {type(value).__name__}")
    return ParsedArguments(value, repairs)


def _repair_arguments(text: str, reason: str) -> ParsedArguments:
    """Parse the first object in the text."""
    begin = text.find("{")
    if begin < 0:
        raise ValueError(reason)
    mended = json_repair.begun(text, begin)
    if not isinstance(mended.value, dict):
        raise TypeError(f"expected a JSON object, found {type(mended.value).__name__}")
    _, repairs = split_outside([text[:begin], text[mended.end :]])
    return ParsedArguments(mended.value, [*mended.repairs, *repairs])


def arguments_read(text: str) -> ParsedArguments | None:
    """Parse arguments, and return None on failure: the code that runs the call reports the reason."""
    try:
        return arguments(text)
    except (ValueError, TypeError):
        return None
