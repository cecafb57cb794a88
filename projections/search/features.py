"""Measure what speaks for each message of a talk as the answer to a query: one number a message for each feature.

Features are general: none knows a topic or a program that talks. Where a kind of talk needs another treatment,
something that can be seen decides: the length of a message, a speaker without a name, an hour's silence. Values can be
compared between queries and talks: sums over words are relative to all words of the query that occur in the talk.

Used by `ranking`, which weighs the features, and by the training of the weights. A view shows what had been said by a
moment, so nothing here may look at anything but the view. A change of a feature needs new weights, and the same change
in `tests/laws/ranking_reference.py`.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from everlog.projections.search.talk_index import ROLES, TalkView
from everlog.store.base.bm25 import rarity, score, weight

STATED, ASKED = 1.0, 0.5
"""Weights of a word in a statement and in a question of the message itself."""
STATED_BEFORE, ASKED_BEFORE = 0.25, 1.0
"""Weights of a word in a statement and in a question of the message before, if this one is a short reply to it."""
REPLY_CHARS = 300
"""Length in characters below which a message is a short reply, which the words before it explain. What a longer message
before it says counts less, in inverse proportion to its length.
"""
LENGTHY_CHARS = 300
"""Mean length in characters from which on, inclusive, an assistant without a name answers at length."""
MEANING_PART = 0.5
"""Part of the meaning, where it is known, in the score of a neighbour; the rest is that of its words."""

WORD_FEATURES = (
    "document", "relative", "covered", "covered_near", "asked_before", "two_away", "session", "named", "named_states",
    "named_document", "named_other", "user_lengthy", "user_document", "asked_assistant", "asking",
    "tells_time", "date", "neighbour",
)  # fmt: skip
"""Names of the features that need no meanings."""
MEANING_FEATURES = ("meaning", "outstanding", "meaning_after", "meaning_session")
"""Names of those that do."""


class FeatureQuery(msgspec.Struct, frozen=True):
    """Query, as the features need it."""

    words: Sequence[Sequence[str]]
    """Words, each as its possible stems."""
    times: Sequence[str] = ()
    """Stems that tell a time, if the query asks for one."""
    to_assistant: bool = False
    """True if the query speaks to the assistant, such as `What did you recommend?`."""


class FoundWord(NamedTuple):
    """Units that have one of the stems of a word, how often in statements and in questions, and its rarity."""

    units: np.ndarray
    stated: np.ndarray
    asked: np.ndarray
    rarity: float


class Measured(NamedTuple):
    """Features of the messages of a talk, and the facts that decide what is a result."""

    features: Mapping[str, np.ndarray]
    topical: np.ndarray
    """True if a word of the query that is no name is in the message, or in a question that it answers."""
    complete: np.ndarray
    """True if all words of the query are in the message."""
    named: np.ndarray
    """True if the query names the speaker."""


class _Setting:
    """Facts of a talk that do not depend on the query."""

    def __init__(self, talk: TalkView) -> None:
        count = self.count = len(talk)
        self.talk = talk
        self.linked = talk.linked
        self.session = np.cumsum(~talk.linked) - 1
        """Number of the session of each message, from 0: an hour of silence separates sessions."""
        self.sessions = int(self.session[-1]) + 1
        self.words = np.bincount(talk.message_of, talk.unit_words, count)
        self.asked = np.bincount(talk.message_of, talk.unit_asked, count)
        """Number of words in questions of each message."""
        self.asking = self.asked / np.maximum(self.words, 1.0)
        """Part of the words of each message that is in questions."""
        self.lends = np.minimum(1.0, REPLY_CHARS / np.maximum(talk.chars, 1))
        """Part of its words that each message lends to a reply."""
        self.replies = talk.linked & (talk.chars < REPLY_CHARS)
        self.first_units = talk.first_unit[:-1]
        self.nameless = (talk.role == ROLES.index("assistant")) & (talk.speaker == 0)
        """True for messages of an assistant without a name."""

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

    def around(self, has: np.ndarray) -> np.ndarray:
        """Return True for each message for which `has` is, and for those right before or after it."""
        found = has.copy()
        found[1:] |= has[:-1] & self.linked[1:]
        found[:-1] |= has[1:] & self.linked[1:]
        return found

    def by_message(self, word: FoundWord) -> tuple[np.ndarray, np.ndarray]:
        """Return how often each message has a word in statements and in questions."""
        places = self.talk.message_of[word.units]
        return np.bincount(places, word.stated, self.count), np.bincount(places, word.asked, self.count)

    def best_unit(self, values: np.ndarray) -> np.ndarray:
        """Return the highest value of the units of each message."""
        best: np.ndarray = np.maximum.reduceat(values, self.first_units)
        return best


class _Sums:
    """Sums over the words of a query that are no names."""

    def __init__(self, here: _Setting, words: Sequence[FoundWord]) -> None:
        count = here.count
        self.total = sum(word.rarity for word in words) or 1.0
        self.document = np.zeros(here.talk.units)
        """BM25 of each unit with what the message before lends to it."""
        self.alone = np.zeros(here.talk.units)
        """BM25 of each unit."""
        self.covered, self.near = np.zeros(count), np.zeros(count)
        """Sum of the rarities of the words in each message, and of those in it or right before or after it."""
        self.asked = np.zeros(count)
        """BM25 of the questions of each message."""
        self.session = np.zeros(here.sessions)
        """BM25 of each session."""
        self.topical = np.zeros(count, bool)
        own_words = here.talk.unit_words.astype(np.float64)
        lent_words = STATED_BEFORE * (here.words - here.asked) + ASKED_BEFORE * here.asked
        all_words = own_words.copy()
        all_words[here.first_units] += here.replies * here.before(lent_words * here.lends)
        in_unit, in_document, in_message = _damping(own_words), _damping(all_words), _damping(here.words)
        in_session = _damping(np.bincount(here.session, here.words, here.sessions))
        for word in words:
            stated, asked = here.by_message(word)
            has = stated + asked > 0
            self.covered += word.rarity * has
            self.near += word.rarity * here.around(has)
            self.topical |= has
            if word.asked.any():
                self.asked += score(word.rarity, asked, in_message)
                self.topical[1:] |= here.replies[1:] & (asked[:-1] > 0)
            times = np.zeros(here.talk.units)
            times[word.units] = STATED * word.stated + ASKED * word.asked
            self.alone += score(word.rarity, times, in_unit)
            lent = (STATED_BEFORE * stated + ASKED_BEFORE * asked) * here.lends
            times[here.first_units] += here.replies * here.before(lent)
            self.document += score(word.rarity, times, in_document)
            said = np.bincount(here.session, stated + asked, here.sessions)
            self.session += score(rarity(here.sessions, int((said > 0).sum())), said, in_session)


def measure(
    talk: TalkView, query: FeatureQuery, meanings: np.ndarray | None = None, dates: np.ndarray | None = None
) -> Measured:
    """Return the features of the messages of a talk, which has at least one. `meanings`: similarity in meaning of each
    message; None: not known, and MEANING_FEATURES are missing. `dates`: closeness of each message to the days that the
    query names, from 0 to 1; None: it names none.
    """
    here = _Setting(talk)
    found = [find(talk, word) for word in query.words]
    spoken_names = talk.name_stems
    is_name = [any(not names.isdisjoint(word) for names in spoken_names) for word in query.words]
    names = [word for word, named in zip(query.words, is_name, strict=True) if named]
    topics = [word for word, named in zip(found, is_name, strict=True) if not named] or found
    sums = _Sums(here, [word for word in topics if len(word.units)])
    wanted = frozenset(stem for word in names for stem in word)
    named = np.array([not wanted.isdisjoint(name) for name in spoken_names], bool)[talk.speaker]
    features = _word_features(here, sums)
    features |= _speaker_features(here, query, named, features["document"], bool(names))
    features["asking"] = here.asking
    features["tells_time"] = _with_any(talk, query.times).astype(np.float64)
    features["date"] = np.zeros(here.count) if dates is None else dates
    base = features["relative"]
    if meanings is not None:
        features |= _meaning_features(here, np.asarray(meanings, np.float64))
        base = (1 - MEANING_PART) * base + MEANING_PART * features["meaning"]
    features["neighbour"] = np.maximum(here.before(base), here.after(base))
    complete = np.full(here.count, bool(found))
    for word in found:
        has = np.zeros(here.count, bool)
        has[talk.message_of[word.units]] = True
        complete &= has
    return Measured(features, sums.topical, complete, named)


def find(talk: TalkView, alternatives: Sequence[str]) -> FoundWord:
    """Return the units that have one of the stems of a word."""
    parts = [talk.postings(stem) for stem in dict.fromkeys(alternatives)]
    parts = [part for part in parts if len(part[0])] or parts[:1]
    if len(parts) == 1:
        units, stated, asked = parts[0]
        return FoundWord(units, stated.astype(np.float64), asked.astype(np.float64), rarity(talk.units, len(units)))
    units, places = np.unique(np.concatenate([part[0] for part in parts]), return_inverse=True)
    stated = np.bincount(places, np.concatenate([part[1] for part in parts]), len(units))
    asked = np.bincount(places, np.concatenate([part[2] for part in parts]), len(units))
    return FoundWord(units, stated, asked, rarity(talk.units, len(units)))


def _word_features(here: _Setting, sums: _Sums) -> dict[str, np.ndarray]:
    document, alone = here.best_unit(sums.document) / sums.total, here.best_unit(sums.alone) / sums.total
    return {
        "document": document,
        "relative": _relative(document),
        "covered": sums.covered / sums.total,
        "covered_near": sums.near / sums.total,
        "asked_before": here.before(sums.asked / sums.total * here.lends),
        "two_away": np.maximum(here.before(here.before(alone)), here.after(here.after(alone))),
        "session": _relative(sums.session)[here.session],
    }


def _speaker_features(
    here: _Setting, query: FeatureQuery, named: np.ndarray, document: np.ndarray, names_somebody: bool
) -> dict[str, np.ndarray]:
    talk, nameless = here.talk, here.nameless
    lengthy = bool(nameless.any()) and float(talk.chars[nameless].mean()) >= LENGTHY_CHARS
    user = (~nameless & lengthy).astype(np.float64)
    return {
        "named": named.astype(np.float64),
        "named_states": named * (1 - here.asking),
        "named_document": named * document,
        "named_other": ((talk.speaker != 0) & ~named & names_somebody).astype(np.float64),
        "user_lengthy": user,
        "user_document": user * document,
        "asked_assistant": (nameless & query.to_assistant).astype(np.float64),
    }


def _meaning_features(here: _Setting, near: np.ndarray) -> dict[str, np.ndarray]:
    low, mean, high = float(near.min()), float(near.mean()), float(near.max())
    nothing = np.zeros(here.count)
    outstanding = np.maximum(near - mean, 0.0) / (high - mean) if high > low else nothing
    best = np.zeros(here.sessions)
    np.maximum.at(best, here.session, outstanding)
    return {
        "meaning": (near - low) / (high - low) if high > low else nothing,
        "outstanding": outstanding,
        "meaning_after": here.after(outstanding),
        "meaning_session": best[here.session],
    }


def _with_any(talk: TalkView, wanted: Sequence[str]) -> np.ndarray:
    """Return True for each message with one of these stems."""
    found = np.zeros(len(talk), bool)
    for stem in wanted:
        found[talk.message_of[talk.postings(stem)[0]]] = True
    return found


def _damping(lengths: np.ndarray) -> np.ndarray:
    return weight(lengths, max(float(lengths.mean()), 1.0))


def _relative(values: np.ndarray) -> np.ndarray:
    """Return values relative to the highest; zeros if that is 0."""
    best = float(values.max())
    return values / best if best > 0 else np.zeros(len(values))
