"""Find the days that a query names, so that what was said then comes before the rest.

Used by the ranking. Pure: the moment of the search and the agent's time zone are arguments, so that a search as of a
past moment finds what it found then. The days add to a score and never leave a message out: memories are often told
some days later, and a date may be remembered wrongly.
"""

import re
import unicodedata
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, tzinfo
from typing import TYPE_CHECKING, NamedTuple

from everlog.events.times import MICROSECONDS, moment
from everlog.projections.search.date_grammar import PAST, Found, dates_named, holidays, numeric_dates
from everlog.projections.search.date_spans import DAY, MONTH, SEASON, WEEK, WEEKEND, YEAR, DaySpan
from everlog.projections.search.date_tables import TABLES
from everlog.projections.search.east_asian_dates import east_asian_dates
from everlog.store.base.stemming import language_of

if TYPE_CHECKING:
    import numpy as np

QUERY_CHARS_MAX = 2_000
"""Characters of a query, from its beginning, in which dates are sought."""
SPANS_MAX = 8
"""Maximum number of spans of one query: the first."""
FOUND_MAX = 200
"""Number of dates of one text, overlapping ones included, that are compared with each other."""
SLACK_DAYS = {DAY: (1, 7), WEEK: (2, 7), WEEKEND: (1, 7), MONTH: (3, 15), SEASON: (7, 30), YEAR: (15, 30)}
"""Days before and after a span at which a message counts for nothing, by precision: people tell what happened later."""

_RANGE = re.compile(
    r"\s*(?:to|and|until|till|through|-|–|—|a|y|hasta|bis|und|au|et|al?|e|到|至|から|부터)\s*", re.IGNORECASE
)
_OPENED = re.compile(r"(?:between|from|entre|de|del|desde|von|zwischen|du|dal|tra|从|從)\s*$", re.IGNORECASE)


class QuerySpan(NamedTuple):
    """Time that a query names: microseconds UTC from `begin` (inclusive) to `end` (exclusive)."""

    begin: int
    end: int
    precision: str
    """One of the precisions of `date_spans`."""
    slack_before: int
    slack_after: int
    """Microseconds before and after the span in which a message counts less the farther it is."""


def query_spans(query: str, now: int, zone: tzinfo = UTC, languages: Sequence[str] = ()) -> tuple[QuerySpan, ...]:
    """Return the times that a query names, in the order of the query; none if it names none.

    `now`: moment of the search, microseconds UTC; `languages`: those of the texts that are searched. A date without a
    year is the latest that has begun. 5/3/2023 gives both 5 March and 3 May.
    """
    today = moment(now).astimezone(zone).date()
    text = unicodedata.normalize("NFKC", query[:QUERY_CHARS_MAX])
    found = dates_in(text, today, PAST, languages)
    return tuple(_query_span(span, zone) for span in _joined(text, found)[:SPANS_MAX])


def closeness(spans: Sequence[QuerySpan], times: "np.ndarray") -> "np.ndarray":
    """Return for each time (microseconds UTC) how near it is to the nearest span: 1 inside, falling to 0 with the
    slack around it.
    """
    import numpy as np

    best = np.zeros(len(times))
    for span in spans:
        before = (times - (span.begin - span.slack_before)) / span.slack_before
        after = ((span.end - 1 + span.slack_after) - times) / span.slack_after
        best = np.maximum(best, np.clip(np.minimum(before, after), 0.0, 1.0))
    return best


def dates_in(text: str, today: date, side: int, languages: Sequence[str] = ()) -> list[Found]:
    """Return the dates that a text names in its own language, in English, or in one of `languages`, in order.

    A text in which they find none may be too short to know its language: then the dates of all languages count, if they
    have several words. Where dates overlap the longest counts; readings of the same words stay together.
    """
    found = [*numeric_dates(text), *east_asian_dates(text, today, side), *holidays(text, today, side)]
    cyrillic = ["russian"] if not text.isascii() else []
    for language in dict.fromkeys((language_of(text), "english", *languages, *cyrillic)):
        found += dates_named(text, language, today, side)
    if not found:
        for language in TABLES:
            found += (one for one in dates_named(text, language, today, side) if " " in text[one[0] : one[1]])
    return _longest(found)


def _longest(found: Sequence[Found]) -> list[Found]:
    """Return the dates that no longer one overlaps, in order. Only the first FOUND_MAX count."""
    kept: list[Found] = []
    for one in sorted(sorted(set(found))[:FOUND_MAX], key=lambda each: (each[0] - each[1], each[0], each[2])):
        clashes = (other for other in kept if one[0] < other[1] and other[0] < one[1])
        if all(other[:2] == one[:2] and other[2].precision == one[2].precision for other in clashes):
            kept.append(one)
    return sorted(kept, key=lambda each: (each[0], each[2]))


def _joined(text: str, found: Sequence[Found]) -> list[DaySpan]:
    """Return the spans; "from A to B" and "between A and B" are one."""
    spans: list[DaySpan] = []
    before: Found | None = None
    for one in found:
        if before and before[1] <= one[0] and _RANGE.fullmatch(text, before[1], one[0]) \
                and _OPENED.search(text[: before[0]][-20:]) and before[2].begin < one[2].end:  # fmt: skip
            spans[-1] = DaySpan(before[2].begin, max(before[2].end, one[2].end), one[2].precision)
        else:
            spans.append(one[2])
        before = one
    return spans


def _query_span(span: DaySpan, zone: tzinfo) -> QuerySpan:
    begin, end = (int(datetime.combine(day, time(), zone).timestamp() * MICROSECONDS) for day in (span.begin, span.end))
    before, after = (days * 24 * 3600 * MICROSECONDS for days in SLACK_DAYS[span.precision])
    return QuerySpan(begin, end, span.precision, before, after)
