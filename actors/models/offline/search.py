"""How the offline stand-in reads the result of a search (`builtin.shown`) and quotes the best of it. Pure, no state."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from everlog.actors.models.offline.rules import is_question
from everlog.actors.models.offline.talk import INTRODUCTION, is_greeting
from everlog.actors.models.offline.words import content, sentences, short, stem, stems, without_days

QUOTE_CHARS_MAX = 400
"""A longer hit is quoted cut."""

DATED = "conversation_search_date"

COMMON_MIN = 2
"""Words of a question that a result holds, where the question has more than two: fewer is chance."""

SCORE_MIN = 0.5

DATED_HITS = 3
"""Hits quoted where only days were asked for."""

_LINE = re.compile(r"timestamp: (\d{4}-\d{2}-\d{2})[^,]*, (.*)", re.DOTALL)
_MEMORY = re.compile(r"(?:id: ([^,]+), (?:.*?, )??)?memory: (.*)", re.DOTALL)
_AMONG = re.compile(r'timestamp: \d{4}-.*?(?="\s*,\s*"timestamp: |"\]|\Z)', re.DOTALL)
_ORDER = re.compile(r"(?:please )?(?:forget|search|look up|find|show me|list)\b", re.IGNORECASE)
_SPEAKERS = {"user": "you", "assistant": "I", "memory": "I"}

_lines = msgspec.json.Decoder(list[str])


class Found(msgspec.Struct, frozen=True):
    """One result."""

    day: str
    who: str
    text: str
    ref: str = ""
    """The id of a memory."""


class _Scored(msgspec.Struct, frozen=True):
    """How well a result fits a question."""

    hit: Found
    common: int
    """Words of the question that it holds."""
    score: float


class Search(msgspec.Struct, frozen=True):
    """One search that came back."""

    name: str
    query: str
    """What was looked for, in words for the user."""
    found: list[Found]

    @classmethod
    def of(cls, name: str, arguments: Mapping[str, Any], message: str) -> "Search":
        """From the call and its result."""
        start, end = (str(arguments.get(key, "")) for key in ("start_date", "end_date"))
        span = start if start == end else f"{start} to {end}"
        return cls(name, str(arguments.get("query") or span or "that"), _found(message))


def _found(message: str) -> list[Found]:
    """The results, in order; also of a text that is shown cut."""
    _, opened, listed = message.partition("): [")
    if not opened:
        return []
    try:
        lines = _lines.decode(f"[{listed}")
    except msgspec.DecodeError:
        lines = _AMONG.findall(listed)
    return [_result(match) for line in lines if (match := _LINE.match(line))]


def _result(match: re.Match[str]) -> Found:
    rest = match[2]
    if memory := _MEMORY.match(rest):
        return Found(match[1], "memory", memory[2], memory[1] or "")
    who, dash, text = rest.partition(" - ")
    return Found(match[1], who, text) if dash else Found(match[1], "", rest)


def best(search: Search, asked: Sequence[str], not_known: str) -> list[Found]:
    """The result to quote (a few of them where only days were asked for): most words of the question, then first.

    What the user just asked is no answer, nor is what we said when we did not know (it begins with `not_known`).
    """
    dated = search.name == DATED
    if dated:
        wanted = {stem(word) for text in asked for word in content(without_days(text))}
    else:
        wanted = stems(search.query)
    own = {" ".join(text.split()) for text in asked}
    usable = [
        hit
        for hit in search.found
        if " ".join(hit.text.split()) not in own and not_known not in hit.text and not _ORDER.match(hit.text)
    ]
    ranked = sorted((_scored(hit, wanted) for hit in usable), key=lambda scored: -scored.score)
    if dated and (not ranked or ranked[0].score < 1):
        telling = [hit for hit in usable if not _dull(hit)] or usable
        return telling[:DATED_HITS]
    needed = min(COMMON_MIN, -(-len(wanted) // 2))
    return [s.hit for s in ranked if s.score >= SCORE_MIN and s.common >= needed][:1]


def about(search: Search) -> list[Found]:
    """The memories that hold every word of what was searched for."""
    wanted = stems(search.query)
    return [hit for hit in search.found if hit.ref and wanted and wanted <= stems(hit.text)]


def _dull(hit: Found) -> bool:
    return (
        any(is_question(sentence) for sentence in sentences(hit.text))
        or is_greeting(hit.text)
        or INTRODUCTION in hit.text
    )


def _asks(hit: Found) -> bool:
    """Whether a result tells nothing beside questions."""
    return all(is_question(sentence) for sentence in sentences(hit.text))


def _scored(hit: Found, wanted: set[str]) -> _Scored:
    """Words in common; a question says little, and what we said ourselves less than what others said."""
    common = len(wanted & stems(f"{hit.who} {hit.text}"))
    return _Scored(hit, common, common - 0.8 * _asks(hit) - 0.5 * (hit.who == "assistant"))


def told(hits: Sequence[Found]) -> str:
    """The results as the user is told them."""
    return " ".join(_told(hit) for hit in hits)


def _told(hit: Found) -> str:
    verb = "kept" if hit.who == "memory" else "said"
    who = _SPEAKERS.get(hit.who, hit.who or "somebody")
    return f'On {hit.day} {who} {verb}: "{short(hit.text, QUOTE_CHARS_MAX)}"'
