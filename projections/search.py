"""Ranked search over what was said, as of any moment: words by SQL, and meaning where somebody brings it."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from events import FunctionError

from .documents import documents, tables
from .engine import HEAD, Projections
from .rows import Row
from .stems import query_stems, stems

FIRST_YEAR, LAST_YEAR = 1000, 9000
"""Days outside these years, inclusive, are refused: no zone can be applied to the very first and last days."""

FIRST, LAST = -(2**62), 2**62
"""Microseconds UTC that nothing is before or after."""
ROLES = ("assistant", "user")
_PHRASE = re.compile(r'["\u201c\u201d]([^"\u201c\u201d]+)["\u201c\u201d]')


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
        are, by seq. Each phrase in "double quotes" must occur in a result; but if none has them all, and the query
        says more than them, its words decide. Raises FunctionError for no date, or no role.
        """
        unknown = set(roles) - set(ROLES)
        if unknown:
            raise FunctionError(f"Nobody speaks as {', '.join(sorted(unknown))}. Roles are: {', '.join(ROLES)}.")
        self._projections.define("search_tables")
        after, before = self.days(start, end)
        phrases, rest = phrases_in(query)
        near = meanings or {}
        wanted = (
            query_stems(query), list(near), list(near.values()), list(roles),
            FIRST if after is None else after, LAST if before is None else before,
        )  # fmt: skip
        found = self._indexed((self._agent_id, "" if phrases else rest, phrases, *wanted), first, count)
        if found.total or not (phrases and rest):
            return found
        return self._page("search_recall", (self._agent_id, rest, [], *wanted), first, count)

    def without_names(self, query: str) -> str:
        """The query without the names of those who spoke, unless nothing else is left: what it is about, not of whom.

        A name says little of what is meant: vectors then find greetings. The ranking itself knows who speaks.
        """
        speakers = self._projections.search("search_speakers", self._agent_id, self._said_by)
        names = {stem for row in speakers for stem in stems(row["name"])}
        kept = [word for word in query.split() if not names.intersection(stems(word))]
        return " ".join(kept) or query

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
        rows = self._rows(name, parameters, first, count)
        if rows or not first:
            return Found(rows, rows[0]["total"] if rows else 0)
        before = self._rows(name, parameters, 0, 1)
        return Found([], before[0]["total"] if before else 0)

    def _rows(self, name: str, parameters: Sequence[object], first: int, count: int) -> list[Row]:
        return self._projections.search(name, self._agent_id, self._said_by, *parameters, first, count)

    def _day(self, text: str) -> datetime:
        try:
            day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=ZoneInfo(self._zone))
        except ValueError:
            day = None
        if day is None or not FIRST_YEAR <= day.year <= LAST_YEAR:
            raise FunctionError(f"A date is written YYYY-MM-DD, such as 2024-01-31, not {text!r}.")
        return day

    def _indexed(self, wanted: Sequence[object], first: int, count: int) -> Found:
        """A page of the ranking, once all that it ranks has its document.

        The ranking itself says whether something has none: to look before it would cost half as much again. An agent at
        work has said something since it searched last, though, and would be ranked twice.
        """
        if self._as_of != HEAD:
            self._index()
        found = self._page("search_recall", wanted, first, count)
        if (found and not found[0]["missing"]) or not self._index():
            return found
        return self._page("search_recall", wanted, first, count)

    def _index(self) -> bool:
        """Give documents to what has been said since the last time; whether there was anything."""
        new = list(documents(self._projections.search("search_missing", self._agent_id, HEAD)))
        if new:
            heads, postings = tables(new)
            self._projections.fill("postings", self._agent_id, postings)
            self._projections.fill("documents", self._agent_id, heads)
        return bool(new)


def phrases_in(query: str) -> tuple[list[str], str]:
    """The phrases in double quotes, and the query without them, all in lower case."""
    found = [phrase.strip().lower() for phrase in _PHRASE.findall(query)]
    return [phrase for phrase in found if phrase], _PHRASE.sub(" ", query).strip().lower()
