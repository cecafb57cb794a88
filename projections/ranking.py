"""Rank what was said, best match first, by arithmetic over the arrays of a talk index.

A document is a message with its speaker, its day (UTC) and what was said right before it, most of all a question: an
answer seldom repeats the words of its question. A score is the sum of four parts. First, BM25
(`everlog.store.base.bm25`) of the stems in a document, relative to the best document. Second, the similarity in
meaning, if known, relative to the range from the farthest to the nearest; with it, words and meaning count half each.
Third, 0.5 if the query names the speaker. Fourth, 0.3 of the better score of the two messages right before and after.
Texts that contain the query word for word come first; they are sought among the messages that have all its stems, and
among all messages if none has any.

A message is a result if its own words, or the question that it answers, contain a stem of the query; or if it is among
the 20 nearest in meaning; or if the query names its speaker, such a stem is in it or next to it, and it is among the 20
best. Names of speakers do not count as stems here, unless the query has no others.

Used by `recall_search`. `tests/laws/ranking_reference.py` has the same formula in plain Python, and both must agree.
"""

from collections.abc import Sequence
from functools import lru_cache

import msgspec
import numpy as np

from everlog.projections.search.talk_index import ROLES, TalkView
from everlog.store.base.bm25 import rarity, score, weight
from everlog.store.base.stemming import stem, stems

STATED, ASKED = 1.0, 0.5
"""Weights of a word in a statement and in a question of the message itself."""
STATED_BEFORE, ASKED_BEFORE = 0.25, 1.0
"""Weights of a word in a statement and in a question of the message before, if this one continues it."""
NAME, DATE = 1.0, 1.0
"""Weights of a word in the speaker's name and in the date."""
DATE_WORDS = 3
NAMED_SCORE, NEIGHBOUR_PART, VERBATIM_SCORE = 0.5, 0.3, 2.0
"""Score for a named speaker, part of a neighbour's score that is added, and score for a query found word for word."""
NEAREST, BEST = 20, 20
"""Maximum results because of their meaning alone; maximum rank of results because of their speaker."""
DIGITS = 6
"""Decimal places of a score. Scores that are equal after rounding are ties: the older message comes first."""

_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_NO_VALUES = np.empty(0)


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


class _Matches:
    """Matches of the words of a query with each message of a talk."""

    def __init__(self, talk: TalkView) -> None:
        count = len(talk)
        self.scores = np.zeros(count)
        self.own = np.zeros(count, bool)
        """True if a stem is in its own words, or the query names its speaker."""
        self.topic = np.zeros(count, bool)
        """True if it has a stem that is no speaker's name."""
        self.own_topic = np.zeros(count, bool)
        """True if such a stem is in its own words."""
        self.named = np.zeros(count, bool)
        self.all_stems = np.ones(count, bool)
        """True if all stems of the query are in the text of the message."""
        self.names = 0
        """Number of stems of the query that are speakers' names."""


