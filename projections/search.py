"""Ranked search over what was said, as of any moment: words by SQL, and meaning where somebody brings it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pyarrow as pa

from events import FunctionError

from .engine import HEAD, Projections
from .rows import Row
from .stems import query_stems, stems

FIRST_YEAR, LAST_YEAR = 1000, 9000
"""Days outside these years, inclusive, are refused: no zone can be applied to the very first and last days."""


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

    def recall(
        self,
        query: str,
        first: int,
        count: int,
        *,
        roles: Sequence[str] = (),
        start: str = "",
        end: str = "",
        meanings: Mapping[int, float] | None = None,
    ) -> Found:
        """What was said, best match first: rows `first` (from 0) to `first + count` (exclusive).

        `roles`: only of these speakers; `start`, `end`: days, both inclusive; `meanings`: how near in meaning messages
        are, by seq. Raises FunctionError for no date, or no role.
        """
        self._index()
        return self._page("search_recall", [query_stems(query), query.strip()], first, count)

    def recall_between(self, start: str, end: str, first: int, count: int) -> Found:
        """What was said from day `start` to day `end`, both inclusive, in order. Raises FunctionError for no date."""
        begin, finish = self._day(start), self._day(end)
        after = finish + timedelta(days=1)
        bounds = [int(begin.timestamp() * 1_000_000), int(after.timestamp() * 1_000_000)]
        return self._page("search_between", bounds, first, count)

    def days(self, start: str, end: str) -> tuple[int | None, int | None]:
        """Microseconds UTC of two days in the agent's zone: from (inclusive) and to (exclusive); None for none."""
        begin = int(self._day(start).timestamp() * 1_000_000) if start else None
        after = int((self._day(end) + timedelta(days=1)).timestamp() * 1_000_000) if end else None
        return begin, after

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
