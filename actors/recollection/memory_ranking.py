"""Score memories by relevance, recency and importance. Pure: the time is an argument, and a search changes nothing.

Two modes. `paper` is the formula of Generative Agents (arXiv 2304.03442) as the paper has it, not as its code has it,
where the least recently used memory has the highest recency:

    score = recency + importance + relevance
    recency = 0.995 ** hours since the memory was said or last retrieved

Each of the three is scaled to [0, 1] by the smallest and the largest value among the candidates. A term that is the
same for all of them distinguishes nothing: it contributes 0, and is reported.

In the mode `default` relevance decides. Recency and importance are factors that together change it by at most NUDGE:

    score = relevance * (1 + NUDGE * (recency + importance' - 1))      importance' = (importance - 1) / 9
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from everlog.actors.recollection.memory_items import MemoryItem
from everlog.events.times import MICROSECONDS

MemoryMode = Literal["default", "paper", "embedding", "combined"]
"""Ways to rank memories. `embedding`: by the similarity in meaning alone; `combined`: as `default`, and insights stand
before what they rest on, see `parts_after`.
"""
RECENCY_PER_HOUR = 0.995
"""Factor of a memory's recency for each hour."""
NUDGE = 0.1
"""Largest change of a relevance by recency and importance together, as a share of it."""
INSIGHT_SHARE = 0.8
"""Share of a part's score that an insight needs to stand before that part."""
DIGITS = 9
"""Decimal places of scores and terms."""
_HOUR_US = 3600 * MICROSECONDS


class Candidate(NamedTuple):
    """A memory that a query is compared with."""

    item: MemoryItem
    relevance: float
    """From 0 to 1, or a cosine from -1 to 1."""
    accessed: int
    """Time of the last access, microseconds UTC: when it was said or noted, or later when it was retrieved."""


class ScoredMemory(msgspec.Struct, frozen=True):
    """A memory with its score, and the terms of that score: of the mode `paper` scaled, of others as they are."""

    item: MemoryItem
    score: float
    relevance: float
    recency: float
    importance: float


class RankedMemories(msgspec.Struct, frozen=True):
    """Memories that answer a query, best first."""

    mode: MemoryMode
    now: int
    """Time up to which recency counts, microseconds UTC."""
    results: Sequence[ScoredMemory] = ()
    constant: Sequence[str] = ()
    """Terms that were the same for all candidates, and so contributed 0: of the mode `paper` only."""
    by_meaning: bool = False
    """True if relevance is, or includes, the similarity in meaning; False: it is that of words alone."""


def recency(accessed: int, now: int) -> float:
    """Return the recency of a memory, above 0 and at most 1. An access after `now` counts as one at that time."""
    return float(RECENCY_PER_HOUR ** (max(now - accessed, 0) / _HOUR_US))


def normalized(values: Sequence[float]) -> tuple[list[float], bool]:
    """Return the values scaled to [0, 1] by the smallest and the largest, and True if they are all the same: then each
    is 0. No values are none, and not the same.
    """
    low, high = min(values, default=0.0), max(values, default=0.0)
    if low == high:
        return [0.0] * len(values), bool(values)
    return [(value - low) / (high - low) for value in values], False


def by_paper(candidates: Sequence[Candidate], now: int) -> tuple[list[ScoredMemory], list[str]]:
    """Return all candidates with their scores of the mode `paper`, best first, and the names of constant terms.

    Equal scores are in the order of their seqs.
    """
    terms = {
        "relevance": [one.relevance for one in candidates],
        "recency": [recency(one.accessed, now) for one in candidates],
        "importance": [float(one.item.importance) for one in candidates],
    }
    scaled = {name: normalized(values) for name, values in terms.items()}
    constant = [name for name, (_, same) in scaled.items() if same]
    columns = zip(candidates, *(values for values, _ in scaled.values()), strict=True)
    return _sorted(_scored(one.item, sum(values), *values) for one, *values in columns), constant


def by_default(candidates: Sequence[Candidate], now: int) -> list[ScoredMemory]:
    """Return all candidates with their scores of the mode `default`, best first; equal ones in the order of seqs."""
    found = []
    for one in candidates:
        recent, important = recency(one.accessed, now), (one.item.importance - 1) / 9
        factor = 1 + NUDGE * (min(max(recent + important, 0.0), 2.0) - 1)
        found.append(_scored(one.item, one.relevance * factor, one.relevance, recent, important))
    return _sorted(found)


def by_meaning(candidates: Sequence[Candidate], now: int) -> list[ScoredMemory]:
    """Return all candidates by their relevance alone, best first; equal ones in the order of their seqs."""
    return _sorted(
        _scored(one.item, one.relevance, one.relevance, recency(one.accessed, now), (one.item.importance - 1) / 9)
        for one in candidates
    )


def _scored(item: MemoryItem, *values: float) -> ScoredMemory:
    return ScoredMemory(item, *(round(value, DIGITS) for value in values))


def _sorted(scored: Iterable[ScoredMemory]) -> list[ScoredMemory]:
    return sorted(scored, key=lambda one: (-one.score, one.item.key))


def closures(items: Sequence[MemoryItem]) -> dict[int, frozenset[int]]:
    """Return, for each derived memory by its seq, the seqs of all that it rests on, directly or through others."""
    found: dict[int, frozenset[int]] = {}
    for item in sorted(items, key=lambda one: one.seq):  # sources are earlier records
        if item.sources:
            direct = frozenset(item.sources)
            found[item.seq] = direct.union(*(found.get(seq, frozenset()) for seq in direct))
    return found


def parts_after(
    ranked: Sequence[ScoredMemory], parts_of: Mapping[int, frozenset[int]], *, leave_out: bool = False
) -> list[ScoredMemory]:
    """Return the results with each insight before its parts, the memories that it rests on: the mode `combined`.

    An insight that is found after one of its parts is moved to directly before the first of them, if its score is at
    least INSIGHT_SHARE of that part's. An outdated insight is not moved. All other results keep their order. With
    `leave_out` the parts that stand after an insight which is not outdated are left out.
    """
    order = list(ranked)
    for insight in [one for one in ranked if _may_cover(one)]:
        parts, place = parts_of.get(insight.item.seq, frozenset()), order.index(insight)
        first = next((n for n, one in enumerate(order[:place]) if one.item.seq in parts), None)
        if first is not None and insight.score >= INSIGHT_SHARE * order[first].score:
            order.insert(first, order.pop(place))
    if not leave_out:
        return order
    shown: list[ScoredMemory] = []
    covered: set[int] = set()
    for one in order:
        if one.item.seq not in covered:
            shown.append(one)
            covered |= parts_of.get(one.item.seq, frozenset()) if _may_cover(one) else frozenset()
    return shown


def _may_cover(one: ScoredMemory) -> bool:
    return one.item.kind == "insight" and not one.item.outdated
