"""Points in time as people and machines read them. Pure: the present is an argument, times are microseconds UTC."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECONDS = 1_000_000
_UNITS = ((365 * 86400, "year"), (30 * 86400, "month"), (86400, "day"), (3600, "hour"), (60, "minute"))


def moment(at: int) -> datetime:
    """`at` as a datetime in UTC."""
    return _EPOCH + timedelta(microseconds=at)


def iso(at: int) -> str:
    """ISO 8601 in UTC with microseconds: 2024-01-31T12:00:00.000000Z."""
    return moment(at).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def microseconds(text: str) -> int:
    """The time that an ISO 8601 text names; without a zone it is UTC. Raises ValueError."""
    return since_epoch(datetime.fromisoformat(text))


def since_epoch(when: datetime) -> int:
    """The time as microseconds UTC; without a zone it is UTC."""
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return (when - _EPOCH) // timedelta(microseconds=1)


def day(at: int) -> str:
    """The date alone."""
    return moment(at).strftime("%Y-%m-%d")


def clock(at: int) -> str:
    """Date and time to the second, for people."""
    return moment(at).strftime("%Y-%m-%d %H:%M:%S")


def span(seconds: int) -> str:
    """A length of time as it is typed: 1h30m."""
    parts = []
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m"), (1, "s")):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def relative(at: int, now: int) -> str:
    """How long ago, in the largest unit that fits: "3 minutes ago"."""
    seconds = (now - at) // _MICROSECONDS
    if seconds < 0:
        return f"at {clock(at)}"
    for size, unit in _UNITS:
        count = seconds // size
        if count:
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now" if seconds < 10 else f"{seconds} seconds ago"
