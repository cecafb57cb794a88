"""Convert points in time: microseconds UTC, datetimes and text. Pure: nothing here reads a clock.

Used wherever times are read or written. Logs hold microseconds; the Python API takes and returns datetimes with a zone,
and refuses those without one, because they would mean another moment on each machine.
"""

from datetime import UTC, datetime, timedelta

from everlog.events.errors import BadInput

MICROSECONDS = 1_000_000
"""Microseconds of a second."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(at: int) -> datetime:
    """Return `at` as a datetime in UTC."""
    return EPOCH + timedelta(microseconds=at)


def iso(at: int) -> str:
    """Return `at` in ISO 8601, UTC with microseconds: 2024-01-31T12:00:00.000000Z."""
    return moment(at).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def since_epoch(when: datetime) -> int:
    """Return a time as microseconds UTC; it is UTC if it has no zone."""
    return ((when if when.tzinfo is not None else when.replace(tzinfo=UTC)) - EPOCH) // timedelta(microseconds=1)


def microseconds_of(when: object, name: str) -> int:
    """Return a time that a program gave as microseconds UTC. `name`: what the program calls the time, for the error.

    Raises BadInput for anything but a datetime with a zone.
    """
    if not isinstance(when, datetime):
        raise BadInput(f"`{name}` is a datetime with a time zone, such as datetime.now(UTC), not {when!r}.")
    if when.utcoffset() is None:
        raise BadInput(
            f"`{name}` has no time zone: {when!r} is another moment in each zone. Give datetime(..., tzinfo=UTC), or "
            "`.astimezone()` for a time of this machine. Nothing was changed."
        )
    return since_epoch(when)
