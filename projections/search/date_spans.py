"""Days, weeks, months and years as spans of days in one calendar: what the grammars of dates compute with.

Used by `date_grammar`, `east_asian_dates`, `query_dates` and `message_dates`. Pure: today is an argument. A date before
the first year or after the last of Python's calendar raises OverflowError or ValueError; the callers leave it out.
"""

from datetime import date, timedelta
from typing import NamedTuple

DAY, WEEK, WEEKEND, MONTH, SEASON, YEAR = "day", "week", "weekend", "month", "season", "year"
SEASON_MONTHS = (3, 6, 9, 12)
"""First months of spring, summer, autumn and winter, as in the north. Winter ends in the next year."""
SEASON_NAMES = ("spring", "summer", "autumn", "winter")
MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip


class DaySpan(NamedTuple):
    """Days from `begin` (inclusive) to `end` (exclusive), and how exactly they are named."""

    begin: date
    end: date
    precision: str
    """One of DAY, WEEK, WEEKEND, MONTH, SEASON and YEAR."""

    @property
    def told(self) -> str:
        """The span in English: 19 May 2023; the week of 15 May 2023; May 2023; summer 2022; 2022."""
        day = f"{self.begin.day} {MONTH_NAMES[self.begin.month - 1]} {self.begin.year}"
        if self.precision == DAY:
            return day
        if self.precision in {WEEK, WEEKEND}:
            return f"the {self.precision} of {day}"
        if (self.end - self.begin).days > {MONTH: 31, SEASON: 92, YEAR: 366}[self.precision]:
            return f"{day} to {(self.end - timedelta(days=1)).isoformat()}"
        if self.precision == MONTH:
            return day.partition(" ")[2]
        return f"{SEASON_NAMES[self.begin.month // 3 - 1]} {self.begin.year}" if self.precision == SEASON else day[-4:]


def day_span(day: date) -> DaySpan:
    """Return one day."""
    return DaySpan(day, day + timedelta(days=1), DAY)


def week_span(day: date, weeks: int = 0) -> DaySpan:
    """Return the week, Monday to Sunday, so many weeks after the one that has this day."""
    begin = day - timedelta(days=day.weekday()) + timedelta(weeks=weeks)
    return DaySpan(begin, begin + timedelta(weeks=1), WEEK)


def weekend_span(day: date, weekends: int = 0) -> DaySpan:
    """Return Saturday and Sunday: 0 for those of this day's week; -1 for the last that has ended, or that began before
    today; 1 for those of the next week.
    """
    week = week_span(day, weekends).begin
    return DaySpan(week + timedelta(days=5), week + timedelta(days=7), WEEKEND)


def month_span(year: int, month: int) -> DaySpan:
    """Return a month; `month` may be below 1 or above 12, for months of other years."""
    begin, end = (date(year + (n - 1) // 12, (n - 1) % 12 + 1, 1) for n in (month, month + 1))
    return DaySpan(begin, end, MONTH)


def season_span(year: int, season: int) -> DaySpan:
    """Return a season (0 for spring to 3 for winter) that begins in this year."""
    month = SEASON_MONTHS[season]
    return DaySpan(month_span(year, month).begin, month_span(year, month + 2).end, SEASON)


def year_span(year: int) -> DaySpan:
    """Return a year."""
    return DaySpan(date(year, 1, 1), date(year + 1, 1, 1), YEAR)


def unit_span(unit: str, today: date, count: int) -> DaySpan:
    """Return the day, week, weekend, month or year so many after that of today; before it, if `count` is negative."""
    if unit == DAY:
        return day_span(today + timedelta(days=count))
    if unit == WEEK:
        return week_span(today, count)
    if unit == WEEKEND:
        return weekend_span(today, count)
    return month_span(today.year, today.month + count) if unit == MONTH else year_span(today.year + count)


def weekday_span(today: date, weekday: int, direction: int) -> DaySpan:
    """Return the last such weekday (0 for Monday) before today if `direction` is -1, the first after today if it is 1,
    and the first from today on if it is 0.
    """
    ahead = (weekday - today.weekday()) % 7
    if direction < 0:
        return day_span(today + timedelta(days=ahead - 7))
    return day_span(today + timedelta(days=ahead or 7 * direction))


def yearly(spans: list[DaySpan], today: date, direction: int) -> DaySpan:
    """Return which of the spans of several years is meant: the latest that began by today if `direction` is -1, the
    first that ends after today if it is 1, and the nearest to today if it is 0.
    """
    if direction < 0:
        return max((span for span in spans if span.begin <= today), default=spans[0])
    if direction > 0:
        return min((span for span in spans if span.end > today), default=spans[-1])
    return min(spans, key=lambda span: (abs((span.begin - today).days), span.begin))
