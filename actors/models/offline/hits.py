"""Parse the results of a search as functions return them, and choose the hits that the offline model quotes. Pure, no
state.

Used by `answers.py`. `functions/memgpt_functions.py` writes these results: keep both in step.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from everlog.actors.models.offline.english import any_case, content, short, stems, without_days
from everlog.actors.models.offline.facts import has_no_statement
from everlog.actors.models.offline.request import CallResult

NOT_KNOWN = "I do not know"
DATED = "conversation_search_date"
_QUOTE_CHARS_MAX = 400
_COMMON_MIN = 2
"""Words of a question that a hit must have if the question has more than two: fewer may match by chance."""
_DATED_HITS = 3
"""Maximum hits quoted from a search by day, if they have the same score."""

_LINE = re.compile(r"timestamp: (\d{4}-\d{2}-\d{2})[^,]*, (.*)", re.DOTALL)
_MEMORY = re.compile(r"(?:id: [^,]+, (?:.*?, )??)?memory: (.*)", re.DOTALL)
_MESSAGE = re.compile(r"id: m\d+, ")
"""Id of a message that is shown in part."""
_AMONG = re.compile(r'timestamp: \d{4}-.*?(?="\s*,\s*"timestamp: |"\]|\Z)', re.DOTALL)
_ORDER = any_case(r"(?:please )?(?:forget|search|look up|find|show me|list)\b")
_SPEAKERS = {"user": "you said", "assistant": "I said", "memory": "I kept"}


class SearchHit(NamedTuple):
    """One result of a search."""

    day: str
    who: str
    text: str

    @property
    def phrase(self) -> str:
        """Sentence that quotes the hit to the user."""
        who = _SPEAKERS.get(self.who, f"{self.who} said")
        return f'On {self.day} {who}: "{short(self.text, _QUOTE_CHARS_MAX)}"'


def query_of(search: CallResult) -> str:
    """Return the query of a search, in words for the user."""
    days = dict.fromkeys(str(search.arguments.get(key, "")) for key in ("start_date", "end_date"))
    return str(search.arguments.get("query") or " to ".join(days))


def hits(search: CallResult) -> list[SearchHit]:
    """Return the hits in order. A truncated result gives the hits that are in it."""
    _, opened, listed = search.text.partition("): [")
    try:
        lines = msgspec.json.decode(f"[{listed}", type=list[str]) if opened else []
    except msgspec.DecodeError:
        lines = _AMONG.findall(listed)
    return [_hit(match[1], match[2]) for line in lines if (match := _LINE.match(line))]


def _hit(day: str, rest: str) -> SearchHit:
    part = _MESSAGE.match(rest)
    rest = rest[part.end() :] if part else rest
    memory = None if part else _MEMORY.match(rest)
    who, dash, text = rest.partition(" - ")
    return SearchHit(day, "memory", memory[1]) if memory else SearchHit(day, who if dash else "somebody", text or rest)


def topic(asked: Sequence[str]) -> str:
    """Return the words of the questions that say more than a day; empty if they ask for a day alone."""
    return " ".join(content(without_days(" ".join(asked))))


def best(search: CallResult, asked: Sequence[str]) -> list[SearchHit]:
    """Return the hit with most words of the question, as a list; of a search by day several. A hit of a day has at
    least one of the question's words, if the question says more than the day.

    The user's own question is no answer, nor is an earlier "I do not know" of the model.
    """
    wanted = stems(" ".join(asked) if search.name == DATED else query_of(search))
    own = {" ".join(text.split()) for text in asked}
    usable = [
        hit
        for hit in hits(search)
        if " ".join(hit.text.split()) not in own and NOT_KNOWN not in hit.text and not _ORDER.match(hit.text)
    ]
    ranked = sorted(((_score(hit, wanted), hit) for hit in usable), key=lambda scored: -scored[0])
    if search.name == DATED:
        needed = 0.5 if topic(asked) else -1.5
        return [hit for score, hit in ranked if score == ranked[0][0] and score >= needed][:_DATED_HITS]
    needed = min(_COMMON_MIN, -(-len(wanted) // 2)) - 0.5
    return [hit for score, hit in ranked if score >= needed][:1]


def _score(hit: SearchHit, wanted: set[str]) -> float:
    """Return the number of common words. A question scores lower, and so do the assistant's own words."""
    common = len(wanted & stems(f"{hit.who} {hit.text}"))
    return common - 0.8 * has_no_statement(hit.text) - 0.5 * (hit.who == "assistant")
