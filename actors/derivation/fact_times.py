"""Read the time from which a fact holds, "last May" counted from the day of the message and never from today.

Used by the rules. Pure: the time of the message and the agent's zone are arguments.
"""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import NamedTuple

from everlog.events import Precision
from everlog.events.times import since_epoch
from everlog.projections.search.date_spans import DAY, MONTH, MONTH_NAMES, DaySpan, day_span, month_span, year_span
from everlog.projections.search.message_dates import MessageDate, message_dates

_MONTH_WITHOUT_YEAR = re.compile(rf"^(?!.*\d{{4}})(?!.*\bnext\b).*\b(?:{'|'.join(MONTH_NAMES)})\b", re.IGNORECASE)
"""Words of a date that names a month and no year."""
_FOR = re.compile(r"\bfor (?:the (?:last|past) |about |over |almost )?((?:\w+ )?(?:years?|months?|weeks?))\b(?! ago)")
_BEFORE = (
    r"(?:,?\s*\b(?:back |early |late |sometime )?(?:in|on|since|from|as of|starting|at the end of|during)(?: the)?)?\s*"
)


class FactTime(NamedTuple):
    """Time at which a fact begins or ends, as far as it is known."""

    begin: int
    """Microseconds UTC: the first of the day, month or year, or the moment itself."""
    end: int
    """Microseconds UTC, exclusive: end of that day, month or year; of a moment the moment itself."""
    precision: Precision


def moment_time(at: int) -> FactTime:
    """Return a moment as a time."""
    return FactTime(at, at, "moment")


def time_of(begin: int, precision: Precision, zone: tzinfo) -> FactTime:
    """Return the time that an event records as its beginning and its precision."""
    day = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=begin)
    local = day.astimezone(zone).date()
    match precision:
        case "day":
            span = day_span(local)
        case "month":
            span = month_span(local.year, local.month)
        case "year":
            span = year_span(local.year)
        case _:
            return moment_time(begin)
    return FactTime(begin, _microseconds(span.end, zone), precision)


def time_of_span(span: DaySpan, zone: tzinfo) -> FactTime | None:
    """Return the smallest of day, month and year that contains a span; None if no year contains it."""
    last = span.end - timedelta(days=1)
    if span.begin == last:
        unit, precision = day_span(last), "day"
    elif (span.begin.year, span.begin.month) == (last.year, last.month):
        unit, precision = month_span(last.year, last.month), "month"
    elif span.begin.year == last.year:
        unit, precision = year_span(last.year), "year"
    else:
        return None
    return FactTime(_microseconds(unit.begin, zone), _microseconds(unit.end, zone), precision)  # type: ignore[arg-type]


def _microseconds(day: date, zone: tzinfo) -> int:
    return since_epoch(datetime(day.year, day.month, day.day, tzinfo=zone))


class DatedText(NamedTuple):
    """A clause without its dates, and the time that the first of them names."""

    text: str
    time: FactTime | None
    told: str = ""
    """The first date in English, such as 19 May 2023."""


def dated(text: str, at: int, zone: tzinfo) -> DatedText:
    """Return a clause that was said at `at` (microseconds UTC) without the words of its dates, and their time.

    "For three years" is three years ago, to the year.
    """
    lasted = _FOR.search(text)
    found: Sequence[MessageDate] = message_dates(lasted[1] + " ago" if lasted else text, at, zone)
    if not found:
        return DatedText(text, None)
    if lasted:
        return DatedText(text.replace(lasted[0], " ").strip(), time_of_span(found[0].span, zone))
    for one in found:
        text = re.sub(rf"{_BEFORE}{re.escape(one.words)}(?!\w),?", " ", text, count=1, flags=re.IGNORECASE)
    span = _last(found[0], datetime.fromtimestamp(at / 1e6, zone).date())
    return DatedText(" ".join(text.split()).strip(" ,"), time_of_span(span, zone), span.told)


def _last(found: MessageDate, today: date) -> DaySpan:
    """Return the days of a date in a statement: of a day or month without a year the last one, and not the next.

    "Moved on 1 March", said at New Year, is about the year before.
    """
    span, begin = found.span, found.span.begin
    if begin <= today or span.precision not in (DAY, MONTH) or not _MONTH_WITHOUT_YEAR.search(found.words):
        return span
    if span.precision == DAY and (begin.month, begin.day) != (2, 29):
        return day_span(begin.replace(year=begin.year - 1))
    return month_span(begin.year - 1, begin.month)
