"""Convert points in time: microseconds UTC, datetimes and text. Pure: nothing here reads a clock.

Used wherever times are read or written.
"""

from datetime import UTC, datetime, timedelta

MICROSECONDS = 1_000_000
"""Microseconds of a second."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(at: int) -> datetime:
    """Return `at` as a datetime in UTC."""
    return EPOCH + timedelta(microseconds=at)


def iso(at: int) -> str:
    """Return `at` in ISO 8601, UTC with microseconds: 2024-01-31T12:00:00.000000Z."""
    return moment(at).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def with_zone(when: datetime) -> datetime:
    """Return a time with its zone: UTC if it has none."""
    return when if when.tzinfo is not None else when.replace(tzinfo=UTC)


def since_epoch(when: datetime) -> int:
    """Return a time as microseconds UTC; it is UTC if it has no zone."""
    return (with_zone(when) - EPOCH) // timedelta(microseconds=1)
