"""Search what was said, as of any moment, ranked by words, and by meaning if the caller has similarities.

Used by `actors/memory/agent_search.py`, for searches of agents and of people.
"""

from collections.abc import Container, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import msgspec

from everlog.events import FunctionError
from everlog.events.times import MICROSECONDS
from everlog.projections.engine import Projections
from everlog.projections.ranking import RecallCorpus, RecallQuery, rank
from everlog.projections.rows import Row
from everlog.projections.search_documents import SearchDocument, Utterance, agent_key, documents, sought_as, table
from everlog.projections.time_zones import zone_of
from everlog.store.base.bm25 import rarity
from everlog.store.base.stemming import phrases_in, query_stems, stems

FIRST_YEAR, LAST_YEAR = 1000, 9000
"""First and last year of a date, inclusive. Outside of them a time zone cannot be applied to every day."""

ROLES = ("assistant", "user")
"""Roles that a search can be limited to."""
DOCUMENTS_STORED_MIN = 16
"""Minimum number of new search documents that are written to their table. Writing costs as much as making so many again
once or twice.
"""


class RecallPage(list[Row]):
    """One page of rows (seq, time, role, name, text, ref, score), with the number of all rows in `total`."""

    def __init__(self, rows: Sequence[Row], total: int) -> None:
        super().__init__(rows)
        self.total = total


class RecallSearch:
    """Search in one agent's memory as of one seq."""

    def __init__(self, projections: Projections, agent_id: str, said_by: int, zone: str = "UTC") -> None:
        """Search what had been said by seq `said_by`."""
        self._said_by = said_by
        self._projections = projections
        self._agent_id = agent_id
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
        talk: RecallCorpus | None = None,
    ) -> RecallPage:
        """Return messages, best match first: rows `first` (from 0) to `first + count` (exclusive).

        `roles`: only of these speakers; `start`, `end`: days, both inclusive; `meanings`: similarity in meaning of
        messages, by seq; `talk`: the result of `talk`, if the caller has it. Each phrase in "double quotes" must occur
        in a result. If no message has all phrases, and the query has other words, these words decide. Raise
        FunctionError for an invalid date or role.
        """
        unknown = set(roles) - set(ROLES)
        if unknown:
            raise FunctionError(f"Nobody speaks as {', '.join(sorted(unknown))}. Roles are: {', '.join(ROLES)}.")
        after, before = self.days(start, end)
        phrases, rest = phrases_in(query)
        asked = RecallQuery("" if phrases else rest, phrases, query_stems(query), roles, after, before, meanings or {})
        talk = talk or self.talk()
        found = rank(talk, asked)
        if not found and phrases and rest:
            found = rank(talk, msgspec.structs.replace(asked, text=rest, phrases=()))
        return RecallPage([_row(talk, place, score) for place, score in found[first : first + count]], len(found))

    def without_names(self, query: str, talk: RecallCorpus | None = None) -> str:
        """Return the query without the names of speakers, unless nothing else is left.

        A name says little about the subject: vectors would find greetings. The ranking knows who speaks in any case.
        `talk` is as in `recall`.
        """
        talk = talk or self.talk()
        names = {stem for name in set(talk.name) for stem in stems(name)}
        kept = [word for word in query.split() if not names.intersection(stems(word))]
        return " ".join(kept) or query

    def rarities(self, query: str, talk: RecallCorpus | None = None) -> dict[str, float]:
        """Return the weight of each stem of a query: its rarity among the messages. `talk` is as in `recall`."""
        documents = (talk or self.talk()).stems
        return {
            stem: rarity(len(documents), sum(sought_as(stem) in document for document in documents))
            for stem in query_stems(query)
        }

    def message(self, seq: int) -> Row | None:
        """Return the message of that seq; None if there is none that can be found."""
        talk = self.talk()
        return _row(talk, talk.seq.index(seq), 0.0) if seq in talk.seq else None

    def recall_between(self, start: str, end: str, first: int, count: int) -> RecallPage:
        """Return messages from day `start` to day `end`, both inclusive, in order.
        Raise FunctionError for an invalid date.
        """
        begin, finish = self._day(start), self._day(end)
        after = finish + timedelta(days=1)
        begin_us, after_us = int(begin.timestamp() * MICROSECONDS), int(after.timestamp() * MICROSECONDS)
        rows = self._projections.search(
            "search_between", self._agent_id, self._said_by, self._agent_id, self._said_by, begin_us, after_us, first,
            count,
        )  # fmt: skip
        total = int(rows[0]["total"])
        page = [{**row, "score": 0.0} for row in rows if row["seq"] is not None]
        for row in page:
            del row["total"]
        return RecallPage(page, total)

    def days(self, start: str, end: str) -> tuple[int | None, int | None]:
        """Return two days in the agent's zone as microseconds UTC: begin (inclusive) and end (exclusive);
        None for no limit.
        """
        begin = int(self._day(start).timestamp() * MICROSECONDS) if start else None
        after = int((self._day(end) + timedelta(days=1)).timestamp() * MICROSECONDS) if end else None
        return begin, after

    def talk(self) -> RecallCorpus:
        """Return all messages that can be found: two plain queries, and a third if some have no search document yet."""
        (said,) = self._gathered("search_said", self._agent_id)
        self._projections.define("search_tables")
        rows = zip(*self._gathered("search_documents", agent_key(self._agent_id)), strict=True)
        known: dict[int, tuple[Any, ...]] = {row[0]: row for row in rows}
        if not known.keys() >= set(said):
            known |= {one.seq: one for one in self._documented(said, known)}
        mine = [known[seq] for seq in said]
        return RecallCorpus(*zip(*mine, strict=True)) if mine else RecallCorpus(*[()] * len(SearchDocument._fields))

    def _documented(self, said: Sequence[int], known: Container[int]) -> Sequence[SearchDocument]:
        """Make the search documents that are missing. If there are many, they are stored."""
        new = sorted({seq for pair in pairwise((said[0], *said)) if pair[1] not in known for seq in pair})
        rows = zip(*self._gathered("search_new", self._agent_id, new[0], new), strict=True)
        made = list(documents((Utterance(*row) for row in rows), known))
        if len(made) >= DOCUMENTS_STORED_MIN:
            self._projections.fill("documents", self._agent_id, table(self._agent_id, made))
        return made

    def _gathered(self, name: str, agent: object, *rest: object) -> Sequence[Sequence[Any]]:
        """Return the columns of a file of `sql/`."""
        found = self._projections.gather(name, self._agent_id, self._said_by, agent, self._said_by, *rest)
        return list(found.values())

    def _day(self, text: str) -> datetime:
        zone = zone_of(self._zone)
        try:
            day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=zone)
        except ValueError:
            day = None
        if day is None or not FIRST_YEAR <= day.year <= LAST_YEAR:
            raise FunctionError(f"A date is written YYYY-MM-DD, such as 2024-01-31, not {text!r}.")
        return day


def _row(talk: RecallCorpus, place: int, score: float) -> Row:
    return {
        "seq": talk.seq[place], "time": talk.time[place], "role": talk.role[place], "name": talk.name[place],
        "text": talk.text[place], "ref": talk.ref[place], "score": round(score, 4),
    }  # fmt: skip
