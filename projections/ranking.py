"""The ranking of what was said, best match first: arithmetic over columns that SQL has gathered.

Four things make a score: BM25 (`everlog.store.base.bm25`) of the stems in a document, as a part of the best; how near
its meaning comes to the query, where somebody knows, between the farthest and the nearest, half and half; 0.5 if the
query names who says it; 0.3 of the better of the two that were said right before and after it. What holds the query
word for word comes first.

A result has a stem of the query in its own words, or answers a question with one; or is among the 20 nearest in
meaning; or is said by whom the query names, beside what has such words, and among the 20 best. Names of speakers are no
such words, unless the query has nothing else.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from heapq import nsmallest

import msgspec

from everlog.projections.search_documents import count_at, sought_as
from everlog.store.base.bm25 import rarity, score, weight

NAMED_SCORE, NEIGHBOUR_PART, VERBATIM_SCORE = 0.5, 0.3, 2.0
NEAREST, BEST = 20, 20
"""So many are results because of their meaning; so many of the best because of who says them."""
DIGITS = 6
"""Scores that are the same when rounded to so many digits are ties: the older comes first."""


class RecallCorpus(msgspec.Struct, frozen=True):
    """The documents of what had been said by a moment in one life, in order: column by column."""

    seq: Sequence[int]
    time: Sequence[int]
    """Microseconds UTC."""
    role: Sequence[str]
    name: Sequence[str]
    text: Sequence[str]
    ref: Sequence[str]
    linked: Sequence[bool]
    words: Sequence[float]
    stems: Sequence[str]


class RecallQuery(msgspec.Struct, frozen=True):
    """What is looked for."""

    text: str
    """The query in lower case, without its phrases; a result wherever it occurs. Empty: it is not looked for."""
    phrases: Sequence[str]
    """In lower case: each must occur, and that is enough."""
    stems: Sequence[str]
    roles: Sequence[str]
    """Only of these speakers; none: of any."""
    after: int | None
    before: int | None
    """From (inclusive) and to (exclusive), microseconds UTC."""
    meanings: Mapping[int, float]
    """How near in meaning messages are, by seq."""


class _Worded(msgspec.Struct):
    """What the words of a query find in one message."""

    score: float = 0.0
    own: bool = False
    """There is a stem in its own words, or the query names who says it."""
    has_topic: bool = False
    """There is a stem that is no speaker's name."""
    has_own_topic: bool = False
    """There is such a stem in its own words."""
    named: bool = False


class _Found(msgspec.Struct):
    """What a query finds, by place in the talk (from 0)."""

    worded: Mapping[int, _Worded]
    meanings: Mapping[int, float]
    verbatim: Collection[int]
    scores: Sequence[float]
    names_alone: bool
    """The query has nothing but names of speakers."""


def rank(talk: RecallCorpus, asked: RecallQuery) -> list[tuple[int, float]]:
    """The places in the talk of all results and their scores, best first."""
    found = _match(talk, asked)
    order = {place: (-round(score, DIGITS), place) for place, score in enumerate(found.scores) if score}
    fitting = _result_places(talk, asked)
    results = fitting if asked.phrases else _results(talk, found, fitting, order)
    placed = sorted(results, key=lambda place: order.get(place, (0.0, place)))
    return [(place, found.scores[place]) for place in placed]


def _results(
    talk: RecallCorpus, found: _Found, fitting: Collection[int], order: Mapping[int, tuple[float, int]]
) -> Iterator[int]:
    """The places of what has the words, the meaning or the speaker that is asked for."""
    near = [place for place in found.meanings if place in fitting]
    best = frozenset(nsmallest(BEST, [place for place in order if place in fitting], key=order.__getitem__))
    places = {
        *found.verbatim,
        *nsmallest(NEAREST, near, key=lambda place: (-found.meanings[place], place)),
        *(place for place in found.worded if _answers(talk, found, place, best)),
    }
    return (place for place in places if place in fitting)


def _answers(talk: RecallCorpus, found: _Found, place: int, best: Collection[int]) -> bool:
    """Whether a message is a result by its words, or by who says it."""
    one = found.worded[place]
    spoken = one.named and place in best and _has_topic_near(talk, found, place)
    return one.has_own_topic or spoken or (one.own and found.names_alone)


