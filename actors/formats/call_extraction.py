"""Find calls that a text holds as JSON, and separate them from the words around them. Pure.

Used by `json_call_format.py`, `call_dialects.py` and `call_arguments.py`. Raise `parse_reply.READER` if a text may be
parsed differently.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from everlog.actors.formats import json_repair

NAMES = ("function", "name", "function_name", "tool", "tool_name")
"""Keys for the name of a function, everlog's own first."""
PARAMS = ("params", "arguments", "parameters", "args")
"""Keys for its parameters, everlog's own first."""
THOUGHTS = "inner_thoughts"

BRACES_TRIED_MAX = 20
"""Most opening braces that are tried without finding a call."""

_KINDS = ("function", "function_call", "tool", "tool_call", "tool_use")
"""Values of `type` that mark an object as a call."""

_NONE = (None, "", "none", "None", "null")
_PREFIX = "functions."
_MARKS = re.compile(r"```(?:json\b)?", re.IGNORECASE)
_JSON_LIKE = re.compile(r'[{}\[\]\\]|"\s*:|\A\s*[,:]')


_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class ExtractedCall(msgspec.Struct, frozen=True):
    """A call as found in a text: the name, and the arguments as JSON text."""

    name: str
    arguments: str


class CallExtraction(msgspec.Struct, frozen=True):
    """Words and calls of a text."""

    thought: str
    """Monologue of the calls, and the words around them."""
    asked: Sequence[ExtractedCall]
    repairs: Sequence[str] = ()


def bare_name(name: str) -> tuple[str, bool]:
    """Strip a function name of what models put around it. Return the name, and True if something was removed."""
    bare = name.strip().removeprefix(_PREFIX)
    return bare, bare != name


def compact(value: Any) -> str:
    """Encode a value as compact JSON text."""
    return _encoder.encode(value)


def find_calls(text: str, *, within: bool) -> CallExtraction | None:
    """Find the calls in `text`; None if there are none. `within`: monologues are parameters, else next to them."""
    return _calls_in(*_values(text), within=within)


def strict(text: str, *, within: bool) -> CallExtraction | None:
    """Find the calls if all of `text` is strict JSON; None if it is not, or holds no call."""
    try:
        json_repair.parse_strict(text)
    except json_repair.UnrepairableJson:
        return None
    return find_calls(text, within=within)


def _calls_in(
    values: Sequence[Mapping[str, Any]], words: str, repairs: Sequence[str], *, within: bool
) -> CallExtraction | None:
    if not values:
        return None
    thoughts = [words] if words else []
    asked: list[ExtractedCall] = []
    for value in values:
        one = _call_of_object(value, within=within)
        repairs = [*repairs, *one.repairs]
        thoughts += [one.thought] if one.thought else []
        asked += one.asked
    return CallExtraction("\n".join(thoughts), asked, repairs)


def looks_like_json(text: str) -> bool:
    """Return True if a text that could not be read looks as if it was meant as JSON."""
    return text.lstrip().startswith(("{", "[", '"')) or '":' in text


def _values(text: str) -> tuple[list[dict[str, Any]], str, list[str]]:
    """Return the objects in `text` that are calls, the words around them, and the repair steps."""
    try:
        value = json_repair.parse_strict(text)
    except json_repair.UnrepairableJson:
        return _scanned(text)
    if isinstance(value, list) and value and all(_is_call(item) for item in value):
        return value, "", ["list"]
    return ([value], "", []) if _is_call(value) else ([], text, [])


def _scanned(text: str) -> tuple[list[dict[str, Any]], str, list[str]]:
    listed = _calls_of_list(text)
    if listed is not None:
        return listed
    values: list[dict[str, Any]] = []
    repairs: list[str] = []
    words: list[str] = []
    begin, at, places = 0, text.find("{"), 0
    while at >= 0 and places < BRACES_TRIED_MAX:
        try:
            mended = json_repair.begun(text, at)
        except json_repair.UnrepairableJson:
            mended = None
        if mended is None or not _is_call(mended.value):
            places, at = places + 1, text.find("{", at + 1)
            continue
        values.append(mended.value)
        repairs += mended.repairs
        words.append(text[begin:at])
        begin = mended.end
        at = text.find("{", begin)
    words.append(text[begin:])
    around, more = split_outside(words) if values else ("", [])
    if len(values) > 1:
        more = [*more, "several"]
    return values, around, [*repairs, *more]


def _calls_of_list(text: str) -> tuple[list[dict[str, Any]], str, list[str]] | None:
    """Return the calls of a list that needs repair, if the text begins with a list."""
    begin = text.find("[")
    if begin < 0 or _MARKS.sub("", text[:begin]).strip():
        return None
    try:
        mended = json_repair.begun(text, begin)
    except json_repair.UnrepairableJson:
        return None
    if not mended.value or not all(_is_call(item) for item in mended.value):
        return None
    around, more = split_outside([text[:begin], text[mended.end :]])
    return mended.value, around, [*mended.repairs, "list", *more]


