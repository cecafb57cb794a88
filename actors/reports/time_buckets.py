"""Divide the time of a report into days, weeks, months or years. Pure; all dates are in UTC.

Used by `fleet_figures`. A week begins on Monday, as DuckDB's `date_trunc` has it.
"""

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Literal, get_args

Unit = Literal["day", "week", "month", "year"]
UNITS: tuple[Unit, ...] = get_args(Unit)
BUCKETS_MAX = 60
"""Largest number of buckets in a chart: the last ones."""


def unit_for(first: date, last: date) -> Unit:
    """Return the smallest unit that divides the time from `first` to `last`, inclusive, into at most BUCKETS_MAX
    buckets. Longer times than that many years are divided into years too.
    """
    return next((unit for unit in UNITS[:-1] if count_between(first, last, unit) <= BUCKETS_MAX), UNITS[-1])


def beginning(day: date, unit: Unit) -> date:
    """Return the first day of the bucket that a day is in."""
    if unit in ("month", "year"):
        return day.replace(day=1, month=day.month if unit == "month" else 1)
    return day - timedelta(days=day.weekday()) if unit == "week" else day


def count_between(first: date, last: date, unit: Unit) -> int:
    """Return the number of buckets from that of `first` to that of `last`, both included."""
    if unit in ("month", "year"):
        years = last.year - first.year
        return 1 + (years if unit == "year" else years * 12 + last.month - first.month)
    apart = beginning(last, unit) - beginning(first, unit)
    return apart.days // (7 if unit == "week" else 1) + 1


def last_buckets(first: date, last: date, unit: Unit) -> list[date]:
    """Return the first days of the buckets from `first` to `last`, in order; of more than BUCKETS_MAX the last."""
    count = min(count_between(first, last, unit), BUCKETS_MAX)
    return list(_backwards(beginning(last, unit), unit, count))[::-1]


def _backwards(bucket: date, unit: Unit, count: int) -> Iterator[date]:
    for number in range(count):
        if number:
            bucket = beginning(bucket - timedelta(days=1), unit)
        yield bucket


def label(bucket: date, unit: Unit) -> str:
    """Return the name of a bucket on an axis: a day, the Monday of a week, 2026-11 for a month, 2026 for a year."""
    return bucket.isoformat()[: {"month": 7, "year": 4}.get(unit, 10)]


AXES = {"day": "day, UTC", "week": "week from Monday, UTC", "month": "month, UTC", "year": "year, UTC"}
"""Names of the axes."""
