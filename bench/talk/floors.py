"""Rank a conversation's messages by plain BM25 and by bare cosine: what any search must be better than.

Used by `bench.retrieval`. Neither knows speakers, dates, neighbours or passages. The words of BM25 are the stems of
each word; in scripts without spaces each two neighbouring characters are a word.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from bench.talk.talk_shapes import Conversation, TalkMessage
from everlog.store.base.function_words import QUESTION_WORDS
from everlog.store.base.stemming import stem
from everlog.store.embedding.embedder import Embedder

K1, B = 0.9, 0.4
"""Parameters of BM25."""

_UNSPACED = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3"
_RUN = re.compile(rf"[{_UNSPACED}]+|[^\W{_UNSPACED}]+")
_FIRST = re.compile(rf"[{_UNSPACED}]")


def words_of(text: str) -> list[str]:
    """Return the words that BM25 compares."""
    found: list[str] = []
    for run in _RUN.findall(text.lower()):
        if _FIRST.match(run):
            found += [run[place : place + 2] for place in range(max(len(run) - 1, 1))]
        else:
            found.append(stem(run))
    return found


def spoken(one: TalkMessage) -> str:
    """Return a message with its speaker's name."""
    return f"{one.name}: {one.text}" if one.name else one.text


class PlainWords:
    """BM25 over the messages of one conversation."""

    def __init__(self, talk: Conversation) -> None:
        self._refs = [one.ref for one in talk.messages]
        counts = [Counter(words_of(spoken(one))) for one in talk.messages]
        self._lengths = np.array([sum(one.values()) for one in counts], dtype=np.float64)
        self._with: dict[str, list[tuple[int, int]]] = {}
        for place, one in enumerate(counts):
            for word, count in one.items():
                self._with.setdefault(word, []).append((place, count))

    def find(self, query: str, count: int) -> Sequence[str]:
        """Return the refs of the best `count` messages; those without any word of the query are left out."""
        scores = np.zeros(len(self._refs))
        norm = K1 * (1 - B + B * self._lengths / max(self._lengths.mean(), 1.0))
        spaced = " ".join(word for word in query.split() if word.lower().strip("?.,!") not in QUESTION_WORDS)
        for word in set(words_of(spaced or query)):
            places = self._with.get(word, [])
            rare = math.log(1 + (len(self._refs) - len(places) + 0.5) / (len(places) + 0.5))
            for place, n in places:
                scores[place] += rare * n * (K1 + 1) / (n + norm[place])
        order = np.argsort(-scores, kind="stable")[:count]
        return [self._refs[place] for place in order if scores[place] > 0]


class PlainMeaning:
    """Cosine of the query's vector with the vectors of whole messages."""

    def __init__(self, talk: Conversation, embedder: Embedder) -> None:
        self._refs = [one.ref for one in talk.messages]
        self._embedder = embedder
        self._rows = embedder.embed([spoken(one) for one in talk.messages])

    def find(self, query: str, count: int) -> Sequence[str]:
        """Return the refs of the nearest `count` messages."""
        order = np.argsort(-(self._rows @ self._embedder.embed([query])[0]), kind="stable")
        return [self._refs[place] for place in order[:count]]