def rank(talk: TalkView, asked: RecallQuery, meanings: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the places in the talk of all results, and their scores, best first. `meanings`: the similarity in meaning
    of each message; None: not known.
    """
    found = _matches(talk, asked.stems)
    verbatim = _verbatim(talk, asked.text, found)
    near = np.asarray(meanings, np.float64) if meanings is not None and len(meanings) else _NO_VALUES
    scores = _scores(talk, found, near)
    scores[verbatim] += VERBATIM_SCORE
    fits = _fitting(talk, asked)
    results = fits if asked.phrases else fits & _results(talk, found, near, scores, fits, verbatim)
    places = np.flatnonzero(results)
    places = places[np.lexsort([places, -np.round(scores[places], DIGITS)])]
    return places, scores[places]


def _results(
    talk: TalkView, found: _Matches, near: np.ndarray, scores: np.ndarray, fits: np.ndarray, verbatim: Sequence[int]
) -> np.ndarray:
    """Return True for each message with the words, the meaning or the speaker of the query."""
    beside = found.topic.copy()
    beside[1:] |= found.topic[:-1] & talk.linked[1:]
    beside[:-1] |= found.topic[1:] & talk.linked[1:]
    results = found.own_topic | (found.named & beside & _first(np.round(scores, DIGITS), fits & (scores > 0), BEST))
    if not found.topic.any() and found.names:
        results |= found.own
    if len(near):
        results |= _first(near, fits, NEAREST)
    results[verbatim] = True
    return results


def _first(values: np.ndarray, among: np.ndarray, count: int) -> np.ndarray:
    """Return True for the `count` highest values, among equal ones the earlier."""
    places = np.flatnonzero(among)
    if len(places) > count:
        least = -np.partition(-values[places], count - 1)[count - 1]
        places = places[values[places] >= least]
        places = places[np.lexsort([places, -values[places]])][:count]
    first = np.zeros(len(values), bool)
    first[places] = True
    return first


def _fitting(talk: TalkView, asked: RecallQuery) -> np.ndarray:
    """Return True for each message that passes the filters."""
    fits = np.ones(len(talk), bool)
    if asked.roles:
        fits &= np.isin(talk.role, [ROLES.index(role) for role in asked.roles])
    if asked.after is not None:
        fits &= talk.time >= asked.after
    if asked.before is not None:
        fits &= talk.time < asked.before
    if asked.phrases:
        for place in np.flatnonzero(fits).tolist():
            text = talk.text(place).lower()
            fits[place] = all(phrase in text for phrase in asked.phrases)
    return fits


def _verbatim(talk: TalkView, text: str, found: _Matches) -> Sequence[int]:
    """Return the places of messages that contain the query word for word, among those that have all its stems; among
    all, if no message has any.
    """
    if not text:
        return []
    among = range(len(talk)) if not found.scores.any() else np.flatnonzero(found.all_stems).tolist()
    return [place for place in among if text in talk.text(place).lower()]


def _matches(talk: TalkView, asked: Sequence[str]) -> _Matches:
    """Return the match of each message with the stems of the query."""
    found = _Matches(talk)
    lengths = _lengths(talk)
    average = max(float(lengths.mean()) if len(talk) else 0.0, 1.0)
    damping = weight(lengths, average)
    for one in asked:
        own, times, in_text, by_name = _times(talk, one)
        has = times > 0
        found.all_stems &= in_text
        if not has.any():
            continue
        a_name = bool(by_name.any())
        found.names += a_name
        found.scores += score(rarity(len(talk), int(has.sum())), times, damping)
        found.own |= own | by_name
        found.named |= by_name
        if not a_name:
            found.topic |= has
            found.own_topic |= own
    return found


def _times(talk: TalkView, one: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return for each message: if its own words, or a question right before it, have a stem; the weight of the stem in
    its document; if its text has the stem; and if the name of its speaker has it.
    """
    units, stated_in, asked_in = talk.postings(one)
    messages = talk.message_of[units]
    stated = np.bincount(messages, stated_in, len(talk))
    asked = np.bincount(messages, asked_in, len(talk))
    times = STATED * stated + ASKED * asked
    in_text = times > 0
    own = in_text.copy()
    linked = talk.linked[1:]
    times[1:] += linked * (STATED_BEFORE * stated[:-1] + ASKED_BEFORE * asked[:-1])
    own[1:] |= linked & (asked[:-1] > 0)
    named = np.array([_stems_of_name(name).count(one) for name in talk.names], float)[talk.speaker]
    times += NAME * named
    if one.isdecimal() or one in _month_stems():
        times += DATE * _dated(talk, one)
    return own, times, in_text, named > 0


def _lengths(talk: TalkView) -> np.ndarray:
    """Return the sum of the weights of all words of each document."""
    count = len(talk)
    asked = np.bincount(talk.message_of, talk.unit_asked, count)
    stated = np.bincount(talk.message_of, talk.unit_words, count) - asked
    lengths = STATED * stated + ASKED * asked + DATE * DATE_WORDS
    lengths[1:] += talk.linked[1:] * (STATED_BEFORE * stated[:-1] + ASKED_BEFORE * asked[:-1])
    return lengths + NAME * np.array([len(_stems_of_name(name)) for name in talk.names], float)[talk.speaker]


def _dated(talk: TalkView, one: str) -> np.ndarray:
    """Return how many of month, day and year (UTC) of each message are this stem."""
    days = talk.time.astype("datetime64[us]").astype("datetime64[D]")
    months = days.astype("datetime64[M]")
    found = np.zeros(len(talk))
    if one in _month_stems():
        found += (months.astype(int) % 12) == _month_stems().index(one)
    elif one == str(int(one)):
        found += ((days - months).astype(int) + 1) == int(one)
        found += (days.astype("datetime64[Y]").astype(int) + 1970) == int(one)
    return found


@lru_cache(maxsize=1)
def _month_stems() -> tuple[str, ...]:
    return tuple(map(stem, _MONTHS))


@lru_cache(maxsize=10_000)
def _stems_of_name(name: str) -> tuple[str, ...]:
    return tuple(stems(name))


def _scores(talk: TalkView, found: _Matches, near: np.ndarray) -> np.ndarray:
    """Return the scores of all messages: words, meaning, speaker and neighbours."""
    part = 0.5 if len(near) else 1.0
    best = float(found.scores.max(initial=0.0))
    alone = part * (found.scores / best) if best else np.zeros(len(talk))
    low, high = float(near.min(initial=np.inf)), float(near.max(initial=-np.inf))
    if high > low:
        alone += part * ((near - low) / (high - low))
    alone += NAMED_SCORE * found.named
    beside = np.zeros(len(talk))
    beside[1:] = alone[:-1] * talk.linked[1:]
    beside[:-1] = np.maximum(beside[:-1], alone[1:] * talk.linked[1:])
    return alone + NEIGHBOUR_PART * beside