def split_outside(words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the words around objects, without fences and surplus closing braces, and the repair steps.

    The last of `words` comes after all objects.
    """
    repairs = []
    bare = [_MARKS.sub("", word) for word in words]
    if list(words) != bare:
        repairs.append("fence")
    behind = bare[-1].lstrip()
    if behind.startswith("}"):
        bare[-1] = behind.lstrip("} \t\r\n")
        repairs.append("braces")
    left = "\n".join(word.strip() for word in bare if word.strip())
    if left:
        broken = "braces" in repairs or any(_is_piece(word) for word in bare)
        repairs.append("around" if broken or not any(char.isalpha() for char in left) else "words")
    return left, repairs


def _is_piece(words: str) -> bool:
    """Return True if words look like a part of JSON."""
    return bool(_JSON_LIKE.search(words)) or words.count('"') % 2 == 1


def _is_call(value: object) -> bool:
    """Return True if an object names the function to call, or says that none is called."""
    if not isinstance(value, dict):
        return False
    if THOUGHTS in value and not any(key in value for key in PARAMS):
        return True
    return any(isinstance(value.get(key), str | dict) or (key in value and value[key] is None) for key in NAMES)


def _call_of_object(value: Mapping[str, Any], *, within: bool) -> CallExtraction:
    """Convert an object that is a call."""
    rest, repairs = dict(value), list[str]()
    name, rest = _split_name(rest, repairs)
    has_params = any(key in rest for key in PARAMS)
    params = _params(rest, repairs)
    thoughts = []
    if THOUGHTS in rest:
        thoughts.append(_monologue_text(rest.pop(THOUGHTS), repairs))
    if isinstance(params, dict) and THOUGHTS in params and (within or not thoughts):
        params = dict(params)
        thoughts.append(_monologue_text(params.pop(THOUGHTS), repairs))
    params = _flattened(params, _extra_parameters(rest, has_params=has_params), repairs)
    thought = "\n".join(text for text in thoughts if text)
    if name in _NONE:
        return CallExtraction(thought, [], [*repairs, "nameless"] if params else repairs)
    bare, was_wrapped = bare_name(name)
    return CallExtraction(
        thought, [ExtractedCall(bare, compact(params))], [*repairs, "names"] if was_wrapped else repairs
    )


def _split_name(rest: dict[str, Any], repairs: list[str]) -> tuple[str, dict[str, Any]]:
    """Return the name of the function, and the object without it; some formats nest both in an inner object."""
    key = next((key for key in NAMES if key in rest), None)
    name = rest.pop(key, None) if key is not None else None
    if key not in (NAMES[0], None):
        repairs.append("names")
    if isinstance(name, dict):
        repairs.append("names")
        rest = _merge_objects(rest, name, repairs)
        key = next((key for key in NAMES if key in rest), None)
        name = rest.pop(key, None) if key is not None else None
    return (name if isinstance(name, str) or name is None else compact(name)) or "", rest


def _merge_objects(outer: Mapping[str, Any], inner: Mapping[str, Any], repairs: list[str]) -> dict[str, Any]:
    """Merge an object with the call nested in it; both may have the format's own keys."""
    twice = (set(outer) & set(inner)) - {"id"}
    twice -= {"type"} if outer.get("type") in _KINDS else set()
    if any(compact(outer[key]) != compact(inner[key]) for key in twice):
        repairs.append("repeated")
    return {**outer, **inner}


def _params(rest: dict[str, Any], repairs: list[str]) -> Any:
    """Remove the parameters from the object, and return them."""
    key = next((key for key in PARAMS if key in rest), None)
    if key is None:
        return {}
    if key != PARAMS[0]:
        repairs.append("names")
    params = rest.pop(key)
    if isinstance(params, str):
        params = unnested(params, repairs)
    return {} if params is None else params


def unnested(text: str, repairs: list[str]) -> Any:
    """Return the object that a text holds as JSON, else the text."""
    try:
        value = json_repair.parse_strict(text)
    except json_repair.UnrepairableJson:
        return text
    if not isinstance(value, dict):
        return text
    repairs.append("nested")
    return value


def _extra_parameters(rest: Mapping[str, Any], *, has_params: bool) -> dict[str, Any]:
    """Return the fields next to a call that no format uses. With `has_params`, an `id` is the call's own."""
    beside = dict(rest)
    if beside.get("type") in _KINDS:
        del beside["type"]
    if has_params:
        beside.pop("id", None)
    return beside


def _flattened(params: Any, beside: Mapping[str, Any], repairs: list[str]) -> Any:
    """Merge the parameters with those found next to the call."""
    if not beside:
        return params
    if not isinstance(params, dict) or set(params) & set(beside):
        repairs.append("repeated")
        return params
    repairs.append("flat")
    return {**params, **beside}


def _monologue_text(value: Any, repairs: list[str]) -> str:
    """Return a monologue as text; a monologue that is not text may have been meant as something else."""
    if isinstance(value, str) or value is None:
        return value or ""
    repairs.append("wordless")
    return compact(value)
