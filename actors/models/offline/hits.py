"""Parse the results of a search as functions return them, and choose the hits that the offline model quotes. Pure, no
state.

Used by `answers.py`. `functions/memgpt_functions.py` writes these results: keep both in step.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from everlog.actors.models.offline.english import any_case, content, sentences, stems, without_days
from everlog.actors.models.offline.facts import has_no_statement, is_question
from everlog.actors.models.offline.passages import passage
from everlog.actors.models.offline.request import CallResult
from everlog.actors.models.offline.told_dates import dates_told

NOT_KNOWN = "I do not know"
DATED = "conversation_search_date"
HITS_MAX = 3
"""Maximum hits that one answer quotes."""
_COMMON_MIN = 2
"""Words of a question that a hit must have if the question has more than two: fewer may match by chance."""
_MARGIN = 2.0
"""A hit whose score is lower than the best one's by more than this is not quoted."""

_LINE = re.compile(r"timestamp: (\d{4}-\d{2}-\d{2})[^,]*, (.*)", re.DOTALL)
_MEMORY = re.compile(r"(?:id: [^,]+, (?:.*?, )??)?memory: (.*)", re.DOTALL)
_MESSAGE = re.compile(r"id: m\d+, ")
"""Id of a message that is shown in part."""
_AMONG = re.compile(r'timestamp: \d{4}-.*?(?="\s*,\s*"timestamp: |"\]|\Z)', re.DOTALL)
_ORDER = any_case(r"(?:please )?(?:forget|search|look up|find|show me|list)\b")
_SPEAKERS = {"user": "you said", "assistant": "I said", "memory": "I kept"}
_ASKS_WHEN = any_case(r"\b(?:when|what (?:day|date|year|month)|which (?:day|date|year|month)|how long ago)\b")
_TELLS_TIME = any_case(
    r"\b(?:yesterday|today|tonight|tomorrow|last|next|ago|since|this (?:morning|week|weekend|month|year)|weekend"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|june|july|august|september|october"
    r"|november|december|(?:19|20)\d\d)\b"
)
_ASKS_ME = any_case(r"\bdid you\b|\byour\b|\byou (?:recommend|suggest|advise|propose|say|said|told|gave|mention)")
_FIRST_PERSON = any_case(r"\b(?:i|i'm|i've|i'd|i'll|my|we|we're|we've|our)\b")


class SearchHit(NamedTuple):
    """One result of a search."""

    day: str
    who: str
    text: str


class Quote(NamedTuple):
    """A hit that is told to the user, in its best passage."""

    hit: SearchHit
    passage: str

    @property
    def phrase(self) -> str:
        """Sentence that quotes the hit, with the dates that it means."""
        who = _SPEAKERS.get(self.hit.who, f"{self.hit.who} said")
        dates = "; ".join(dates_told(self.passage, self.hit.day))
        return f'On {self.hit.day} {who}: "{self.passage}"' + (f" ({dates})" if dates else "")


def query_of(search: CallResult) -> str:
    """Return the query of a search, in words for the user."""
    query = str(search.arguments.get("query") or "")
    days = dict.fromkeys(str(search.arguments.get(key, "")) for key in ("start_date", "end_date"))
    return " ".join(content(query)) or query or " to ".join(days)


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


def best(search: CallResult, asked: Sequence[str]) -> list[Quote]:
    """Return the hits that answer the question, best first, at most HITS_MAX; fewer if the first is much better.

    The user's own question is no answer, nor is an earlier "I do not know" of the model.
    """
    question = without_days(" ".join(asked)) if search.name == DATED else str(search.arguments.get("query") or "")
    own = {" ".join(text.split()) for text in asked}
    usable = [
        hit
        for hit in hits(search)
        if " ".join(hit.text.split()) not in own and NOT_KNOWN not in hit.text and not _ORDER.match(hit.text)
    ]
    weights = _weights(stems(question), usable)
    needed = min(_COMMON_MIN, -(-len(weights) // 2)) - 0.5
    if not any(_common(hit, weights) >= needed for hit in usable):
        return []
    scored = [(_score(place, hit, question, weights), hit) for place, hit in enumerate(usable)]
    ranked = sorted(scored, key=lambda one: -one[0])[:HITS_MAX]
    least = ranked[0][0] - _MARGIN
    others = [hit for score, hit in ranked[1:] if score > least and _common(hit, weights) > 0]
    chosen = [ranked[0][1], *(hit for hit in others if not has_no_statement(hit.text))]
    return [Quote(hit, passage(hit.text, weights)) for hit in chosen]


def _weights(wanted: set[str], found: Sequence[SearchHit]) -> Mapping[str, float]:
    """Return the stems of a question, each with its rarity among the hits."""
    texts = [stems(hit.text) for hit in found]
    counts = {stem: sum(stem in text for text in texts) for stem in sorted(wanted)}
    return {stem: math.log(1 + (len(texts) + 0.5) / (count + 0.5)) for stem, count in counts.items()}


def _common(hit: SearchHit, weights: Mapping[str, float]) -> float:
    """Return the number of common words. A question counts less, and so do the assistant's own words."""
    common = len(weights.keys() & stems(f"{hit.who} {hit.text}"))
    return common - 0.8 * has_no_statement(hit.text) - 0.5 * (hit.who == "assistant")


def _score(place: int, hit: SearchHit, question: str, weights: Mapping[str, float]) -> float:
    """Return how well a hit answers: its place in the search, its rare words of the question, whose words they are,
    whether they state something, and, if the question asks when, whether they tell a time.
    """
    parts = [is_question(sentence) for sentence in sentences(hit.text)]
    asks = sum(parts) / max(len(parts), 1)
    rare = sum(weight for stem, weight in weights.items() if stem in stems(hit.text)) / max(sum(weights.values()), 1e-9)
    when = bool(_ASKS_WHEN.search(question) and _TELLS_TIME.search(hit.text))
    mine = hit.who == "assistant" and not _ASKS_ME.search(question)
    named = bool(stems(hit.who) & weights.keys())
    stated = 0.5 * bool(_FIRST_PERSON.search(hit.text)) - 1.3 * asks - has_no_statement(hit.text)
    return 1.5 / (1 + place) - 0.2 * place + 1.5 * rare + named + 1.8 * when - 2 * mine + stated
