"""Search row caches by words (BM25) and meaning (cosine), fused by score. Pure and deterministic.

The set of results does not depend on the page: every row with a word of the query, and the nearest in meaning, however
far they are: a search of an archive that is not empty finds something, and says how near it is.
All statistics cover the rows that are current at the requested moment, so that a search as of a past moment finds what
it found then.

Used by `archive`.
"""

from collections.abc import Sequence

import numpy as np

from everlog.store.archive.archive_constants import COVERED_MIN, FARTHEST, MEANING, MEANING_DIGITS, NEAREST
from everlog.store.archive.archive_lineage import RowSelection
from everlog.store.archive.archive_results import Match, Matches
from everlog.store.base.archive_query import ArchiveQuery
from everlog.store.base.bm25 import rarity, score, weight
from everlog.store.base.stemming import phrases_in
from everlog.store.embedding.tokenizer import query_numbers, without_quotes

SCORE_DIGITS = 4


class CandidatePool:
    """Rows of several row caches that are current and pass the filters."""

    def __init__(self, own: Sequence[RowSelection], sources: Sequence[RowSelection], wanted: ArchiveQuery) -> None:
        """Collect the candidates: `own` are the rows of the agent, those of its ancestors first, `sources` those of its
        sources.
        """
        self._parts = [*own, *sources]
        self._row_caches = [part.row_cache for part in self._parts]
        self._kept = [np.flatnonzero(_counts(part, wanted)) for part in self._parts]
        counts = [len(kept) for kept in self._kept]
        self._statistics = [part.row_cache.statistics for part in self._parts]
        """Counts over all rows of the large parts, of which the pool has only candidates; None for the others."""
        self.count = sum(counts)
        self._sizes = [n if s is None else s.rows for n, s in zip(counts, self._statistics, strict=True)]
        self.size = sum(self._sizes)
        """Number of rows that are searched, in the pool or not."""
        self._part_of = np.repeat(np.arange(len(self._parts)), counts)
        self.whose = np.maximum(self._part_of - len(own) + 1, 0)
        """Owner of each row: 0 for the agent, then its sources in order."""
        self.row_of = np.concatenate(self._kept)

    def numbers(self, name: str) -> np.ndarray:
        """Return a numeric field of each row."""
        return np.concatenate([part.numbers(name)[kept] for part, kept in zip(self._parts, self._kept, strict=True)])

    def meaning(self, vector: np.ndarray) -> np.ndarray:
        """Return the cosine of each row with a vector of length 1."""
        found = []
        for row_cache, kept in zip(self._row_caches, self._kept, strict=True):
            found.append(row_cache.near(vector)[kept] if len(kept) else np.empty(0, np.float32))
        return np.round(np.concatenate(found).astype(np.float64), MEANING_DIGITS)

    def words(self, words: Sequence[int]) -> np.ndarray:
        """Return the BM25 score of each row, 0 for a row without any of the words. It is a part of the best row's
        score, or of COVERED_MIN of the whole query if that is more.

        The whole query is the score of a row of average length with each word once. Words that no row has count in it:
        rows with only the commonest word of a query must not outweigh those that are near in meaning.
        """
        scores = np.zeros(self.count)
        whole = 0.0
        lengths = [s.lengths[kept] for s, kept in zip(self._row_caches, self._kept, strict=True)]
        weights = weight(np.concatenate(lengths), max(self._average(lengths), 1e-9))
        for word in words:
            found = []
            for row_cache, kept in zip(self._row_caches, self._kept, strict=True):
                counts = row_cache.counts(word) if len(kept) else None
                found.append(np.zeros(len(kept)) if counts is None else counts[kept])
            times = np.concatenate(found)
            rows = sum(
                int(np.count_nonzero(some)) if s is None else s.having.get(word, 0)
                for some, s in zip(found, self._statistics, strict=True)
            )
            rare = rarity(self.size, rows)
            whole += rare
            if rows:
                scores += score(rare, times, weights)
        best = max(scores.max(initial=0.0), COVERED_MIN * whole)
        return scores / best if best else scores

    def _average(self, lengths: Sequence[np.ndarray]) -> float:
        """Return the average length of all rows, given the lengths of those in the pool."""
        sums = [
            float(some.sum()) if s is None else s.rows * s.length
            for some, s in zip(lengths, self._statistics, strict=True)
        ]
        return sum(sums) / max(self.size, 1)

    def total(self, places: np.ndarray) -> int:
        """Return the number of results, in the pool or not, if those in the pool are at `places`."""
        exact = [n for n, s in enumerate(self._statistics) if s is None]
        return int(np.isin(self._part_of[places], exact).sum()) + sum(
            s.found for s in self._statistics if s is not None
        )

    def holding(self, phrase: str) -> np.ndarray:
        """Return a mask of the rows that contain a lower-case text, word for word."""
        found = []
        for row_cache, kept in zip(self._row_caches, self._kept, strict=True):
            holds = np.zeros(len(row_cache), bool)
            holds[row_cache.rows_with(phrase)] = True
            found.append(holds[kept])
        return np.concatenate(found)

    def match(self, place: int, score: float, near: float | None = None) -> Match:
        """Return a row as a result. `near`: its similarity in meaning to the query."""
        part, row = self._parts[self._part_of[place]], int(self.row_of[place])
        fields, numbers, first = part.row_cache.fields, part.row_cache.numbers, part.first(row)
        return Match(
            memory=fields["memory"][row], seq=first.seq, time=first.created_at,
            text=fields["text"][row], score=round(score, SCORE_DIGITS), tags=fields["tags"][row],
            source=first.source, document=fields["document"][row], part=int(numbers["part"][row]),
            parts=fields["parts"][row], near=near,
        )  # fmt: skip


