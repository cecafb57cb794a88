"""Extract calls that a server passed on as text, with the marks that templates of models put around them. Pure.

Used by `native_format.py` and `json_call_format.py`. Raise `parse_reply.READER` if a text may be parsed differently.
"""

import re
from collections.abc import Sequence

from everlog.actors.formats import json_repair
from everlog.actors.formats.call_arguments import arguments_read
from everlog.actors.formats.call_extraction import NAMES, PARAMS, CallExtraction, ExtractedCall
from everlog.actors.formats.call_extraction import find_calls as found_json
from everlog.actors.formats.calling_format import join_texts

_HERMES = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_FUNCTION = re.compile(r"<function=([\w.-]+)>(.*?)(?:</function>|\Z)", re.DOTALL)
_MISTRAL = "[TOOL_CALLS]"
_MISTRAL_NAMED = re.compile(r"\s*([\w.-]+)\s*(?:\[CALL_ID\]\s*\w*\s*)?(?:\[ARGS\]\s*)?(?=\{)")
_LLAMA = "<|python_tag|>"
_ENDS = re.compile(r"(?:\s|<\|(?:eom_id|eot_id|im_end)\|>|</s>)+\Z")
_BEGINS = re.compile(r"\A(?:\s|\[TOOL_CALLS\])+")
_FRAGMENT = re.compile(r'"\s*:|tool_call|function=|TOOL_CALLS|python_tag')
_ALONE = {*NAMES, *PARAMS, "type", "id"}


def find_marked_calls(text: str) -> CallExtraction | None:
    """Return the calls that a text marks as such, or that are all of it; None if there are none."""
    return _single_call(text) or tagged(text)


def tagged(text: str) -> CallExtraction | None:
    """Return the calls that a text marks as such; None if there are none."""
    if _HERMES.search(text):
        return _blocks(text, _HERMES.findall(text), _HERMES.sub("", text))
    if _FUNCTION.search(text):
        return _functions(text)
    for mark in (_MISTRAL, _LLAMA):
        if mark in text:
            before, _, behind = text.partition(mark)
            behind = _ENDS.sub("", behind)
            return _named_calls(text, before, behind) if mark == _MISTRAL else _blocks(text, [behind], before)
    return None


def _blocks(text: str, blocks: Sequence[str], words: str) -> CallExtraction:
    """Parse calls that are each between marks of their own; one bad call makes all of the text unread."""
    asked: list[ExtractedCall] = []
    thoughts, repairs = [words.strip()], ["tags"]
    for block in blocks:
        one = found_json(_BEGINS.sub("", block).strip(), within=False)
        if one is None:
            return _unread_reply(text)
        asked += one.asked
        thoughts.append(one.thought)
        repairs += one.repairs
    thought = join_texts(*thoughts)
    return CallExtraction(thought, asked, [*_without_format_words(repairs), *_leftover_step(thought)])


def _leftover_step(words: str) -> list[str]:
    """Return the repair step for words around marked calls that look like a part of a call."""
    return ["around"] if _FRAGMENT.search(words) else []


def _functions(text: str) -> CallExtraction:
    """Parse calls whose marks hold the name."""
    asked, repairs = [], ["tags"]
    for name, arguments in _FUNCTION.findall(text):
        read = arguments_read(arguments.strip() or "{}")
        if read is None:
            return _unread_reply(text)
        asked.append(ExtractedCall(name, arguments.strip() or "{}"))
        repairs += read.repairs
    words = _FUNCTION.sub("", text).strip()
    return CallExtraction(words, asked, [*repairs, *_leftover_step(words)])


def _named_calls(text: str, before: str, behind: str) -> CallExtraction:
    """Parse calls after a mark: a list, or names with their arguments."""
    if _MISTRAL_NAMED.match(behind) is None:
        return _blocks(text, [behind], before)
    asked, repairs = [], ["tags"]
    for piece in behind.split(_MISTRAL):
        head = _MISTRAL_NAMED.match(piece)
        read = arguments_read(piece[head.end() :].strip()) if head is not None else None
        if head is None or read is None:
            return _unread_reply(text)
        asked.append(ExtractedCall(head.group(1), piece[head.end() :].strip()))
        repairs += read.repairs
    return CallExtraction(before.strip(), asked, [*repairs, *_leftover_step(before)])


def _single_call(text: str) -> CallExtraction | None:
    """Parse a text that is a call, or a list of calls, and nothing else."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        value = json_repair.parse_strict(text)
    except json_repair.UnrepairableJson:
        return None
    items = value if isinstance(value, list) else [value]
    if not items or not all(_is_bare_call(item) for item in items):
        return None
    one = found_json(text, within=False)
    return (
        None
        if one is None
        else CallExtraction(one.thought, one.asked, _without_format_words(["content", *one.repairs]))
    )


def _is_bare_call(value: object) -> bool:
    """Return True if a value has a name, arguments, and no key that does not belong to a call."""
    if not isinstance(value, dict) or set(value) - _ALONE:
        return False
    named = [key for key in NAMES if isinstance(value.get(key), str | dict)]
    return bool(named) and (
        any(isinstance(value.get(key), dict) for key in PARAMS) or isinstance(value[named[0]], dict)
    )


def _without_format_words(repairs: Sequence[str]) -> list[str]:
    """Drop the repair steps for another format's words, which the marks imply."""
    return [repair_step for repair_step in repairs if repair_step not in ("names", "list")]


def _unread_reply(text: str) -> CallExtraction:
    return CallExtraction(text, [], ["tags", "unread"])
