"""Ranked search over what was said, and over what was kept, as of any moment. Text only: vectors join it later."""

import math
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pyarrow as pa

from events import FunctionError

from .engine import HEAD, Projections
from .rows import Row
from .stems import query_stems, stems

K1, B = 0.9, 0.4
FIRST_YEAR, LAST_YEAR = 1000, 9000
"""Days outside these years, inclusive, are refused: no zone can be applied to the very first and last days."""
PHRASE_SCORE = 100.0
"""Added where the query occurs word for word."""


class Found(list[Row]):
    """One page of rows (seq, time, role, name, text, ref, score), and how many rows there are in all."""

    def __init__(self, rows: Sequence[Row], total: int) -> None:
        super().__init__(rows)
        self.total = total


class Search:
    """Search in one agent's memory as of one seq."""

    def __init__(
        self, projections: Projections, agent_id: str, as_of: int, zone: str = "UTC", *, said_by: int | None = None
    ) -> None:
        """`said_by`: search what had been said by that seq instead (a turn need not find its own question)."""
        self._said_by = as_of if said_by is None else said_by
        self._projections = projections
        self._agent_id = agent_id
        self._as_of = as_of
        self._zone = zone

    def recall(self, query: str, first: int, count: int) -> Found:
        """What was said, best match first: rows `first` (from 0) to `first + count` (exclusive)."""
        self._index()
        return self._page("search_recall", [query_stems(query), query.strip()], first, count)

    def recall_between(self, start: str, end: str, first: int, count: int) -> Found:
        """What was said from day `start` to day `end`, both inclusive, in order. Raises FunctionError for no date."""
        begin, finish = self._day(start), self._day(end)
        after = finish + timedelta(days=1)
        bounds = [int(begin.timestamp() * 1_000_000), int(after.timestamp() * 1_000_000)]
        return self._page("search_between", bounds, first, count)

    def archival(self, query: str, first: int, count: int) -> Found:
        """What was kept, best match first."""
        rows = self._projections.rows("archival_memory", self._agent_id, self._as_of)
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
                scored.append(
                    {
                        "seq": row["seq"], "time": row["time"], "role": "archival", "name": "", "text": row["text"],
                        "ref": row["memory_id"], "score": round(score, 4),
                    }
                )  # fmt: skip
        scored.sort(key=lambda hit: (-hit["score"], hit["seq"]))
        return Found(scored[first : first + count], len(scored))

    def _page(self, name: str, parameters: Sequence[object], first: int, count: int) -> Found:
        rows = self._projections.search(name, self._agent_id, self._said_by, *parameters, first, count)
        if rows:
            total = rows[0]["total"]
        elif first:
            before = self._projections.search(name, self._agent_id, self._said_by, *parameters, 0, 1)
            total = before[0]["total"] if before else 0
        else:
            total = 0
        return Found(rows, total)

    def _day(self, text: str) -> datetime:
        try:
            day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=ZoneInfo(self._zone))
        except ValueError:
            day = None
        if day is None or not FIRST_YEAR <= day.year <= LAST_YEAR:
            raise FunctionError(f"A date is written YYYY-MM-DD, such as 2024-01-31, not {text!r}.")
        return day

    def _index(self) -> None:
        """Give postings to what has been said since the last search."""
        self._projections.define("search_tables")
        said = self._projections.search("search_missing", self._agent_id, HEAD)
        before: list[str] = []
        postings: list[tuple[int, str, int, bool]] = []
        documents: list[tuple[int, int]] = []
        for row in said:
            words = stems(row["text"])
            if not row["known"]:
                own = {*stems(row["name"]), *words}
                counts = Counter([*stems(row["name"]), *words, *before])
                postings.extend((row["seq"], stem, n, stem in own) for stem, n in counts.items())
                documents.append((row["seq"], counts.total()))
            before = words
        if documents:
            self._projections.fill("postings", self._agent_id, _columns(postings, ["seq", "stem", "n", "own"]))
            self._projections.fill("documents", self._agent_id, _columns(documents, ["seq", "words"]))


def _columns(rows: Sequence[tuple[object, ...]], names: Sequence[str]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    return pa.table({name: list(column) for name, column in zip(names, columns, strict=True)})
