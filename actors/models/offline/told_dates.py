"""Tell the dates that a message means by "yesterday", "last month" or "two weeks ago". Pure, no state.

Used by `hits.py`. A relative date counts from the day on which it was said, never from today; so a date that a quote
does not say is told beside it.
"""

from collections.abc import Callable
from datetime import date, timedelta

from everlog.actors.models.offline.english import any_case

DATES_MAX = 2
"""Maximum dates that are told of one text."""

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_COUNTS = {"a": 1, "an": 1, "one": 1, "a couple of": 2, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6,
           "seven": 7, "eight": 8, "nine": 9, "ten": 10}  # fmt: skip
_NEAR = {"yesterday": -1, "last night": -1, "the day before yesterday": -2, "tomorrow": 1}
"""Days from the day on which it was said."""
_RELATIVE = any_case(
    rf"\b(?P<near>{'|'.join(sorted(_NEAR, key=len, reverse=True))})\b"
    r"|\b(?P<way>last|next|this) (?:(?P<weekday>" + "|".join(_WEEKDAYS) + r")|(?P<unit>week|weekend|month|year))\b"
    rf"|\b(?P<count>{'|'.join(sorted(_COUNTS, key=len, reverse=True))}|[1-9]\d?) (?P<ago>day|week|month|year)s? ago\b"
)
_WAYS = {"last": -1, "this": 0, "next": 1}


def dates_told(text: str, said: str) -> list[str]:
    """Return the relative dates of a text with what they mean, such as "last month: April 2023", at most DATES_MAX.

    `said`: the day on which it was said, as YYYY-MM-DD. A date outside of the calendar is left out.
    """
    found: dict[str, str] = {}
    for match in _RELATIVE.finditer(text):
        groups = {name: value.lower() for name, value in match.groupdict().items() if value}
        try:
            found.setdefault(" ".join(match[0].lower().split()), _meant(groups, date.fromisoformat(said)))
        except (ValueError, OverflowError):
            continue
    return [f"{words}: {meant}" for words, meant in found.items()][:DATES_MAX]


def _meant(groups: dict[str, str], said: date) -> str:
    if near := groups.get("near"):
        return _day(said + timedelta(days=_NEAR[near]))
    if ago := groups.get("ago"):
        count = groups["count"]
        return _UNITS[ago](said, -(_COUNTS.get(count) or int(count)))
    way = _WAYS[groups["way"]]
    if weekday := groups.get("weekday"):
        return _day(_weekday(said, _WEEKDAYS.index(weekday), way))
    return _WHOLE[groups["unit"]](said, way)


def _weekday(said: date, number: int, way: int) -> date:
    """Return the nearest such weekday before the day, after it, or, for "this", in its week."""
    if way < 0:
        return said - timedelta(days=(said.weekday() - number - 1) % 7 + 1)
    if way > 0:
        return said + timedelta(days=(number - said.weekday() - 1) % 7 + 1)
    return said + timedelta(days=number - said.weekday())


def _day(when: date) -> str:
    return f"{when.day} {_MONTHS[when.month - 1]} {when.year}"


def _month(said: date, count: int) -> str:
    months = said.year * 12 + said.month - 1 + count
    return f"{_MONTHS[months % 12]} {date(months // 12, 1, 1).year}"


def _year(said: date, count: int) -> str:
    return str(date(said.year + count, 1, 1).year)


def _week(said: date, count: int) -> str:
    return f"the week of {_day(said - timedelta(days=said.weekday()) + timedelta(weeks=count))}"


def _weekend(said: date, count: int) -> str:
    return f"the weekend of {_day(said - timedelta(days=said.weekday() - 5) + timedelta(weeks=count))}"


_UNITS: dict[str, Callable[[date, int], str]] = {
    "day": lambda said, count: _day(said + timedelta(days=count)), "week": _week, "month": _month, "year": _year,
}  # fmt: skip
_WHOLE: dict[str, Callable[[date, int], str]] = {"week": _week, "weekend": _weekend, "month": _month, "year": _year}
