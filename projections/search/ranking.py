"""Rank what was said, best match first: a weighted sum of features, with weights that were learned.

`features` measures; `ranking_weights.json` weighs, one set with meanings and one for words alone, and says what they
were trained on. `docs/explanation/search.md` explains all of it. Texts that contain the query word for word come first;
they are sought among the messages that have all its words, and among all messages if none has any.

A message is a result if a word of the query that is no speaker's name is in it, or in a question that it answers; or if
it is among the NEAREST in meaning; or if the query has names alone, and names its speaker; or if it is among the
RESULTS_MIN best of sessions with such words or of a named speaker: an answer may have no word of its question.

Used by `recall_search`. `tests/laws/ranking_reference.py` has the same formula in plain Python, and both must agree.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec
import numpy as np

from everlog.projections.search.features import MEANING_FEATURES, WORD_FEATURES, FeatureQuery, Measured, measure
from everlog.projections.search.talk_index import ROLES, TalkView

WEIGHTS_FILE = Path(__file__).with_name("ranking_weights.json")
VERBATIM_SCORE = 100.0
"""Score of a query that is found word for word: more than all features together can reach."""
NEAREST = 100
"""Maximum number of results because of their meaning alone."""
RESULTS_MIN = 50
"""Number of the best messages that are results without a word of the query, so that lists do not end early."""
CANDIDATES = 120
"""Number of messages, the best by FIXED_WEIGHTS, that learned weights order. The others come after them: the weights
were learned on such candidates, and would raise messages that are right in a detail and nothing else.
"""
AFTER_CANDIDATES = -100.0
"""Score that is added to that of the others."""
DIGITS = 6
"""Decimal places of a score. Scores that are equal after rounding are ties: the older message comes first."""
FIXED_WEIGHTS: Mapping[str, float] = {
    "relative": 1.0, "meaning": 1.0, "neighbour": 0.6, "session": 0.4, "named": 1.0, "user_lengthy": 0.5, "date": 0.5,
}  # fmt: skip
"""Weights that choose the candidates, and that hold if the file's features are not those of this version."""


class RecallQuery(msgspec.Struct, frozen=True):
    """Query with its filters."""

    text: str
    """Query in lower case, without its phrases. A text that contains it is a result. Empty: not searched for."""
    phrases: Sequence[str]
    """Phrases in lower case: each must occur, and a text with all of them is a result."""
    features: FeatureQuery
    roles: Sequence[str] = ()
    """Roles of the speakers to find; empty: all."""
    after: int | None = None
    before: int | None = None
    """Time range: from `after` (inclusive) to `before` (exclusive), microseconds UTC."""


class RankingWeights(msgspec.Struct, frozen=True):
    """Contents of the file of weights."""

    trained_on: Mapping[str, str]
    """Kinds of talk, each with its size and its share of the loss."""
    how: str
    command: str
    meaning: Mapping[str, float]
    """Weight of each feature if meanings are known."""
    words: Mapping[str, float]
    """Weight of each feature if words alone are known."""


def rank(
    talk: TalkView, asked: RecallQuery, meanings: np.ndarray | None = None, dates: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the places in the talk of all results, and their scores, best first. `meanings`: similarity in meaning of
    each message; None or empty: not known. `dates`: closeness to the days that the query names, from 0 to 1.
    """
    if not len(talk):
        return np.empty(0, np.int64), np.empty(0)
    near = meanings if meanings is not None and len(meanings) else None
    found = measure(talk, asked.features, near, dates)
    verbatim = _verbatim(talk, asked.text, found)
    scores = weighted(found.features, weights(by_meaning=near is not None))
    fits = _fitting(talk, asked)
    first = np.round(weighted(found.features, FIXED_WEIGHTS), DIGITS)
    scores[~_first(first, fits, CANDIDATES)] += AFTER_CANDIDATES
    scores[verbatim] += VERBATIM_SCORE
    scores = np.round(scores, DIGITS)
    results = fits if asked.phrases else fits & _results(found, near, scores, fits, verbatim)
    places = np.flatnonzero(results)
    places = places[np.lexsort([places, -scores[places]])]
    return places, scores[places]


def weighted(features: Mapping[str, np.ndarray], by: Mapping[str, float]) -> np.ndarray:
    """Return the weighted sum of features, in the order of the weights, so that no machine rounds differently."""
    total = np.zeros(len(features["document"]))
    for name, part in by.items():
        if name in features:
            total += part * features[name]
    return total


@cache
def weights(*, by_meaning: bool) -> Mapping[str, float]:
    """Return the weights by feature: those of the file, or FIXED_WEIGHTS if the file has other features."""
    file = msgspec.json.decode(WEIGHTS_FILE.read_bytes(), type=RankingWeights)
    found = file.meaning if by_meaning else file.words
    known = {*WORD_FEATURES, *(MEANING_FEATURES if by_meaning else ())}
    return found if found.keys() == known else FIXED_WEIGHTS


def _results(
    found: Measured, near: np.ndarray | None, scores: np.ndarray, fits: np.ndarray, verbatim: Sequence[int]
) -> np.ndarray:
    """Return True for each message with the words, the meaning or the speaker of the query."""
    results = found.topical.copy()
    if not results.any():
        results |= found.named
    if near is not None:
        results |= _first(near, fits, NEAREST)
    results[verbatim] = True
    others = fits & ((found.features["session"] > 0) | found.named)
    results |= _first(scores, others, RESULTS_MIN)
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


def _verbatim(talk: TalkView, text: str, found: Measured) -> Sequence[int]:
    """Return the places of messages that contain the query word for word."""
    if not text:
        return []
    has_words = bool(found.topical.any() or found.complete.any())
    among = np.flatnonzero(found.complete).tolist() if has_words else range(len(talk))
    return [place for place in among if text in talk.text(place).lower()]