def _has_topic_near(talk: RecallCorpus, found: _Found, place: int) -> bool:
    """Whether words of the query that are no names stand there, or right before or after."""
    near = [place]
    if talk.linked[place]:
        near.append(place - 1)
    if place + 1 < len(talk.linked) and talk.linked[place + 1]:
        near.append(place + 1)
    return any(other in found.worded and found.worded[other].has_topic for other in near)


def _result_places(talk: RecallCorpus, asked: RecallQuery) -> Collection[int]:
    """The places of what can be a result."""
    places: Collection[int] = range(len(talk.seq))
    if asked.roles:
        places = [place for place in places if talk.role[place] in asked.roles]
    if asked.after is not None:
        places = [place for place in places if talk.time[place] >= asked.after]
    if asked.before is not None:
        places = [place for place in places if talk.time[place] < asked.before]
    for phrase in asked.phrases:
        places = [place for place in places if phrase in talk.text[place].lower()]
    return frozenset(places) if isinstance(places, list) else places


def _match(talk: RecallCorpus, asked: RecallQuery) -> _Found:
    worded, names = _stem_matches(talk, asked.stems)
    meanings = {place: asked.meanings[seq] for place, seq in enumerate(talk.seq) if seq in asked.meanings}
    verbatim = _verbatim(talk, asked.text)
    alone = _message_scores(len(talk.seq), worded, meanings, part=0.5 if asked.meanings else 1.0)
    scores = [
        base + NEIGHBOUR_PART * beside
        for base, beside in zip(alone, _neighbour_scores(alone, talk.linked), strict=True)
    ]
    for place in verbatim:
        scores[place] += VERBATIM_SCORE
    return _Found(worded, meanings, verbatim, scores, names == len(asked.stems))


def _verbatim(talk: RecallCorpus, text: str) -> Collection[int]:
    """The places of what holds the query word for word. Mostly nothing does, which one look tells."""
    if not text or text not in "\n".join(talk.text).lower():
        return ()
    return [place for place, said in enumerate(talk.text) if text in said.lower()]


def _stem_matches(talk: RecallCorpus, stems: Sequence[str]) -> tuple[Mapping[int, _Worded], int]:
    """What each message that has a stem of the query has of it, by place; and how many stems are names of speakers."""
    found: dict[int, _Worded] = {}
    names = 0
    count = len(talk.seq)
    average = max(sum(talk.words) / max(count, 1), 1.0)
    for stem in stems:
        sought = sought_as(stem)
        begins = [document.find(sought) for document in talk.stems]
        hits = [(p, count_at(talk.stems[p], begin + len(sought))) for p, begin in enumerate(begins) if begin >= 0]
        rare = rarity(count, len(hits))
        a_name = any(hit.speaker for _, hit in hits)
        names += a_name
        for place, (n, own, speaker) in hits:
            one = found.setdefault(place, _Worded())
            one.score += score(rare, n, weight(talk.words[place], average))
            one.own |= own or speaker
            one.has_topic |= not a_name
            one.has_own_topic |= own and not a_name
            one.named |= speaker
    return found, names


def _message_scores(
    count: int, worded: Mapping[int, _Worded], meanings: Mapping[int, float], *, part: float
) -> list[float]:
    """The scores of messages by themselves: words and meaning, each `part` of it, and who says it."""
    alone = [0.0] * count
    best = max((one.score for one in worded.values()), default=0.0)
    for place, one in worded.items():
        alone[place] = part * (one.score / best)
    low, high = min(meanings.values(), default=0.0), max(meanings.values(), default=0.0)
    if high > low:
        for place, near in meanings.items():
            alone[place] += part * ((near - low) / (high - low))
    for place, one in worded.items():
        alone[place] += NAMED_SCORE if one.named else 0.0
    return alone


def _neighbour_scores(alone: Sequence[float], linked: Sequence[bool]) -> Iterator[float]:
    """The better score of the two that were said right before and after, where one goes on from the other."""
    before = (score if on else 0.0 for score, on in zip((0.0, *alone), linked, strict=False))
    after = (score if on else 0.0 for score, on in zip((*alone[1:], 0.0), (*linked[1:], False), strict=False))
    return map(max, before, after)