def _counts(part: RowSelection, wanted: ArchiveQuery) -> np.ndarray:
    """Return a mask of the rows of a part that are current and pass the filters."""
    count, created_at = len(part.row_cache), part.numbers("created_at")
    keep = part.keep.copy()
    if wanted.after is not None:
        keep &= created_at >= wanted.after
    if wanted.before is not None:
        keep &= created_at < wanted.before
    if wanted.source:
        keep &= np.fromiter((source == wanted.source for source in part.sources()), bool, count)
    if wanted.memory:
        keep &= np.fromiter((memory == wanted.memory for memory in part.row_cache.fields["memory"]), bool, count)
    if wanted.tags:
        asked = set(wanted.tags)
        keep &= np.fromiter((asked <= set(tags) for tags in part.row_cache.fields["tags"]), bool, count)
    return keep


def newest(pool: CandidatePool, wanted: ArchiveQuery) -> Matches:
    """Return all rows, newest first: the result of an empty query."""
    order = np.lexsort([pool.numbers("part"), -pool.numbers("seq_from"), pool.whose, -pool.numbers("from_at")])
    page = order[wanted.first : wanted.first + wanted.count]
    return Matches(total=pool.size, results=[pool.match(place, 0.0) for place in page])


def find(pool: CandidatePool, wanted: ArchiveQuery, vector: np.ndarray | None) -> Matches:
    """Return the rows that match a query, best first. `vector` is that of the query; None if it has no words."""
    if not pool.count:
        return Matches(total=0, by_meaning=vector is not None)
    words = pool.words(query_numbers(wanted.query))
    phrase = without_quotes(wanted.query)
    whole = pool.holding(phrase) if phrase else np.zeros(pool.count, bool)
    meaning = np.zeros(pool.count) if vector is None else pool.meaning(vector)
    found = (words > 0) | whole
    if vector is not None:
        found[_nearest(meaning, pool)] = True
    quotes = phrases_in(wanted.query)[0]
    for quoted in quotes:
        found &= whole if quoted == phrase else pool.holding(quoted)
    places = np.flatnonzero(found)
    fused = MEANING * _spread(meaning[places]) + (1 - MEANING) * words[places]
    score = np.round(fused + whole[places], SCORE_DIGITS + 2)
    best = _best(score, wanted.first + wanted.count)
    among = places[best]
    order = best[np.lexsort([pool.numbers("part")[among], pool.numbers("seq_from")[among], pool.whose[among],
                             -score[best]])]  # fmt: skip
    page = order[wanted.first : wanted.first + wanted.count]
    results = [
        pool.match(int(places[row]), float(score[row]), None if vector is None else float(meaning[places[row]]))
        for row in page
    ]
    total = len(places) if quotes else pool.total(places)
    return Matches(total=total, results=results, by_meaning=vector is not None)


def _best(score: np.ndarray, count: int) -> np.ndarray:
    """Return the places of the `count` highest scores, and of those equal to the last of them."""
    if count >= len(score):
        return np.arange(len(score))
    return np.flatnonzero(score >= np.partition(score, len(score) - count)[len(score) - count])


def _nearest(meaning: np.ndarray, pool: CandidatePool) -> np.ndarray:
    """Return the NEAREST rows; among equal distances the earlier rows."""
    if len(meaning) <= NEAREST:
        return np.arange(len(meaning))
    border = np.partition(meaning, len(meaning) - NEAREST)[len(meaning) - NEAREST]
    near = np.flatnonzero(meaning >= border)
    return near[np.lexsort([pool.numbers("seq_from")[near], pool.whose[near], -meaning[near]])[:NEAREST]]


def _spread(cosines: np.ndarray) -> np.ndarray:
    """Scale cosines to the range from 0 (FARTHEST, or farther) to 1 (the nearest)."""
    highest = cosines.max(initial=FARTHEST)
    return np.clip((cosines - FARTHEST) / (highest - FARTHEST), 0, 1) if highest > FARTHEST else np.zeros(len(cosines))
