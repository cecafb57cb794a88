"""What an agent kept, as of any moment: found by its words alone, by its id, or by the whole of its text."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from .engine import HEAD, Projections
from .rows import Row
from .search import Found
from .stems import query_stems, stems

K1, B = 0.9, 0.4
PHRASE_SCORE = 100.0
"""Added where the query occurs word for word."""

NO_END = 2**62
"""Microseconds UTC that are never reached."""


class Attached(NamedTuple):
    """What else an agent can read: the sources attached to it, and up to when (microseconds UTC, inclusive)."""

    sources: Sequence[str]
    time: int


class Kept:
    """The archival memory of one agent as of one seq."""

    def __init__(self, projections: Projections, agent_id: str, as_of: int) -> None:
        self._projections = projections
        self._agent_id = agent_id
        self._as_of = as_of

    def attached(self) -> Attached:
        """The sources that were attached by then. What was loaded into one counts up to the agent's last record."""
        rows = self._projections.rows("sources", self._agent_id, self._as_of)
        time = NO_END if self._as_of == HEAD else max((row["as_of_time"] for row in rows), default=0)
        return Attached(sorted(row["source"] for row in rows if row["source"]), time)

    def holding(self, text: str) -> str:
        """The id of a memory that holds exactly this text; empty if there is none."""
        return min((row["memory_id"] for row in self._rows() if row["text"] == text), default="")

    def memory(self, memory_id: str) -> Row | None:
        """The memory of that id; None if there is none, or it was deleted."""
        return next((_hit(row, 0.0) for row in self._rows() if row["memory_id"] == memory_id), None)

    def search(
        self,
        query: str,
        first: int,
        count: int,
        *,
        tags: Sequence[str] = (),
        after: int | None = None,
        before: int | None = None,
    ) -> Found:
        """What was kept, best match of words first: rows `first` (from 0) to `first + count` (exclusive).

        `tags`: each result has all of them; `after` (inclusive) and `before` (exclusive): microseconds UTC.
        """
        rows = [row for row in self._rows() if _passes(row, tags, after, before)]
        documents = [(row, Counter(stems(row["text"]))) for row in rows]
        average = sum(words.total() for _, words in documents) / max(len(documents), 1) or 1.0
        rarity = {
            stem: math.log(1 + (len(rows) - n + 0.5) / (n + 0.5))
            for stem in query_stems(query)
            if (n := sum(stem in words for _, words in documents))
        }
        scored = []
        for row, words in documents:
            weight = K1 * (1 - B + B * words.total() / average)
            score = sum(idf * words[stem] * (K1 + 1) / (words[stem] + weight) for stem, idf in rarity.items())
            if query.strip() and query.strip().lower() in row["text"].lower():
                score += PHRASE_SCORE
            if score > 0:
                scored.append(_hit(row, score))
        scored.sort(key=lambda hit: (-hit["score"], hit["seq"]))
        return Found(scored[first : first + count], len(scored))

    def _rows(self) -> Sequence[Row]:
        return self._projections.rows("archival_memory", self._agent_id, self._as_of)


def _passes(row: Row, tags: Sequence[str], after: int | None, before: int | None) -> bool:
    early = after is not None and row["time"] < after
    late = before is not None and row["time"] >= before
    return not early and not late and set(tags) <= set(row["tags"])


def _hit(row: Row, score: float) -> Row:
    return {
        "seq": row["seq"], "time": row["time"], "role": "archival", "name": "", "text": row["text"],
        "ref": row["memory_id"], "score": round(score, 4), "tags": row["tags"], "source": row["source"],
    }  # fmt: skip
