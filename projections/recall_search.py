"""Search what was said, as of any moment, ranked by words, and by meaning if the caller has similarities.

Used by `actors/memory/agent_search.py`, for searches of agents and of people.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta, tzinfo

import msgspec
import numpy as np

from everlog.events import FunctionError
from everlog.events.times import MICROSECONDS
from everlog.projections.engine import Projections
from everlog.projections.hot.rows import Row
from everlog.projections.search.aliases import with_aliases
from everlog.projections.search.features import FeatureQuery
from everlog.projections.search.query_dates import closeness, query_spans
from everlog.projections.search.query_shape import is_to_assistant, times_asked_for
from everlog.projections.search.ranking import RecallQuery, rank
from everlog.projections.search.talk_index import ROLES, TalkView
from everlog.projections.talk_reads import read_talks
from everlog.projections.time_zones import zone_of
from everlog.store.base.bm25 import rarity
from everlog.store.base.stemming import phrases_in, query_stems, query_words, stems

FIRST_YEAR, LAST_YEAR = 1000, 9000
"""First and last year of a date, inclusive. Outside of them a time zone cannot be applied to every day."""


class RecallPage(list[Row]):
    """One page of rows (seq, time, role, name, text, ref, score, near), with the number of all rows in `total`.

    `near` is the similarity in meaning; None if it is not known.
    """

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
        meanings: np.ndarray | None = None,
        talk: TalkView | None = None,
    ) -> RecallPage:
        """Return messages, best match first, as `recalled` does. `talk`: the result of `talk`, if the caller has it."""
        talk = self.talk() if talk is None else talk
        wanted = MessageFilters(roles, start, end)
        return recalled(talk, query, first, count, wanted, zone=self._zone, meanings=meanings)

    def without_names(self, query: str, talk: TalkView | None = None) -> str:
        """Return the query without the names of speakers, unless nothing else is left.

        A name says little about the subject: vectors would find greetings. The ranking knows who speaks in any case.
        `talk` is as in `recall`.
        """
        return without_names(query, (self.talk() if talk is None else talk).name_stems)

    def rarities(self, query: str, talk: TalkView | None = None) -> dict[str, float]:
        """Return the weight of each stem of a query: its rarity among the messages. `talk` is as in `recall`."""
        return rarities(query, self.talk() if talk is None else talk)

    def message(self, seq: int) -> Row | None:
        """Return the message of that seq; None if there is none that can be found."""
        talk = self.talk()
        place = int(np.searchsorted(talk.seq, seq))
        return _row(talk, place, 0.0) if place < len(talk) and talk.seq[place] == seq else None

    def recall_between(self, start: str, end: str, first: int, count: int) -> RecallPage:
        """Return messages from day `start` to day `end`, both inclusive, in order.
        Raise FunctionError for an invalid date.
        """
        begin, finish = _day(start, self._zone), _day(end, self._zone)
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
        """Return two days in the agent's zone as `days_between` does."""
        return days_between(start, end, self._zone)

    def talk(self) -> TalkView:
        """Return all messages that can be found."""
        return read_talks(self._projections, [(self._agent_id, self._said_by)])[0]


class MessageFilters(msgspec.Struct, frozen=True):
    """Conditions on messages besides the query. An empty field is no condition."""

    roles: Sequence[str] = ()
    """Roles of the speakers."""
    start: str = ""
    """First day, YYYY-MM-DD in the agent's zone, inclusive."""
    end: str = ""
    """Last day, inclusive."""


def recalled(
    talk: TalkView,
    query: str,
    first: int,
    count: int,
    wanted: MessageFilters,
    *,
    zone: str,
    meanings: np.ndarray | None = None,
) -> RecallPage:
    """Return messages of a talk, best match first: rows `first` (from 0) to `first + count` (exclusive).

    `zone`: IANA zone in which days are counted; `meanings`: similarity in meaning of each message; None or an empty
    array if it is not known. Each phrase in "double quotes" must occur in a result. If no message has all phrases, and
    the query has other words, these words decide. Raise FunctionError for an invalid date or role.
    """
    check_roles(wanted.roles)
    after, before = days_between(wanted.start, wanted.end, zone)
    phrases, rest = phrases_in(query)
    asked = RecallQuery("" if phrases else rest, phrases, described(query, talk), wanted.roles, after, before)
    dates = known_dates(query, talk, zone_of(zone))
    places, scores = rank(talk, asked, meanings, dates)
    if not len(places) and phrases and rest:
        places, scores = rank(talk, msgspec.structs.replace(asked, text=rest, phrases=()), meanings, dates)
    chosen = slice(first, first + count)
    page = [
        _row(talk, place, score, meanings)
        for place, score in zip(places[chosen].tolist(), scores[chosen].tolist(), strict=True)
    ]
    return RecallPage(page, len(places))


def check_roles(roles: Sequence[str]) -> None:
    """Raise FunctionError for a role that no speaker has."""
    unknown = set(roles) - set(ROLES)
    if unknown:
        raise FunctionError(f"Nobody speaks as {', '.join(sorted(unknown))}. Roles are: {', '.join(sorted(ROLES))}.")


def rarities(query: str, talk: TalkView) -> dict[str, float]:
    """Return the weight of each stem of a query: its rarity among the messages."""
    return {one: rarity(len(talk), len(talk.places_with(one))) for one in query_stems(query, talk.languages)}


def days_between(start: str, end: str, zone: str) -> tuple[int | None, int | None]:
    """Return two days in a zone as microseconds UTC: begin (inclusive) and end (exclusive); None for no limit.

    Raise FunctionError for an invalid date.
    """
    begin = int(_day(start, zone).timestamp() * MICROSECONDS) if start else None
    after = int((_day(end, zone) + timedelta(days=1)).timestamp() * MICROSECONDS) if end else None
    return begin, after


def _day(text: str, zone_name: str) -> datetime:
    zone = zone_of(zone_name)
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=zone)
    except ValueError:
        day = None
    if day is None or not FIRST_YEAR <= day.year <= LAST_YEAR:
        raise FunctionError(f"A date is written YYYY-MM-DD, such as 2024-01-31, not {text!r}.")
    return day


def described(query: str, talk: TalkView) -> FeatureQuery:
    """Return a query as the features need it."""
    words = with_aliases(list(dict.fromkeys(query_words(query, talk.languages))), talk)
    return FeatureQuery(words, times_asked_for(query), is_to_assistant(query))


def known_dates(query: str, talk: TalkView, zone: tzinfo = UTC) -> np.ndarray | None:
    """Return how close each message is to the days that a query names, from 0 to 1; None if it names none. `Yesterday`
    counts from the newest message, so that a search as of a past moment finds what it found then.
    """
    spans = query_spans(query, int(talk.time[-1]), zone, talk.languages) if len(talk) else ()
    return closeness(spans, talk.time) if spans else None


def without_names(query: str, name_stems: Iterable[frozenset[str]]) -> str:
    """Return the query without the names of speakers, given by their stems, unless nothing else is left."""
    names = frozenset[str]().union(*name_stems)
    kept = [word for word in query.split() if not (names and names.intersection(stems(word)))]
    return " ".join(kept) or query


def _row(talk: TalkView, place: int, score: float, meanings: np.ndarray | None = None) -> Row:
    role, name, text = talk.message(place)
    near = round(float(meanings[place]), 5) if meanings is not None and len(meanings) else None
    return {
        "seq": int(talk.seq[place]), "time": int(talk.time[place]), "role": role, "name": name, "text": text,
        "ref": talk.ref(place), "score": round(score, 4), "near": near,
    }  # fmt: skip
