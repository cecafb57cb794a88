"""Rank what was said, best match first, by arithmetic over columns that SQL has gathered.

A score is the sum of four parts. First, BM25 (`everlog.store.base.bm25`) of the stems in a document, relative to the
best document. Second, the similarity in meaning, if known, relative to the range from the farthest to the nearest; with
it, words and meaning count half each. Third, 0.5 if the query names the speaker. Fourth, 0.3 of the better score of the
two messages right before and after. Texts that contain the query word for word come first.

A message is a result if its own words, or the question that it answers, contain a stem of the query; or if it is among
the 20 nearest in meaning; or if the query names its speaker, such a stem is in it or next to it, and it is among the 20
best. Names of speakers do not count as stems here, unless the query has no others.

Used by `recall_search`. `tests/laws/ranking_reference.py` has the same formula in plain Python, and both must agree.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from heapq import nsmallest

import msgspec

from everlog.projections.search_documents import count_at, sought_as
from everlog.store.base.bm25 import rarity, score, weight

NAMED_SCORE, NEIGHBOUR_PART, VERBATIM_SCORE = 0.5, 0.3, 2.0
"""Score for a named speaker, part of a neighbour's score that is added, and score for a query found word for word."""
NEAREST, BEST = 20, 20
"""Maximum results because of their meaning alone; maximum rank of results because of their speaker."""
DIGITS = 6
"""Decimal places of a score. Scores that are equal after rounding are ties: the older message comes first."""


class RecallCorpus(msgspec.Struct, frozen=True):
    """Search documents of what had been said by a moment in one incarnation, in order, column by column."""

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
    """Query with its filters."""

    text: str
    """Query in lower case, without its phrases. A text that contains it is a result. Empty: not searched for."""
    phrases: Sequence[str]
    """Phrases in lower case: each must occur, and a text with all of them is a result."""
    stems: Sequence[str]
    roles: Sequence[str]
    """Roles of the speakers to find; empty: all."""
    after: int | None
    before: int | None
    """Time range: from `after` (inclusive) to `before` (exclusive), microseconds UTC."""
    meanings: Mapping[int, float]
    """Similarity in meaning of messages, by seq."""


class _Worded(msgspec.Struct):
    """Match of a query's words with one message."""

    score: float = 0.0
    own: bool = False
    """True if a stem is in its own words, or the query names its speaker."""
    has_topic: bool = False
    """True if it has a stem that is no speaker's name."""
    has_own_topic: bool = False
    """True if such a stem is in its own words."""
    named: bool = False


class _Found(msgspec.Struct):
    """Matches of a query, by place in the talk (from 0)."""

    worded: Mapping[int, _Worded]
    meanings: Mapping[int, float]
    verbatim: Collection[int]
    scores: Sequence[float]
    names_alone: bool
    """True if the query has only names of speakers."""


def rank(talk: RecallCorpus, asked: RecallQuery) -> list[tuple[int, float]]:
    """Return the places in the talk of all results, with their scores, best first."""
    found = _match(talk, asked)
    order = {place: (-round(score, DIGITS), place) for place, score in enumerate(found.scores) if score}
    fitting = _result_places(talk, asked)
    results = fitting if asked.phrases else _results(talk, found, fitting, order)
    placed = sorted(results, key=lambda place: order.get(place, (0.0, place)))
    return [(place, found.scores[place]) for place in placed]


def _results(
    talk: RecallCorpus, found: _Found, fitting: Collection[int], order: Mapping[int, tuple[float, int]]
) -> Iterator[int]:
    """Yield the places of messages with the words, the meaning or the speaker of the query."""
    near = [place for place in found.meanings if place in fitting]
    best = frozenset(nsmallest(BEST, [place for place in order if place in fitting], key=order.__getitem__))
    places = {
        *found.verbatim,
        *nsmallest(NEAREST, near, key=lambda place: (-found.meanings[place], place)),
        *(place for place in found.worded if _answers(talk, found, place, best)),
    }
    return (place for place in places if place in fitting)


def _answers(talk: RecallCorpus, found: _Found, place: int, best: Collection[int]) -> bool:
    """Return True if a message is a result by its words or by its speaker."""
    one = found.worded[place]
    spoken = one.named and place in best and _has_topic_near(talk, found, place)
    return one.has_own_topic or spoken or (one.own and found.names_alone)


def _has_topic_near(talk: RecallCorpus, found: _Found, place: int) -> bool:
    """Return True if words of the query that are no names are in the message, or right before or after it."""
    near = [place]
    if talk.linked[place]:
        near.append(place - 1)
    if place + 1 < len(talk.linked) and talk.linked[place + 1]:
        near.append(place + 1)
    return any(other in found.worded and found.worded[other].has_topic for other in near)


def _result_places(talk: RecallCorpus, asked: RecallQuery) -> Collection[int]:
    """Return the places of messages that pass the filters."""
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
    """Return the places of messages that contain the query word for word.
    One search over all of them finds that mostly none do.
    """
    if not text or text not in "\n".join(talk.text).lower():
        return ()
    return [place for place, said in enumerate(talk.text) if text in said.lower()]


def _stem_matches(talk: RecallCorpus, stems: Sequence[str]) -> tuple[Mapping[int, _Worded], int]:
    """Return the match of each message with a stem of the query, by place,
    and the number of stems that are speakers' names.
    """
    found: dict[int, _Worded] = {}
    names = 0
    count = len(talk.seq)
    average = max(sum(talk.words) / max(count, 1), 1.0)
    for stem in stems:
        search_text = sought_as(stem)
        begins = [document.find(search_text) for document in talk.stems]
        hits = [(p, count_at(talk.stems[p], begin + len(search_text))) for p, begin in enumerate(begins) if begin >= 0]
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
    """Return the scores of messages by themselves: words and meaning, each times `part`, and the speaker."""
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
    """Yield the better score of the messages right before and after each message, if they are linked."""
    before = (score if on else 0.0 for score, on in zip((0.0, *alone), linked, strict=False))
    after = (score if on else 0.0 for score, on in zip((*alone[1:], 0.0), (*linked[1:], False), strict=False))
    return map(max, before, after)
