"""Measure what speaks for each message of a talk as the answer to a query: one number a message for each feature.

Features are general: none knows a topic or a program that talks. Where a kind of talk needs another treatment,
something that can be seen decides: the length of a message, a speaker without a name, an hour's silence. Values can be
compared between queries and talks: sums over words are relative to all words of the query that occur in the talk.

Used by `ranking`, which weighs the features, and by the training of the weights. A view shows what had been said by a
moment, so nothing here may look at anything but the view. A change of a feature needs new weights, and the same change
in `tests/laws/ranking_reference.py`.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec
import numpy as np

from everlog.projections.search.talk_index import ROLES, TalkView
from everlog.store.base.bm25 import rarity, score, weight
from everlog.store.base.stemming import stems

STATED, ASKED = 1.0, 0.5
"""Weights of a word in a statement and in a question of the message itself."""
STATED_BEFORE, ASKED_BEFORE = 0.25, 1.0
"""Weights of a word in a statement and in a question of the message before, if this one is a short reply to it."""
REPLY_CHARS = 300
"""Length in characters below which a message is a short reply, which the words before it explain. What a longer message
before it says counts less, in inverse proportion to its length.
"""
PASSING_CHARS = 40
"""Length in characters below which a message is a remark in passing."""
LENGTHY_CHARS = 300
"""Mean length in characters from which on, inclusive, speakers without a name answer at length."""
LENGTH_CHARS = 500
"""Length in characters above which the length of a message says nothing more."""


FIRST_PERSON = ("i", "my", "me", "mine", "we", "our", "\u6211", "yo", "mi", "mis", "me", "nos", "nuestro", "nuestra")


class FeatureQuery(msgspec.Struct, frozen=True):
    """Query, as the features need it."""

    words: Sequence[Sequence[str]]
    """Words, each as its possible stems."""
    names: Sequence[Sequence[str]] = ()
    """Those of the words that may be names of speakers: equal to or part of `words`."""
    times: Sequence[str] = ()
    """Stems that tell a time, if the query asks for one."""
    to_assistant: bool = False
    """True if the query speaks to the assistant, such as `What did you recommend?`."""


class _Setting:
    """Facts of a talk that do not depend on the query."""

    def __init__(self, talk: TalkView) -> None:
        count = len(talk)
        self.talk = talk
        self.count = count
        self.linked = talk.linked
        self.session = np.cumsum(~talk.linked) - 1
        """Number of the session of each message, from 0: sessions are an hour or more apart."""
        self.words = np.bincount(talk.message_of, talk.unit_words, count)
        asked = np.bincount(talk.message_of, talk.unit_asked, count)
        self.asking = np.divide(asked, self.words, out=np.zeros(count), where=self.words > 0)
        """Part of the words of each message that is in questions."""
        self.weighed_asked = asked
        self.damped = np.minimum(1.0, REPLY_CHARS / np.maximum(talk.chars, 1))
        """Part of its words that each message lends to a reply."""
        self.replies = talk.linked & (talk.chars < REPLY_CHARS)
        self.units = talk.first_unit[:-1]

    @cached_property
    def nameless(self) -> np.ndarray:
        """True for messages of an assistant without a name."""
        return (self.talk.role == ROLES.index("assistant")) & (self.talk.speaker == 0)

    def before(self, values: np.ndarray) -> np.ndarray:
        """Return the value of the message before each message that continues it; 0 for others."""
        found = np.zeros(self.count)
        found[1:] = values[:-1] * self.linked[1:]
        return found

    def after(self, values: np.ndarray) -> np.ndarray:
        """Return the value of the message that continues each message; 0 if none does."""
        found = np.zeros(self.count)
        found[:-1] = values[1:] * self.linked[1:]
        return found

    def best_unit(self, values: np.ndarray) -> np.ndarray:
        """Return the highest value of the units of each message."""
        return np.maximum.reduceat(values, self.units) if self.count else values


class _Word(NamedTuple):
    """One word of the query in a talk."""

    units: np.ndarray
    stated: np.ndarray
    asked: np.ndarray
    rare: float


class _Words:
    """Sums over the words of a query that are no names, by message."""

    def __init__(self, here: _Setting, words: Sequence[_Word]) -> None:
        count = here.count
        self.total = sum(word.rare for word in words) or 1.0
        self.highest = max((word.rare for word in words), default=1.0)
        self.document = np.zeros(here.talk.units)
        self.own = np.zeros(count)
        """Sum of the rarity of the words in the message."""
        self.near = np.zeros(count)
        """The same of the message and the ones right before and after."""
        self.rarest = np.zeros(count)
        self.stated_before = np.zeros(count)
        self.asked_before = np.zeros(count)
        self.by_itself = np.zeros(here.talk.units)
        sessions = int(here.session[-1]) + 1 if count else 0
        self.session = np.zeros(sessions)
        lengths = _lengths(here)
        alone = here.talk.unit_words.astype(np.float64)
        in_unit, in_document = _damping(alone), _damping(lengths)
        in_message, in_session = _damping(here.words), _damping(np.bincount(here.session, here.words, sessions))
        for word in words:
            stated, asked = (np.bincount(here.talk.message_of[word.units], n, count) for n in (word.stated, word.asked))
            has = (stated + asked) > 0
            self.own += word.rare * has
            self.near += word.rare * (has | (here.before(has) > 0) | (here.after(has) > 0))
            self.rarest = np.maximum(self.rarest, word.rare * has)
            self.stated_before += score(word.rare, stated, in_message)
            self.asked_before += score(word.rare, asked, in_message)
            times = np.zeros(here.talk.units)
            times[word.units] = STATED * word.stated + ASKED * word.asked
            self.by_itself += score(word.rare, times, in_unit)
            lent = here.replies * here.before((STATED_BEFORE * stated + ASKED_BEFORE * asked) * here.damped)
            times[here.units] += lent
            self.document += score(word.rare, times, in_document)
            said = np.bincount(here.session, stated + asked, sessions)
            self.session += score(rarity(sessions, int((said > 0).sum())), said, in_session)


def _damping(lengths: np.ndarray) -> np.ndarray:
    return weight(lengths, max(float(lengths.mean()) if len(lengths) else 0.0, 1.0))


def _lengths(here: _Setting) -> np.ndarray:
    """Return the number of words of each unit, with those that the message before lends."""
    asked = np.bincount(here.talk.message_of, here.talk.unit_asked, here.count)
    lent = here.before((STATED_BEFORE * (here.words - asked) + ASKED_BEFORE * asked) * here.damped)
    lengths = here.talk.unit_words.astype(np.float64)
    lengths[here.units] += here.replies * lent
    return lengths


def find(talk: TalkView, alternatives: Sequence[str]) -> _Word:
    """Return the units that have one of the stems."""
    found = [talk.postings(one) for one in alternatives]
    units, stated, asked = found[0]
    stated, asked = stated.astype(np.float64), asked.astype(np.float64)
    if len(found) > 1:
        all_units = np.concatenate([units for units, _, _ in found])
        units, place = np.unique(all_units, return_inverse=True)
        stated = np.bincount(place, np.concatenate([n for _, n, _ in found]), len(units))
        asked = np.bincount(place, np.concatenate([n for _, _, n in found]), len(units))
    return _Word(units, stated, asked, rarity(talk.units, len(units)))


def relative(values: np.ndarray) -> np.ndarray:
    """Return values relative to the highest; zeros if that is 0."""
    best = float(values.max(initial=0.0))
    return values / best if best > 0 else np.zeros(len(values))


def measure(
    talk: TalkView, asked: FeatureQuery, meanings: np.ndarray | None = None, dates: np.ndarray | None = None
) -> Mapping[str, np.ndarray]:
    """Return the features of all messages by name. `meanings`: similarity in meaning of each message, if known; without
    it, the features that need it are missing. `dates`: how well each message's day suits the query.
    """
    here = _Setting(talk)
    if not here.count:
        return {}
    names = [{*word} for word in asked.names]
    words = [find(talk, word) for word in asked.words if set(word) not in names] 
    if not words:
        words = [find(talk, word) for word in asked.words]
    sums = _Words(here, [word for word in words if len(word.units)])
    found = _word_features(here, sums)
    found |= _speaker_features(here, asked, found["document"])
    found |= _shape_features(here, asked)
    if dates is not None:
        found["date"] = dates
    base = found["relative"]
    if meanings is not None:
        near = np.asarray(meanings, np.float64)
        found |= _meaning_features(here, near)
        base = 0.5 * (base + found["meaning"])
    found["neighbour"] = np.maximum(here.before(base), here.after(base))
    return found


def _word_features(here: _Setting, sums: _Words) -> dict[str, np.ndarray]:
    document, own = here.best_unit(sums.document) / sums.total, here.best_unit(sums.by_itself) / sums.total
    beside = np.maximum(here.before(here.before(own)), here.after(here.after(own)))
    return {
        "document": document,
        "relative": relative(document),
        "own": own,
        "covered": sums.own / sums.total,
        "covered_near": sums.near / sums.total,
        "rarest": sums.rarest / sums.highest,
        "stated_before": here.before(sums.stated_before / sums.total * here.damped),
        "asked_before": here.before(sums.asked_before / sums.total * here.damped),
        "after": here.after(own),
        "two_away": beside,
        "session": relative(sums.session)[here.session],
    }


def _speaker_features(here: _Setting, asked: FeatureQuery, document: np.ndarray) -> dict[str, np.ndarray]:
    talk = here.talk
    wanted = {stem for word in asked.names for stem in word}
    known = [bool(name) for name in talk.names]
    by = np.array([bool(wanted.intersection(stems(name))) for name in talk.names], float)[talk.speaker]
    other = np.array(known, float)[talk.speaker] * (1 - by) * bool(wanted)
    said = np.zeros(here.count)
    for word in asked.names:
        said[talk.message_of[find(talk, word).units]] = 1.0
    nameless = here.nameless
    user = np.where(nameless, 0.0, 1.0) * bool(nameless.any())
    lengthy = bool(nameless.any()) and float(talk.chars[nameless].mean()) >= LENGTHY_CHARS
    mine = user * lengthy
    return {
        "named": by,
        "named_states": by * (1 - here.asking),
        "named_document": by * document,
        "named_other": other,
        "name_said": said,
        "user": user,
        "user_lengthy": mine,
        "user_document": mine * document,
        "asked_assistant": (nameless & asked.to_assistant).astype(float),
    }


def _shape_features(here: _Setting, asked: FeatureQuery) -> dict[str, np.ndarray]:
    talk = here.talk
    told = np.zeros(here.count)
    for stem in asked.times:
        told[talk.message_of[talk.postings(stem)[0]]] = 1.0
    first = np.zeros(here.count)
    for stem in FIRST_PERSON:
        first[talk.message_of[talk.postings(stem)[0]]] = 1.0
    chars = np.minimum(talk.chars, LENGTH_CHARS).astype(np.float64)
    return {
        "asking": here.asking,
        "first_person": first * ~here.nameless,
        "length": np.log1p(chars) / np.log1p(LENGTH_CHARS),
        "passing": (talk.chars < PASSING_CHARS).astype(float),
        "tells_time": told,
    }


def _meaning_features(here: _Setting, near: np.ndarray) -> dict[str, np.ndarray]:
    low, high, mean = float(near.min()), float(near.max()), float(near.mean())
    meant = (near - low) / (high - low) if high > low else np.zeros(here.count)
    outstanding = np.maximum(near - mean, 0) / (high - mean) if high > mean else np.zeros(here.count)
    best = np.zeros(int(here.session[-1]) + 1)
    np.maximum.at(best, here.session, outstanding)
    return {
        "meaning": meant,
        "outstanding": outstanding,
        "meaning_before": here.replies * here.before(outstanding),
        "meaning_after": here.after(outstanding),
        "meaning_session": best[here.session],
    }
